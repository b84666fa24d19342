"""What several commands share: their options, and how they open the database."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from rtrace_analytics import database
from rtrace_analytics.cli.output import FORMATS
from rtrace_analytics.errors import InputError
from rtrace_analytics.traces import Traces, connect

form = click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="How rows are printed."
)
experiments = click.option(
    "--experiment", "experiments", multiple=True, metavar="NAME", help="Only this experiment; may be given again."
)
experiment_of_all = click.option(
    "--experiment", metavar="NAME", help="Experiment all of it belongs to [the folder's name]."
)
experiment_from = click.option(
    "--experiment-from", metavar="REGEX", help="Found in each path; its first group names the experiment."
)


class Place(click.Path):
    """A path that is not empty: '' would stand for the folder one is in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("'' is empty: give a path", param, ctx)
        return super().convert(value, param, ctx)


def db(*, required: bool = True) -> Callable[[Any], Any]:
    """The option --db, the same in every command."""
    return click.option("--db", type=Place(), required=required, metavar="FILE", help="The database file.")


def load(command: Callable[..., Any]) -> Any:
    """The options of a load: `strict`, and what `Traces.load` takes."""

    def as_pairs(_: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str] | None:
        return pairs(option.opts[0], given, str(option.metavar)) or None

    def many(*names: str, shape: str, told: str) -> Callable[[Any], Any]:
        help_ = f"{told}; may be given again."
        return click.option(*names, multiple=True, callback=as_pairs, metavar=shape, help=help_)

    command = click.option("--strict", is_flag=True, help="Exit 1 when anything was rejected.")(command)
    command = many("--rename", shape="FROM=TO", told="Event FROM is our event TO")(command)
    command = many("--label", "labels", shape="NAME=VALUE", told="Kept with the experiments")(command)
    return experiment_of_all(experiment_from(command))


def pairs(what: str, given: Sequence[str], shape: str) -> dict[str, str]:
    """`A=B` texts as a dictionary. Raises `InputError` for one of another shape or given twice."""
    found: dict[str, str] = {}
    for text in given:
        name, _, value = text.partition("=")
        if not name or not value:
            raise InputError(f"{what} {text!r} is not of the form {shape}")
        if name in found:
            raise InputError(f"{what} {name!r} is given twice: keep one")
        found[name] = value
    return found


@contextmanager
def to_load(path: str | None) -> Iterator[Traces]:
    """Traces to load into, of a database file, for a while where `path` is None; a file made here goes again where the
    load fails.

    A file holds a large trace in a third of the room that it takes in memory.
    """
    if path is None:
        with tempfile.TemporaryDirectory(prefix="rtrace_") as folder, connect(Path(folder) / "traces.duckdb") as traces:
            yield traces
        return
    there = Path(path).exists()
    try:
        with connect(path) as traces:
            yield traces
    except Exception:
        if not there:
            Path(path).unlink(missing_ok=True)
        raise


def existing(path: str) -> Traces:
    """Traces of a database file that is there: a mistyped name must not make one. Raises `DatabaseError`."""
    database.connect(path, read_only=True).close()
    return Traces(path=Path(path))
