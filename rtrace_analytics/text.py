"""How names and figures are told to people. Names from traces are untrusted text."""

from collections.abc import Iterable
from datetime import UTC, datetime


def clean(text: object) -> str:
    """The text with what a terminal would obey (escapes, line ends, marks that turn the reading order) made visible."""
    whole = str(text)
    if whole.isprintable():
        return whole
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in whole)


def short(text: object, longest: int = 28) -> str:
    """A clean name at most `longest` characters long: its beginning and its end."""
    whole = clean(text)
    if len(whole) <= longest:
        return whole
    tail = longest // 3
    return f"{whole[: longest - tail - 1]}…{whole[-tail:]}"


def one_line(text: object) -> str:
    """A message of several lines, DuckDB's say, as one."""
    return " ".join(str(text).split())


def listed(names: Iterable[object]) -> str:
    """What there is, for an error: `there are 'a', 'b'`, of more than ten how many more, `there is none`."""
    each = [repr(name) for name in names]
    more = f" and {len(each) - 10} more" if each[10:] else ""
    return f"there are {', '.join(each[:10])}{more}" if each else "there is none"


def count(number: int, word: str) -> str:
    """A number with its word: `1 stop`, `3 stops`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def number(value: float, digits: int = 3) -> str:
    """A number to so many digits after the point, without the zeros at its end."""
    if abs(value) >= 1e16:
        return str(value)  # no letter a digit: 1e+300 has 301
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def length(seconds: float) -> str:
    """A length in seconds, to three digits: `28 s`, `12.5 min`, `3.2 h`, `5.1 d`."""
    for below, unit, name in ((100, 1, "s"), (6000, 60, "min"), (172_800, 3600, "h")):
        if abs(seconds) < below:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 86_400:,.1f} d" if abs(seconds) < 8.64e6 else f"{seconds / 86_400:,.0f} d"


def share(part: float, whole: float) -> str:
    """A part of a whole in per cent, to two digits or more."""
    if not whole > 0:
        return "no time"
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


def date(t: float) -> str | None:
    """A moment as a date (UTC); None where it is no plausible number of seconds since the epoch."""
    return f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M:%S} UTC" if 1e8 < t < 1e11 else None


def is_text(value: str) -> bool:
    """Whether it is text, not bytes in its disguise, as Python reads names and arguments that are not UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
