"""Time lines: the runs of an experiment laid end to end, without the down time between a stop and what follows it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


@dataclass
class Run:
    """A run as the database has it; moments are seconds since the epoch."""

    run: str
    first_t: float
    last_t: float
    first_dispatch_t: float | None
    last_act_t: float | None
    parent_run: str | None
    restore_t: float | None
    cut_t: float | None


@dataclass
class Stretch:
    """Where a run lies on its line: what happened at t is at `start_s` + t - `begin_t`."""

    run: Run
    start_s: float
    begin_t: float
    length_s: float

    def position(self, t: float) -> float:
        """The position of a moment on the line, in wall-seconds; what lies outside the stretch is at its edge."""
        return self.start_s + min(max(t - self.begin_t, 0.0), self.length_s)


@dataclass(frozen=True)
class Stop:
    """A stop that came: at `position_s` of its line, for the run `run`, which restored a snapshot cut at `cut_s`."""

    position_s: float
    cut_s: float
    run: str


@dataclass
class Line:
    """Stretches end to end, in wall-seconds; the first run's first line is at 0."""

    stretches: list[Stretch] = field(default_factory=list)

    @property
    def length_s(self) -> float:
        """Where its last stretch ends, wall-seconds."""
        last = self.stretches[-1]
        return last.start_s + last.length_s

    def stops(self) -> list[Stop]:
        """Where runs of this line stopped and another one restored, in order; a stop restored twice comes twice."""
        at = {stretch.run.run: stretch for stretch in self.stretches}
        found = []
        for stretch in self.stretches[1:]:
            run = stretch.run
            assert run.parent_run is not None and run.cut_t is not None
            found.append(Stop(stretch.start_s, at[run.parent_run].position(run.cut_t), run.run))
        return found


def lines(runs: Iterable[Run]) -> list[Line]:
    """Lay runs end to end.

    A run goes on the line of the run whose snapshot it restored, if every run of that line was over (dispatched and
    published nothing more) by its first dispatch. Else it is a fork and begins a line of its own, as does a run that
    restored nothing, or nothing that is known. A line begins at its first event; of each later run the time before its
    first dispatch is down time and left out.
    """
    made: list[Line] = []
    line_of: dict[str, Line] = {}
    for run in sorted(runs, key=lambda run: (run.first_t, run.run)):
        line = line_of.get(run.parent_run) if run.parent_run is not None else None
        went = run.first_dispatch_t if run.first_dispatch_t is not None else run.restore_t
        if line is None or went is None or any((s.run.last_act_t or went) > went for s in line.stretches):
            line = Line()
            made.append(line)
        begin_t = run.first_dispatch_t if line.stretches else run.first_t
        length_s = max(0.0, run.last_t - begin_t) if begin_t is not None else 0.0
        start_s = line.length_s if line.stretches else 0.0
        line.stretches.append(Stretch(run, start_s, run.last_t if begin_t is None else begin_t, length_s))
        line_of[run.run] = line
    return made


def read(con: "duckdb.DuckDBPyConnection", experiment: str) -> list[Line]:
    """The time lines of an experiment."""
    found = con.execute(
        "SELECT r.run, r.first_t, r.last_t, r.first_dispatch_t, r.last_act_t, p.parent_run, p.restore_t, p.cut_t "
        "FROM _runs r LEFT JOIN _restores p ON p.experiment = r.experiment AND p.run = r.run WHERE r.experiment = ?",
        [experiment],
    ).fetchall()
    return lines(Run(*row) for row in found)


def positions(made: Sequence[Line], t: float) -> list[tuple[int, float]]:
    """Where a moment lies: (number of the line, position) of every line that a run of it was there then.

    A moment in the down time between two runs of a line is where the first of them stopped.
    """
    found = []
    for number, line in enumerate(made):
        begun = [s for s in line.stretches if s.begin_t <= t]
        if begun and t <= max(s.begin_t + s.length_s for s in line.stretches):
            found.append((number, begun[-1].position(t)))
    return found
