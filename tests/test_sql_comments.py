"""Every public view, table and column says in the database what it is; every public view has its file."""

import pytest

from rtrace_analytics import database


@pytest.fixture(scope="module")
def con():
    con = database.connect()
    yield con
    con.close()


def test_every_public_view_and_table_has_a_comment_with_its_grain(con):
    found = con.execute("""
        SELECT name, comment FROM (
            SELECT view_name AS name, comment, internal FROM duckdb_views()
            UNION ALL SELECT table_name, comment, internal FROM duckdb_tables())
        WHERE NOT internal AND NOT starts_with(name, '_') ORDER BY name
    """).fetchall()
    assert len(found) >= 13
    assert [name for name, comment in found if not (comment or "").startswith("one row per ")] == []


def test_every_public_column_has_a_comment(con):
    bare = con.execute("""
        SELECT table_name || '.' || column_name FROM duckdb_columns()
        WHERE NOT internal AND NOT starts_with(table_name, '_') AND coalesce(trim(comment), '') = '' ORDER BY ALL
    """).fetchall()
    assert bare == []  # add COMMENT ON COLUMN view.column IS '...'; to the view's file in sql/


def test_every_public_view_has_a_file_of_its_name(con):
    views = con.execute(
        "SELECT view_name FROM duckdb_views() WHERE NOT internal AND NOT starts_with(view_name, '_')"
    ).fetchall()
    files = {path.stem.split("_", 1)[1] for path in database.sql_folder().glob("[0-9]*.sql")}
    assert {name for (name,) in views} - files == set()
