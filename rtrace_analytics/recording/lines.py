"""One event to one line of JSON: the same bytes whether orjson is installed or not.

The fast path takes values whose JSON both libraries write alike; all others (nested values, NaN, floats written with an
exponent, numpy scalars, paths, ...) are made plain first and go through the standard library.
"""

import json
import math
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

_PLAIN = frozenset((str, int, bool, type(None)))
_encode_text = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _encode_stdlib(event: dict[str, Any]) -> bytes:
    return _encode_text(event).encode()


def _fastest() -> Callable[[dict[str, Any]], bytes]:
    try:
        import orjson
    except ImportError:
        return _encode_stdlib
    dumps: Callable[[dict[str, Any]], bytes] = orjson.dumps
    return dumps


_encode = _fastest()


def line(t: float, run: str, event: str, fields: Mapping[str, Any]) -> bytes:
    """Return one event as a line of JSON, newline included; it never raises for a value it does not know.

    `t` (seconds since the epoch), `run` and `event` come first; a field of one of these names is overruled.
    """
    row: dict[str, Any] = {"t": t, "run": run, "event": event}
    if fields:
        row.update(fields)
        row["t"], row["run"], row["event"] = t, run, event
    return encode(row) + b"\n"


def encode(row: dict[str, Any]) -> bytes:
    """Return a JSON object without spaces, in UTF-8. NaN and infinity become null, what JSON does not know text."""
    try:
        for value in row.values():
            kind = value.__class__
            if kind not in _PLAIN and not (kind is float and (1e-4 <= abs(value) < 1e16 or value == 0)):
                break
        else:
            return _encode(row)
    except (TypeError, ValueError):  # orjson: a lone surrogate, an integer beyond 64 bits; both: an odd run or event
        pass
    try:
        text = _encode_text(_plain(row))
    except (RecursionError, ValueError):  # a list that holds itself
        text = _encode_text({str(key): _plain(value if key == "t" else _text(value)) for key, value in row.items()})
    return text.encode("utf-8", "replace")


def _plain(value: Any) -> Any:
    """Return the value as JSON knows it: non-finite floats as None, unknown things as text."""
    if isinstance(value, Enum):
        return _plain(value.value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    try:
        item = value.item()  # a numpy or torch scalar
    except Exception:
        return _text(value)
    return _text(value) if item.__class__ is value.__class__ else _plain(item)


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"
