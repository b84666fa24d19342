"""From trace files to the table `events`: what is new in them, nothing twice, nothing dropped in silence."""

from rtrace_analytics.loading.load import load
from rtrace_analytics.loading.report import FileReport, LoadReport

__all__ = ["FileReport", "LoadReport", "load"]
