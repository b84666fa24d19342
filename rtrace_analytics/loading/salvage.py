"""Take apart the bytes of one line: every complete event in it, and one reject for each stretch of anything else.

Structure is found in the line read as Latin-1, where a character is a byte: places are then byte-exact and invalid
UTF-8 cannot hide an object. What an object holds is read from its own bytes as UTF-8.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from rtrace_analytics.loading.typed import NotAnEvent, Row, read_object

_BLANK = re.compile(r"(?:[ \t\r\n\v\f\x00]|\xef\xbb\xbf)+")  # white space, NUL, BOM: nothing that could be lost
_OPEN = re.compile(r'\{(?=[ \t\r\n]*(?:["}]|$))')  # an object begins, or may with what is still to come
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_UNFINISHED = re.compile(r"-|\.|[eE][+-]?|\\(u[0-9a-fA-F]{0,3})?|,")
_decode = json.JSONDecoder().raw_decode
TEXT = 1000  # characters of a reject that are kept


@dataclass
class Reject:
    """A fragment that is no event: where in the line, why, and its text (cut)."""

    offset: int
    end: int
    problem: str
    text: str


@dataclass
class Pieces:
    """What a line holds: events as (start, end, row); `pending`: where its unfinished end begins, if it has one."""

    events: list[tuple[int, int, Row]] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    pending: int | None = None


def take_apart(data: bytes, *, last: bool = False) -> Pieces:
    """The pieces of one line without its LF. `last`: the file ends here without one, so its end may be unfinished."""
    line = _Line(data, last)
    line.scan()
    return line.pieces


class _Line:
    def __init__(self, data: bytes, last: bool) -> None:
        self.data = data
        self.text = data.decode("latin-1")
        self.last = last
        self.pieces = Pieces()
        self.done = 0  # everything before is in a piece
        self.torn = False  # a record was left open since: complete objects that are no events belong to it
        self.effort = 20 * len(data) + 1_000_000  # bytes that failing tries may read, so that no line takes for ever

    def scan(self) -> None:
        if not self.last and self._is_value():
            return
        at = 0
        while match := _OPEN.search(self.text, at):
            at = match.start()
            end = self._object(at)
            if end is None:
                if self.pieces.pending is not None:
                    return
                self.torn = True
                at += 1
            else:
                at = end
        self._gap(len(self.text), at_end=True)

    def _object(self, at: int) -> int | None:
        """Take the object that begins here; its end, or None where none does (or it belongs to a torn record)."""
        if self.effort < 0:
            return None
        try:
            value, end = _decode(self.text, at)
        except json.JSONDecodeError as error:
            self.effort -= error.pos - at + error.pos // 64  # making the error looks through all that is before it
            if self.last and self._could_go_on(error):
                self._gap(len(self.text), at_end=True)
            return None
        except RecursionError:
            self.effort -= 10_000
            return None
        if self.torn and not value.keys() >= {"t", "run", "event"}:
            return end  # no event, so part of the torn record
        try:
            row = read_object(self.data[at:end])
        except NotAnEvent as why:
            if self.torn or self._in_list():
                return end
            self._gap(at)
            self._reject(at, end, str(why))
        else:
            self._gap(at)
            self.pieces.events.append((at, end, row))
        self.done = end
        return end

    def _in_list(self) -> bool:
        start, _ = self._trim(self.done, len(self.text))
        return self.text[start] == "["

    def _could_go_on(self, error: json.JSONDecodeError) -> bool:
        """Whether more bytes could make a whole of what failed: it failed for want of them."""
        if error.msg.startswith("Unterminated string"):
            return True
        rest = self.text[error.pos :].strip(" \t\r\n")
        return not rest or any(word.startswith(rest) for word in _WORDS) or _UNFINISHED.fullmatch(rest) is not None

    def _is_value(self) -> bool:
        """Whether the whole line is one JSON value that is no object and holds no event; then it is one reject."""
        start, end = self._trim(0, len(self.text))
        if start == end or self.text[start] == "{":
            return False
        try:
            value = json.loads(self.text[start:end])
        except (ValueError, RecursionError):
            return False
        if isinstance(value, list) and _holds_event(value):
            return False
        self._reject(start, end, "a JSON value that is no object")
        return True

    def _gap(self, end: int, *, at_end: bool = False) -> None:
        """Account for the bytes since the last piece: one reject, or pending at the unfinished end of the file."""
        start, stop = self._trim(self.done, end)
        if start < stop:
            if at_end and self.last:
                self.pieces.pending = start
            else:
                self._reject(start, stop, "torn record" if self.torn else "not JSON")
        self.done = end
        self.torn = False

    def _trim(self, start: int, end: int) -> tuple[int, int]:
        match = _BLANK.match(self.text, start, end)
        if match:
            start = match.end()
        while end > start:
            if self.text[end - 1] in " \t\r\n\v\f\x00":
                end -= 1
            elif self.text[max(start, end - 3) : end] == "\xef\xbb\xbf":
                end -= 3
            else:
                break
        return start, end

    def _reject(self, start: int, end: int, problem: str) -> None:
        text = self.data[start : min(end, start + 4 * TEXT)].decode("utf-8", "replace")[:TEXT]
        self.pieces.rejects.append(Reject(start, end, problem, text))


def _holds_event(value: Any) -> bool:
    if isinstance(value, list):
        return any(_holds_event(item) for item in value)
    return isinstance(value, dict) and {"t", "run", "event"} <= value.keys()
