"""`rtrace load`: bring a database up to date with trace files."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtrace_analytics.cli import output
from rtrace_analytics.cli.waste import pairs
from rtrace_analytics.errors import RtraceError

if TYPE_CHECKING:
    from rtrace_analytics.loading import LoadReport


@click.command("load")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@output.db_option()
@click.option("--experiment", metavar="NAME", help="Experiment all of it belongs to [the folder's name].")
@click.option("--experiment-from", metavar="REGEX", help="Found in each path; its first group names the experiment.")
@click.option("--label", "labels", multiple=True, metavar="K=V", help="Kept with the experiments; may be given again.")
@click.option("--rename", multiple=True, metavar="FROM=TO", help="Event FROM is our event TO; may be given again.")
@click.option("--strict", is_flag=True, help="Exit 1 when anything was rejected.")
@output.format_option
def command(
    paths: tuple[str, ...],
    db: str,
    experiment: str | None,
    experiment_from: str | None,
    labels: tuple[str, ...],
    rename: tuple[str, ...],
    strict: bool,
    form: str,
) -> None:
    """Load trace files PATH... (files, folders, globs) into a database, or take up what is new in them.

    Prints per file its new events, rejects (fragments that are no event), pending (1 while its last line is
    unfinished) and warnings; loading the same files again adds nothing.
    """
    from rtrace_analytics.traces import connect

    there = Path(db).exists()
    try:
        with connect(db) as traces:
            report = traces.load(
                paths,
                experiment=experiment,
                experiment_from=experiment_from,
                labels=pairs("--label", labels),
                rename=pairs("--rename", rename),
            )
    except RtraceError:
        if not there:
            Path(db).unlink(missing_ok=True)  # made by this call, and empty
        raise
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
