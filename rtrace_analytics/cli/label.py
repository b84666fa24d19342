"""`rtrace label`: keys and values by which experiments are compared."""

import click

from rtrace_analytics import labels
from rtrace_analytics.cli import options
from rtrace_analytics.errors import InputError
from rtrace_analytics.text import count


@click.command("label")
@click.argument("experiment", required=False)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--csv", "table", type=options.Place(), metavar="FILE", help="Labels of many: experiment,key,value.")
@options.db()
def command(experiment: str | None, pairs: tuple[str, ...], table: str | None, db: str) -> None:
    """Label an EXPERIMENT, or many by a CSV file; a key that is there gets the new value.

    `rtrace show labels` tells all, and `traces.compare(by=KEY)` compares by them.
    """
    if (table is None) == (experiment is None):
        raise InputError("nothing to label: give EXPERIMENT KEY=VALUE..., or --csv FILE (one of them)")
    if experiment is not None and not pairs:
        raise InputError(f"no label for {experiment!r}: give KEY=VALUE")
    wanted = labels.read(table) if table is not None else {str(experiment): options.pairs("label", pairs, "KEY=VALUE")}
    with options.existing(db) as traces:
        print(f"{count(traces.label(wanted), 'label')} set on {count(len(wanted), 'experiment')}")
