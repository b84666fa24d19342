"""Take up the text of files into `events` and `rejects`: SQL reads lines, what it cannot prove is taken apart."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rtrace_analytics import database
from rtrace_analytics.events import FIELDS
from rtrace_analytics.loading.lines import LINES, Job, Part, batches, column
from rtrace_analytics.loading.read import BLOCK, block_hashes
from rtrace_analytics.loading.salvage import Pieces, take_apart

if TYPE_CHECKING:
    import duckdb

_ARROW = {"DOUBLE": pa.float64(), "VARCHAR": pa.string(), "INTEGER": pa.int32(), "BIGINT": pa.int64()}
_PLACE = [("file_id", pa.int32()), ("line", pa.int64())]
_FIELDS = [(f.name, _ARROW[f.sql_type]) for f in FIELDS]
_PARTS = pa.schema([("file_id", pa.int32()), ("first_line", pa.int64()), ("first_place", pa.int64())])
_SLOTS = {
    "_raw_lines": LINES,
    "_rest": LINES,
    "_parts": _PARTS,
    "_unproven": _PARTS,
    "_salvaged": pa.schema(
        [("experiment", pa.string()), *_PLACE, ("seq", pa.int64()), *_FIELDS, ("extra", pa.string())]
    ),
    "_fragments": pa.schema([*_PLACE, ("byte_offset", pa.int64()), ("problem", pa.string()), ("text", pa.string())]),
    "_hashes": pa.schema(
        [("file_id", pa.int32()), ("block", pa.int64()), ("bytes", pa.int32()), ("hash", pa.uint64())]
    ),
}
_VIEWS = ("_odd", "_read", "_typed", "_parsed")
_EXAMPLES = 5  # lines with doubled keys that are named


class _Slot:
    """A relation that SQL knows by one name, its rows put in anew for each batch.

    A transaction keeps all that was ever registered in it: one for each batch would keep the whole trace in memory.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.table = pa.Table.from_batches([], schema)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


