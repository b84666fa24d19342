"""Take up the text of files into `events` and `rejects`: SQL reads lines, what it cannot prove is taken apart."""

import codecs
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rtrace_analytics import database
from rtrace_analytics.events import FIELDS
from rtrace_analytics.loading.files import TraceFile, text_from
from rtrace_analytics.loading.read import BLOCK, CHUNK, Bytes, Chunk, block_hashes, line_starts
from rtrace_analytics.loading.report import FileReport
from rtrace_analytics.loading.salvage import Pieces, take_apart

if TYPE_CHECKING:
    import duckdb

_ARROW = {"DOUBLE": pa.float64(), "VARCHAR": pa.string(), "INTEGER": pa.int32(), "BIGINT": pa.int64()}
_PLACE = [("file_id", pa.int32()), ("line", pa.int64())]
_SALVAGED = pa.schema(
    [*_PLACE, ("seq", pa.int64()), *((f.name, _ARROW[f.sql_type]) for f in FIELDS), ("extra", pa.string())]
)
_FRAGMENTS = pa.schema([*_PLACE, ("byte_offset", pa.int64()), ("problem", pa.string()), ("text", pa.string())])
_LINES = pa.schema([*_PLACE, ("byte_offset", pa.int64()), ("text", pa.large_string())])
_BLOCKS = pa.schema([("file_id", pa.int32()), ("block", pa.int64()), ("bytes", pa.int32()), ("hash", pa.uint64())])
_EXAMPLES = 5  # lines with doubled keys that are named


@dataclass
class Job:
    """A file to take up from `file.bytes` on; `until`: no further than the line in which this place lies."""

    file: TraceFile
    path: str
    report: FileReport
    until: int | None = None
    first_line: int = field(init=False)  # the first that may be new

    def __post_init__(self) -> None:
        self.first_line = self.file.lines + 1

    def count(self, events: int, rejects: int) -> None:
        """So many more events and rejects."""
        self.file.events += events
        self.file.rejects += rejects
        self.report.events += events
        self.report.rejects += rejects


@dataclass
class _Part:
    """Lines of one file in a batch: whole lines, and in the last chunk perhaps an unfinished one after them."""

    job: Job
    chunk: Chunk
    starts: NDArray[np.int64]  # where each line begins in the chunk, and where the last one ends
    first_line: int  # number of the first line
    base: int  # block with which the job began

    @property
    def lines(self) -> int:
        return len(self.starts) - 1


class Intake:
    """Takes up jobs in batches; reading and finding the lines of the next one goes on while SQL works on one."""

    def __init__(
        self, con: "duckdb.DuckDBPyConnection", advance: Callable[[int], Any], *, careful: bool = False
    ) -> None:
        self._con = con
        self._careful = careful  # leave nothing but proven lines to SQL
        self._advance = advance  # called with the bytes done
        self._steps = database.steps("load.sql")
        self._hashes: list[NDArray[np.uint64]] = []  # of the file whose chunks are coming
        con.register("_raw_lines", _LINES.empty_table())  # what `_read` is made of must be there
        self._run("read")

    def take(self, jobs: Iterable[Job]) -> None:
        """Take up all jobs: their lines into `events` and `rejects`, their hashes, and what is known of them."""
        batches = _batches(jobs)
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(next, batches, None)
            while batch := ahead.result():
                ahead = reader.submit(next, batches, None)
                self._batch(batch)
                self._advance(sum(len(part.chunk.data) for part in batch))

    def _run(self, step: str) -> int:
        """Run a step of load.sql; the number its last statement gives."""
        result = None
        for statement in self._con.extract_statements(self._steps[step]):
            result = database.run_statement(self._con, statement.query, f"load.sql, step {step}")
        row = result.fetchone() if result is not None else None
        return int(row[0]) if row else 0

    def _batch(self, batch: list[_Part]) -> None:
        taken: list[tuple[_Part, int, int, Pieces]] = []  # part, line, where it begins in the chunk, what it holds
        lines = pa.concat_tables([_table(part) for part in batch])
        if len(lines):
            self._con.register("_raw_lines", lines)
            intact = self._run("events")
            for part in batch:
                part.job.count(part.lines, 0)
            if intact < len(lines):
                taken.extend(self._suspects(batch))
        for part in batch:
            end = len(part.chunk.data)
            if part.starts[-1] < end:
                start = int(part.starts[-1])
                pieces = take_apart(part.chunk.data[start:].tobytes(), last=True)
                taken.append((part, part.first_line + part.lines, start, pieces))
                end = end if pieces.pending is None else start + pieces.pending
                part.job.file.pending = part.job.report.pending = int(pieces.pending is not None)
            self._account(part, end)
        self._keep(taken)

    def _suspects(self, batch: list[_Part]) -> Iterator[tuple[_Part, int, int, Pieces]]:
        """The lines of which SQL cannot prove that they are one event, taken apart."""
        self._run("rest")
        query = "SELECT file_id, line FROM _rest ORDER BY ALL"
        if not self._careful:
            self._run("odd")
            query = "SELECT file_id, line FROM _odd WHERE NOT whole_event ORDER BY ALL"
        parts = {part.job.file.file_id: part for part in batch}
        for file_id, line in database.run_statement(self._con, query, "suspect lines").fetchall():
            part = parts[file_id]
            part.job.count(-1, 0)
            start, end = part.starts[line - part.first_line : line - part.first_line + 2].tolist()
            yield part, line, start, take_apart(part.chunk.data[start : end - 1].tobytes())

    def _keep(self, taken: list[tuple[_Part, int, int, Pieces]]) -> None:
        """Put what the suspect lines hold into the tables."""
        rows: list[dict[str, Any]] = []
        fragments: list[dict[str, Any]] = []
        for part, line, start, pieces in taken:
            file, offset = part.job.file, part.chunk.offset + start
            place = {"file_id": file.file_id, "line": line}
            part.job.count(len(pieces.events), len(pieces.rejects))
            alone = len(pieces.events) == 1 and not pieces.rejects
            for at, _, row in pieces.events:
                rows.append({**place, "seq": offset + at, "extra": row.extra, **row.columns})
                file.non_finite_values += row.non_finite
                file.replaced_utf8 += row.replaced_utf8
                file.salvaged += not alone
                if row.twice:
                    part.job.report.duplicate_keys += 1
                    if len(part.job.report.duplicate_examples) < _EXAMPLES:
                        part.job.report.duplicate_examples.append((line, row.twice))
            for bad in pieces.rejects:
                fragments.append(
                    {**place, "byte_offset": offset + bad.offset, "problem": bad.problem, "text": bad.text}
                )
        if rows:
            self._con.register("_salvaged", pa.Table.from_pylist(rows, schema=_SALVAGED))
            self._run("salvaged")
            self._con.unregister("_salvaged")
        self._insert("rejects", pa.Table.from_pylist(fragments, schema=_FRAGMENTS))

    def _insert(self, table: str, rows: pa.Table) -> None:
        if len(rows):
            self._con.register("_new", rows)
            self._con.execute(f"INSERT INTO {table} SELECT * FROM _new")
            self._con.unregister("_new")

    def _account(self, part: _Part, end: int) -> None:
        """Bring what is known of the file up to `end` of this part; with its last chunk the hashes of its blocks."""
        file, chunk = part.job.file, part.chunk
        file.lines += part.lines
        file.bytes = chunk.offset + end
        self._hashes.append(chunk.hashes)
        if not chunk.last:
            return
        whole = file.bytes // BLOCK
        hashes = np.concatenate(self._hashes)[: whole - part.base]
        self._hashes = []
        sizes = np.full(len(hashes), BLOCK, np.int32)
        if rest := file.bytes % BLOCK:
            data = np.concatenate([chunk.before, chunk.data])
            until = len(chunk.before) + end
            hashes = np.append(hashes, block_hashes(data[until - rest : until]))
            sizes = np.append(sizes, np.int32(rest))
        self._con.execute("DELETE FROM _blocks WHERE file_id = ? AND block >= ?", [file.file_id, part.base])
        ids = np.full(len(hashes), file.file_id, np.int32)
        blocks = np.arange(part.base, part.base + len(hashes))
        self._insert("_blocks", pa.Table.from_arrays([ids, blocks, sizes, hashes], schema=_BLOCKS))
        if chunk.damage:
            part.job.report.warnings.append(chunk.damage)
            file.warnings = chunk.damage


