"""Memory of a load: flat, whatever the size of the trace; what does not fit goes to disk."""

import os
import re
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

INTAKE = 600 * 10**6  # bytes for DuckDB while files are read: what Python and the chunks being read take comes to this
DERIVING = 680 * 10**6  # bytes for DuckDB afterwards
_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


@contextmanager
def small_memory(con: "duckdb.DuckDBPyConnection") -> Iterator[Callable[[int], None]]:
    """Hold DuckDB to little memory, with a place to spill to: call what is given with the bytes (never more than the
    connection was given). It ends outside of a transaction, so that what it changed can be undone.
    """
    row = con.execute("SELECT current_setting('memory_limit'), current_setting('temp_directory')").fetchone()
    assert row is not None
    limit, folder = row
    if folder == ".tmp":  # a database in memory would spill to the working directory
        spill = os.path.join(tempfile.gettempdir(), f"rtrace_{os.getpid()}_{uuid.uuid4().hex[:8]}")
        con.execute("SET temp_directory = ?", [spill])

    def hold(most: int) -> None:
        if most < _bytes(limit):
            con.execute("SET memory_limit = ?", [f"{most} bytes"])

    try:
        yield hold
    finally:
        con.execute("SET memory_limit = ?", [limit])


def _bytes(setting: str) -> float:
    """The bytes of a setting as DuckDB shows it: `18.8 GiB`."""
    match = re.fullmatch(r"([\d.]+) (\w+)", setting)
    return float(match[1]) * _UNITS.get(match[2], 2**50) if match else 2.0**50
