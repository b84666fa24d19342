"""What one event costs the trainer: `RolloutTrace.emit` against json.dumps + write + flush, in one run.

usage: python tests/bench/bench_writer.py [--events N] [--repeats N] [--paced-s S] [--json]

Prints a Markdown table: per event the median over the repeats of the caller's time in a tight loop, and for the
libraries that turn events into lines; then the 50th and 99.9th percentile of one call at 20,000 evenly paced events a
second.
Events are dispatches in NeMo-RL's form. A run with a dropped event is an error: a drop would be cheap.
"""

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rtrace_analytics.recording import RolloutTrace, lines

GROUP = "c7eb91be-4ebf-4fd7-b7de-0f0e0de48ee6"


def direct(path: Path, events: int) -> float:
    """Return seconds per event of the plain way: json.dumps, write, flush, each event on its own."""
    with open(path, "a") as file:
        begin = time.perf_counter()
        for i in range(events):
            event = {
                "t": time.time(),
                "run": "2265b1f5",
                "event": "attempt_dispatched",
                "group_id": GROUP,
                "prompt_id": "7",
                "generation_index": i & 3,
                "attempt": 0,
                "weight_version": 3,
            }
            file.write(json.dumps(event) + "\n")
            file.flush()
        return (time.perf_counter() - begin) / events


def queued(path: Path, events: int) -> tuple[float, float]:
    """Return seconds per event in the caller, and until everything was in the file."""
    with RolloutTrace(path, enabled=True) as trace:
        emit = trace.emit
        begin = time.perf_counter()
        for i in range(events):
            emit(
                "attempt_dispatched",
                group_id=GROUP,
                prompt_id="7",
                generation_index=i & 3,
                attempt=0,
                weight_version=3,
            )
        called = time.perf_counter() - begin
        trace.flush(timeout_s=600)
        written = time.perf_counter() - begin
        if trace.dropped:
            raise SystemExit(f"{trace.dropped} events were dropped: the figures would flatter")
    return called / events, written / events


def off(path: Path, events: int) -> float:
    """Return seconds per event of a trace that is switched off."""
    emit = RolloutTrace(path).emit
    begin = time.perf_counter()
    for i in range(events):
        emit("attempt_dispatched", group_id=GROUP, prompt_id="7", generation_index=i & 3, attempt=0, weight_version=3)
    return (time.perf_counter() - begin) / events


def paced(call: Callable[[int], None], seconds: float, rate: int = 20_000) -> tuple[float, float]:
    """Return the 50th and 99.9th percentile, in seconds, of one call when `rate` calls a second are made evenly."""
    took = []
    start = time.perf_counter()
    for i in range(int(seconds * rate)):
        due = start + i / rate
        while (now := time.perf_counter()) < due:
            pass
        call(i)
        took.append(time.perf_counter() - now)
    took.sort()
    return took[len(took) // 2], took[int(len(took) * 0.999)]


def paced_direct(path: Path, seconds: float) -> tuple[float, float]:
    with open(path, "a") as file:

        def call(i: int) -> None:
            event = {"t": time.time(), "run": "2265b1f5", "event": "attempt_dispatched", "group_id": GROUP}
            event |= {"prompt_id": "7", "generation_index": i & 3, "attempt": 0, "weight_version": 3}
            file.write(json.dumps(event) + "\n")
            file.flush()

        return paced(call, seconds)


def paced_queued(path: Path, seconds: float) -> tuple[float, float]:
    with RolloutTrace(path, enabled=True) as trace:

        def call(i: int) -> None:
            trace.emit(
                "attempt_dispatched",
                group_id=GROUP,
                prompt_id="7",
                generation_index=i & 3,
                attempt=0,
                weight_version=3,
            )

        return paced(call, seconds)


def measure(events: int, repeats: int, paced_s: float) -> dict[str, dict[str, float]]:
    """Return microseconds, a row per way of writing, with keys `caller_us`, `written_us`, `p50_us`, `p999_us`."""
    rows: dict[str, dict[str, list[float]]] = {}

    def note(name: str, **figures: float) -> None:
        row = rows.setdefault(name, {})
        for key, seconds in figures.items():
            row.setdefault(key, []).append(seconds * 1e6)

    fast = lines._encode
    kinds = {"queued, json": lines._encode_stdlib}
    if fast is not lines._encode_stdlib:
        kinds["queued, orjson"] = fast
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rollout_trace.jsonl"

        def fresh() -> Path:
            path.unlink(missing_ok=True)
            return path

        for _ in range(repeats):
            cost = direct(fresh(), events)
            note("direct: json.dumps, write, flush", caller_us=cost, written_us=cost)
            for name, encode in kinds.items():
                lines._encode = encode
                called, written = queued(fresh(), events)
                note(name, caller_us=called, written_us=written)
            note("off", caller_us=off(fresh(), events))
            p50, p999 = paced_direct(fresh(), paced_s)
            note("direct: json.dumps, write, flush", p50_us=p50, p999_us=p999)
            for name, encode in kinds.items():
                lines._encode = encode
                p50, p999 = paced_queued(fresh(), paced_s)
                note(name, p50_us=p50, p999_us=p999)
        lines._encode = fast
    return {name: {key: statistics.median(all_) for key, all_ in row.items()} for name, row in rows.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--paced-s", type=float, default=5.0, help="seconds of paced calls per repeat")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    args = parser.parse_args()
    rows = measure(args.events, args.repeats, args.paced_s)
    if args.json:
        print(json.dumps(rows))
        return
    base = rows["direct: json.dumps, write, flush"]["caller_us"]
    print(f"{args.events:,} events, medians of {args.repeats};", end=" ")
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores\n")
    print("| way | caller, us per event | of direct | until written, us | paced 20 k/s: p50, us | p99.9, us |")
    print("|---|---|---|---|---|---|")
    for name, row in rows.items():
        cells = [f"{row[key]:.2f}" if key in row else "" for key in ("written_us", "p50_us", "p999_us")]
        print(f"| {name} | {row['caller_us']:.2f} | {row['caller_us'] / base:.2f} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
