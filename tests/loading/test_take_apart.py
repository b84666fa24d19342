"""One line's bytes to its pieces: every complete event, one reject a stretch, nothing dropped."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtrace_analytics.loading.salvage import Pieces, take_apart

A = b'{"t": 1, "run": "a", "event": "x"}'
B = b'{"t":2.5,"run":"b","event":"y","z":{"q":[1,{"r":null}]}}'
TORN = b'{"t": 3, "run": "a", "event": "attempt_se'


def told(pieces: Pieces) -> tuple[list[str], list[tuple[int, str]], int | None]:
    events = [row.columns["event"] for _, _, row in pieces.events]
    return events, [(bad.offset, bad.problem) for bad in pieces.rejects], pieces.pending


@pytest.mark.parametrize(
    ("data", "events", "rejects"),
    [
        (A, ["x"], []),
        (b"", [], []),
        (b" \t\r\x00\xef\xbb\xbf\x00", [], []),
        (A + A, ["x", "x"], []),
        (b"\xef\xbb\xbf" + A + b"\xef\xbb\xbf" + B + b"\r", ["x", "y"], []),
        (b"\x00" * 500 + A + b"\x00\x00", ["x"], []),
        (TORN + A, ["x"], [(0, "torn record")]),
        (A + TORN, ["x"], [(34, "torn record")]),
        (TORN + TORN + A + b"}" + B, ["x", "y"], [(0, "torn record"), (116, "not JSON")]),
        (b'mpt": 3, "attempt": 0}', [], [(0, "not JSON")]),
        (b"garbage  more  " + A, ["x"], [(0, "not JSON")]),
        (TORN + b"\x00" * 9 + A, ["x"], [(0, "torn record")]),
        # objects that are no events: their own reject, but for those of a torn record
        (b'{"a": 1}', [], [(0, "an object without event")]),
        (b'{"event": "x", "t": 1}', [], [(0, "an object without run")]),
        (b'{"event": "x", "run": "a"}', [], [(0, "an object without finite number t")]),
        (b'{"a": 1} {"b": 2}' + A, ["x"], [(0, "an object without event"), (9, "an object without event")]),
        (b'{"t": 1, "d": {"a": 1}, "e": [{"b": 2}], "ev' + A, ["x"], [(0, "torn record")]),
        (b'{"t": 1, "d": ' + A + b', "ev', ["x"], [(0, "torn record"), (48, "not JSON")]),
        # values that are no objects
        (b"[1, 2]", [], [(0, "a JSON value that is no object")]),
        (b'[{"a": 1}, {"b": []}]', [], [(0, "a JSON value that is no object")]),
        (b'[{"a": 1}, {"b"', [], [(0, "torn record")]),
        (b'  "{}"  ', [], [(2, "a JSON value that is no object")]),
        (b"null", [], [(0, "a JSON value that is no object")]),
        (b"[" + A + b"]", ["x"], [(0, "not JSON"), (35, "not JSON")]),
        # what JSON does not allow
        (b'{"t": 1, "run": "a", "event": "x",}', [], [(0, "torn record")]),
        (b'{"t": 1, "run": "a", "event": "x\ty"}', [], [(0, "torn record")]),
        (b'{"t": NaN, "run": "a", "event": "x"}', [], [(0, "an object without finite number t")]),
        (b'{"t": 1e999, "run": "a", "event": "x"}', [], [(0, "an object without finite number t")]),
        (b'{"t": "1", "run": "a", "event": "x"}', [], [(0, "an object without finite number t")]),
        (b'{"t": true, "run": "a", "event": "x"}', [], [(0, "an object without finite number t")]),
        (b'{"t": 1, "run": null, "event": "x"}', [], [(0, "an object without run")]),
        (b'{"t": 1, "run": {}, "event": "x"}', [], [(0, "an object without run")]),
        (b'{"T": 1, "run": "a", "event": "x"}', [], [(0, "an object without finite number t")]),
    ],
)
def test_pieces(data: bytes, events: list[str], rejects: list[tuple[int, str]]) -> None:
    assert told(take_apart(data)) == (events, rejects, None)


@pytest.mark.parametrize(
    ("data", "events", "rejects", "pending"),
    [
        (A, 1, 0, None),
        (A[:-1], 0, 0, 0),
        (A + b"  " + TORN, 1, 0, 36),
        (A + b'{"t": 1, "d": ' + B, 1, 0, 34),  # B may yet turn out to be a value in it
        (TORN + B, 1, 1, None),
        (TORN + B + b" x", 1, 1, 98),
        (b"xyz", 0, 0, 0),
        (b"12", 0, 0, 0),
        (b'{"a": 1}', 0, 1, None),
        (b'{"t": 1, "a": tr', 0, 0, 0),
        (b'{"t": 1, "a": -', 0, 0, 0),
        (b'{"t": 1, "a": "\\u00', 0, 0, 0),
        (b'{"t": 1.', 0, 0, 0),
        (b'{"t": 1e', 0, 0, 0),
        (b'{"t": 1, ', 0, 0, 0),
        (b"{", 0, 0, 0),
    ],
)
def test_unfinished_end(data: bytes, events: int, rejects: int, pending: int | None) -> None:
    pieces = take_apart(data, last=True)
    assert (len(pieces.events), len(pieces.rejects), pieces.pending) == (events, rejects, pending)


@pytest.mark.parametrize(
    ("fields", "columns", "extra"),
    [
        ('"prompt_id": 7', {"prompt_id": "7"}, None),
        ('"prompt_id": "07"', {"prompt_id": "07"}, None),
        ('"prompt_id": 9007199254740993', {"prompt_id": "9007199254740993"}, None),
        ('"prompt_id": 123456789012345678901234567890', {"prompt_id": "123456789012345678901234567890"}, None),
        ('"prompt_id": 7.0, "group_id": 1e3', {"prompt_id": "7.0", "group_id": "1e3"}, None),
        ('"prompt_id": true, "group_id": {"a": 1}', {}, {"prompt_id": True, "group_id": {"a": 1}}),
        ('"attempt": "2", "generation_index": 2.0', {"attempt": 2, "generation_index": 2}, None),
        ('"attempt": 2.5, "generation_index": true', {}, {"attempt": 2.5, "generation_index": True}),
        ('"attempt": "x", "generation_index": 2147483648', {}, {"attempt": "x", "generation_index": 2147483648}),
        ('"attempt": 2e1, "step": 9223372036854775807', {"attempt": 20, "step": 9223372036854775807}, None),
        ('"step": 9223372036854775808', {}, {"step": 9223372036854775808}),
        ('"step": 1e999999999', {}, None),
        ('"cut_time": "40", "reward": -0.5e1', {"cut_time": 40.0, "reward": -5.0}, None),
        ('"cut_time": false, "reward": [1]', {}, {"cut_time": False, "reward": [1]}),
        ('"prompt_id": null, "x": null', {}, {"x": None}),
        ('"Prompt_id": "7", "RUN": "b"', {}, {"Prompt_id": "7", "RUN": "b"}),
        ('"x": [1, {"t": 2}], "n": 12345678901234567890123', {}, {"x": [1, {"t": 2}], "n": 12345678901234567890123}),
        ('"run": "b", "x": 1, "x": 2', {"run": "b"}, {"x": 2}),
        ('"reason": "a\\u2028b\\n"', {"reason": "a\u2028b\n"}, None),
    ],
)
def test_types(fields: str, columns: dict[str, Any], extra: dict[str, Any] | None) -> None:
    ((_, _, row),) = take_apart(f'{{"t": 1, "run": "a", "event": "x", {fields}}}'.encode()).events
    assert row.columns == {"t": 1.0, "run": "a", "event": "x"} | columns
    if "1e999999999" not in fields:
        assert (json.loads(row.extra) if row.extra else None) == extra


def test_non_finite_values_are_null_and_counted() -> None:
    line = b'{"t": 1, "run": "a", "event": "x", "reward": NaN, "cut_time": 1e400, "x": [NaN, {"y": -Infinity}]}'
    ((_, _, row),) = take_apart(line).events
    assert row.columns == {"t": 1.0, "run": "a", "event": "x"}
    assert row.extra == '{"x":[null,{"y":null}]}'
    assert row.non_finite == 4


def test_invalid_utf8_is_replaced_and_counted() -> None:
    line = b'{"t": 1, "run": "a\xff", "event": "x", "y": "\xc3"} {"t": 2, "run": "\\ud800", "event": "x"}'
    rows = [row for _, _, row in take_apart(line).events]
    assert [row.columns["run"] for row in rows] == ["a\ufffd", "\ufffd"]
    assert rows[0].extra == '{"y":"\ufffd"}'
    assert [row.replaced_utf8 for row in rows] == [True, True]


def test_keys_that_stand_twice_are_named() -> None:
    line = b'{"t": 1, "t": 2, "run": "a", "event": "x", "y": {"z": 1, "z": 2}}'
    ((_, _, row),) = take_apart(line).events
    assert row.columns["t"] == 2
    assert sorted(row.twice) == ["t", "z"]


@pytest.mark.parametrize("unit", [b"{", b'{"', b'{"a":', b"[", b'{"a":[', b'"', b"{}", b'{"a":1}'])
def test_long_lines_of_nonsense_end(unit: bytes) -> None:
    for data in (unit * 50_000, unit * 50_000 + A):
        pieces = take_apart(data)
        assert len(pieces.rejects) >= 1


FRAGMENTS = st.sampled_from(
    [A, B, TORN, A[:20], A[20:], B[30:], b"\x00", b"\xef\xbb\xbf", b"\xef\xbb", b" ", b"\r", b"{", b"}", b'"', b"[",
     b"]", b",", b":", b"\\", b"null", b"1", b'{"a":1}', b"\xff", b"\xe2\x80\xa8", b"NaN", b'{"a":']
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(FRAGMENTS, max_size=12), st.booleans())
def test_every_byte_is_in_a_piece(parts: list[bytes], last: bool) -> None:
    data = b"".join(parts)
    pieces = take_apart(data, last=last)
    spans = sorted(
        [(start, end) for start, end, _ in pieces.events]
        + [(bad.offset, bad.end) for bad in pieces.rejects]
        + ([(pieces.pending, len(data))] if pieces.pending is not None else [])
    )
    at = 0
    for start, end in [*spans, (len(data), len(data))]:
        assert start >= at
        between = data[at:start].replace(b"\xef\xbb\xbf", b"")
        assert not between.strip(b" \t\r\n\v\f\x00")
        at = end
    for start, end, _ in pieces.events:
        assert {"t", "run", "event"} <= json.loads(data[start:end].decode("utf-8", "replace")).keys()
