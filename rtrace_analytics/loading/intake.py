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
    [
        ("experiment", pa.string()),
        *_PLACE,
        ("seq", pa.int64()),
        *((f.name, _ARROW[f.sql_type]) for f in FIELDS),
        ("extra", pa.string()),
    ]
)
_FRAGMENTS = pa.schema([*_PLACE, ("byte_offset", pa.int64()), ("problem", pa.string()), ("text", pa.string())])
_LINES = pa.schema(
    [
        ("experiment", pa.dictionary(pa.int8(), pa.string())),
        *_PLACE,
        ("byte_offset", pa.int64()),
        ("text", pa.large_string()),
    ]
)
_PARTS = pa.schema([("file_id", pa.int32()), ("first_line", pa.int64())])
_BLOCKS = pa.schema([("file_id", pa.int32()), ("block", pa.int64()), ("bytes", pa.int32()), ("hash", pa.uint64())])
_EXAMPLES = 5  # lines with doubled keys that are named


@dataclass
class Job:
    """A file to take up from `file.bytes` on; `until`: no further than the line in which this place lies."""

    file: TraceFile
    path: str
    report: FileReport
    until: int | None = None
    quick: bool = True  # whether the quick way is tried: the last time it was, its lines were proven
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
    table: pa.Table  # its whole lines
    counts: tuple[int, int, int] | None  # of its colons, quotes and commas; None where the quick way cannot be gone

    @property
    def lines(self) -> int:
        return len(self.starts) - 1

    def proven(self, rows: int, texts: int, numbers: int) -> bool:
        """Whether so many rows with so many texts and numbers are all that its lines hold (sql/intake.sql says why)."""
        values = texts + numbers
        return rows == self.lines and self.counts == (values, 2 * values + 2 * texts, values - rows)


class Intake:
    """Takes up jobs in batches; reading and finding the lines of the next one goes on while SQL works on one."""

    def __init__(
        self, con: "duckdb.DuckDBPyConnection", advance: Callable[[int], Any], *, careful: bool = False
    ) -> None:
        self._con = con
        self._careful = careful  # leave nothing but proven lines to SQL
        self._advance = advance  # called with the bytes done
        self._steps = database.steps("load.sql") | database.steps("intake.sql")
        self._hashes: list[NDArray[np.uint64]] = []  # of the file whose chunks are coming
        con.register("_raw_lines", _LINES.empty_table())  # what `_read` is made of must be there
        for step in ("parsed", "typed", "read"):
            self._run(step)

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
        """Run a step; the number its last statement gives."""
        rows = self._rows(step)
        return int(rows[0][0]) if rows else 0

    def _rows(self, step: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for statement in self._con.extract_statements(self._steps[step]):
            rows = database.run_statement(self._con, statement.query, f"step {step}").fetchall()
        return rows

    def _batch(self, batch: list[_Part]) -> None:
        taken: list[tuple[_Part, int, int, Pieces]] = []  # part, line, where it begins in the chunk, what it holds
        slow = self._quick([part for part in batch if part.lines])
        if slow:
            lines = pa.concat_tables([part.table for part in slow])
            self._con.register("_raw_lines", lines)
            self._run("parsed")
            intact = self._run("events")
            if intact < len(lines):
                taken.extend(self._suspects(slow))
        for part in batch:
            part.job.count(part.lines, 0)
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

    def _quick(self, parts: list[_Part]) -> list[_Part]:
        """Take up parts the quick way; those are left of which it then cannot be proven that all lines are intact."""
        tried = [part for part in parts if part.counts and part.job.quick]
        slow = [part for part in parts if not (part.counts and part.job.quick)]
        if not tried:
            return slow
        self._con.register("_raw_lines", pa.concat_tables([part.table for part in tried]))
        self._run("quick")
        self._con.register("_parts", _places(tried))
        sums = {row[0]: row[1:] for row in self._rows("proof")}
        unproven = [part for part in tried if not part.proven(*sums.get(part.job.file.file_id, (0, 0, 0)))]
        if unproven:
            self._con.register("_unproven", _places(unproven))
            self._run("unproven")
        for part in unproven:
            part.job.quick = False
        return slow + unproven

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
            named = {**place, "experiment": file.experiment}
            part.job.count(len(pieces.events), len(pieces.rejects))
            alone = len(pieces.events) == 1 and not pieces.rejects
            for at, _, row in pieces.events:
                rows.append({**named, "seq": offset + at, "extra": row.extra, **row.columns})
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
            starts = line_starts(chunk.data)
            part = _Part(job, chunk, starts, line, base, *_lines(job.file, chunk, starts, line))
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


def _places(parts: list[_Part]) -> pa.Table:
    return pa.Table.from_arrays([[p.job.file.file_id for p in parts], [p.first_line for p in parts]], schema=_PARTS)


def _lines(
    file: TraceFile, chunk: Chunk, starts: NDArray[np.int64], first: int
) -> tuple[pa.Table, tuple[int, int, int] | None]:
    """The whole lines of a chunk, each with its LF, not copied, and the counts of a part.

    A line whose UTF-8 is not valid is NULL. `first` is the number of the first line.
    """
    n = len(starts) - 1
    data = chunk.data[: starts[-1]]
    valid, counts = None, None
    bad = [] if _is_ascii(data) else _bad_lines(data, starts)
    if bad:
        flags = np.ones(n, bool)
        flags[bad] = False
        valid = pa.py_buffer(np.packbits(flags, bitorder="little"))
    elif not _count(data, "[") and not _count(data, "\\") and (data[starts[:-1]] == ord("{")).all():
        counts = (_count(data, ":"), _count(data, '"'), _count(data, ","))
    arrays = [
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int8)), [file.experiment]),
        np.full(n, file.file_id, np.int32),
        np.arange(first, first + n),
        starts[:-1] + chunk.offset,
        pa.LargeStringArray.from_buffers(n, pa.py_buffer(starts), pa.py_buffer(data), valid),
    ]
    return pa.Table.from_arrays(arrays, schema=_LINES), counts


def _count(data: Bytes, character: str) -> int:
    """How often an ASCII character stands in the data, piece by piece: the pieces stay in the cache."""
    step = 2**20
    return sum(int(np.count_nonzero(data[at : at + step] == ord(character))) for at in range(0, len(data), step))


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
