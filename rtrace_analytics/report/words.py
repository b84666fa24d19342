"""Figures in words: the headline and what stands in tables."""

from collections.abc import Sequence
from typing import Any

from rtrace_analytics.text import count, date, length, share

Row = dict[str, Any]


def headline(restores: Sequence[Row], total_s: float) -> str:
    """The finding in one or two sentences. `restores` are rows of cut_time_waste, `total_s` all rollout seconds."""
    if not restores:
        return "No run restored a snapshot: nothing was lost to a stop."
    known = [row for row in restores if row["lost_s"] is not None]
    unknown = len(restores) - len(known)
    if not known:
        return f"{count(unknown, 'restore')}, and the cut of none is known: what was lost cannot be told."
    thrown, unsaved = (sum(row[name] for row in known) for name in ("thrown_away_s", "never_saved_s"))
    if thrown + unsaved == 0:
        said = f"{count(len(known), 'stop')} threw nothing away."
    else:
        said = (
            f"{count(len(known), 'stop')} threw away {share(thrown + unsaved, total_s)} of all rollout time: "
            f"{length(thrown)} before the cut, {length(unsaved)} after it."
        )
    if unknown:
        said += f" What {count(unknown, 'more restore')} lost cannot be told: the cut is not known."
    return said


def double_count(restores: Sequence[Row]) -> str | None:
    """What counting every report would have said, where it is something else."""
    known = [row for row in restores if row["lost_s"] is not None]
    thrown, naive = (sum(row[name] for row in known) for name in ("thrown_away_s", "naive_s"))
    if not known or abs(naive - thrown) < 1e-6 * max(1.0, thrown):
        return None
    return (
        f"Without deduplication (every report counts, up to the cut) it would be {length(naive)} before the cut "
        f"instead of {length(thrown)}: that counts repeated reports again and finished attempts until the cut, and "
        "leaves out what was lost without a report."
    )


def moment(t: float | None) -> str:
    """A moment as a date (UTC) where it is seconds since the epoch, else as it is."""
    return "unknown" if t is None else date(t) or f"{t:.10g} s"


def seconds(value: float | None) -> str:
    """A length for a table."""
    return "unknown" if value is None else length(value)
