"""What the database knows of a trace file, and what the head of a file says it is."""

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from rtrace_analytics.errors import InputError
from rtrace_analytics.loading.read import BLOCK, Chunk, Text, chunks, open_text
from rtrace_analytics.loading.salvage import take_apart

if TYPE_CHECKING:
    import duckdb

_NO_TRACE_LINES, _NO_TRACE_BYTES = 10_000, 2**28  # so many rejects or bytes before any event: it is no trace


@dataclass
class TraceFile:
    """A row of `trace_files`."""

    file_id: int
    path: str
    experiment: str
    identity: str | None = None
    bytes: int = 0
    events: int = 0
    rejects: int = 0
    pending: int = 0
    warnings: str | None = None
    lines: int = 0
    non_finite_values: int = 0
    replaced_utf8: int = 0
    salvaged: int = 0
    disk_bytes: int | None = None
    modified_ns: int | None = None

    @property
    def unread(self) -> bool:
        """Whether it was loaded by sql/load.sql alone, which does not tell how far: it is then loaded anew."""
        return bool(self.events) and not self.bytes

    def forget_content(self) -> None:
        """Back to a file of which nothing is taken up."""
        self.identity = self.warnings = self.disk_bytes = self.modified_ns = None
        self.bytes = self.events = self.rejects = self.pending = self.lines = 0
        self.non_finite_values = self.replaced_utf8 = self.salvaged = 0


COLUMNS = tuple(f.name for f in fields(TraceFile))


def known_files(con: "duckdb.DuckDBPyConnection") -> list[TraceFile]:
    """All rows of `trace_files`; what a load without Python left empty counts as 0."""
    rows = con.execute(f"SELECT {', '.join(COLUMNS)} FROM trace_files ORDER BY file_id").fetchall()
    zero = {f.name for f in fields(TraceFile) if f.default == 0}
    files: list[TraceFile] = []
    for row in rows:
        values: list[Any] = [0 if v is None and name in zero else v for name, v in zip(COLUMNS, row, strict=True)]
        files.append(TraceFile(*values))
    return files


def save_files(con: "duckdb.DuckDBPyConnection", files: Sequence[TraceFile]) -> None:
    """Write rows of `trace_files` anew, all in two statements."""
    con.execute("DELETE FROM trace_files WHERE list_contains(?::INTEGER[], file_id)", [[f.file_id for f in files]])
    columns = ", ".join(f"unnest(?::{'BIGINT' if 'int' in str(f.type) else 'VARCHAR'}[])" for f in fields(TraceFile))
    values = [[getattr(f, name) for f in files] for name in COLUMNS]
    con.execute(f"INSERT INTO trace_files({', '.join(COLUMNS)}) SELECT {columns}", values)


@dataclass
class Head:
    """The beginning of a file: hash of its first complete event (None where it has none yet), rejects before it."""

    identity: str | None
    rejects: int
    first: str = ""  # of the rejects


def read_head(path: str) -> Head:
    """Read a file as far as its first complete event; a file that shows none for long is given up."""
    rejects = 0
    first = ""
    with_text = _opened(path)
    try:
        for chunk in chunks(with_text, 0, BLOCK):
            data = chunk.data.tobytes()
            at = 0
            while at < len(data):
                end = data.find(b"\n", at)
                pieces = take_apart(data[at : end if end >= 0 else len(data)], last=end < 0)
                rejects += len(pieces.rejects)
                if pieces.rejects and not first:
                    first = pieces.rejects[0].text
                if pieces.events:
                    start, stop, _ = pieces.events[0]
                    return Head(_hash(data[at + start : at + stop]), rejects)
                if end < 0 or rejects > _NO_TRACE_LINES:
                    return Head(None, rejects, first)
                at = end + 1
            if chunk.offset > _NO_TRACE_BYTES:
                break
    except OSError as error:
        raise InputError(f"{path!r} cannot be read: {error.strerror or error}") from error
    finally:
        with_text.close()
    return Head(None, rejects, first)


def _hash(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _opened(path: str) -> Text:
    try:
        return open_text(path)
    except OSError as error:
        raise InputError(f"{path!r} cannot be read: {error.strerror or error}") from error


def text_from(path: str, offset: int, size: int) -> Iterator[Chunk]:
    """The chunks of a file's text from `offset` on. Raises `InputError` where it cannot be read."""
    text = _opened(path)
    try:
        text.skip(offset // BLOCK * BLOCK)
        yield from chunks(text, offset, size)
    except OSError as error:
        raise InputError(f"{path!r} cannot be read: {error.strerror or error}") from error
    finally:
        text.close()


def disk_state(path: str) -> tuple[int, int | None]:
    """Size and time of change on disk; no time where the file changed too recently to tell a later change by it."""
    stat = os.stat(path)
    settled = time.time_ns() - stat.st_mtime_ns > 2_000_000_000
    return stat.st_size, stat.st_mtime_ns if settled else None


def unchanged(file: TraceFile, path: str) -> bool:
    """Whether the file on disk is as it was when it was taken up, by its size and time of change."""
    stat = os.stat(path)
    return (file.disk_bytes, file.modified_ns) == (stat.st_size, stat.st_mtime_ns)
