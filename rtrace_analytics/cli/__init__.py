"""The command line `rtrace`: each command is a module of this folder, imported only when it is called."""

import sys
from importlib import import_module

import click

from rtrace_analytics.errors import RtraceError

COMMANDS = ("waste", "load", "show", "sql", "forget", "export", "simulate")


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"{__name__}.{name}").command
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="rtrace_analytics", prog_name="rtrace")
def rtrace() -> None:
    """What a stop and restore of asynchronous RL training threw away, from its rollout trace."""


def main() -> None:
    """Run `rtrace`; a user's mistake is one line on stderr and exit code 2."""
    try:
        rtrace(prog_name="rtrace", standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.Abort:
        sys.exit(130)
    except (RtraceError, click.ClickException) as error:
        text = error.format_message() if isinstance(error, click.ClickException) else str(error)
        print("rtrace: " + " ".join(text.split()), file=sys.stderr)
        sys.exit(2)
