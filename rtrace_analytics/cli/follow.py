"""`rtrace follow`: take up traces while they are being written."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING

import click

from rtrace_analytics.cli import options, output
from rtrace_analytics.errors import InputError
from rtrace_analytics.text import clean

if TYPE_CHECKING:
    from rtrace_analytics.loading.follow import Restore, Take


@click.command("follow")
@click.argument("path")
@options.db()
@options.experiment_of_all
@click.option("--every", "every_s", type=float, default=5.0, show_default=True, metavar="SECONDS")
def command(path: str, db: str, experiment: str | None, every_s: float) -> None:
    """Take up what is appended to PATH (a file, folder or glob) every few seconds, until Ctrl-C.

    Prints a live line: events, rollouts in flight, age of the last snapshot, lost so far; and for every new restore
    what it cost. The database is free for readers between takes.
    """
    from rtrace_analytics.loading.follow import follow

    if not 0.05 <= every_s <= 86_400:
        raise InputError(f"--every {every_s}: give seconds from 0.05 to 86400, a day")
    last = ""
    live = sys.stdout.isatty()
    with options.to_load(db), _stopper() as stop:
        for take in follow(db, path, every_s=every_s, experiment=experiment, wait=stop.wait):
            for restore in take.restores:
                print(("\r\x1b[K" if live else "") + _cost(restore), flush=True)
            line = _line(take)
            if live:
                print(f"\r\x1b[K{line}", end="", flush=True)
            elif line != last:
                print(line, flush=True)
            last = line
    if live:
        print()


@contextmanager
def _stopper() -> Iterator[Event]:
    """Set by Ctrl-C or a terminating signal: a take under way is finished first. A second one ends it at once."""
    stop = Event()

    def on_signal(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)])

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _line(take: "Take") -> str:
    if take.trouble:
        return f"waiting: {clean(take.trouble)}"
    age = "no snapshot yet" if take.snapshot_age_s is None else f"last snapshot {take.snapshot_age_s:,.0f} s ago"
    lost = "nothing lost" if not take.lost_s else f"lost so far {output.seconds(take.lost_s)}"
    rejects = f", {take.rejects:,} new rejects" if take.rejects else ""
    return f"{take.events:,} events, {take.in_flight:,} rollouts in flight, {age}, {lost}{rejects}"


def _cost(restore: "Restore") -> str:
    told = f"RESTORE {clean(restore.run)} ({clean(restore.experiment)})"
    if restore.lost_s is None or restore.parent_run is None:
        return f"{told}: which snapshot it restored is not known, nor what it cost"
    assert restore.thrown_away_s is not None and restore.never_saved_s is not None
    return (
        f"{told} of {clean(restore.parent_run)}, snapshot step {restore.snapshot_step}: "
        f"{restore.lost_attempts:,} rollouts lost ({restore.lost_sealed:,} finished), "
        f"{output.seconds(restore.thrown_away_s)} thrown away, {output.seconds(restore.never_saved_s)} never saved"
    )
