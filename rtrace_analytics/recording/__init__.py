"""The recording side: a trace writer any trainer can import, a recovery ledger with its hook, and simulated worlds.

Importing this folder loads nothing heavy (no duckdb, pandas, pyarrow or matplotlib): it runs inside the trainer.
"""

from rtrace_analytics.recording.ledger import LedgerError, RecoveryLedger
from rtrace_analytics.recording.writer import RolloutTrace, TraceWriteError

__all__ = ["LedgerError", "RecoveryLedger", "RolloutTrace", "TraceWriteError"]
