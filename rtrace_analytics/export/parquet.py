"""Every public view and table as Parquet, one file per view and experiment, brought up to date in place.

All files are written in a folder beside (`DIR/.partial-*`) and then renamed one by one, the manifest last: a reader
meanwhile sees each file wholly old or wholly new (see `replacing`), and a failed export leaves all as it was. An
experiment whose files bear the wanted fingerprint is left alone; one that is gone from the database goes. See `layout`
for the folders and names, `schema` for the columns.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtrace_analytics.errors import DatabaseError, InputError
from rtrace_analytics.export import layout
from rtrace_analytics.export.fingerprint import fingerprints, version
from rtrace_analytics.export.schema import View, exported
from rtrace_analytics.export.writing import write_view
from rtrace_analytics.text import one_line
from rtrace_analytics.views import experiments

if TYPE_CHECKING:
    import duckdb

_ALWAYS = ("runs", "trace_files")
_STALE_S = 86_400  # a staging folder this old is what a killed export left


@dataclass
class Report:
    """What an export did: experiments written, left as they were, removed; the whole manifest."""

    folder: Path
    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    manifest: dict[str, Any] = field(default_factory=dict)

    def files(self) -> list[Path]:
        """Every file of the export, the manifest left out."""
        return [self.folder / file["path"] for entry in self.manifest["experiments"] for file in entry["files"]]

    def rows(self) -> list[list[object]]:
        """A row per experiment: name; `written`, `unchanged`, `kept` or `removed`; its files, rows, bytes."""
        states = dict.fromkeys(self.written, "written") | dict.fromkeys(self.unchanged, "unchanged")
        told: list[list[object]] = []
        for entry in self.manifest["experiments"]:
            name, files = entry["experiment"], entry["files"]
            sums = [sum(file[key] for file in files) for key in ("rows", "bytes")]
            told.append([name, states.get(name, "kept"), len(files), *sums])
        return told + [[name, "removed", 0, 0, 0] for name in self.removed]


def update(
    con: "duckdb.DuckDBPyConnection",
    folder: str | PathLike[str],
    *,
    views: str | Sequence[str] | None = None,
    experiment: str | Sequence[str] | None = None,
) -> Report:
    """Bring a Parquet export of the database up to date: only experiments that changed are written anew.

    `views`: only these (and `runs` and `trace_files`, which tell what there is), and no others stay in the folder; by
    default every public view and table. `experiment`: only these are brought up to date, others in the folder stay as
    they are; by default all, and what is gone goes. Raises `InputError` for a name that is not there and for a folder
    that cannot be written or is not an export's.
    """
    where = Path(folder)
    wanted = [views] if isinstance(views, str) else views
    with frozen(con) as cursor:
        tables = exported(cursor, [*wanted, *_ALWAYS] if wanted else None)
        there = experiments(cursor, experiment)
        old = previous(where, tables)
        if experiment is not None and old["experiments"] and not _same_columns(old, tables):
            raise InputError(f"{str(where)!r} was exported with other views or columns: export it whole, or elsewhere")
        prints = fingerprints(cursor)
        before = {entry["experiment"]: entry for entry in old["experiments"]}
        changed = [name for name in there if not up_to_date(where, before.get(name), prints[name], tables)]
        with staging(where) as beside:
            written = stage(cursor, where, beside, tables, {name: prints[name] for name in changed})
            put_in_place(where, beside, written)
            kept = before if experiment is not None else {name: before[name] for name in there if name in before}
            entries = kept | {entry["experiment"]: entry for entry in written}
            manifest = finish(where, beside, tables, list(entries.values()))
    removed = sorted(before.keys() - entries.keys())
    return Report(where, changed, [name for name in there if name not in changed], removed, manifest)


@contextmanager
def frozen(con: "duckdb.DuckDBPyConnection") -> Iterator["duckdb.DuckDBPyConnection"]:
    """A cursor that sees the database as it is now, whatever is loaded meanwhile."""
    cursor = con.cursor()
    try:
        cursor.execute("BEGIN TRANSACTION")
        yield cursor
    finally:
        cursor.close()


@contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """A folder to write in, within the export's so that a rename suffices; it goes at the end. Raises `InputError`."""
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(f"{layout.PARTIAL}*"):
            if time.time() - left.stat().st_mtime > _STALE_S:
                shutil.rmtree(left, ignore_errors=True)
        beside = Path(tempfile.mkdtemp(prefix=layout.PARTIAL, dir=folder))
    except OSError as error:
        raise InputError(f"{str(folder)!r} cannot be written to: {error.strerror or error}") from error
    try:
        yield beside
    except OSError as error:
        raise InputError(f"{str(folder)!r} cannot be written to: {error.strerror or error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        if made:
            with suppress(OSError):  # nothing came of it: the folder is empty and goes too
                folder.rmdir()


def previous(folder: Path, tables: Sequence[View]) -> dict[str, Any]:
    """The manifest of an earlier export, or an empty one. Raises `InputError` for a folder that is not an export's."""
    manifest = layout.read_manifest(folder)
    if manifest is None:
        layout.check_ours(folder, {table.name for table in tables})
        return {"experiments": []}
    return manifest


def up_to_date(folder: Path, entry: Mapping[str, Any] | None, fingerprint: str, tables: Sequence[View]) -> bool:
    """Whether the manifest's entry and the files themselves bear this fingerprint, for just these views."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if entry is None or entry["fingerprint"] != fingerprint:
        return False
    if [file["view"] for file in entry["files"]] != [table.name for table in tables]:
        return False
    for file, table in zip(entry["files"], tables, strict=True):
        try:
            if (folder / file["path"]).stat().st_size != file["bytes"]:
                return False
            found = pq.read_schema(folder / file["path"])
        except (OSError, pa.ArrowInvalid):
            return False
        if found.metadata.get(b"rtrace:fingerprint") != fingerprint.encode() or found.names != table.arrow.names:
            return False
    return True


def stage(
    con: "duckdb.DuckDBPyConnection",
    folder: Path,
    beside: Path,
    tables: Sequence[View],
    wanted: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Write the files of these experiments (name to fingerprint) into a staging folder; returns their entries."""
    import duckdb

    if not wanted:
        return []
    try:
        written = {table.name: write_view(con, folder, beside, table, wanted) for table in tables}
        told = _told(con, list(wanted))
    except duckdb.Error as error:
        raise DatabaseError(f"the export failed: {one_line(error)}") from error
    return [
        {"experiment": name, "key": layout.partition_key(name), "fingerprint": wanted[name], **told[name]}
        | {"files": [written[table.name][name] for table in tables]}
        for name in wanted
    ]


def put_in_place(folder: Path, beside: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    """Rename the staged files to where readers look for them, experiment by experiment."""
    for entry in entries:
        for file in entry["files"]:
            target = folder / file["path"]
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(beside / file["path"], target)


def finish(folder: Path, beside: Path, tables: Sequence[View], entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rename the new manifest into place, then delete the files it does not name; returns it."""
    rows = {table.name: 0 for table in tables}
    for entry in entries:
        for file in entry["files"]:
            rows[file["view"]] += file["rows"]
    manifest = {
        "format": layout.FORMAT,
        "schema_version": layout.SCHEMA_VERSION,
        "package_version": version(),
        "written_at": datetime.now(UTC).isoformat(timespec="microseconds"),
        "partition": layout.PARTITION,
        "views": {table.name: _described(table) | {"rows": rows[table.name]} for table in tables},
        "experiments": sorted(entries, key=lambda entry: str(entry["experiment"])),
    }
    layout.write_manifest(folder, beside, manifest)
    layout.remove_others(folder, {file["path"] for entry in entries for file in entry["files"]})
    return manifest


def _described(table: View) -> dict[str, Any]:
    columns = [{"name": c.name, "type": c.type, "comment": c.comment} for c in table.columns]
    return {"comment": table.comment, "columns": columns}


def _same_columns(manifest: Mapping[str, Any], tables: Sequence[View]) -> bool:
    return manifest.get("schema_version") == layout.SCHEMA_VERSION and {
        name: view["columns"] for name, view in manifest["views"].items()
    } == {table.name: _described(table)["columns"] for table in tables}


def _told(con: "duckdb.DuckDBPyConnection", names: list[str]) -> dict[str, dict[str, Any]]:
    """Per experiment the files it came from and the counts of its quality checks."""
    told: dict[str, dict[str, Any]] = {name: {"sources": [], "quality": {}} for name in names}
    columns = ("path", "identity", "bytes", "events", "rejects", "pending", "warnings")
    files = con.execute(
        f"SELECT experiment, {', '.join(columns)} FROM trace_files WHERE list_contains(?, experiment) ORDER BY ALL",
        [names],
    ).fetchall()
    for experiment, *values in files:
        told[experiment]["sources"].append(dict(zip(columns, values, strict=True)))
    checks = con.execute(
        'SELECT experiment, "check", count FROM quality WHERE list_contains(?, experiment) ORDER BY ALL', [names]
    ).fetchall()
    for experiment, check, count in checks:
        told[experiment]["quality"][check] = count
    return told
