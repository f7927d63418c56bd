"""The report: one HTML file of what the pipeline has found, for people to look at. Needs pyarrow and Jinja2."""

from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.report._page import write_report
from reactive_runtime.report._report_tables import Report, load

__all__ = ["Report", "load", "write_report"]

_all_at_home(globals())
