"""What is wrong with trace files: loaded aside, looked through, and let go."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rtrace_analytics import database
from rtrace_analytics.loading.load import load

if TYPE_CHECKING:
    import duckdb

    from rtrace_analytics.loading.report import LoadReport

NOT_WRONG = frozenset({"open_at_end", "pending", "unknown_events"})  # told, but they happen to sound traces
_EXAMPLES = 5


@dataclass(frozen=True)
class Finding:
    """Something found so many times in the files of an experiment, with an example."""

    experiment: str
    check: str
    count: int
    example: str | None

    @property
    def wrong(self) -> bool:
        """Whether it makes the check fail."""
        return self.check not in NOT_WRONG


def check(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Finding]:
    """All findings in these files: quality checks that are not 0, examples of rejects, keys that stand twice, warnings.

    The files are loaded into a database in a temporary folder, which is removed. Raises `InputError`.
    """
    with TemporaryDirectory(prefix="rtrace_check_") as folder, database.connect(Path(folder) / "check.duckdb") as con:
        report = load(con, paths, careful=True)
        return [*_quality(con), *_rejects(con), *_of_files(report)]


def _quality(con: "duckdb.DuckDBPyConnection") -> list[Finding]:
    query = 'SELECT experiment, "check", count, detail FROM quality WHERE count > 0 ORDER BY ALL'
    return [Finding(*row) for row in con.execute(query).fetchall()]


def _rejects(con: "duckdb.DuckDBPyConnection") -> list[Finding]:
    """For each kind of reject its first examples."""
    query = f"""
        SELECT experiment, 'reject: ' || problem, 1,
               'line ' || line || ', byte ' || byte_offset || ': ' || left(text, 50) || ' in ' || path
        FROM rejects JOIN trace_files USING (file_id)
        QUALIFY row_number() OVER (PARTITION BY experiment, problem ORDER BY path, byte_offset) <= {_EXAMPLES}
        ORDER BY experiment, problem, path, byte_offset"""
    return [Finding(*row) for row in con.execute(query).fetchall()]


def _of_files(report: "LoadReport") -> list[Finding]:
    found: list[Finding] = []
    for file in report.files:
        if file.duplicate_keys:
            lines = ", ".join(f"line {line}: {', '.join(map(repr, keys))}" for line, keys in file.duplicate_examples)
            found.append(Finding(file.experiment, "duplicate_keys", file.duplicate_keys, f"{lines} in {file.path}"))
        found.extend(Finding(file.experiment, "warning", 1, f"{warning} in {file.path}") for warning in file.warnings)
    return found
