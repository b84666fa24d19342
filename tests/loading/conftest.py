from collections.abc import Iterator

import duckdb
import pytest

from rtrace_analytics import database


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with database.connect() as connection:
        yield connection
