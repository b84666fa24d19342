"""Bytes that lie, through a whole load: the samples of faults, compression, and random damage to good traces."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import duckdb
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rtrace_analytics import loading
from rtrace_analytics.errors import InputError
from rtrace_analytics.events import FIELDS
from rtrace_analytics.loading import lines, read
from rtrace_analytics.loading.salvage import take_apart
from tests.loading.worlds import contents, dispatches, fresh, line, one, tables_only, write

Con = duckdb.DuckDBPyConnection
FAULTS = Path(__file__).parent.parent / "data" / "faults"
CASES: dict[str, dict[str, Any]] = json.loads((FAULTS / "expected.json").read_text())


@pytest.mark.parametrize("case", CASES)
def test_faults(con: Con, case: str) -> None:
    report = loading.load(con, FAULTS / case)
    expected = CASES[case]
    sums = "SELECT sum(events)::BIGINT, sum(rejects)::BIGINT, sum(pending)::BIGINT FROM trace_files"
    events, rejects, pending = con.execute(sums).fetchall()[0]
    assert one(con, "SELECT count(*) FROM events") == events == report.events
    assert one(con, "SELECT count(*) FROM rejects") == rejects == report.rejects
    if expected.get("events") is not None:
        assert events == expected["events"]
    assert rejects == expected.get("rejects", rejects)
    assert pending == expected.get("pending", pending)
    assert bool(report.warnings) >= expected.get("warning", False)


def test_places(con: Con, tmp_path: Path) -> None:
    a, b, c = (x.rstrip() for x in dispatches("a", 0, 3))
    path = write(tmp_path / "e/t.jsonl", b"\n\r\n", a, b"\n", b'{"t": 1\x00', b, b" ", c, b" 5\r\n", a[:9], b"\n", b"7")
    loading.load(con, path)
    places = con.execute("SELECT line, seq, prompt_id FROM events ORDER BY seq").fetchall()
    assert places == [(3, 3, "0"), (4, 12 + len(a), "1"), (4, 13 + len(a + b), "2")]
    rejects = con.execute("SELECT line, byte_offset, problem, text FROM rejects ORDER BY ALL").fetchall()
    at = 4 + len(a)
    end = at + 9 + len(b + c)
    assert rejects == [
        (4, at, "torn record", '{"t": 1'),
        (4, end + 1, "not JSON", "5"),
        (5, end + 4, "torn record", a[:9].decode()),
    ]
    known = con.execute("SELECT bytes, lines, pending, salvaged FROM trace_files").fetchall()
    assert known == [(end + 4 + 10, 5, 1, 2)]


def test_u2028_crlf_and_long_lines(con: Con, tmp_path: Path) -> None:
    long = line(3, "a", "note", text="x" * 40_000_000)
    odd = '{"t": 2, "run": "a", "event": "note", "reason": "a\u2028b\u0085c"}\r\n'.encode()
    path = write(tmp_path / "e/t.jsonl", odd, long, *dispatches("a", 0, 2))
    report = loading.load(con, path)
    assert (report.events, report.rejects) == (4, 0)
    assert one(con, "SELECT reason FROM events WHERE line = 1") == "a\u2028b\u0085c"
    assert one(con, "SELECT strlen(extra::VARCHAR) FROM events WHERE line = 2") == 40_000_011


def test_long_line_as_chunks_are_read(con: Con, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "CHUNK", read.BLOCK)
    long = line(3, "a", "note", reason="y" * 300_000)
    parts = [*dispatches("a", 0, 2000), long, *dispatches("a", 2000, 3000), b'{"t": 1, "x": "' + b"z" * 200_000]
    path = write(tmp_path / "e/t.jsonl", *parts)
    report = loading.load(con, path)
    assert (report.events, report.rejects, report.pending) == (5001, 0, 1)
    assert one(con, "SELECT count(DISTINCT seq) FROM events") == 5001
    whole = path.read_bytes()
    for seq, prompt in con.execute("SELECT seq, prompt_id FROM events WHERE prompt_id IS NOT NULL").fetchall():
        assert json.loads(whole[seq : whole.index(b"\n", seq)])["prompt_id"] == prompt
    known = con.execute("SELECT bytes FROM trace_files").fetchall()
    sizes = con.execute("SELECT block, bytes FROM _blocks ORDER BY block").fetchall()
    assert known == [(sum(size for _, size in sizes),)] == [(len(whole) - 200_015,)]
    assert [block for block, _ in sizes] == list(range(len(sizes)))
    write(path, whole, b'"}\n', *dispatches("a", 5000, 10))
    report = loading.load(con, path)
    assert (report.events, report.rejects, report.pending, report.warnings) == (10, 1, 0, [])
    assert contents(con) == fresh(path)


@pytest.mark.parametrize("kind", ["gz", "zst"])
@pytest.mark.parametrize("named", [True, False])
def test_compressed(con: Con, tmp_path: Path, kind: str, named: bool) -> None:
    lines = dispatches("a", 0, 4000)
    pack = gzip.compress if kind == "gz" else zstandard.ZstdCompressor().compress
    packed = pack(b"".join(lines[:1500])) + pack(b"".join(lines[1500:]))
    path = write(tmp_path / "e" / ("t.jsonl" + f".{kind}" * named), packed)
    report = loading.load(con, path)
    assert (report.events, report.warnings) == (4000, [])
    assert contents(con) == fresh(write(tmp_path / "f/e/t.jsonl", *lines))
    write(path, packed + pack(b"".join(dispatches("a", 4000, 500))))
    assert loading.load(con, path).events == 500


@pytest.mark.parametrize("kind", ["gz", "zst"])
@pytest.mark.parametrize("damage", ["truncated", "flipped"])
def test_every_event_before_the_damage_counts(con: Con, tmp_path: Path, kind: str, damage: str) -> None:
    noise = random.Random(5)
    lines = [line(i, "a", "note", reason=noise.randbytes(400).hex()) for i in range(2000)]
    pack = gzip.compress if kind == "gz" else zstandard.ZstdCompressor(write_checksum=True).compress
    packed = bytearray(pack(b"".join(lines)))
    at = len(packed) * 2 // 3
    if damage == "truncated":
        del packed[at:]
    else:
        packed[at] ^= 0x55
    report = loading.load(con, write(tmp_path / f"e/t.jsonl.{kind}", bytes(packed)))
    block = 128 * 1024 // 800 if kind == "zst" else 2  # what is decoded is decoded block by block
    assert report.events >= 2000 * 2 // 3 - block - 1
    assert report.pending in (0, 1)
    assert len(report.warnings) == 1
    assert kind in report.warnings[0]
    assert loading.load(con, tmp_path).events == 0


def test_zero_padding_after_a_gz_is_no_damage(con: Con, tmp_path: Path) -> None:
    packed = gzip.compress(b"".join(dispatches("a", 0, 5)))
    report = loading.load(con, write(tmp_path / "e/t.jsonl.gz", packed, b"\0" * 10_000))
    assert (report.events, report.warnings) == (5, [])


def test_empty_file_is_a_trace_that_has_not_begun(con: Con, tmp_path: Path) -> None:
    path = write(tmp_path / "e/t.jsonl")
    assert loading.load(con, path).events == 0
    write(path, *dispatches("a", 0, 2))
    report = loading.load(con, path)
    assert (report.events, report.warnings) == (2, [])


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": 1}\n{"b": 2}\n',
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 50 + b"\n",
        b"hello\nworld\n",
        b'{"t": 1, "loss": 2.5, "step": 3}\n' * 20_000,
        b"[1, 2]\n",
    ],
)
def test_no_trace_is_one_clear_line(con: Con, tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path / "e/t.jsonl", data)
    for given_path in (path, tmp_path):
        with pytest.raises(InputError, match="no event in it") as error:
            loading.load(con, given_path)
        assert str(path) in str(error.value)
        assert "\n" not in str(error.value)
    assert one(con, "SELECT count(*) FROM trace_files") == 0
    write(tmp_path / "e/good.jsonl", *dispatches("a", 0, 2))
    report = loading.load(con, tmp_path)
    assert report.events == 2
    assert str(path) in report.warnings[0]


# What SQL reads is what the salvager reads.

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["7", "07", "a:b", 'q"q', "x\\y", "{", "[1]", "a,}", "nan", ":NaN", "\u2028", "\x00", "é", "null", "2.0", "-1"]
)
NUMBER = st.sampled_from(
    ["0", "7", "-1", "2.0", "2.5", "1e2", "1E400", "-0", "0.1", "2147483647", "2147483648", "9007199254740993",
     "9223372036854775807", "9223372036854775808", "123456789012345678901234567890", "1764000000.123456", "1e-7"]
)  # fmt: skip
WORD = st.sampled_from(["true", "false", "null", "NaN", "Infinity", "-Infinity", "nan", "tru", "01", "+1", ".5", "1."])
SIMPLE = TEXT.map(json.dumps) | TEXT.map(lambda text: json.dumps(text, ensure_ascii=False)) | NUMBER | WORD
SPACE = st.sampled_from(["", " ", "  ", "\t", "\r"])


@st.composite
def nested(draw: st.DrawFn) -> str:
    inner = draw(st.lists(SIMPLE, max_size=2))
    if draw(st.booleans()):
        return "[" + ",".join(inner) + draw(st.sampled_from(["", "", ","])) + "]"
    return "{" + ",".join(f"{json.dumps(draw(TEXT))}: {value}" for value in inner) + "}"


@st.composite
def objects(draw: st.DrawFn) -> str:
    values = {"t": "1.5", "run": '"a"', "event": '"x"'}
    names = [*(f.name for f in FIELDS), "T", "Run", "shard", "é"]
    for name in draw(st.lists(st.sampled_from(names), max_size=4, unique=True)):
        values[name] = draw(SIMPLE | SIMPLE | nested())
    pairs = list(values.items())
    if draw(st.integers(0, 5)) == 0:
        pairs.append((draw(st.sampled_from(names)), draw(SIMPLE)))
    draw(st.randoms()).shuffle(pairs)
    space = draw(SPACE)
    return (
        f"{draw(SPACE)}{{{space}"
        + f",{space}".join(f"{json.dumps(name)}{draw(SPACE)}:{space}{value}" for name, value in pairs)
        + draw(st.sampled_from(["", "", "", ",", " "]))
        + f"}}{draw(SPACE)}"
    )


@st.composite
def nearly_plain(draw: st.DrawFn) -> str:
    """A line as writers write it, but for a thing or two: what the quick way must not take for one."""
    texts = st.sampled_from(['"a"', '"7"', '""', '"é"', '"a:b"', '"a,b"', '"a}"', '"x y"'])
    numbers = st.sampled_from(["0", "7", "-1", "1764000000.5", "2.0", "12"])
    values = {"t": "1.5", "run": '"a"', "event": '"x"'}
    for field in draw(st.lists(st.sampled_from(FIELDS), max_size=5, unique=True)):
        values[field.name] = draw(texts if field.sql_type == "VARCHAR" else numbers)
    pairs = list(values.items())
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(pairs) - 1))
        odd = st.sampled_from(["NaN", "true", "null", "{}", "[]", '[""]', '{"":1}', '"2"', "7", "2.5", "7.0", "1e2"])
        what = draw(st.integers(0, 3))
        if what == 0:
            pairs[at] = (pairs[at][0], draw(odd))
        elif what == 1:
            pairs.insert(at, (draw(st.sampled_from(["x", "", "T", "t", "run", "attempt"])), draw(odd)))
        elif what == 2:
            del pairs[at]
        else:
            pairs[at] = (pairs[at][0], draw(texts | numbers))
    comma, colon = draw(st.sampled_from([(",", ":"), (", ", ": "), (",", ": ")]))
    end = draw(st.sampled_from(["}"] * 8 + [",}", "}}", "} ", "}\r"]))
    return "{" + comma.join(f'"{name}"{colon}{value}' for name, value in pairs) + end


COLUMNS = [f.name for f in FIELDS]


def typed(con: Con) -> list[tuple[Any, ...]]:
    rows = con.execute(f"SELECT line, seq, {', '.join(COLUMNS)}, extra::VARCHAR FROM events ORDER BY seq").fetchall()
    return [(*row[:-1], row[-1] and json.loads(row[-1])) for row in rows]


@settings(max_examples=40, deadline=None)
@given(st.lists(objects(), min_size=1, max_size=8))
def test_sql_reads_what_python_reads(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    check_reading(tmp_path_factory.mktemp("sql") / "e/t.jsonl", lines)


@settings(max_examples=60, deadline=None)
@given(st.lists(nearly_plain(), min_size=1, max_size=3))
def test_the_quick_way_takes_only_what_is_intact(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    check_reading(tmp_path_factory.mktemp("quick") / "e/t.jsonl", lines)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(st.lists(nearly_plain(), min_size=1, max_size=3) | st.lists(objects(), min_size=1, max_size=8))
def test_sql_reads_what_python_reads_ever(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    check_reading(tmp_path_factory.mktemp("sql") / "e/t.jsonl", lines)


def check_reading(path: Path, texts: list[str]) -> None:
    """A load of these lines gives the rows and rejects that taking each apart gives."""
    good = dispatches("z", 0, 1)[0]
    data = good + b"".join(text.encode() + b"\n" for text in texts)
    expected = []
    rejects, at = 0, 0
    for number, part in enumerate(data.split(b"\n")[:-1], start=1):
        pieces = take_apart(part)
        rejects += len(pieces.rejects)
        for start, _, row in pieces.events:
            extra = row.extra and json.loads(row.extra)
            expected.append((number, at + start, *(row.columns.get(name) for name in COLUMNS), extra))
        at += len(part) + 1
    with tables_only() as con:
        loading.load(con, write(path, data))
        assert typed(con) == expected
        assert one(con, "SELECT count(*) FROM rejects") == rejects


# Random damage.

GOOD = [
    line(1000 + i / 8, "r" + "abc"[i % 3], "attempt_dispatched", prompt_id=f"p{i}", generation_index=0, attempt=0)
    if i % 4
    else line(
        1000 + i / 8, "ra", "odd", mark=i, note='a "quoted" \\ {brace', nested={"list": [1, {"x": None}], "é": "ü"}
    )
    for i in range(30)
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    data = bytearray(b"".join(GOOD))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        size = draw(st.integers(1, 400))
        kind = draw(st.integers(0, 6))
        if kind == 0:
            del data[at : at + size]
        elif kind == 1:
            data[at:at] = draw(st.binary(max_size=20))
        elif kind == 2:
            data[at : at + size] = b"\x00" * len(data[at : at + size])
        elif kind == 3:
            data[at:at] = data[max(0, at - size) : at]
        elif kind == 4:
            del data[at:]
        elif kind == 5:
            end = data.find(b"\n", at)
            if end >= 0:
                del data[end]
        else:
            data[at:at] = draw(
                st.sampled_from([b"\xef\xbb\xbf", b"\r\n", b"\n", b"{", b'"', b"}", b"\xff\xfe", b"[", b"\\"])
            )
    return bytes(data)


@settings(max_examples=30, deadline=None)
@given(damaged(), st.integers(0, 5000))
def test_no_undamaged_event_is_lost(tmp_path_factory: pytest.TempPathFactory, data: bytes, cut: int) -> None:
    check_damaged(tmp_path_factory.mktemp("damage") / "e/t.jsonl", data, cut)


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(damaged(), st.integers(0, 5000))
def test_no_undamaged_event_is_lost_ever(tmp_path_factory: pytest.TempPathFactory, data: bytes, cut: int) -> None:
    check_damaged(tmp_path_factory.mktemp("damage") / "e/t.jsonl", data, cut)


def check_damaged(path: Path, data: bytes, cut: int) -> None:
    """No undamaged event is lost or taken twice, nothing is dropped; and loading in two goes gives the same."""
    whole: dict[int, bytes] = {}
    for good in set(GOOD):
        at = data.find(good[:-1])
        while at >= 0:
            whole[at] = good[:-1]
            at = data.find(good[:-1], at + 1)
    with tables_only() as con:
        try:
            loading.load(con, write(path, data))
        except InputError:
            assert not whole
            return
        got = {seq & (2**44 - 1): (t, run) for seq, t, run in con.execute("SELECT seq, t, run FROM events").fetchall()}
        for at, good in whole.items():
            expected = json.loads(good)
            assert got[at] == (expected["t"], expected["run"])
        once = contents(con), con.execute("SELECT line, byte_offset, text FROM rejects ORDER BY ALL").fetchall()
        _every_byte(con, data)
    with tables_only() as con:
        try:
            loading.load(con, write(path, data[:cut]))
        except InputError:
            return
        loading.load(con, write(path, data))
        twice = contents(con), con.execute("SELECT line, byte_offset, text FROM rejects ORDER BY ALL").fetchall()
        assert twice == once


def _every_byte(con: Con, data: bytes) -> None:
    """What is in no event, no reject and not pending is white space, NUL or BOM."""
    left = bytearray(data)
    decode = json.JSONDecoder().raw_decode
    text = data.decode("latin-1")
    for (seq,) in con.execute("SELECT seq & (2**44 - 1)::BIGINT FROM events").fetchall():
        _, end = decode(text, seq)
        assert b"\n" not in data[seq:end]
        left[seq:end] = b" " * (end - seq)
    for at, kept in con.execute("SELECT byte_offset, text FROM rejects").fetchall():
        end = at + len(kept)  # at least a byte for each character
        while end < len(data) and data[at:end].decode("utf-8", "replace") != kept:
            end += 1
        while end < len(data) and data[at : end + 1].decode("utf-8", "replace") == kept:
            end += 1  # several bytes may be replaced by one character
        assert data[at:end].decode("utf-8", "replace") == kept
        left[at:end] = b" " * (end - at)
    taken, pending = con.execute("SELECT bytes, pending FROM trace_files").fetchall()[0]
    if pending:
        del left[taken:]
    assert not left.replace(b"\xef\xbb\xbf", b"").strip(b" \t\r\n\v\f\x00")
