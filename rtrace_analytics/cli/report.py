"""`rtrace report`: one page to pass on."""

from pathlib import Path

import click

from rtrace_analytics import report
from rtrace_analytics.cli import output
from rtrace_analytics.text import clean
from rtrace_analytics.traces import Traces


@click.command("report")
@output.db_option()
@click.option("--out", type=click.Path(), required=True, metavar="FILE", help="The page: report.html, say.")
@click.option("--experiment", multiple=True, metavar="NAME", help="Only this experiment; may be given again.")
def command(db: str, out: str, experiment: tuple[str, ...]) -> None:
    """Write a page that shows what each restore threw away, in pictures, tables and definitions.

    It is one file, needs no network and no script, and prints.
    """
    with Traces(path=Path(db)) as traces:
        headline = report.write(traces, out, experiment=list(experiment) or None)
    click.echo(f"{clean(out)}: {headline}")
