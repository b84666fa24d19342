"""Chrome trace JSON of what was loaded, for Perfetto (ui.perfetto.dev) or chrome://tracing.

A process per run; its attempts as slices on lanes, as few as hold them without overlap, named and coloured by fate;
within a lost one what ran before the cut and after it; arrows from a lost attempt to the one that replaced it; instants
for cuts, publications, stops and restores; counters of the rollouts in flight and, per experiment, of the seconds lost.
The SQL is `sql/perfetto.sql`; it makes temporary tables, which DuckDB spills, and from them the lines, one stretch of
time after another. Only what the lanes need (a few whole numbers a span) is held in memory.
Format: "Trace Event Format" (Google), JSON object form, times in microseconds.
"""

import gzip
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, BinaryIO, cast

from rtrace_analytics import database
from rtrace_analytics.errors import DatabaseError, InputError
from rtrace_analytics.export.parquet import frozen
from rtrace_analytics.export.schema import LATEST
from rtrace_analytics.text import one_line
from rtrace_analytics.views import experiments
from rtrace_analytics.whole import whole_file

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    from numpy.typing import NDArray

_BATCH = 20_000  # lines written at a time
_NEVER = 2**62
_US = "CREATE OR REPLACE TEMP MACRO _us(t) AS round(t * 1e6)::BIGINT"


def export(
    con: "duckdb.DuckDBPyConnection",
    path: str | PathLike[str],
    *,
    experiment: str | Sequence[str] | None = None,
) -> int:
    """Write the trace of all experiments, or of these, to `path` (gzip where it ends in `.gz`); returns its events.

    The file is there whole or not at all. Raises `InputError` for an experiment that is not there, a path that cannot
    be written, and times that are not seconds.
    """
    import duckdb

    steps = database.steps("perfetto.sql")
    with frozen(con) as cursor:
        names = experiments(cursor, experiment)
        _check_times(cursor, names)
        try:
            cursor.execute(_US)
            cursor.execute(steps["runs"], [names])
            for step in ("experiments", "spans"):
                cursor.execute(steps[step])
            _make_lanes(cursor, steps["numbers"])
            for step in ("tracks", "arrows", "counts", "marks", "losses"):
                cursor.execute(steps[step])
            with whole_file(path) as file:
                if not os.fspath(path).endswith(".gz"):
                    return _write(file, cursor, steps)
                with gzip.GzipFile("", "wb", 5, file, mtime=0) as packed:
                    return _write(cast("BinaryIO", packed), cursor, steps)
        except duckdb.Error as error:
            raise DatabaseError(f"perfetto.sql: {one_line(error)}") from error


def lanes(start: "NDArray[np.int64]", end: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """The lane, from 1, of each interval [start, end), given in the order of their starts, each of a length > 0.

    As few lanes as overlap at once. The first interval to find no lane free opens one; any other takes the lane
    that has been free the longest: the k-th of these follows the k-th interval to end. So each points to the one it
    follows on its lane, and the first of the lane is found by doubling the steps.
    """
    import numpy as np

    count = len(start)
    order = np.argsort(end, kind="stable")
    ended = np.searchsorted(end[order], start, side="right")  # intervals over by then
    running = np.arange(1, count + 1) - ended
    opened = np.maximum.accumulate(running)
    is_first = np.diff(opened, prepend=0) > 0
    follows = np.arange(count)
    follows[~is_first] = order[: count - int(is_first.sum())]
    while True:
        further = follows[follows]
        if np.array_equal(further, follows):
            return opened[follows]
        follows = further


def _make_lanes(con: "duckdb.DuckDBPyConnection", numbers: str) -> None:
    import numpy as np
    import pyarrow as pa

    found = con.sql(numbers).fetchnumpy()
    pid, start, end = (np.asarray(found[name], dtype=np.int64) for name in ("pid", "start_us", "end_us"))
    lane = np.empty(len(pid), dtype=np.int64)
    borders = np.flatnonzero(np.diff(pid, prepend=-1, append=-1))
    for first, last in pairwise(borders):
        lane[first:last] = lanes(start[first:last], end[first:last])
    con.register("_perfetto_lane_rows", pa.table({"n": np.arange(len(lane)), "pid": pid, "lane": lane}))
    con.execute("CREATE OR REPLACE TEMP TABLE _perfetto_lanes AS SELECT n, pid, lane FROM _perfetto_lane_rows")
    con.unregister("_perfetto_lane_rows")


def _write(file: BinaryIO, con: "duckdb.DuckDBPyConnection", steps: dict[str, str]) -> int:
    count = 0
    file.write(b'{"displayTimeUnit": "ms", "traceEvents": [')
    for query, parameters in _queries(con, steps):
        for batch in con.sql(query, params=parameters).to_arrow_reader(_BATCH):
            if batch.num_rows:
                file.write(b",\n" if count else b"\n")
                file.write(",\n".join(batch.column(0).to_pylist()).encode())
                count += batch.num_rows
    file.write(b"\n]}\n")
    return count


def _queries(con: "duckdb.DuckDBPyConnection", steps: dict[str, str]) -> Iterator[tuple[str, list[int] | None]]:
    yield steps["names"], None
    begins = [begin for (begin,) in con.execute(steps["windows"]).fetchall()]
    for borders in pairwise([-_NEVER, *begins[1:], _NEVER]):
        yield steps["events"], list(borders)


def _check_times(con: "duckdb.DuckDBPyConnection", names: list[str]) -> None:
    query = "SELECT run, t FROM events WHERE list_contains(?, experiment) AND abs(t) >= ? ORDER BY abs(t) DESC LIMIT 1"
    for run, t in con.execute(query, [names, LATEST]).fetchall():
        raise InputError(f"run {run!r} has t = {t}: seconds since the epoch are expected, leave its experiment out")
