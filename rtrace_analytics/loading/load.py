"""Load trace files into a database: decide what is new in each, take it up, keep order and figures in step."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from rtrace_analytics import database
from rtrace_analytics.errors import DatabaseError, InputError
from rtrace_analytics.events import EVENTS
from rtrace_analytics.loading.files import save_files
from rtrace_analytics.loading.find import find, must_be_text
from rtrace_analytics.loading.intake import Intake
from rtrace_analytics.loading.memory import DERIVING, INTAKE, small_memory
from rtrace_analytics.loading.order import keep_order
from rtrace_analytics.loading.plan import Plan
from rtrace_analytics.loading.progress import Progress
from rtrace_analytics.loading.report import LoadReport

if TYPE_CHECKING:
    import duckdb

_EVENTS = [event.name for event in EVENTS]


def load(
    con: "duckdb.DuckDBPyConnection",
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    experiment: str | None = None,
    experiment_from: str | None = None,
    labels: Mapping[str, Any] | None = None,
    rename: Mapping[str, str] | None = None,
    progress: bool | None = None,
    careful: bool = False,
) -> LoadReport:
    """Load trace files, folders or globs, or bring them up to date; all or nothing, in one transaction.

    `experiment` names the experiment of all files; `experiment_from` is a pattern searched in each path, its first
    group the name; else it is the folder's name (a file loaded before keeps its experiment). `labels` are kept for the
    experiments of these files. `rename` maps event names of another producer to those of the event list: for what is
    loaded of these experiments already, now and at later loads. `progress`: a bar on stderr for what takes long, by
    default on a terminal and in notebooks. `careful`: all lines with more than known fields are taken apart, so that no
    doubled key is missed. Raises `InputError`, `DatabaseError`.
    """
    found = find(paths, experiment, experiment_from)
    with small_memory(con) as hold, _transaction(con):
        hold(INTAKE)
        plan = Plan(con, found)
        _keep_options(con, plan.experiments, labels or {}, rename or {})
        with Progress(plan.bytes_ahead(), progress) as bar:
            intake = Intake(con, bar.advance, careful=careful)
            intake.take(plan.jobs)
            plan.take_copies(intake)
            intake.close()
        touched = plan.touched | _finish(con, plan) | _rename(con, plan.experiments)
        hold(DERIVING)
        database.derive(con, sorted(touched))
    return plan.report


@contextmanager
def _transaction(con: "duckdb.DuckDBPyConnection") -> Iterator[None]:
    """All or nothing; what the disk or the memory refuses is one line."""
    import duckdb

    con.execute("BEGIN")
    try:
        yield
        con.execute("COMMIT")
    except (
        duckdb.IOException,
        duckdb.OutOfMemoryException,
        duckdb.FatalException,
        duckdb.TransactionException,
    ) as error:
        _roll_back(con)
        problem = str(error).splitlines()[0]
        raise DatabaseError(f"nothing was loaded, the database could not be written: {problem}") from error
    except (duckdb.InterruptException, RuntimeError) as error:
        _roll_back(con)
        if isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted":
            raise KeyboardInterrupt from error  # so DuckDB tells of Ctrl-C
        raise
    except BaseException:
        _roll_back(con)
        raise


def _roll_back(con: "duckdb.DuckDBPyConnection") -> None:
    import duckdb

    with suppress(duckdb.Error):  # rolled back already, or the connection is done for
        con.execute("ROLLBACK")
        con.execute("RESET disabled_optimizers")  # in case a step that sets it did not come to its end


def _keep_options(
    con: "duckdb.DuckDBPyConnection", experiments: set[str], labels: Mapping[str, Any], rename: Mapping[str, str]
) -> None:
    """Keep labels and renames for these experiments."""
    for text in (*labels, *map(str, labels.values()), *rename):
        must_be_text("the label or event", text)
    for given, name in rename.items():
        if name not in _EVENTS:
            near = get_close_matches(name, _EVENTS, 1)
            ours = f"{near[0]!r}?" if near else ", ".join(_EVENTS)
            raise InputError(f"{given!r} cannot be renamed to {name!r}, which is no event of ours: {ours}")
    for experiment in sorted(experiments):
        for key, value in labels.items():
            con.execute("INSERT OR REPLACE INTO labels VALUES (?, ?, ?)", [experiment, key, str(value)])
        for given, name in rename.items():
            con.execute("DELETE FROM _renames WHERE experiment = ? AND event = ?", [experiment, given])
            con.execute("INSERT INTO _renames VALUES (?, ?, ?)", [experiment, given, name])


def _rename(con: "duckdb.DuckDBPyConnection", experiments: set[str]) -> set[str]:
    """Give events of these experiments the names kept for them; the experiments where any got one."""
    touched: set[str] = set()
    for experiment, given, name in con.execute("SELECT experiment, event, name FROM _renames").fetchall():
        if experiment in experiments:
            query = "UPDATE events SET event = ? WHERE experiment = ? AND event = ?"
            row = con.execute(query, [name, experiment, given]).fetchone()
            if row and row[0]:
                touched.add(experiment)
    return touched


def _finish(con: "duckdb.DuckDBPyConnection", plan: Plan) -> set[str]:
    """Write what is known of the files now, and their order; the experiments that have new events."""
    new: dict[int, int] = {}
    if plan.jobs:
        save_files(con, list({job.file.file_id: job.file for job in plan.jobs}.values()))
    for job in plan.jobs:
        if job.report.events:
            new[job.file.file_id] = min(job.first_line, new.get(job.file.file_id, job.first_line))
    touched = {job.file.experiment for job in plan.jobs if job.report.events}
    if touched or plan.touched:
        keep_order(con, new, touched | plan.touched)
    return touched
