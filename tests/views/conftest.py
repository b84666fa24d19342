"""What the tests of several views share."""

from collections.abc import Iterator

import duckdb
import pytest

from rtrace_analytics import database


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory, one for all random traces of a file: making one takes longer than most of them."""
    with database.connect() as con:
        yield con
