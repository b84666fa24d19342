"""The card that stands for loaded traces: one line in a terminal, a small table in a notebook."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from rtrace_analytics.errors import InputError
from rtrace_analytics.views import EXPERIMENTS

if TYPE_CHECKING:
    from rtrace_analytics.traces import Traces


@dataclass(frozen=True)
class Summary:
    """What was loaded: counts; attempt-seconds of all rollouts and of those lost to restores."""

    experiments: int
    runs: int
    restores: int
    rejects: int
    seconds: float
    lost_s: float

    @property
    def lost_share(self) -> float | None:
        """Part of all rollout seconds lost to restores, 0 to 1; None where no rollout ran."""
        return self.lost_s / self.seconds if self.seconds else None


def summary(traces: "Traces") -> Summary:
    """Count what was loaded."""
    with traces.opened() as con:
        row = con.execute(f"""
            SELECT (SELECT count(*) FROM ({EXPERIMENTS})),
                   (SELECT count(*) FROM runs), (SELECT count(*) FROM restores),
                   (SELECT coalesce(sum(rejects), 0)::BIGINT FROM trace_files),
                   (SELECT coalesce(sum(seconds), 0) FROM rollout_seconds),
                   (SELECT coalesce(sum(seconds), 0) FROM rollout_seconds WHERE fate = 'restart')
        """).fetchone()
    assert row is not None
    return Summary(*row)


def _rows(s: Summary) -> list[tuple[str, str]]:
    lost = "no rollouts" if s.lost_share is None else f"{s.lost_share:.1%} of all rollout seconds"
    counts = {"experiments": s.experiments, "runs": s.runs, "restores": s.restores}
    told = [(name, f"{count:,}") for name, count in counts.items()]
    return [*told, ("lost to restores", lost), ("rejects", f"{s.rejects:,}")]


def text(traces: "Traces") -> str:
    """One line; never raises for traces that are closed."""
    try:
        return ", ".join(f"{name}: {value}" for name, value in _rows(summary(traces)))
    except InputError:
        return "closed"


def html(traces: "Traces") -> str:
    """A table of two columns; names from the traces do not come into it unescaped."""
    try:
        rows = _rows(summary(traces))
    except InputError as closed:
        rows = [("closed", str(closed))]
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table><caption><b>Traces</b></caption><tbody>{cells}</tbody></table>"
