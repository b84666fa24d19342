"""Loading, and the whole job, against polars and pandas on the same files: seconds, CPU and memory of whole processes.

usage: python tests/bench/bench_load.py [--events N] [--repeats N] [--growth N,N,...] [--append] [--folder DIR] [--json]

A trace of the tests is copied with new ids until there are N events, in 8 files of one experiment. Every measurement is
a process of its own on two cores; medians of the repeats. `--growth` loads that many events each, once, an experiment
for each file: seconds and peak memory against size. `--append` then adds 1 MB to one file of the last of them and tells
the bytes read to take it up. The raw scan (all bytes read, their lines counted) is the limit; the peer (peer_polars.py)
takes every line as good.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent
TRACE = HERE.parent / "data" / "traces" / "wide-groups.jsonl"
FILES = 8
IDS = re.compile(rb'"(run|group_id|prompt_id)": ?"([^"]*)"')
MAIN = "from rtrace_analytics.cli import main; main()"
SCAN = "import sys\nfor f in sys.argv[1:]:\n with open(f, 'rb') as t:\n  while b := t.read(1 << 20): b.count(b'\\n')"
PANDAS = "import sys, pandas\nfor f in sys.argv[1:]: pandas.read_json(f, lines=True)"
VIEWS = """
import sys, time
from rtrace_analytics import database
con = database.connect(sys.argv[1], read_only=True)
for query in ("FROM cut_time_waste", "FROM restart_abandonment", "SELECT count(*) FROM attempt_spans"):
    begin = time.perf_counter()
    con.sql(query).to_arrow_table()
    print(f"{query}: {time.perf_counter() - begin:.2f} s")
"""
APPEND = """
import sys, time
from rtrace_analytics import database, loading
from rtrace_analytics.loading import compare, read
count = 0
def counted(file):
    class Counted(type(file)):
        def readinto(self, into):
            global count
            n = super().readinto(into)
            count += n
            return n
        def read(self, size=-1):
            global count
            data = super().read(size)
            count += len(data)
            return data
    return Counted(file.name, "rb")
import builtins
plain_open = builtins.open
def open(path, *args, **options):
    file = plain_open(path, "rb", buffering=0)
    return counted(file)
read.open = compare.open = open
begin = time.perf_counter()
with database.connect(sys.argv[1]) as con:
    report = loading.load(con, sys.argv[2])
print(f"{report.events} events, {count} bytes of the trace read, {time.perf_counter() - begin:.1f} s")
"""


@dataclass
class Cost:
    """What a process cost."""

    name: str
    wall_s: float
    cpu_s: float
    peak_mb: float


def make(folder: Path, events: int) -> tuple[int, int]:
    """Write the files; events and bytes written."""
    data = TRACE.read_bytes()
    copies = max(FILES, events // data.count(b"\n"))
    folder.mkdir(parents=True)
    for number in range(FILES):
        with open(folder / f"trace_{number}.jsonl", "wb") as out:
            for k in range(number, copies, FILES):
                out.write(IDS.sub(lambda m, k=k: b'"%s":"%s.%d"' % (m[1], m[2], k), data))
    return copies * data.count(b"\n"), sum(file.stat().st_size for file in folder.iterdir())


def run(name: str, *command: object) -> Cost:
    """Run a process on two cores; its output must not be an error."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *map(str, command)],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "POLARS_MAX_THREADS": "2"},
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{name} failed")
    return Cost(name, time.perf_counter() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def median(costs: Sequence[Cost]) -> Cost:
    """The median of each figure."""
    mid = {key: statistics.median(getattr(cost, key) for cost in costs) for key in ("wall_s", "cpu_s", "peak_mb")}
    return Cost(costs[0].name, **mid)


def load(name: str, folder: Path, db: Path, *options: str) -> Cost:
    """Load a folder into a new database."""
    db.unlink(missing_ok=True)
    return run(name, "-c", MAIN, "load", folder, "--db", db, *options)


def compare(folder: Path, work: Path, repeats: int) -> list[Cost]:
    """All ways, turn and turn about."""
    files = sorted(folder.glob("*.jsonl"))
    peer = HERE / "peer_polars.py"
    rounds = [
        [
            run("raw scan of the lines", "-c", SCAN, *files),
            run("polars: load", peer, "load", folder),
            load("rtrace load", folder, work / "t.duckdb"),
            run("polars: whole job", peer, "job", folder),
            run("rtrace waste", "-c", MAIN, "waste", folder),
        ]
        for _ in range(repeats)
    ]
    costs = [median(several) for several in zip(*rounds, strict=True)]
    return [*costs, run("pandas: read_json of 1 file in 8", "-c", PANDAS, files[0])]


def table(title: str, costs: Sequence[Cost]) -> None:
    """Print costs as a Markdown table."""
    print(f"\n{title}\n\n| | wall s | CPU s | peak MB |\n|---|---:|---:|---:|")
    for cost in costs:
        print(f"| {cost.name} | {cost.wall_s:.2f} | {cost.cpu_s:.2f} | {cost.peak_mb:,.0f} |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=8_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--growth", default="", help="numbers of events, with commas")
    parser.add_argument("--append", action="store_true")
    parser.add_argument("--folder", type=Path, help="where the files are made (and removed)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="rtrace_bench_", dir=args.folder))
    try:
        costs: list[Cost] = []
        print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}", file=sys.stderr)
        if args.repeats:
            events, size = make(work / "compare", args.events)
            costs = compare(work / "compare", work, args.repeats)
            table(f"{events:,} events, {size / 1e6:,.0f} MB; medians of {args.repeats}", costs)
            print()
            subprocess.run([sys.executable, "-c", VIEWS, work / "t.duckdb"], check=True)
            shutil.rmtree(work / "compare")
        for number in filter(None, args.growth.split(",")):
            shutil.rmtree(work / "growth", ignore_errors=True)
            events, size = make(work / "growth", int(number))
            name = f"rtrace load: {events:,} events, {size / 1e6:,.0f} MB"
            costs.append(load(name, work / "growth", work / "t.duckdb", "--experiment-from", r"(trace_\d+)"))
            table("growth", costs[-1:])
        if args.append and args.growth:
            path = work / "growth" / "trace_0.jsonl"
            tail = TRACE.read_bytes()
            with open(path, "ab") as file:
                for k in "wxyz":
                    file.write(IDS.sub(lambda m, k=k: b'"%s":"%s.%s"' % (m[1], m[2], k.encode()), tail))
            print(f"\n1 MB appended to {path.stat().st_size / 1e6:,.0f} MB:", flush=True)
            subprocess.run([sys.executable, "-c", APPEND, work / "t.duckdb", path], check=True)
        if args.json:
            print(json.dumps([asdict(cost) for cost in costs]))
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
