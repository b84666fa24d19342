"""`rtrace fleet`: many experiments to one Parquet export, on Ray."""

import sys

import click

from rtrace_analytics.cli import options, output


@click.command("fleet")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--out", type=options.Place(), required=True, metavar="DIR", help="Folder of Parquet files to make or update."
)
@options.experiment_from
@click.option("--address", metavar="RAY", help="A running Ray; without it RAY_ADDRESS, else one is started here.")
@click.option("--cpus", type=click.IntRange(1), metavar="N", help="Cores of the Ray started here; by default all.")
@click.option("--memory", default="2GB", show_default=True, metavar="SIZE", help="What DuckDB may take per task.")
@options.form
def command(
    paths: tuple[str, ...],
    out: str,
    experiment_from: str | None,
    address: str | None,
    cpus: int | None,
    memory: str,
    form: str,
) -> None:
    """Load each experiment of PATH and export its views to DIR, one Ray task an experiment.

    The files are those of `rtrace export --parquet`. Again, only experiments whose files changed are done anew. An
    experiment that fails is named, the others are exported all the same; exit code 1.
    """
    from rtrace_analytics.fleet import fleet

    report = fleet(paths, out, experiment_from=experiment_from, address=address, cpus=cpus, memory=memory)
    states = (("written", report.written), ("unchanged", report.unchanged), ("removed", report.removed))
    rows: list[list[object]] = [[name, state, None] for state, names in states for name in names]
    rows += [[name, "failed", reason] for name, reason in sorted(report.failed.items())]
    output.print_rows(["experiment", "state", "reason"], rows, form)
    for name, reason in sorted(report.failed.items()):
        print(f"rtrace: experiment {name!r} failed: {reason}", file=sys.stderr)
    if report.failed:
        sys.exit(1)
