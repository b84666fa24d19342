"""`rtrace report`: one page to pass on."""

from pathlib import Path

import click

from rtrace_analytics import report
from rtrace_analytics.cli import options
from rtrace_analytics.text import clean
from rtrace_analytics.traces import Traces


@click.command("report")
@options.db()
@click.option("--out", type=options.Place(), required=True, metavar="FILE", help="The page: report.html, say.")
@options.experiments
def command(db: str, out: str, experiments: tuple[str, ...]) -> None:
    """Write a page that shows what each restore threw away, in pictures, tables and definitions.

    It is one file, needs no network and no script, and prints.
    """
    with Traces(path=Path(db)) as traces:
        headline = report.write(traces, out, experiment=list(experiments) or None)
    print(f"{clean(out)}: {headline}")
