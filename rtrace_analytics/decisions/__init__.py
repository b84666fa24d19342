"""Decisions: what another snapshot interval or recovery granularity would have cost, and advice with its evidence."""

from rtrace_analytics.decisions.advice import advice
from rtrace_analytics.decisions.whatif import whatif_interval

__all__ = ["advice", "whatif_interval"]
