"""An event as a line: the same bytes with and without orjson, and valid JSON whatever is put in."""

import enum
import json
import math
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtrace_analytics.recording import lines


class Colour(enum.Enum):
    RED = "red"


def both(fields: dict[str, Any]) -> bytes:
    """Return the line, after a check that orjson and the standard library give the same."""
    fast = lines._encode
    pytest.importorskip("orjson")
    assert fast is not lines._encode_stdlib
    with pytest.MonkeyPatch.context() as patch:
        one = lines.line(1.5, "a1", "x", fields)
        patch.setattr(lines, "_encode", lines._encode_stdlib)
        assert lines.line(1.5, "a1", "x", fields) == one
    return one


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        ("07", '"07"'),
        (2**53 + 1, "9007199254740993"),
        (2**70, "1180591620717411303424"),
        (0.1, "0.1"),
        (-0.5, "-0.5"),
        (0.0, "0.0"),
        (1e16, "1e+16"),
        (1e-7, "1e-07"),
        (math.nan, "null"),
        (math.inf, "null"),
        (-math.inf, "null"),
        ('tab\tquote"back\\é\u2028\x01\x7f', '"tab\\tquote\\"back\\\\é\u2028\\u0001\x7f"'),
        ("\ud800", '"?"'),
        ([1, math.nan, (2.5, {"a": {3}})], '[1,null,[2.5,{"a":[3]}]]'),
        ({1: 2, None: 3}, '{"1":2,"None":3}'),
        (np.int64(5), "5"),
        (np.float64(2.5), "2.5"),
        (np.float32("nan"), "null"),
        (np.bool_(True), "true"),
        (np.array([1, 2]), '"[1 2]"'),
        (PurePosixPath("/ckpt/step_3"), '"/ckpt/step_3"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (datetime(2026, 1, 2, tzinfo=UTC), '"2026-01-02 00:00:00+00:00"'),
        (Colour.RED, '"red"'),
        (b"\xff", "\"b'\\\\xff'\""),
    ],
)
def test_values(value: Any, text: str) -> None:
    assert both({"v": value}).decode() == '{"t":1.5,"run":"a1","event":"x","v":' + text + "}\n"


def test_a_list_that_holds_itself() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert json.loads(lines.line(1.5, "a1", "x", {"v": endless, "n": 1})) == {
        "t": 1.5, "run": "a1", "event": "x", "v": "[[...]]", "n": "1",
    }  # fmt: skip


def test_a_value_that_cannot_be_shown() -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError

    assert json.loads(both({"v": Broken()}))["v"] == "<Broken>"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(st.text(), JSON))
def test_any_fields_give_one_line_of_json(fields: dict[str, Any]) -> None:
    line = both(fields)
    assert line.count(b"\n") == 1

    def bare_word(word: str) -> None:
        raise AssertionError(word)

    row = json.loads(line, parse_constant=bare_word)
    assert (row["t"], row["run"], row["event"]) == (1.5, "a1", "x")
