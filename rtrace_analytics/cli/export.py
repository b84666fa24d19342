"""`rtrace export`: the views in other tools' formats."""

from pathlib import Path

import click

from rtrace_analytics.cli import options, output
from rtrace_analytics.errors import InputError
from rtrace_analytics.traces import Traces


@click.command("export")
@options.db()
@click.option(
    "--parquet", type=options.Place(), metavar="DIR", help="Folder of Parquet files to make or bring up to date."
)
@click.option(
    "--perfetto", type=options.Place(), metavar="FILE", help="Chrome trace JSON to write; gzip where it ends in .gz."
)
@click.option("--views", metavar="A,B,...", help="Only these views and tables, for --parquet; by default all.")
@options.experiments
@options.form
def command(
    db: str, parquet: str | None, perfetto: str | None, views: str | None, experiments: tuple[str, ...], form: str
) -> None:
    """Write the views as Parquet files, or the spans as a trace for Perfetto.

    The files are DIR/<view>/experiment_key=<key>/data.parquet. Exporting again rewrites only the
    experiments that changed, and lets go those that are gone.
    """
    if parquet is None and perfetto is None:
        raise InputError("nothing to export to: give --parquet DIR, --perfetto FILE or both")
    wanted = None if views is None else [name.strip() for name in views.split(",")]
    if wanted is not None and parquet is None:
        raise InputError(f"--views {views!r} is for --parquet: a trace for Perfetto has its own")
    names = list(experiments) or None
    rows: list[list[object]] = []
    with Traces(path=Path(db)) as traces, traces.opened() as con:
        if parquet is not None:
            from rtrace_analytics.export import parquet as to_parquet

            rows += to_parquet.update(con, parquet, views=wanted, experiment=names).rows()
        if perfetto is not None:
            from rtrace_analytics.export import perfetto as to_perfetto

            count = to_perfetto.export(con, perfetto, experiment=names)
            rows.append([None, "written", 1, count, Path(perfetto).stat().st_size])
    output.print_rows(["experiment", "state", "files", "rows", "bytes"], rows, form)
