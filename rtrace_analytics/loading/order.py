"""The order of lines in runs that are spread over files, and the guard that two copies never double a figure.

`events.seq` is the rank of the file within the run times 2^44, plus the place of the object in the file's text. The
files of a run stand in the order of the `t` of its first line in each (then of their identity), whichever came first.
"""

from typing import TYPE_CHECKING

from rtrace_analytics.errors import InputError

if TYPE_CHECKING:
    import duckdb

PLACE = 2**44 - 1  # mask of the place in the file

_NEW_PAIRS = """
INSERT INTO _run_files
SELECT e.experiment, e.run, e.file_id, arg_min(e.t, e.seq & $place), 0
FROM events e
JOIN (SELECT unnest($files::INTEGER[]) AS file_id, unnest($lines::BIGINT[]) AS line) new
  ON new.file_id = e.file_id AND e.line >= new.line
ANTI JOIN _run_files known ON known.file_id = e.file_id AND known.run = e.run
GROUP BY e.experiment, e.run, e.file_id"""

_RANKS = """
UPDATE _run_files SET rank = ranked.rank
FROM (SELECT experiment, run, file_id,
             row_number() OVER (PARTITION BY experiment, run ORDER BY first_t, identity, file_id) - 1 AS rank
      FROM _run_files JOIN trace_files USING (experiment, file_id)) AS ranked
WHERE (ranked.run, ranked.file_id) = (_run_files.run, _run_files.file_id) AND ranked.rank <> _run_files.rank"""

_SPREAD = "SELECT 1 FROM _run_files WHERE rank > 0 AND list_contains($experiments, experiment) LIMIT 1"

_SEQ = """
UPDATE events SET seq = (spread.rank << 44) | (seq & $place)
FROM (SELECT * FROM _run_files WHERE list_contains($experiments, experiment)) AS spread
WHERE (spread.run, spread.file_id) = (events.run, events.file_id) AND seq >> 44 <> spread.rank"""

_REPEATED = """
SELECT arg_min(file_id, line), min(line), arg_max(file_id, line), max(line), run
FROM (SELECT * FROM events SEMI JOIN (SELECT * FROM _run_files WHERE rank > 0) AS spread USING (experiment, run)
      WHERE list_contains($experiments, experiment) AND event = 'attempt_dispatched')
GROUP BY experiment, run, t, group_id, prompt_id, generation_index, attempt HAVING count(DISTINCT file_id) > 1
ORDER BY ALL LIMIT 1"""


def keep_order(con: "duckdb.DuckDBPyConnection", new: dict[int, int], experiments: set[str]) -> None:
    """Bring `seq` into step after a load of these experiments; `new`: file and the first new line of it.

    Raises `InputError` where two files hold the same dispatch: copies that begin differently.
    """
    con.execute(_NEW_PAIRS, {"files": list(new), "lines": list(new.values()), "place": PLACE})
    before = con.execute(_SPREAD, {"experiments": sorted(experiments)}).fetchone()
    con.execute(_RANKS)
    after = con.execute(_SPREAD, {"experiments": sorted(experiments)}).fetchone()
    if before or after:
        con.execute(_SEQ, {"experiments": sorted(experiments), "place": PLACE})
    if after:
        _check_repeats(con, experiments)


def _check_repeats(con: "duckdb.DuckDBPyConnection", experiments: set[str]) -> None:
    row = con.execute(_REPEATED, {"experiments": sorted(experiments)}).fetchone()
    if row is None:
        return
    file, line, other, other_line, run = row
    paths = dict(con.execute("SELECT file_id, path FROM trace_files").fetchall())
    raise InputError(
        f"line {other_line} of {paths[other]!r} is also line {line} of {paths[file]!r} (run {run!r}): "
        "copies that begin differently count twice, load one of them"
    )
