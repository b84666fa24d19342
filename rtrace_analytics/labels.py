"""Labels of experiments, key and value: read from a CSV file, set in a database."""

import csv
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING

from rtrace_analytics import views
from rtrace_analytics.errors import InputError
from rtrace_analytics.text import listed

if TYPE_CHECKING:
    import duckdb

_COLUMNS = ("experiment", "key", "value")


def read(path: str | PathLike[str]) -> dict[str, dict[str, str]]:
    """The labels of a CSV file with the columns experiment, key, value: experiment to key to value.

    Raises:
        InputError: the file cannot be read, lacks a column, or names a key of an experiment twice.
    """
    found: dict[str, dict[str, str]] = {}
    what = f"labels {str(path)!r}"
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            missing = [name for name in _COLUMNS if name not in (rows.fieldnames or [])]
            if missing:
                raise InputError(f"{what}: no column {missing[0]!r}, the first line must be experiment,key,value")
            for row in rows:
                if any(row[name] is None for name in _COLUMNS) or not row["key"]:
                    raise InputError(f"{what}, line {rows.line_num}: experiment, key and value are wanted")
                own = found.setdefault(row["experiment"], {})
                if row["key"] in own:
                    label = f"label {row['key']!r} of experiment {row['experiment']!r}"
                    raise InputError(f"{what}, line {rows.line_num}: {label} is there twice, keep one")
                own[row["key"]] = row["value"]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{what} cannot be read ({why}): give a CSV file of experiment,key,value") from error
    return found


def set_all(con: "duckdb.DuckDBPyConnection", labels: Mapping[str, Mapping[str, object]]) -> int:
    """Set labels (experiment to key to value) in a database, all or none; a key that is there gets the new value.

    Returns how many were set. Raises `InputError` for an experiment that is not there and for an empty key or value.
    """
    known = views.experiments(con)
    rows = [(name, key, value) for name, own in labels.items() for key, value in own.items()]
    for name, key, value in rows:
        if name not in known:
            raise InputError(f"no experiment {name!r} to label: {listed(known)}")
        if not key or value is None or str(value) == "":
            raise InputError(f"label {key!r} of experiment {name!r} has the value {value!r}: give both as KEY=VALUE")
    con.execute("BEGIN")
    try:
        for name, key, value in rows:
            con.execute("INSERT OR REPLACE INTO labels VALUES (?, ?, ?)", [name, key, str(value)])
        con.execute("COMMIT")
    except BaseException:
        con.execute("ROLLBACK")
        raise
    return len(rows)
