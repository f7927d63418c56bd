"""The report: one HTML file of what the pipeline has found, for people to look at. Needs pyarrow and Jinja2."""

from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.report._page import write_report
from reactive_runtime.report._report_tables import Report, load
from reactive_runtime.report._year import Year, load_year
from reactive_runtime.report._year_page import write_year

__all__ = ["Report", "Year", "load", "load_year", "write_report", "write_year"]

_all_at_home(globals())
