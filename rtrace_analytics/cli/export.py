"""`rtrace export`: the views in other tools' formats."""

from pathlib import Path

import click

from rtrace_analytics.cli import output
from rtrace_analytics.traces import Traces


@click.command("export")
@output.db_option()
@click.option("--parquet", type=click.Path(), required=True, metavar="DIR", help="Folder to write Parquet files to.")
@output.format_option
def command(db: str, parquet: str, form: str) -> None:
    """Write every view to DIR/<view>/experiment=<name>/, as Parquet."""
    with Traces(path=Path(db)) as traces:
        files = traces.export_parquet(parquet)
    output.print_rows(["file"], [[str(path)] for path in files], form)
