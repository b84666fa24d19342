"""`rtrace forget`: lets an experiment go."""

import click

from rtrace_analytics.cli import options, output


@click.command("forget")
@click.argument("experiment")
@options.db()
@options.form
def command(experiment: str, db: str, form: str) -> None:
    """Let an EXPERIMENT go: one loaded under a wrong name, say."""
    with options.existing(db) as traces:
        events = traces.forget(experiment)
    output.print_rows(["experiment", "events_forgotten"], [[experiment, events]], form)