class Intake:
    """Takes up jobs in batches; reading and finding the lines of the next one goes on while SQL works on one."""

    def __init__(
        self, con: "duckdb.DuckDBPyConnection", advance: Callable[[int], Any], *, careful: bool = False
    ) -> None:
        self._con = con
        self._careful = careful  # leave nothing but plain lines to SQL
        self._advance = advance  # called with the bytes done
        self._hashes: list[NDArray[np.uint64]] = []  # of the file whose chunks are coming
        self._blocks: list[pa.Table] = []  # of the files of a batch that are through
        self._slots = {name: _Slot(schema) for name, schema in _SLOTS.items()}
        for name, slot in self._slots.items():
            con.register(name, slot)
        for step in ("parsed", "typed", "read", "odd"):
            self._run(step)

    def close(self) -> None:
        """Let go of what SQL knows of it."""
        for name in _VIEWS:
            self._con.execute(f"DROP VIEW temp.{name}")
        for name in self._slots:
            self._con.unregister(name)

    def take(self, jobs: Iterable[Job]) -> None:
        """Take up all jobs: their lines into `events` and `rejects`, their hashes, and what is known of them."""
        coming = batches(jobs)
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(next, coming, None)
            while batch := ahead.result():
                ahead = reader.submit(next, coming, None)
                self._batch(batch)
                self._advance(sum(len(part.chunk.data) for part in batch))
                del batch  # before the next one is waited for

    def _batch(self, batch: list[Part]) -> None:
        taken = self._slow(self._quick([part for part in batch if part.lines]))
        for part in batch:
            start, tail = part.tail()
            end = start + len(tail)
            if tail:
                pieces = take_apart(tail, last=True)
                taken.append((part, part.first_line + part.lines, start, pieces))
                end = end if pieces.pending is None else start + pieces.pending
                part.job.file.pending = part.job.report.pending = int(pieces.pending is not None)
            self._account(part, end)
        self._keep_hashes()
        self._keep(taken)

    def _quick(self, parts: list[Part]) -> list[Part]:
        """Take up parts the quick way; those are left of which it then cannot be proven that all lines are intact."""
        tried = [part for part in parts if part.counts and part.job.way == "quick"]
        if tried:
            self._put("_raw_lines", *(part.table for part in tried))
            self._run("quick")
            self._put("_parts", _places(tried))
            sums = {row[0]: row[1:] for row in self._rows("proof")}
            proven = [part for part in tried if part.proven(*sums.get(part.job.file.file_id, (0, 0, 0)))]
            unproven = [part for part in tried if part not in proven]
            if unproven:
                self._put("_unproven", _places(unproven))
                self._run("unproven")
            for part in proven:
                part.job.count(part.lines, 0)
            parts = [part for part in parts if part not in proven]
        return parts

    def _slow(self, parts: list[Part]) -> list[tuple[Part, int, int, Pieces]]:
        """Take up parts line by line. What is in the lines that SQL cannot prove to be one event each is given back.

        A part, the number of the line, where it begins in the chunk, its pieces.
        """
        rest = [part.table for part in parts if part.job.way == "odd"]
        plain = [part for part in parts if part.job.way != "odd"]
        if plain:
            self._put("_raw_lines", *(part.table for part in plain))
            self._run("parsed")
            if self._run("events") < sum(part.lines for part in plain):
                rest.extend(self._not_plain(plain))
        for part in parts:
            part.job.count(part.lines, 0)
        if not rest:
            return []
        self._put("_rest", *rest)
        lines: Iterable[tuple[int, int]] = []
        if self._careful:
            lines = self._rows("all_rest")
        elif self._run("odd_events") < sum(map(len, rest)):
            lines = self._rows("suspects")
        by_file = {part.job.file.file_id: part for part in parts}
        taken: list[tuple[Part, int, int, Pieces]] = []
        for file_id, number in lines:
            part = by_file[file_id]
            start, data = part.line(number)
            part.job.count(-1, 0)
            taken.append((part, number, start, take_apart(data)))
        return taken

    def _not_plain(self, parts: list[Part]) -> list[pa.Table]:
        """The lines that the step `events` left; where they are the most of a file, the next are not tried as plain."""
        found = self._result("not_plain").fetchnumpy()
        left: list[pa.Table] = []
        for part in parts:
            lines = np.sort(found["line"][found["file_id"] == part.job.file.file_id])
            left.append(part.table.take(column(lines - part.first_line)))
            part.job.way = "odd" if 2 * len(lines) > part.lines else "read"
        return left

    def _keep(self, taken: list[tuple[Part, int, int, Pieces]]) -> None:
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
            self._put("_salvaged", pa.Table.from_pylist(rows, schema=_SLOTS["_salvaged"]))
            self._run("salvaged")
        if fragments:
            self._put("_fragments", pa.Table.from_pylist(fragments, schema=_SLOTS["_fragments"]))
            self._run("fragments")

    def _account(self, part: Part, end: int) -> None:
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
        ids = np.full(len(hashes), file.file_id, np.int32)
        blocks = np.arange(part.base, part.base + len(hashes))
        columns = [column(ids), column(blocks), column(sizes), column(hashes)]
        self._blocks.append(pa.Table.from_arrays(columns, schema=_SLOTS["_hashes"]))
        if chunk.damage:
            part.job.report.warnings.append(chunk.damage)
            file.warnings = chunk.damage

    def _keep_hashes(self) -> None:
        """Put the hashes of the files that are through into the table, in place of those of their last block."""
        if self._blocks:
            self._put("_hashes", *self._blocks)
            self._run("hashes")
            self._blocks = []

    def _put(self, slot: str, *tables: pa.Table) -> None:
        self._slots[slot].table = pa.concat_tables(tables)

    def _run(self, step: str) -> int:
        """Run a step; the number its last statement gives."""
        rows = self._rows(step)
        return int(rows[0][0]) if rows else 0

    def _rows(self, step: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._result(step).fetchall()
        return rows

    def _result(self, step: str) -> Any:
        name = "intake.sql" if step in database.steps("intake.sql") else "load.sql"
        return database.run_step(self._con, name, step)


def _places(parts: list[Part]) -> pa.Table:
    ids = np.array([part.job.file.file_id for part in parts], np.int32)
    lines = np.array([part.first_line for part in parts], np.int64)
    places = np.array([part.chunk.offset for part in parts], np.int64)
    return pa.Table.from_arrays([column(ids), column(lines), column(places)], schema=_PARTS)
