"""The lines of files as Arrow tables that SQL can read, in batches, with the counts that prove them intact."""

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rtrace_analytics.loading.files import TraceFile, text_from
from rtrace_analytics.loading.read import BLOCK, CHUNK, ROW_GROUP, Bytes, Chunk
from rtrace_analytics.loading.report import FileReport

_PARTS_IN_BATCH = 1000
_LONG = 2**20  # bytes: a line longer than this is not read by SQL, which would need many times its size

LINES = pa.schema(
    [
        ("experiment", pa.dictionary(pa.int8(), pa.string())),
        ("file_id", pa.int32()),
        ("line", pa.int64()),
        ("byte_offset", pa.int64()),
        ("text", pa.large_string()),
    ]
)


@dataclass(eq=False)
class Job:
    """A file to take up from `file.bytes` on; `until`: no further than the line in which this place lies.

    `way`: how its lines are read, "quick" (proven all together), "read" (each proven plain) or "odd" (most of them bear
    more than known fields); it changes with what is met.
    """

    file: TraceFile
    path: str
    report: FileReport
    until: int | None = None
    way: str = "quick"
    first_line: int = field(init=False)  # the first that may be new

    def __post_init__(self) -> None:
        self.first_line = self.file.lines + 1

    def count(self, events: int, rejects: int) -> None:
        """So many more events and rejects."""
        self.file.events += events
        self.file.rejects += rejects
        self.report.events += events
        self.report.rejects += rejects


@dataclass(eq=False)
class Part:
    """Lines of one file in a batch: whole lines, and in the last chunk perhaps an unfinished one after them."""

    job: Job
    chunk: Chunk
    first_line: int  # number of the first line
    base: int  # block with which the job began
    table: pa.Table  # its whole lines
    counts: tuple[int, int, int] | None  # of its colons, quotes and commas; None where the quick way cannot be gone

    @property
    def lines(self) -> int:
        """How many whole lines."""
        return len(self.chunk.starts) - 1

    def proven(self, rows: int, texts: int, numbers: int) -> bool:
        """Whether so many rows with so many texts and numbers are all that its lines hold (sql/intake.sql says why)."""
        values = texts + numbers
        return rows == self.lines and self.counts == (values, 2 * values + 2 * texts, values - rows)

    def line(self, number: int) -> tuple[int, bytes]:
        """Where a line begins in the chunk, and its bytes without the LF."""
        start, end = self.chunk.starts[number - self.first_line : number - self.first_line + 2].tolist()
        return start, self.chunk.data[start : end - 1].tobytes()

    def tail(self) -> tuple[int, bytes]:
        """Where the unfinished last line begins, and its bytes; nothing where the chunk ends with an LF."""
        start = int(self.chunk.starts[-1])
        return start, self.chunk.data[start:].tobytes()


def batches(jobs: Iterable[Job]) -> Iterator[list[Part]]:
    """The chunks of all jobs; many small files together in a batch, a large one in several."""
    batch: list[Part] = []
    size = 0
    for job in jobs:
        line, base = job.file.lines + 1, job.file.bytes // BLOCK
        for chunk in text_from(job.path, job.file.bytes, CHUNK if job.until is None else BLOCK):
            if job.until is not None and chunk.offset + len(chunk.data) > job.until:
                chunk.last = True
            part = Part(job, chunk, line, base, *_table(job.file, chunk, line))
            line += part.lines
            batch.append(part)
            size += len(chunk.data)
            if not chunk.last or size >= CHUNK or len(batch) >= _PARTS_IN_BATCH:
                yield batch
                batch, size = [], 0
            if chunk.last:
                break
    if batch:
        yield batch


def _table(file: TraceFile, chunk: Chunk, first: int) -> tuple[pa.Table, tuple[int, int, int] | None]:
    """The whole lines of a chunk, each with its LF, not copied, and the counts of a part.

    A line whose UTF-8 is not valid, or a very long one, is NULL. `first` is the number of the first line.
    """
    starts = chunk.starts
    n = len(starts) - 1
    data = chunk.data[: starts[-1]]
    valid, counts = None, None
    bad = [] if _is_ascii(data) else _bad_lines(data, starts)
    bad.extend(np.flatnonzero(np.diff(starts) > _LONG).tolist())
    if bad:
        flags = np.ones(n, bool)
        flags[bad] = False
        valid = pa.py_buffer(np.packbits(flags, bitorder="little"))
    elif not _count(data, "[") and not _count(data, "\\") and (data[starts[:-1]] == ord("{")).all():
        counts = (_count(data, ":"), _count(data, '"'), _count(data, ","))
    name = file.experiment.encode()
    names = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, len(name)], np.int32)), pa.py_buffer(name))
    arrays = [
        pa.DictionaryArray.from_arrays(column(np.zeros(n, np.int8)), names),
        column(np.full(n, file.file_id, np.int32)),
        column(np.arange(first, first + n)),
        column(starts[:-1] + chunk.offset),
        pa.LargeStringArray.from_buffers(n, pa.py_buffer(starts), pa.py_buffer(data), valid),
    ]
    table = pa.Table.from_arrays(arrays, schema=LINES)
    return pa.Table.from_batches(table.to_batches(max_chunksize=ROW_GROUP), schema=LINES), counts


def column(values: NDArray[Any]) -> pa.Array:
    """Numbers as an Arrow array, not copied. `pa.array` would import pandas, which takes longer than a small load."""
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


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
            codecs.utf_8_decode(view[at:], "strict", True)
        except UnicodeDecodeError as error:
            bad.append(int(np.searchsorted(starts, at + error.start, side="right")) - 1)
            at = int(starts[bad[-1] + 1])
        else:
            break
    return bad
