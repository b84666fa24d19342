"""Many experiments on many cores: one Ray task loads, derives and exports each, with the same SQL as on one machine.

The result is the Parquet export (`rtrace_analytics.export`) that one machine would write, cell by cell: no view's row
depends on another experiment. Two things only one database can tell: the hint, in `quality`, that another experiment
has the snapshot a restore lacks; and labels, which are set in a database.
"""

import contextlib
import hashlib
import json
import logging
import os
import re
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtrace_analytics.errors import InputError, RtraceError
from rtrace_analytics.export import parquet
from rtrace_analytics.export.fingerprint import making
from rtrace_analytics.export.schema import View, exported
from rtrace_analytics.loading.find import experiment_of, find
from rtrace_analytics.text import one_line

if TYPE_CHECKING:
    import duckdb

RETRIES = 3
"""How often Ray starts a task again whose worker died."""

_URL = re.compile(r"[a-z][a-z0-9+.-]+://")
_OBJECTS = 100 * 2**20  # bytes: tasks return a few lines each, Ray takes no less

Work = Callable[["Task"], dict[str, Any]]


@dataclass(frozen=True)
class Task:
    """One experiment's work: its files (as they are found), where its Parquet goes, and the memory DuckDB may take."""

    experiment: str
    files: tuple[str, ...]
    fingerprint: str
    out: str
    memory: str


@dataclass
class FleetReport:
    """What a fleet did: experiments written, left as they were, removed; those that failed, each with the reason."""

    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)


def fleet(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    out: str | PathLike[str],
    *,
    experiment_from: str | None = None,
    address: str | None = None,
    cpus: int | None = None,
    memory: str = "2GB",
    work: Work | None = None,
) -> FleetReport:
    """Load and export each experiment of `paths` by a Ray task; only those whose files changed since the last time.

    `paths` are files, folders and globs as `load` takes them, or URLs (`s3://`, `https://`), read with DuckDB's
    extension httpfs; a file behind a URL is held in memory once. `out` is the export's folder, the same for all
    machines. `address` is a running Ray; else `RAY_ADDRESS`; else one is started here, with `cpus` cores, and stopped
    again. `memory` bounds what DuckDB takes per task; a task takes one core. A task whose worker dies is tried again;
    an experiment that fails keeps what it had and is named in the report. `work` does a task's work, `export_one` by
    default. Raises `InputError` where Ray or httpfs is not installed or not reached, and as `load` does for paths.
    """
    where = Path(out).absolute()
    found = _found(paths, experiment_from)
    _check_memory(memory)
    tables = _tables()
    old = parquet.previous(where, tables)
    before = {entry["experiment"]: entry for entry in old["experiments"]}
    tasks = [Task(name, tuple(files), _signature(files), str(where), memory) for name, files in sorted(found.items())]
    report = FleetReport()
    changed = []
    for task in tasks:
        if parquet.up_to_date(where, before.get(task.experiment), task.fingerprint, tables):
            report.unchanged.append(task.experiment)
        else:
            changed.append(task)
    entries = {name: before[name] for name in found if name in before}
    with parquet.staging(where) as beside:
        if changed:
            for task, entry in _run(changed, work or export_one, address, cpus):
                if isinstance(entry, str):
                    report.failed[task.experiment] = entry
                else:
                    entries[task.experiment] = entry
        _refuse_twins(entries, report)
        report.manifest = parquet.finish(where, beside, tables, list(entries.values()))
    report.written = [task.experiment for task in changed if task.experiment not in report.failed]
    report.unchanged = [name for name in report.unchanged if name not in report.failed]
    report.removed = sorted(before.keys() - entries.keys() - report.failed.keys())
    return report


def export_one(task: Task) -> dict[str, Any]:
    """Load an experiment's files into a database of its own and export its views; returns its manifest entry."""
    from rtrace_analytics import database, loading

    out = Path(task.out)
    with tempfile.TemporaryDirectory() as own, parquet.staging(out) as beside:  # the database on the machine's own disk
        con = database.connect(Path(own) / "traces.duckdb")
        try:
            con.execute("SET memory_limit = $1", [task.memory])
            con.execute("SET threads = 1")
            local = {_fetched(path, Path(own), number): path for number, path in enumerate(task.files)}
            loading.load(con, list(local), experiment=task.experiment, progress=False)
            for path, url in local.items():
                con.execute("UPDATE trace_files SET path = ? WHERE path = ?", [url, path])
            with parquet.frozen(con) as cursor:
                tables = exported(cursor)
                entries = parquet.stage(cursor, out, beside, tables, {task.experiment: task.fingerprint})
        finally:
            con.close()
        parquet.put_in_place(out, beside, entries)
    return entries[0]


def _found(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]], experiment_from: str | None
) -> dict[str, list[str]]:
    given = [os.fspath(path) for path in ([paths] if isinstance(paths, (str, PathLike)) else paths)]
    urls = [path for path in given if _URL.match(path)]
    found: dict[str, list[str]] = {}
    if given != urls or not given:
        for file in find([path for path in given if path not in urls], None, experiment_from):
            found.setdefault(file.experiment, []).append(file.path)
    for url in sorted({url for pattern in urls for url in _listed(pattern)}):
        found.setdefault(experiment_of(url, experiment_from), []).append(url)
    return found


