"""`rtrace label`: keys and values by which experiments are compared."""

import click

from rtrace_analytics import compare, database
from rtrace_analytics.cli import output
from rtrace_analytics.errors import InputError


@click.command("label")
@click.argument("experiment", required=False)
@click.argument("labels", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--csv", "table", type=click.Path(), metavar="FILE", help="Labels of many: experiment,key,value.")
@output.db_option()
def command(experiment: str | None, labels: tuple[str, ...], table: str | None, db: str) -> None:
    """Label an EXPERIMENT, or many by a CSV file; a key that is there gets the new value.

    `rtrace show labels` tells all, and `traces.compare(by=KEY)` compares by them.
    """
    if (table is None) == (experiment is None):
        raise InputError("nothing to label: give EXPERIMENT KEY=VALUE..., or --csv FILE (one of them)")
    if table is not None:
        wanted = compare.read_labels(table)
    else:
        assert experiment is not None
        wanted = {experiment: _pairs(experiment, labels)}
    con = database.connect(db, read_only=True)  # a database that is not there is not made
    con.close()
    con = database.connect(db)
    try:
        count = compare.set_labels(con, wanted)
    finally:
        con.close()
    click.echo(
        f"{count} label{'' if count == 1 else 's'} set on {len(wanted)} experiment{'' if len(wanted) == 1 else 's'}"
    )


def _pairs(experiment: str, given: tuple[str, ...]) -> dict[str, str]:
    if not given:
        raise InputError(f"no label for {experiment!r}: give KEY=VALUE")
    found: dict[str, str] = {}
    for text in given:
        key, _, value = text.partition("=")
        if not key or not value:
            raise InputError(f"label {text!r} is not of the form KEY=VALUE")
        if key in found:
            raise InputError(f"label {key!r} is given twice: keep one")
        found[key] = value
    return found
