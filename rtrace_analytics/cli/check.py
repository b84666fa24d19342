"""`rtrace check`: what is wrong with trace files, without keeping anything."""

import sys

import click

from rtrace_analytics.cli import options, output


@click.command("check")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@options.form
def command(paths: tuple[str, ...], form: str) -> None:
    """Say what is wrong with the trace files of PATH (files, folders, globs), with examples; nothing is kept.

    A row per finding: quality checks, rejects, keys that stand twice in an object, warnings. Exits 1 when anything is
    wrong; that the trace goes on (an unfinished last line, open rollouts) and unknown events are not.
    """
    from rtrace_analytics.loading.check import check

    findings = check(paths)
    columns = ["experiment", "check", "count", "example"]
    output.print_rows(columns, [[f.experiment, f.check, f.count, f.example] for f in findings], form)
    if any(f.wrong for f in findings):
        sys.exit(1)
