"""From spans to bars: the parts of each, rows that hold one rollout at a time, bars too narrow to tell apart."""

import heapq
from typing import TYPE_CHECKING

from rtrace_analytics.plots import style

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def pieces(spans: "pd.DataFrame") -> "pd.DataFrame":
    """The bars of spans: columns `span` (row of the frame), `kind` (of `style.LOOKS`), `start_t`, `end_t`.

    A span lost to a known cut has up to two, as long as its `thrown_away_s` and `never_saved_s`; any other has one.
    """
    import numpy as np
    import pandas as pd

    known = spans["thrown_away_s"].notna().to_numpy()
    index = np.arange(len(spans))
    start = spans["start_t"].to_numpy(float)
    thrown = spans["thrown_away_s"].fillna(0.0).to_numpy(float)
    unsaved = spans["never_saved_s"].fillna(0.0).to_numpy(float)
    before, after = known & ((thrown > 0) | (unsaved == 0)), known & (unsaved > 0)
    parts = [
        (
            index[~known],
            spans["fate"].map(style.kind_of_fate).to_numpy(object)[~known],
            start[~known],
            (start + spans["duration_s"].to_numpy(float))[~known],
        ),
        (index[before], np.full(before.sum(), "thrown_away", object), start[before], (start + thrown)[before]),
        (
            index[after],
            np.full(after.sum(), "never_saved", object),
            (start + thrown)[after],
            (start + thrown + unsaved)[after],
        ),
    ]
    names = ("span", "kind", "start_t", "end_t")
    return pd.DataFrame({name: np.concatenate([part[i] for part in parts]) for i, name in enumerate(names)})


def shared_rows(spans: "pd.DataFrame") -> list[int]:
    """A row for each span such that none overlaps another in its row: the lowest that is free when it starts."""
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    lanes, most = [], 0
    for start, end in zip(spans["start_t"].tolist(), spans["end_t"].tolist(), strict=True):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, most = most, most + 1
        lanes.append(lane)
        heapq.heappush(busy, (max(start, end), lane))
    return lanes


def merge(
    row: "np.ndarray", start: "np.ndarray", end: "np.ndarray", gap: float
) -> tuple["np.ndarray", "np.ndarray", "np.ndarray"]:
    """Bars of one row that are less than `gap` apart as one; same arrays, fewer entries."""
    import numpy as np

    order = np.lexsort((start, row))
    row, start, end = row[order], start[order], end[order]
    first = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
    shift = np.zeros(len(row))  # lifts each row above the one before, so that one running maximum does for all
    shift[first[1:]] = (end.max() - start.min()) + gap + 1
    shift = np.cumsum(shift)
    reach = np.maximum.accumulate(end + shift)
    begins = np.flatnonzero(np.r_[True, (start + shift)[1:] > reach[:-1] + gap])
    return row[begins], start[begins], np.maximum.reduceat(end, begins)
