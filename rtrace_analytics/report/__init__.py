"""The report: one HTML page that shows and defines every figure, complete in itself."""

from rtrace_analytics.report.build import html, write

__all__ = ["html", "write"]
