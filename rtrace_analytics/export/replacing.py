"""A new file under an old name, while readers read: they see the old rows or the new ones, and never fail.

DuckDB and polars open a Parquet file twice in one query: for the footer, which says where the pages lie, and for the
pages. A file replaced between the two would give them new bytes in old places: an error. So a replacement keeps the
pages of the file it replaces, where they were, as bytes that its own footer does not mention, and it is as long; its
own pages go where the version before left room. Where there is none it grows behind the old file's end, whose footer
it keeps too. So a file that changes often takes two or three times the room of its rows, one exported once its own.
A read that lasts over two replacements of one file may still fail, loudly.
"""

import os
from pathlib import Path
from typing import BinaryIO

from rtrace_analytics.export import footer

_MAGIC = b"PAR1"
_TAIL = 8  # bytes behind the footer: its length and the magic
_SLACK = 4096  # bytes left free before a footer, for a longer one


def keep_pages(staged: Path, current: Path) -> None:
    """Make `staged`, as a writer left it, a file that may replace `current` before the eyes of its readers."""
    region = _pages(current)
    if region is None:
        return
    begin, end = region
    beside = staged.with_suffix(".kept")
    with open(staged, "rb") as new, open(current, "rb") as old, open(beside, "wb") as out:
        length = old.seek(0, os.SEEK_END)
        pages, told = _split(new)
        place = 0 if pages <= begin else end
        own = footer.moved(told, place)
        if max(end, place + pages) + len(own) + _TAIL > length:  # no room: behind it all, the old footer kept
            place = end = length
            own = footer.moved(told, place)
            length += pages + max(_SLACK, pages // 8) + len(own) + _TAIL
        out.write(_MAGIC)
        _copy(new, 0, pages, out, place)
        _copy(old, begin, end, out, begin)
        out.seek(length - len(own) - _TAIL)
        out.write(own + len(own).to_bytes(4, "little") + _MAGIC)
    os.replace(beside, staged)


def _split(file: BinaryIO) -> tuple[int, bytes]:
    """Where the pages of a file end, counted from its begin, and its footer."""
    tail = file.seek(-_TAIL, os.SEEK_END)
    length = int.from_bytes(file.read(4), "little")
    file.seek(tail - length)
    return tail - length, file.read(length)


def _pages(path: Path) -> tuple[int, int] | None:
    """From where to where the pages of a file lie; None where it has none, or is no file that can be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        told = pq.read_metadata(path)
    except (OSError, pa.ArrowInvalid):
        return None
    groups = [told.row_group(i) for i in range(told.num_row_groups)]
    chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
    begins = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
    ends = [begin + chunk.total_compressed_size for begin, chunk in zip(begins, chunks, strict=True)]
    return (min(begins), max(ends)) if chunks else None


def _copy(source: BinaryIO, begin: int, end: int, target: BinaryIO, place: int) -> None:
    source.seek(begin)
    target.seek(place)
    left = end - begin
    while left and (piece := source.read(min(left, 2**20))):
        target.write(piece)
        left -= len(piece)