def _batches(jobs: Iterable[Job]) -> Iterator[list[_Part]]:
    """The chunks of all jobs; many small files together in a batch, a large one in several."""
    batch: list[_Part] = []
    size = 0
    for job in jobs:
        line, base = job.file.lines + 1, job.file.bytes // BLOCK
        for chunk in text_from(job.path, job.file.bytes, CHUNK if job.until is None else BLOCK):
            if job.until is not None and chunk.offset + len(chunk.data) > job.until:
                chunk.last = True
            part = _Part(job, chunk, line_starts(chunk.data), line, base)
            line += part.lines
            batch.append(part)
            size += len(chunk.data)
            if not chunk.last or size >= CHUNK or len(batch) >= 1000:
                yield batch
                batch, size = [], 0
            if chunk.last:
                break
    if batch:
        yield batch


def _table(part: _Part) -> pa.Table:
    """The whole lines of a part, each with its LF, not copied; NULL for a line whose UTF-8 is not valid."""
    n, starts = part.lines, part.starts
    data = part.chunk.data[: starts[-1]]
    valid = None
    if len(data) and not _is_ascii(data):
        bad = _bad_lines(data, starts)
        if bad:
            flags = np.ones(n, bool)
            flags[bad] = False
            valid = pa.py_buffer(np.packbits(flags, bitorder="little"))
    text = pa.LargeStringArray.from_buffers(n, pa.py_buffer(starts), pa.py_buffer(data), valid)
    ids = np.full(n, part.job.file.file_id, np.int32)
    numbers = np.arange(part.first_line, part.first_line + n)
    return pa.Table.from_arrays([ids, numbers, starts[:-1] + part.chunk.offset, text], schema=_LINES)


def _is_ascii(data: Bytes) -> bool:
    words = len(data) // 8 * 8
    high = np.bitwise_or.reduce(data[:words].view(np.uint64)) if words else np.uint64(0)
    return not int(high) & 0x8080808080808080 and not (data[words:] & 0x80).any()


def _bad_lines(data: Bytes, starts: NDArray[np.int64]) -> list[int]:
    """The lines (from 0) whose bytes are not valid UTF-8."""
    bad: list[int] = []
    view = data.data
    at = 0
    while at < len(data):
        try:
            codecs.utf_8_decode(view[at : at + CHUNK], "strict", at + CHUNK >= len(data))
        except UnicodeDecodeError as error:
            bad.append(int(np.searchsorted(starts, at + error.start, side="right")) - 1)
            at = int(starts[bad[-1] + 1])
        else:
            break
    return bad
