"""Follow traces that are being written: take up what is new every few seconds, say what every new restore cost."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rtrace_analytics import database
from rtrace_analytics.errors import DatabaseError, RtraceError
from rtrace_analytics.loading.load import load

if TYPE_CHECKING:
    import duckdb

_LIVE_S = 86_400  # a trace whose last line is not older than this is being written now

_STATE = """
WITH known AS (SELECT * FROM runs WHERE list_contains($experiments, experiment)),
newest AS (SELECT * FROM known QUALIFY row_number() OVER (PARTITION BY experiment ORDER BY last_t DESC, run) = 1)
SELECT (SELECT sum(events)::BIGINT FROM known), (SELECT max(last_t) FROM known),
       (SELECT count(*) FROM attempt_spans SEMI JOIN newest USING (experiment, run) WHERE end_kind IS NULL),
       (SELECT max(published_t) FROM snapshots WHERE list_contains($experiments, experiment)),
       (SELECT sum(lost_s) FROM cut_time_waste WHERE list_contains($experiments, experiment))"""

_RESTORES = """
SELECT experiment, run, parent_run, snapshot_step, lost_attempts, lost_sealed, thrown_away_s, never_saved_s, lost_s
FROM cut_time_waste WHERE list_contains($experiments, experiment) ORDER BY restore_t, experiment, run"""


@dataclass(frozen=True)
class Restore:
    """A restore and what it cost; figures are None while its cut is unknown. `_s`: attempt-seconds."""

    experiment: str
    run: str
    parent_run: str | None
    snapshot_step: int | None
    lost_attempts: int | None
    lost_sealed: int | None
    thrown_away_s: float | None
    never_saved_s: float | None
    lost_s: float | None


@dataclass
class Take:
    """How things stand after a take. `in_flight`: rollouts of the newest run of each experiment that nothing has ended;
    `snapshot_age_s`: since the last publication, None where there is none; `restores`: new ones, or with new figures;
    `trouble`: why this take could not be made (the figures are then those before)."""

    events: int = 0
    new_events: int = 0
    rejects: int = 0
    in_flight: int = 0
    snapshot_age_s: float | None = None
    lost_s: float | None = None
    restores: list[Restore] = field(default_factory=list)
    trouble: str | None = None


def follow(
    db: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    every_s: float = 5.0,
    experiment: str | None = None,
    wait: Callable[[float], bool | None] = time.sleep,
) -> Iterator[Take]:
    """Take up what is new at `path` (a file, folder or glob) again and again, until `wait` says True; a `Take` each.

    The database is closed between takes. The first take raises `InputError` or `DatabaseError`; later ones say in
    `trouble` what stood in the way (a lock, a file that is being moved) and are tried again.
    """
    seen: dict[tuple[str, str], Restore] = {}
    take = _take(db, path, experiment, seen)
    while True:
        yield take
        if wait(every_s):
            return
        try:
            take = _take(db, path, experiment, seen)
        except RtraceError as error:
            take.restores, take.new_events, take.rejects, take.trouble = [], 0, 0, str(error)


def _take(
    db: str | os.PathLike[str],
    path: str | os.PathLike[str],
    experiment: str | None,
    seen: dict[tuple[str, str], Restore],
) -> Take:
    with closing(database.connect(Path(db))) as con:
        report = load(con, path, experiment=experiment)
        take = _state(con, sorted({file.experiment for file in report.files}), seen)
    take.new_events, take.rejects = report.events, report.rejects
    return take


def _state(con: "duckdb.DuckDBPyConnection", experiments: list[str], seen: dict[tuple[str, str], Restore]) -> Take:
    row = con.execute(_STATE, {"experiments": experiments}).fetchone()
    if row is None:
        raise DatabaseError("the views gave no row")
    events, last_t, in_flight, published_t, lost_s = row
    take = Take(events=events or 0, in_flight=in_flight, lost_s=lost_s)
    if published_t is not None:
        now = time.time() if abs(time.time() - last_t) < _LIVE_S else last_t
        take.snapshot_age_s = max(0.0, now - published_t)
    for found in con.execute(_RESTORES, {"experiments": experiments}).fetchall():
        restore = Restore(*found)
        if seen.get((restore.experiment, restore.run)) != restore:
            seen[restore.experiment, restore.run] = restore
            take.restores.append(restore)
    return take
