"""The command line `rtrace`: each command is a module of this folder, imported only when it is called."""

import os
import pkgutil
import sys
from importlib import import_module

import click

from rtrace_analytics.errors import RtraceError
from rtrace_analytics.text import clean, one_line

_FIRST = ("waste", "load", "show", "sql")
_NOT_COMMANDS = {"options", "output"}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        there = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in _NOT_COMMANDS)
        return sorted(there, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:  # the reader (`head`, say) has had enough; click would call it a failure
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return None

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"{__name__}.{name}").command
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="rtrace_analytics", prog_name="rtrace")
def rtrace() -> None:
    """What a stop and restore of asynchronous RL training threw away, from its rollout trace."""


def main() -> None:
    """Run `rtrace`; a user's mistake, or a full disk, is one line on stderr and exit code 2."""
    sys.exit(_run())


def _run() -> int:
    try:
        rtrace(prog_name="rtrace", standalone_mode=False)
        return 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except click.exceptions.NoArgsIsHelpError as bare:
        print(bare.format_message())
        return 0
    except click.ClickException as error:
        text = error.format_message()
    except (RtraceError, OSError, MemoryError) as error:
        text = str(error) or type(error).__name__
    except Exception as error:
        if not type(error).__module__.startswith(("duckdb", "_duckdb")):
            raise
        text = str(error)
    print("rtrace: " + clean(one_line(text)), file=sys.stderr)
    return 2
