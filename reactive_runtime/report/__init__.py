"""The report: one HTML file of what the pipeline has found, for people to look at. Needs pyarrow and Jinja2."""

from reactive_runtime.report.page import write_report
from reactive_runtime.report.report_tables import Report, load

__all__ = ["Report", "load", "write_report"]
