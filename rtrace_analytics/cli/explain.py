"""`rtrace explain`: what happened to a prompt, or at a restore, with the file and line that says so."""

from pathlib import Path

import click

from rtrace_analytics.cli import options, output
from rtrace_analytics.explain import sentences
from rtrace_analytics.traces import Traces


@click.command("explain")
@options.db()
@click.option("--prompt", metavar="ID", help="What became of each attempt of this prompt.")
@click.option("--restore", metavar="RUN", help="What the restore by this run threw away.")
@click.option("--experiment", metavar="NAME", help="Which one; may be left away where only one has it.")
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(0), help="Lost attempts of a restore told singly."
)
@options.form
def command(db: str, prompt: str | None, restore: str | None, experiment: str | None, limit: int, form: str) -> None:
    """Tell in plain sentences what happened, each with the file and line to check it by.

    Give --prompt or --restore. In csv and json each sentence has its first line (file, line) and all of them (lines).
    """
    with Traces(path=Path(db)) as traces:
        found = traces.explain(prompt_id=prompt, restore=restore, experiment=experiment, limit=limit)
    if form == "table":
        print(found)
    else:
        output.print_rows(("text", "file", "line", "lines"), list(sentences(found)), form)
