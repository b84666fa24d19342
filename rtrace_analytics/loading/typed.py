"""One JSON object to one typed row of `events`: the rules for fields that are not of the type they should be.

- Ids (`run`, `group_id`, `prompt_id`) and words (`event`, `reason`, `path`): a text, or a number as it is written.
- Whole numbers (`generation_index`, `attempt`, `step`, `weight_version`, `tokens`): a number without a fraction
  (2, 2.0), or a text that is one ("2").
- Numbers (`cut_time`, `reward`): a finite number, or a text that is one. `t` must be a number.
- Anything else in an optional field (a boolean, an object, 2.5 where a whole number belongs) is no value: the column is
  NULL and what was written is kept in `extra` under its own name.
- NaN and infinities become NULL and are counted. Of a key that stands twice the last one counts, as in Python's json.
"""

import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rtrace_analytics.events import FIELDS

TYPES = {f.name: f.sql_type for f in FIELDS}
_RANGE = {"INTEGER": 2**31, "BIGINT": 2**63}
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")


class NotAnEvent(ValueError):
    """A complete JSON object that is no event; the text says why."""


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


class _NonFinite:
    """NaN or an infinity."""


@dataclass(frozen=True)
class Row:
    """An event: its columns by name (those with a value), the fields kept in `extra` as JSON text, and what was odd."""

    columns: dict[str, Any]
    extra: str | None
    non_finite: int
    replaced_utf8: bool
    twice: tuple[str, ...]


def read_object(data: bytes) -> Row:
    """The event that the bytes of one complete JSON object are. Raises `NotAnEvent`."""
    try:
        text, replaced = data.decode("utf-8"), False
    except UnicodeDecodeError:
        text, replaced = data.decode("utf-8", "replace"), True
    reader = _Reader()
    fields = reader.read(text)
    columns: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in fields.items():
        kind = TYPES.get(name)
        if kind is None:
            extra[name] = value
        elif value is not None and not isinstance(value, _NonFinite):
            typed = _typed(kind, value)
            if typed is None:
                extra[name] = value
            elif isinstance(typed, float) and not math.isfinite(typed):
                reader.non_finite += name != "t"
            else:
                columns[name] = typed
    if "t" in columns and not isinstance(fields["t"], _Number):
        del columns["t"]
    for name, what in (("event", "event"), ("run", "run"), ("t", "finite number t")):
        if name not in columns:
            raise NotAnEvent(f"an object without {what}")
    kept = _dump(extra) if extra else None
    if any(_SURROGATE.search(v) for v in columns.values() if isinstance(v, str)) or (kept and _SURROGATE.search(kept)):
        replaced = True
        columns = {n: _SURROGATE.sub("\ufffd", v) if isinstance(v, str) else v for n, v in columns.items()}
        kept = _SURROGATE.sub("\ufffd", kept) if kept else None
    return Row(columns, kept, reader.non_finite, replaced, tuple(reader.twice))


class _Reader:
    """Reads one object, numbers as written; counts non-finite values and notes keys that stand twice."""

    def __init__(self) -> None:
        self.non_finite = 0
        self.twice: list[str] = []

    def read(self, text: str) -> dict[str, Any]:
        value = json.loads(
            text,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=self._constant,
            object_pairs_hook=self._object,
        )
        assert isinstance(value, dict)
        return value

    def _constant(self, _: str) -> _NonFinite:
        self.non_finite += 1
        return _NonFinite()

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            seen: set[str] = set()
            self.twice.extend(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        return fields


def _typed(kind: str, value: Any) -> Any:
    """The value of the SQL type `kind`, or None where it is none."""
    if not isinstance(value, str):
        return None
    if kind == "VARCHAR":
        return str(value)
    if len(value) > 400 or not _NUMBER.fullmatch(value):
        return None
    if kind == "DOUBLE":
        return float(value)
    number = Decimal(value)
    if number.adjusted() > 20 or number != number.to_integral_value():
        return None
    whole = int(number)
    return whole if -_RANGE[kind] <= whole < _RANGE[kind] else None


def _dump(value: Any) -> str:
    """JSON of a value whose numbers are kept as written; what was not finite is null."""
    if isinstance(value, _Number):
        return value
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{_dump(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_dump, value)) + "]"
    return json.dumps(None if isinstance(value, _NonFinite) else value, ensure_ascii=False)
