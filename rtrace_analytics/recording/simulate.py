"""Simulated time: a training job that is killed and restored, with the truth about what every restore lost.

Everything follows from the options: the same options give the same files, byte for byte.
"""

import gc
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any, Protocol

from rtrace_analytics.errors import RtraceError
from rtrace_analytics.recording.controller import KILL, Controller
from rtrace_analytics.recording.lines import encode
from rtrace_analytics.recording.options import TICKS, WorldOptions
from rtrace_analytics.recording.records import Run, Witness
from rtrace_analytics.recording.snapshots import MemoryStore
from rtrace_analytics.recording.truth import EPOCH, World, ground_truth, wall
from rtrace_analytics.recording.writer import RolloutTrace

TRACE_NAME, TRUTH_NAME = "rollout_trace.jsonl", "ground_truth.json"


class Trace(Protocol):
    """What a run writes to: `RolloutTrace`, or a list in a test."""

    def emit(self, event: str, /, **fields: Any) -> None: ...

    def close(self) -> None: ...


def simulate(out: Path, options: WorldOptions) -> dict[str, list[dict[str, Any]]]:
    """Play a world into `out`: `rollout_trace.jsonl` and `ground_truth.json`; return the truth.

    Raises:
        RtraceError: `out` holds a trace already, or cannot be written.
    """
    path = new_trace(out)

    def open_trace(run: str, clock: Callable[[], float]) -> Trace:
        return RolloutTrace(path, enabled=True, run=run, clock=clock, when_full="wait")

    with _collector_paused():
        truth = ground_truth(play(options, open_trace))
        write_truth(out / TRUTH_NAME, options, truth)
    return truth


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause the garbage collector: a world keeps all it makes to its end, and walking it took a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def new_trace(out: Path) -> Path:
    """Make the folder `out` and return the path of the trace that will be in it.

    Raises:
        RtraceError: there is a trace in it already, or it cannot be made.
    """
    path = out / TRACE_NAME
    if path.exists():
        raise RtraceError(f"{path} exists: give --out a folder without a trace, or remove it")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RtraceError(
            f"--out {out} cannot be made ({error.strerror}): give a folder that can be written"
        ) from error
    return path


def write_truth(path: Path, options: WorldOptions, truth: dict[str, list[dict[str, Any]]]) -> None:
    """Write the truth as one JSON object, a row a line."""
    with open(path, "wb") as file:
        file.write(b'{\n "options": ' + encode(asdict(options)))
        for name, rows in truth.items():
            file.write(b',\n "%s": [' % name.encode())
            before = b"\n  "
            for row in rows:
                file.write(before + encode(row))
                before = b",\n  "
            file.write(b"\n ]")
        file.write(b"\n}\n")


def play(options: WorldOptions, open_trace: Callable[[str, Callable[[], float]], Trace]) -> World:
    """Play a world to its end and return what it remembers.

    `open_trace(run, clock)` is called at the start of every run and gives what its events are emitted to.
    """
    rng, chance = Random(options.seed), Random(f"kills {options.seed}")
    store, world = MemoryStore(options.numbering), World()
    witness: Witness | None = None
    now = 0
    for life in range(options.kills + 1):
        run = Run(f"{rng.getrandbits(32):08x}", last=now)
        world.runs.append(run)
        controller = _process(
            options, run, store, rng, now, open_trace, witness, chance if life < options.kills else None
        )
        witness = controller.witness or witness
        run.stopped = controller.now
        if run.restore is not None:
            world.restores.append(run.restore)
        now = controller.now + 1 + int(chance.uniform(5.0, 60.0) * TICKS)
    return world


def _process(
    options: WorldOptions,
    run: Run,
    store: MemoryStore,
    rng: Random,
    now: int,
    open_trace: Callable[[str, Callable[[], float]], Trace],
    witness: Witness | None,
    chance: Random | None,
) -> Controller:
    """Play one run: until a kill where `chance` is given, else to the end of the work."""

    def clock() -> float:  # called once for every line
        run.last = now = controller.now
        return EPOCH + now / TICKS

    trace = open_trace(run.id, clock)
    controller = Controller(options, run, trace.emit, store, rng, lambda: wall(controller.now), now)
    if chance is not None:
        _plan_kill(controller, store, options, chance)
    controller.start(store.newest(), witness)
    while not controller.done:
        controller.step()
    trace.close()
    return controller


def _plan_kill(controller: Controller, store: MemoryStore, options: WorldOptions, chance: Random) -> None:
    """Choose when to kill: in the restore, before the next snapshot, between a cut and its publication, or any time.

    A kill waits until there is a snapshot to restore, and comes at the latest when all work is done.
    """
    interval = math.ceil(options.snapshot_interval_s * TICKS)

    def kill(_: None) -> None:
        if store.newest() is None:
            controller.at(controller.now + interval // 4 + 1, kill, turn=KILL)
        else:
            controller.done = True

    def kill_in_between(due: int) -> None:
        if store.newest() is not None and due - controller.now > 1:
            controller.at(chance.randrange(controller.now + 1, due), kill, turn=KILL)

    kind = chance.random()
    work_s = options.groups * options.siblings * options.rollout_s * math.exp(options.tail**2 / 2) / options.concurrency
    within_s = 3.0 if kind < 0.1 else options.snapshot_interval_s + 3.0 if kind < 0.3 else work_s
    if 0.3 <= kind < 0.5:
        controller.on_cut = kill_in_between
    else:
        controller.at(controller.now + chance.randrange(1, 2 + int(within_s * TICKS)), kill, turn=KILL)
    controller.on_done = lambda: controller.at(controller.now + 1, kill, turn=KILL)
