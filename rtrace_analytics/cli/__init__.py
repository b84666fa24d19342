"""The command line `rtrace`: each command is a module of this folder, imported only when it is called."""

import os
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from rtrace_analytics.errors import InputError, RtraceError
from rtrace_analytics.text import clean, is_text, one_line

_FIRST = ("waste", "load", "show", "sql")
_NOT_COMMANDS = {"options", "output"}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        there = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in _NOT_COMMANDS)
        return sorted(there, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        with _until_the_reader_leaves():  # prints what --help tells
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> object:
        with _until_the_reader_leaves():
            return super().invoke(ctx)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"{__name__}.{name}").command
        return command


@contextmanager
def _until_the_reader_leaves() -> Iterator[None]:
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader (`head`, say) has had enough; click would call it a failure
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(0) from None


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="rtrace_analytics", prog_name="rtrace")
@click.pass_context
def rtrace(ctx: click.Context) -> None:
    """What a stop and restore of asynchronous RL training threw away, from its rollout trace."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> None:
    """Run `rtrace`; a user's mistake, or a full disk, is one line on stderr and exit code 2."""
    sys.exit(_run())


def _run() -> int:
    if sys.stdout is None:  # closed by the caller
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that has no letter for it is no failure
    try:
        for argument in sys.argv[1:]:
            if not is_text(argument):
                raise InputError(f"argument {argument!r} is not UTF-8: rename what it names")
        rtrace(prog_name="rtrace", standalone_mode=False)
        return 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except click.ClickException as error:
        text = error.format_message()
    except (RtraceError, OSError, MemoryError) as error:
        text = str(error) or type(error).__name__
    except UnicodeEncodeError as error:
        text = f"{error.object!r} is not UTF-8: rename it"
    except Exception as error:
        if not type(error).__module__.startswith(("duckdb", "_duckdb")):
            raise
        text = str(error)
    print("rtrace: " + clean(one_line(text)), file=sys.stderr)
    return 2
