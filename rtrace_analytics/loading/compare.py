"""Whether a file still holds what was taken up: by the hashes of its blocks, and line by line where they differ."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rtrace_analytics.events import FIELDS
from rtrace_analytics.loading.files import TraceFile, save_files, text_from
from rtrace_analytics.loading.intake import Intake
from rtrace_analytics.loading.lines import Job
from rtrace_analytics.loading.order import PLACE
from rtrace_analytics.loading.read import BLOCK, CHUNK, block_hashes, is_compressed
from rtrace_analytics.loading.report import FileReport

if TYPE_CHECKING:
    import duckdb

_ALL = 16 * 2**20  # bytes up to which a file that grew is compared as a whole; of a longer one samples are
_SAMPLES = 8
_TRIAL = -1  # file_id of lines taken up only to be compared


def still_holds(con: "duckdb.DuckDBPyConnection", file: TraceFile, path: str, size: int) -> bool:
    """Whether the file at `path` (`size` bytes on disk) begins with what was taken up of it.

    A plain file that grew and is large is compared in samples: its first block, its last ones and some between, so that
    what is read stays small. A change between them that leaves the first event as it was is not seen then.
    """
    stored = _stored(con, file)
    if file.unread or len(stored) != -(-file.bytes // BLOCK):
        return False
    if is_compressed(path) or file.bytes <= _ALL or size == file.disk_bytes:
        hashes, length = _hashes(path, file.bytes)
        return length >= file.bytes and bool(np.array_equal(hashes, stored))
    if size < file.bytes:
        return False
    last = len(stored) - 1
    blocks = np.unique(np.append(np.linspace(0, last, _SAMPLES - 1).astype(int), max(0, last - 1)))
    with open(path, "rb", buffering=0) as text:
        for block in blocks.tolist():
            text.seek(block * BLOCK)
            data = np.frombuffer(text.read(min(BLOCK, file.bytes - block * BLOCK)), np.uint8)
            if block_hashes(data)[0] != stored[block]:
                return False
    return True


def difference(con: "duckdb.DuckDBPyConnection", intake: Intake, file: TraceFile, path: str) -> tuple[int | None, int]:
    """The first line at which the file at `path` and what was taken up of `file` differ, None where neither does.

    Also the length of the text compared: less than `file.bytes` where the one at `path` is shorter.
    """
    stored = _stored(con, file)
    hashes, length = _hashes(path, file.bytes)
    common = min(length, file.bytes)
    whole = len(stored) if common == file.bytes else common // BLOCK
    unlike = np.flatnonzero(hashes[:whole] != stored[:whole])
    if len(unlike):
        block = int(unlike[0])
        return _line(con, intake, file, path, block, (block + 1) * BLOCK) or _line_at(path, block * BLOCK)[1], common
    if common == file.bytes or common % BLOCK == 0:
        return None, common
    return _line(con, intake, file, path, whole, common), common


def _stored(con: "duckdb.DuckDBPyConnection", file: TraceFile) -> NDArray[np.uint64]:
    rows = con.execute("SELECT hash FROM _blocks WHERE file_id = ? ORDER BY block", [file.file_id]).fetchnumpy()
    return np.asarray(rows["hash"], np.uint64)


def _hashes(path: str, until: int) -> tuple[NDArray[np.uint64], int]:
    """Hashes of the blocks of a text as far as `until`, the last one of what of its block lies before; and how far."""
    parts: list[NDArray[np.uint64]] = []
    end = 0
    for chunk in text_from(path, 0, CHUNK):
        parts.append(chunk.hashes)
        end = chunk.offset + len(chunk.data)
        if end >= until or chunk.last:
            until = min(until, end)
            data = np.concatenate([chunk.before, chunk.data])
            stop = until - chunk.offset + len(chunk.before)
            rest = data[stop - until % BLOCK : stop]
            return np.append(np.concatenate(parts)[: until // BLOCK], block_hashes(rest)), until
    return np.empty(0, np.uint64), 0


def _line_at(path: str, offset: int) -> tuple[int, int]:
    """Where the line begins that holds this place of the text, and its number."""
    first = 1
    for chunk in text_from(path, 0, CHUNK):
        starts = chunk.starts
        if chunk.last or chunk.offset + len(chunk.data) > offset:
            at = int(np.searchsorted(starts, offset - chunk.offset, side="right")) - 1
            return chunk.offset + int(starts[at]), first + at
        first += len(starts) - 1
    return 0, 1


def _line(
    con: "duckdb.DuckDBPyConnection", intake: Intake, file: TraceFile, path: str, block: int, until: int
) -> int | None:
    """The first line, from the one that holds the beginning of a block on, whose events or rejects are not the same."""
    begin, line = _line_at(path, block * BLOCK)
    trial = TraceFile(_TRIAL, path, file.experiment, bytes=begin, lines=line - 1)
    save_files(con, [trial])
    intake.take([Job(trial, path, FileReport(path, file.experiment), until)])
    con.execute(
        "UPDATE events SET event = _renames.name FROM _renames "
        "WHERE file_id = ? AND _renames.experiment = events.experiment AND _renames.event = events.event",
        [_TRIAL],
    )
    columns = ", ".join(f.name for f in FIELDS)
    query = f"""
        WITH pieces AS (
            SELECT file_id, line, seq & $place AS place, {columns}, extra::VARCHAR AS extra FROM events
            UNION ALL BY NAME
            SELECT file_id, line, byte_offset AS place, problem AS event, text AS extra FROM rejects)
        SELECT min(line) FROM (
            SELECT line FROM pieces
            WHERE file_id IN ($trial, $file) AND line >= $line AND place < $until
            GROUP BY line, place, {columns}, extra HAVING count(DISTINCT file_id) < 2)"""
    values = {
        "trial": _TRIAL,
        "file": file.file_id,
        "line": line,
        "place": PLACE,
        "until": min(trial.bytes, file.bytes),
    }
    row = con.execute(query, values).fetchone()
    for table in ("events", "rejects", "_blocks", "trace_files"):
        con.execute(f"DELETE FROM {table} WHERE file_id = ?", [_TRIAL])
    return row[0] if row else None
