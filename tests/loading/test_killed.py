"""SIGKILL at any moment: the database opens, a file is in or it is not, and the next load completes it."""

import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rtrace_analytics import database, loading
from tests.loading.worlds import write

TRACE = Path(__file__).parent.parent / "data" / "traces" / "two-kills.jsonl"
IDS = re.compile(rb'"(run|group_id|prompt_id)": ?"([^"]*)"')
LOAD = """
import sys
from rtrace_analytics import database, loading
print("ready", flush=True)
with database.connect(sys.argv[2]) as con:
    loading.load(con, sys.argv[1])
print("done", flush=True)
"""


def family(number: int) -> bytes:
    """The trace with ids of its own."""
    return IDS.sub(lambda m: b'"%s": "%s.%d"' % (m[1], m[2], number), TRACE.read_bytes())


def figures(path: Path) -> list[Any]:
    with database.connect(path) as con:
        waste = con.execute("SELECT * EXCLUDE (experiment) FROM cut_time_waste ORDER BY ALL").fetchall()
        seconds = con.execute("SELECT fate, spans, round(seconds, 6) FROM rollout_seconds ORDER BY ALL").fetchall()
        counts = con.execute("SELECT count(*), count(DISTINCT (run, seq)) FROM events").fetchall()
        files = con.execute("SELECT events, rejects, bytes FROM trace_files").fetchall()
    return [waste, seconds, counts, files]


def kill_while_loading(folder: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    trace, db = folder / "e/t.jsonl", folder / "t.duckdb"
    write(trace, *map(family, range(3)))
    usual_s = 0.0  # seconds a load takes here: as the first one tells, then by whether kills come in time
    number = landed = 0
    before: list[Any] = [[], [], [(0, 0)], []]
    while landed < kills:  # what had finished before its kill is tried again
        assert number < 4 * kills - 1, "no more than a quarter of the kills came while it loaded"
        with open(trace, "ab") as file:
            file.write(family(3 + number))
        fresh = folder / f"fresh{number}.duckdb"
        began = time.monotonic()
        with database.connect(fresh) as con:
            loading.load(con, trace)
        usual_s = usual_s or time.monotonic() - began
        after = figures(fresh)
        fresh.unlink()
        process = subprocess.Popen([sys.executable, "-c", LOAD, str(trace), str(db)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        time.sleep(chance.uniform(0, usual_s))
        process.send_signal(signal.SIGKILL)
        finished = "done" in process.stdout.read()
        process.stdout.close()
        process.wait()
        landed += not finished
        usual_s *= 0.9 if finished else 1.05
        assert time.monotonic() - began < 60
        seen = figures(db) if db.exists() else before
        assert seen in ((after,) if finished else (before, after))
        before = seen
        if chance.random() < 0.3 or landed == kills:  # the next load completes it, at once or with what comes then
            with database.connect(db) as con:
                loading.load(con, trace)
            assert figures(db) == after
            before = after
        number += 1


def test_killed_while_loading(tmp_path: Path) -> None:
    kill_while_loading(tmp_path, 4, seed=1)


@pytest.mark.slow
def test_killed_while_loading_a_hundred_times(tmp_path: Path) -> None:
    kill_while_loading(tmp_path, 100, seed=2)
