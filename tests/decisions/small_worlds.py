"""Small worlds for what-if: spans first, events from them, and a slow replay that shares nothing with the package."""

import json
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pandas as pd
from hypothesis import strategies as st
from worlds import COLUMNS

from rtrace_analytics import database

FIRST_T = 1024.0  # what is exact at one moment of a world is so at all of them
DOWN_S = 7.5


def read(path: Path) -> list[dict]:
    """The events of a trace whose lines are all whole, with file and line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [{"line": number, **json.loads(line)} for number, line in enumerate(lines, 1)]


def fill(con, experiments: dict[str, list[dict]]) -> None:
    """Put experiments in, in place of all that was there: quicker than line by line."""
    rows = [
        {"experiment": name, "seq": i, "file_id": number, "line": i + 1, **event}
        for number, (name, events) in enumerate(experiments.items())
        for i, event in enumerate(events)
    ]
    frame = pd.DataFrame(rows).reindex(columns=list(COLUMNS))
    con.execute("BEGIN")
    con.execute("DELETE FROM events")
    con.from_df(frame).insert_into("events")
    database.derive(con, list(experiments))
    con.execute("COMMIT")


@dataclass
class Span:
    """One rollout on the time line; `kind` is sealed, failed, cancelled or cut (by a stop or the end)."""

    group: int
    sibling: int
    run: int
    start: float
    end: float
    kind: str


@dataclass
class World:
    """Spans, the positions at which runs stop (the last one is the end of the line), when groups are sealed."""

    spans: list[Span]
    stops: list[float]
    group_sealed: dict[int, float]

    @property
    def length(self) -> float:
        return self.stops[-1]

    def wall(self, run: int, position: float) -> float:
        return FIRST_T + position + DOWN_S * run

    def events(self) -> list[dict]:
        """Lines in order: a restored run abandons nothing and names a path that only time can tell."""
        lines = []
        for run, stop in enumerate(self.stops):
            begin = self.stops[run - 1] if run else 0.0
            if run:
                lines.append((self.wall(run, begin) - 1, run, -2, {"event": "restore_started", "path": "/c/latest"}))
                # where a run's stretch begins: a dispatch of a group that costs nothing
                ids = {"prompt_id": f"first{run}", "generation_index": 0, "attempt": 0}
                lines.append((self.wall(run, begin), run, -1, {"event": "attempt_dispatched", **ids}))
                failed = {"event": "attempt_abandoned", "reason": "failed", **ids}
                lines.append((self.wall(run, begin), run, -0.5, failed))
            else:
                lines.append((self.wall(run, begin), run, -1, {"event": "weights_synced", "weight_version": 0}))
            cut = {"event": "snapshot_published", "step": run, "cut_time": self.wall(run, begin)}
            lines.append((self.wall(run, begin), run, 0, cut))
            lines.append((self.wall(run, stop), run, 9, {"event": "weights_synced", "weight_version": run}))
        for span in self.spans:
            ids = {"prompt_id": str(span.group), "generation_index": span.sibling, "attempt": span.run}
            at = self.wall(span.run, span.start)
            lines.append((at, span.run, 1, {"event": "attempt_dispatched", **ids}))
            at = self.wall(span.run, span.end)
            if span.kind == "sealed":
                lines.append((at, span.run, 2, {"event": "attempt_sealed", **ids}))
            elif span.kind != "cut":
                lines.append((at, span.run, 2, {"event": "attempt_abandoned", "reason": span.kind, **ids}))
        for group, at in self.group_sealed.items():
            run = next(run for run, stop in enumerate(self.stops) if at <= stop)
            lines.append((self.wall(run, at), run, 3, {"event": "group_sealed", "prompt_id": str(group)}))
        lines.sort(key=lambda line: (line[1], line[0], line[2]))
        return [{"t": t, "run": f"r{run}", **fields} for t, run, _, fields in lines]

    def saved_from(self, span: Span, whole_groups: bool) -> float:
        if whole_groups and span.kind == "sealed":
            return max(span.end, self.group_sealed.get(span.group, math.inf))
        return span.end

    def cost(self, s: float, cut: float, whole_groups: bool = False) -> tuple[float, float]:
        """(lost, thrown away) of a stop at s that falls back to a cut: the rule, read off the page."""
        lost = thrown_away = 0.0
        for span in self.spans:
            gone = span.kind not in ("sealed", "cut") and span.end <= s
            if span.start < s and self.saved_from(span, whole_groups) > cut and not gone:
                until = min(span.end, s)
                lost += until - span.start
                thrown_away += max(0.0, min(until, cut) - span.start)
        return lost, thrown_away

    def cut(self, s: float, interval: float, lag: float) -> float:
        cut, k = 0.0, 1
        while k * interval + lag <= s:
            cut, k = k * interval, k + 1
        return cut

    def moments(self, interval: float, lag: float) -> list[float]:
        """Every moment at which the cost of a stop may bend or jump, and the ends of the line."""
        found = {0.0, self.length, *(t for span in self.spans for t in (span.start, span.end))}
        found |= {k * interval + lag for k in range(1, int(self.length / interval) + 2)}
        return sorted(t for t in found if 0 <= t <= self.length)

    def mean(self, interval: float, lag: float, whole_groups: bool = False) -> tuple[float, float]:
        """(lost, thrown away) averaged over all stops: between two bends it is linear, the middle is the mean."""
        lost = thrown_away = 0.0
        for low, high in pairwise(self.moments(interval, lag)):
            middle = (low + high) / 2
            one, other = self.cost(middle, self.cut(middle, interval, lag), whole_groups)
            lost += one * (high - low)
            thrown_away += other * (high - low)
        return lost / self.length, thrown_away / self.length

    def share_below(self, x: float, interval: float, lag: float) -> float:
        """The part of all stops that cost at most x."""
        below = 0.0
        for low, high in pairwise(self.moments(interval, lag)):
            quarter = (high - low) / 4
            at = [self.cost(s, self.cut(s, interval, lag))[0] for s in (low + quarter, high - quarter)]
            first, last = at[0] - (at[1] - at[0]) / 2, at[1] + (at[1] - at[0]) / 2
            part = float(x >= first) if last <= first else min(1.0, max(0.0, (x - first) / (last - first)))
            below += part * (high - low)
        return below / self.length


def _at(milliseconds: int) -> float:
    """A moment that comes out the same after it was a wall clock's."""
    return FIRST_T + milliseconds / 1000 - FIRST_T


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """One to three runs, up to twelve spans; half the worlds on a coarse grid, where moments coincide."""
    coarse = draw(st.booleans())
    moment = st.integers(0, 160).map(lambda n: n / 4) if coarse else st.integers(0, 40_000).map(_at)
    stops = sorted({s for s in draw(st.lists(moment, min_size=1, max_size=3)) if s > 0} | {40.0})
    spans, siblings = [], {}
    for group in draw(st.lists(st.integers(0, 3), max_size=12)):
        start = draw(moment)
        run = next(run for run, stop in enumerate(stops) if start <= stop)
        end = start + draw(st.sampled_from((0.0, 0.5, 3.0, 11.0)) if coarse else st.integers(0, 20_000).map(_at))
        kind = draw(st.sampled_from(("sealed", "sealed", "sealed", "failed", "cancelled", "cut")))
        if end > stops[run] or kind == "cut":
            end, kind = stops[run], "cut"
        siblings[group] = siblings.get(group, -1) + 1
        spans.append(Span(group, siblings[group], run, start, end, kind))
    sealed = {}
    for group in siblings:
        of_group = [span for span in spans if span.group == group]
        if draw(st.booleans()) and all(span.kind != "cut" for span in of_group):
            last = max(span.end for span in of_group)
            run = next(run for run, stop in enumerate(stops) if last <= stop)
            if not any(span.run < run and span.end == stops[span.run] for span in of_group):
                sealed[group] = min(last + draw(st.sampled_from((0.0, 2.0))), stops[run])
    return World(spans, stops, sealed)
