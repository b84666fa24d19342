"""`rtrace load`: bring a database up to date with trace files."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from rtrace_analytics.cli import options, output

if TYPE_CHECKING:
    from rtrace_analytics.loading import LoadReport


@click.command("load")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@options.db()
@options.load
@options.form
def command(paths: tuple[str, ...], db: str, strict: bool, form: str, **how: Any) -> None:
    """Load the trace files of PATH (files, folders, globs) into a database, or take up what is new in them.

    Prints per file its new events, rejects (fragments that are no event), pending (1 while its last line is
    unfinished) and warnings; loading the same files again adds nothing.
    """
    with options.to_load(db) as traces:
        report = traces.load(paths, **how)
    _print(report, form)
    if strict and report.rejects:
        print(f"rtrace: {report.rejects:,} rejected (--strict): rtrace show rejects --db {db}", file=sys.stderr)
        sys.exit(1)


def _print(report: "LoadReport", form: str) -> None:
    if form == "json":
        sums = {"events": report.events, "new_events": report.events, "rejects": report.rejects}
        files = [asdict(file) for file in report.files]
        whole = {"files": files, **sums, "pending": report.pending, "warnings": report.warnings}
        print(output.to_json(whole, indent=1))
        return
    columns = ["path", "experiment", "new_events", "rejects", "pending", "warnings"]
    rows = [
        [file.path, file.experiment, file.events, file.rejects, file.pending, "; ".join(file.warnings) or None]
        for file in report.files
    ]
    output.print_rows(columns, rows, form)
    if form == "table":
        print(f"{report.events:,} new events, {report.rejects:,} rejects, {report.pending:,} pending")
