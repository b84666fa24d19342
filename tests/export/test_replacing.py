"""Replacements keep the pages of what they replace where they were."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rtrace_analytics.export import footer
from rtrace_analytics.export.replacing import keep_pages


def table(rows: int, mark: int) -> pa.Table:
    texts = [f"{mark}-{i % 7}" for i in range(rows)]
    return pa.table(
        {"i": pa.array(range(rows), pa.int64()), "s": texts, "b": [None] * rows, "x": [i / 3 for i in range(rows)]}
    )


def write(path, rows, mark, group=1000):
    pq.write_table(table(rows, mark), path, row_group_size=group, compression="zstd", write_page_index=mark % 2 == 0)


def parts(path) -> tuple[bytes, bytes]:
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    return data[: -8 - length], data[-8 - length : -8]


@pytest.mark.parametrize("by", [0, 1, 4096, 2**40])
def test_only_places_move(tmp_path, by):
    write(tmp_path / "x", 3500, 1)
    _, told = parts(tmp_path / "x")
    moved = footer.moved(told, by)
    assert (moved == told) == (by == 0)
    (tmp_path / "y").write_bytes(b"PAR1" + moved + len(moved).to_bytes(4, "little") + b"PAR1")
    before, after = pq.read_metadata(tmp_path / "x"), pq.read_metadata(tmp_path / "y")
    assert before.schema == after.schema and before.metadata == after.metadata
    for i in range(before.num_row_groups):
        for j in range(before.num_columns):
            old, new = (told.row_group(i).column(j).to_dict() for told in (before, after))
            for name in ("dictionary_page_offset", "data_page_offset"):
                assert new.pop(name) == (old.pop(name) or -by) + by or name == "dictionary_page_offset"
            assert old.pop("statistics") == new.pop("statistics") and old == new | {"file_offset": old["file_offset"]}


def test_the_version_before_can_still_be_read(tmp_path):
    current, staged = tmp_path / "current", tmp_path / "staged"
    sizes = []
    for mark, rows in enumerate([10, 5000, 4000, 0, 5000, 20000, 10, 20000, 20000, 10]):
        write(staged, rows, mark)
        plain = staged.stat().st_size
        keep_pages(staged, current)
        assert pq.read_table(staged).equals(table(rows, mark))
        if current.exists() and pq.read_metadata(current).num_rows:
            old, new = current.read_bytes(), staged.read_bytes()
            _, told = parts(current)
            # a reader with the old footer in hand, and the new file: what it reads are the old rows
            mixed = tmp_path / "mixed"
            mixed.write_bytes(new + told + len(told).to_bytes(4, "little") + b"PAR1")
            assert pq.read_table(mixed).equals(pq.read_table(current)) and len(new) >= len(old)
        staged.replace(current)
        sizes.append((current.stat().st_size, plain))
    assert max(size for size, _ in sizes) < 3 * max(plain for _, plain in sizes)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["current", "mixed"]


def test_what_is_no_parquet_is_simply_replaced(tmp_path):
    (tmp_path / "current").write_bytes(b"x" * 100)
    write(tmp_path / "staged", 10, 1)
    before = (tmp_path / "staged").read_bytes()
    keep_pages(tmp_path / "staged", tmp_path / "current")
    keep_pages(tmp_path / "staged", tmp_path / "none")
    assert (tmp_path / "staged").read_bytes() == before
