"""Real processes: the controller in a child process, in real time made faster, killed with SIGKILL and restored.

All processes append to one trace. What a stop does to it, torn lines and events that never reached the disk, happens
for real, so there is no ground truth: nobody but the killed process knew.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from random import Random

from rtrace_analytics.errors import RtraceError
from rtrace_analytics.recording.controller import Controller
from rtrace_analytics.recording.options import TICKS, WorldOptions
from rtrace_analytics.recording.records import Run
from rtrace_analytics.recording.simulate import new_trace
from rtrace_analytics.recording.snapshots import FolderStore
from rtrace_analytics.recording.writer import RolloutTrace, TraceWriteError

_FIRST_SNAPSHOT_S = 60.0  # wall seconds a process may take to publish its first snapshot before we give up


def run_real(out: Path, options: WorldOptions, speed: float) -> int:
    """Run the job in `options.kills` + 1 processes, killing all but the last; return how many were killed.

    Writes `out`/rollout_trace.jsonl, and snapshots under `out`/ckpt. `speed`: seconds of the world to one wall second.

    Raises:
        RtraceError: bad options, a trace is there already, or a process ended by itself before it was killed.
    """
    if not 0 < speed <= 1e5:
        raise RtraceError(f"--speed is {speed}: give more than 0 and at most 100000")
    path = new_trace(out)
    chance = Random(f"kills {options.seed}")
    for life in range(options.kills):
        with _child(path, options, speed, life, to_the_end=False) as child:
            _await_start(child)
            _await_snapshot(path.parent, child, options, speed)
            time.sleep(chance.uniform(0.0, 2.0) * (options.snapshot_interval_s + options.publish_lag_s) / speed)
            if child.poll() is not None:
                raise _ended(child)
            child.send_signal(signal.SIGKILL)
            child.wait()
    with _child(path, options, speed, options.kills, to_the_end=True) as child:
        if child.wait() != 0:
            raise _ended(child)
    return options.kills


@contextlib.contextmanager
def _child(
    path: Path, options: WorldOptions, speed: float, life: int, *, to_the_end: bool
) -> Iterator["subprocess.Popen[str]"]:
    """Start one process of the job; it never outlives this block."""
    job = {"path": str(path), "options": asdict(options), "speed": speed, "life": life, "to_the_end": to_the_end}
    command = [sys.executable, "-m", "rtrace_analytics.recording.real", json.dumps(job)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def _await_start(child: "subprocess.Popen[str]") -> None:
    """Wait until its first line is in the trace: killed before, it would not have been a run at all."""
    if child.stdout is None or not child.stdout.readline():
        child.wait()
        raise _ended(child)


def _await_snapshot(out: Path, child: "subprocess.Popen[str]", options: WorldOptions, speed: float) -> None:
    wait_s = _FIRST_SNAPSHOT_S + 3 * (options.snapshot_interval_s + options.publish_lag_s) / speed
    give_up = time.monotonic() + wait_s
    store = FolderStore(options.numbering, out / "ckpt")
    while not store.folders():
        if child.poll() is not None:
            raise _ended(child)
        if time.monotonic() > give_up:
            raise RtraceError(f"no snapshot within {wait_s:.0f} s: give a shorter --snapshot-interval or more --speed")
        time.sleep(0.01)


def _ended(child: "subprocess.Popen[str]") -> RtraceError:
    said = (child.stderr.read() if child.stderr else "").strip().splitlines()
    last = said[-1] if said else "it said nothing"
    return RtraceError(f"a process of the job ended by itself, exit {child.returncode}: {last}; look at --out and disk")


def run_process(path: Path, options: WorldOptions, speed: float, life: int, to_the_end: bool) -> None:
    """Be one process of the job: restore the newest snapshot on disk and go on.

    It ends when the work is done, or, without `to_the_end`, works and waits until it is killed. It ends too when the
    process that started it is gone.
    """
    store = FolderStore(options.numbering, path.parent / "ckpt")
    parent = os.getppid()
    with RolloutTrace(path, enabled=True) as trace:

        def cut_time() -> float:
            """Return a moment that no later line shares: lines at the cut belong to what it holds."""
            now = time.time()
            while time.time() <= now:
                pass
            return now

        def flush() -> None:
            with contextlib.suppress(TraceWriteError):  # logged by the trace; training goes on without it
                trace.flush()

        controller = Controller(options, Run(trace.run), trace.emit, store, Random(f"{options.seed} {life}"), cut_time)
        controller.flush = flush
        if not to_the_end:
            controller.on_done = lambda: None
        begin = time.monotonic()
        controller.start(store.newest())
        flush()
        print("started", flush=True)
        while not controller.done and os.getppid() == parent:
            ahead = begin + controller.next_due() / TICKS / speed - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)
            controller.step()


def _main(text: str) -> None:
    job = json.loads(text)
    options = WorldOptions(**job["options"])
    run_process(Path(job["path"]), options, job["speed"], job["life"], job["to_the_end"])


if __name__ == "__main__":
    _main(sys.argv[1])
