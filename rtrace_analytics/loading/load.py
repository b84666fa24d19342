"""Load trace files into a database: decide what is new in each, take it up, keep order and figures in step."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rtrace_analytics import database
from rtrace_analytics.errors import DatabaseError, InputError
from rtrace_analytics.loading.files import (
    Head,
    TraceFile,
    disk_state,
    known_files,
    read_head,
    save_file,
    unchanged,
)
from rtrace_analytics.loading.find import Found, find
from rtrace_analytics.loading.intake import Intake, Job
from rtrace_analytics.loading.report import FileReport, LoadReport

if TYPE_CHECKING:
    import duckdb


def load(
    con: "duckdb.DuckDBPyConnection",
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    experiment: str | None = None,
    experiment_from: str | None = None,
    labels: Mapping[str, Any] | None = None,
    rename: Mapping[str, str] | None = None,
    progress: bool | None = None,
) -> LoadReport:
    """Load trace files, folders or globs, or bring them up to date; all or nothing, in one transaction.

    `experiment` names the experiment of all files; `experiment_from` is a pattern searched in each path whose first
    group is the name; else it is the folder's name. `labels` are kept for the experiments loaded. `rename` maps event
    names of another producer to those of the event list, and is remembered for later loads of these experiments.
    `progress`: a bar on stderr; by default where there is a terminal or a notebook. Raises `InputError`,
    `DatabaseError`.
    """
    found = find(paths, experiment, experiment_from)
    with _transaction(con):
        return _Load(con, found, progress).run(labels or {}, rename or {})


@contextmanager
def _transaction(con: "duckdb.DuckDBPyConnection") -> Iterator[None]:
    con.execute("BEGIN")
    try:
        yield
        con.execute("COMMIT")
    except BaseException:
        con.execute("ROLLBACK")
        raise


class _Load:
    def __init__(self, con: "duckdb.DuckDBPyConnection", found: list[Found], progress: bool | None) -> None:
        self.con = con
        self.found = found
        self.files = known_files(con)
        self.report = LoadReport()
        self.jobs: list[Job] = []
        self.touched: set[str] = set()
        self.next_id = max((file.file_id for file in self.files), default=0) + 1

    def run(self, labels: Mapping[str, Any], rename: Mapping[str, str]) -> LoadReport:
        for found in self.found:
            self._plan(found)
        Intake(self.con, lambda _: None).take(self.jobs)
        self._finish()
        return self.report

    def _plan(self, found: Found) -> None:
        head = read_head(found.path)
        if head.identity is None and head.rejects:
            raise InputError(
                f"no event in {found.path!r}: none of its lines is one, the first begins {head.first[:40]!r}"
            )
        file = TraceFile(self.next_id, found.path, found.experiment, head.identity)
        self.next_id += 1
        file.disk_bytes, file.modified_ns = disk_state(found.path)
        self.files.append(file)
        save_file(self.con, file)
        report = FileReport(found.path, found.experiment)
        self.report.files.append(report)
        self.jobs.append(Job(file, found.path, report))

    def _finish(self) -> None:
        for job in self.jobs:
            file = job.file
            (file.events,) = self.con.execute(
                "SELECT count(*) FROM events WHERE file_id = ?", [file.file_id]
            ).fetchone()
            (file.rejects,) = self.con.execute(
                "SELECT count(*) FROM rejects WHERE file_id = ?", [file.file_id]
            ).fetchone()
            job.report.events, job.report.rejects, job.report.pending = file.events, file.rejects, file.pending
            file.warnings = "; ".join(job.report.warnings) or None
            save_file(self.con, file)
            self.touched.add(file.experiment)
        database.derive(self.con, sorted(self.touched))