def _listed(url: str) -> list[str]:
    """The trace files behind a URL: a file, a pattern, or a folder that is searched."""
    import duckdb

    pattern = url if re.search(r"[*?]|\.jsonl", url) else url.rstrip("/") + "/**/*.jsonl*"
    with _duckdb(url) as con:
        try:
            files = [file for (file,) in con.execute("SELECT file FROM glob(?)", [pattern]).fetchall()]
        except duckdb.Error as error:
            raise InputError(f"{url!r} cannot be read: {one_line(error)}") from error
    if not files:
        raise InputError(f"no trace at {url!r}: {pattern} matches no file")
    return files


@contextlib.contextmanager
def _duckdb(url: str) -> Iterator["duckdb.DuckDBPyConnection"]:
    """DuckDB, able to read URLs like this one."""
    import duckdb

    with duckdb.connect() as con:
        if not url.startswith("file://"):
            try:
                con.execute("LOAD httpfs")
            except duckdb.Error:
                way = "run `INSTALL httpfs` in DuckDB there, or copy the traces to a folder"
                raise InputError(f"{url!r} needs DuckDB's extension httpfs, which is not installed: {way}") from None
        yield con


def _fetched(path: str, folder: Path, number: int) -> str:
    """A file to load: the one at `path`, or a copy of what is behind a URL, of the same name."""
    if not _URL.match(path):
        return path
    local = folder / str(number) / path.rsplit("/", 1)[1]
    local.parent.mkdir()
    with _duckdb(path) as con:
        rows = con.execute("SELECT content FROM read_blob(?)", [path]).fetchall()
    local.write_bytes(rows[0][0])
    return str(local)


def _check_memory(memory: str) -> None:
    if not re.fullmatch(r"\d+(\.\d+)? ?([KMGT]i?B|%)", memory, re.IGNORECASE):
        raise InputError(f"memory {memory!r} is not a size: give one like 2GB")


def _tables() -> list[View]:
    from rtrace_analytics import database

    con = database.connect()
    try:
        return exported(con)
    finally:
        con.close()


def _signature(files: Sequence[str]) -> str:
    """What tells that an experiment's files, or what makes rows of them, changed."""
    told: list[Any] = [making()]
    for path in files:
        if _URL.match(path):
            with _duckdb(path) as con:
                query = "SELECT size, last_modified::VARCHAR FROM read_blob(?)"
                told.append([path, *con.execute(query, [path]).fetchall()])
        else:
            status = os.stat(path)
            told.append([path, status.st_size, status.st_mtime_ns])
    return hashlib.sha256(json.dumps(told).encode("utf-8", "surrogatepass")).hexdigest()


def _refuse_twins(entries: dict[str, Any], report: FleetReport) -> None:
    """One trace under two names would count twice: the second is refused, as a load does."""
    seen: dict[str, tuple[str, str]] = {}
    for name in sorted(entries):
        for source in entries[name]["sources"]:
            other, path = seen.setdefault(source["identity"], (name, source["path"]))
            if other != name:
                report.failed[name] = f"{source['path']} begins as {path} of experiment {other!r}: name both alike"
                entries.pop(name, None)


def _run(
    tasks: Sequence[Task], work: Work, address: str | None, cpus: int | None
) -> Iterator[tuple[Task, dict[str, Any] | str]]:
    """Each task with its manifest entry, or with the reason why it failed, as they finish; few in flight at a time."""
    with _ray(address, cpus) as ray:
        remote = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=False)(_guarded(work))
        most = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = list(reversed(tasks))
        flying: dict[Any, Task] = {}
        while waiting or flying:
            while waiting and len(flying) < most:
                task = waiting.pop()
                flying[remote.remote(task)] = task
            done, _ = ray.wait(list(flying), num_returns=1)
            for reference in done:
                task = flying.pop(reference)
                try:
                    yield task, ray.get(reference)
                except ray.exceptions.RayError as error:
                    yield task, f"Ray gave up after {RETRIES} more tries: {str(error).splitlines()[0]}"


def _guarded(work: Work) -> Callable[[Task], dict[str, Any] | str]:
    def guarded(task: Task) -> dict[str, Any] | str:
        try:
            return work(task)
        except RtraceError as error:
            return one_line(error)
        except Exception as error:  # one experiment does not spoil the others
            return f"{type(error).__name__}: {one_line(error)}"

    return guarded


@contextlib.contextmanager
def _ray(address: str | None, cpus: int | None) -> Iterator[Any]:
    """Ray, running: the one that is, the one at `address`, or one of our own that is stopped at the end."""
    try:
        import ray
    except ImportError:
        raise InputError("Ray is not installed: pip install 'rtrace_analytics[ray]'") from None
    if ray.is_initialized():
        yield ray
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}
    address = address or os.environ.get("RAY_ADDRESS")
    if address is None:
        options |= {"num_cpus": cpus, "object_store_memory": _OBJECTS, "include_dashboard": False}
    else:
        _check_address(address)
    try:
        ray.init(address or "local", **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InputError(f"no Ray at {address!r}: {str(error).splitlines()[0]}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Raises `InputError` where nobody listens at HOST:PORT: Ray itself would try for minutes."""
    told = re.fullmatch(r"(?:ray://)?\[?([^/]+?)\]?:(\d+)", address)
    if told is None:
        return
    try:
        socket.create_connection((told[1], int(told[2])), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"no Ray at {address!r}: {error}; start it, or give the address `ray start` told") from error
