"""RolloutTrace: what is in the file, and what never happens to the caller."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from rtrace_analytics.recording import RolloutTrace, TraceWriteError, writer


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def script(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own; it must say nothing on stderr."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    return done


def test_lines(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "rollout_trace.jsonl"
    moments = iter([12.0, 12.5])
    with RolloutTrace(path, enabled=True, run="a1", clock=lambda: next(moments)) as trace:
        trace.emit("attempt_dispatched", group_id="g", prompt_id="7", generation_index=2, attempt=0, weight_version=3)
        trace.emit("snapshot_published", step=4, cut_time=11.25)
    assert path.read_text() == (
        '{"t":12.0,"run":"a1","event":"attempt_dispatched","group_id":"g","prompt_id":"7","generation_index":2,'
        '"attempt":0,"weight_version":3}\n'
        '{"t":12.5,"run":"a1","event":"snapshot_published","step":4,"cut_time":11.25}\n'
    )


def test_wall_clock_and_new_run_by_default(tmp_path: Path) -> None:
    begin = time.time()
    with RolloutTrace(tmp_path / "a", enabled=True) as one, RolloutTrace(tmp_path / "a", enabled=True) as other:
        one.emit("x")
        other.emit("x")
    assert {row["run"] for row in rows(tmp_path / "a")} == {one.run, other.run}
    assert one.run != other.run
    assert all(begin <= row["t"] <= time.time() for row in rows(tmp_path / "a"))


def test_off_opens_and_starts_nothing(tmp_path: Path) -> None:
    threads = threading.active_count()
    with RolloutTrace(tmp_path / "off" / "trace") as trace:
        trace.emit("x", value=1)
        trace.flush()
        assert trace.sink is None
    assert threading.active_count() == threads
    assert list(tmp_path.iterdir()) == []


def test_enabled_and_unused_opens_nothing(tmp_path: Path) -> None:
    with RolloutTrace(tmp_path / "trace", enabled=True) as trace:
        trace.flush()
    assert list(tmp_path.iterdir()) == []


def test_flush_waits_for_what_was_emitted(tmp_path: Path) -> None:
    with RolloutTrace(tmp_path / "trace", enabled=True, interval_s=30.0) as trace:
        for n in range(5000):
            trace.emit("x", n=n)
        trace.flush()
        assert [row["n"] for row in rows(tmp_path / "trace")] == list(range(5000))


def test_own_fields_win(tmp_path: Path) -> None:
    with RolloutTrace(tmp_path / "trace", enabled=True, run="a1", clock=lambda: 1.0) as trace:
        trace.emit("x", event="y", run="b2", t=9, other=5)
    assert rows(tmp_path / "trace") == [{"t": 1.0, "run": "a1", "event": "x", "other": 5}]


def test_a_torn_last_line_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text('{"t":1.0,"run":"a1","event":"x"}\n{"t":2.0,"ru')
    with RolloutTrace(path, enabled=True, run="b2", clock=lambda: 3.0) as trace:
        trace.emit("x")
    assert path.read_text() == ('{"t":1.0,"run":"a1","event":"x"}\n{"t":2.0,"ru\n{"t":3.0,"run":"b2","event":"x"}\n')


def test_a_line_torn_by_another_process_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with RolloutTrace(path, enabled=True, run="a1", clock=lambda: 1.0) as trace:
        trace.emit("x")
        trace.flush()
        with open(path, "a") as other:
            other.write('{"t":')
        trace.emit("y")
    assert path.read_text() == '{"t":1.0,"run":"a1","event":"x"}\n{"t":\n{"t":1.0,"run":"a1","event":"y"}\n'


def test_a_moved_file_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with RolloutTrace(path, enabled=True) as trace:
        trace.emit("x", n=1)
        trace.flush()
        path.rename(tmp_path / "rotated")
        trace.emit("x", n=2)
    assert [row["n"] for row in rows(tmp_path / "rotated")] == [1]
    assert [row["n"] for row in rows(path)] == [2]


def test_after_close_events_are_counted_only(tmp_path: Path) -> None:
    trace = RolloutTrace(tmp_path / "trace", enabled=True)
    trace.emit("x")
    trace.close()
    trace.emit("y")
    trace.close()
    assert [row["event"] for row in rows(tmp_path / "trace")] == ["x"]
    assert trace.dropped == 1


# --- a disk that is stuck, full or gone ------------------------------------------------------------------------------


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A pipe nobody reads until `release()`: writing to it blocks once 64 KiB are in it. `lines()` is all that came."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    got: list[bytes] = []
    reading: list[threading.Thread] = []

    def read_all() -> None:
        while True:
            try:
                data = os.read(reader, 1 << 16)
            except BlockingIOError:
                time.sleep(0.005)
                continue
            if not data:
                return
            got.append(data)

    def release() -> None:
        reading.append(threading.Thread(target=read_all))
        reading[0].start()

    def lines() -> list[dict]:
        reading[0].join()
        return [json.loads(line) for line in b"".join(got).splitlines()]

    yield SimpleNamespace(path=path, release=release, lines=lines)
    os.close(reader)


def test_full_queue_drops_the_new_counts_and_says_so(stuck: SimpleNamespace) -> None:
    trace = RolloutTrace(stuck.path, enabled=True, max_queued=100, interval_s=0.005)
    slowest = 0.0
    for n in range(20_000):
        begin = time.perf_counter()
        trace.emit("x", n=n, filler="x" * 100)
        slowest = max(slowest, time.perf_counter() - begin)
        if n % 50 == 0:
            time.sleep(0.001)
    assert slowest < 1.0  # the disk was stuck all the while
    assert trace.dropped > 10_000
    stuck.release()
    trace.close()
    lines = stuck.lines()
    told = [row["dropped"] for row in lines if row["event"] == "trace_dropped"]
    written = [row["n"] for row in lines if row["event"] == "x"]
    assert sum(told) == trace.dropped
    assert written == sorted(set(written))
    assert len(written) + sum(told) == 20_000


def test_stuck_disk_hangs_neither_flush_nor_close(stuck: SimpleNamespace) -> None:
    trace = RolloutTrace(stuck.path, enabled=True)
    for n in range(2000):
        trace.emit("x", n=n, filler="x" * 100)
    with pytest.raises(TraceWriteError, match=r"not written within 0\.1 s"):
        trace.flush(timeout_s=0.1)
    with pytest.raises(TraceWriteError, match=r"not written within 0\.1 s"):
        trace.close(timeout_s=0.1)
    stuck.release()
    trace.close()
    assert [row["n"] for row in stuck.lines()] == list(range(2000))


def test_waiting_for_room_loses_nothing(tmp_path: Path) -> None:
    with RolloutTrace(tmp_path / "trace", enabled=True, max_queued=10, when_full="wait", interval_s=0.001) as trace:
        for n in range(500):
            trace.emit("x", n=n)
    assert [row["n"] for row in rows(tmp_path / "trace")] == list(range(500))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_full_disk_is_told_once_and_raised_by_flush_and_close(caplog: pytest.LogCaptureFixture) -> None:
    trace = RolloutTrace("/dev/full", enabled=True)
    for _ in range(3):
        trace.emit("x")
        with pytest.raises(TraceWriteError, match="No space left on device") as caught:
            trace.flush()
    assert isinstance(caught.value, OSError)
    with pytest.raises(TraceWriteError, match="No space left on device"):
        trace.close()
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_folder_gone_and_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "folder"
    folder.write_text("a file is in the way")
    trace = RolloutTrace(folder / "trace", enabled=True, run="a1", clock=lambda: 1.0)
    trace.emit("x", n=1)
    with pytest.raises(TraceWriteError, match="lacks 1 events"):
        trace.flush()
    folder.unlink()
    trace.emit("x", n=2)
    with pytest.raises(TraceWriteError, match="lacks 1 events"):
        trace.close()
    written = rows(folder / "trace")
    assert {row["event"]: row.get("n", row.get("dropped")) for row in written} == {"x": 2, "trace_dropped": 1}
    assert len(caplog.records) == 1


def test_an_error_under_way_is_not_hidden(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(KeyError), RolloutTrace(tmp_path / "file" / "trace", enabled=True) as trace:
        trace.emit("x")
        raise KeyError("the trainer's own")


def test_a_dead_thread_hangs_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bytes:
        raise MemoryError("none left")

    monkeypatch.setattr(writer, "line", broken)
    trace = RolloutTrace(tmp_path / "trace", enabled=True)
    trace.emit("x")
    with pytest.raises(TraceWriteError, match="none left"):
        trace.flush()
    for _ in range(10):
        trace.emit("x")
    assert trace.dropped == 10
    with pytest.raises(TraceWriteError, match="none left"):
        trace.close()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"max_queued": 0}, "max_queued is 0: give 1 or more"),
        ({"when_full": "block"}, "when_full is 'block': give 'drop' or 'wait'"),
        ({"interval_s": 0}, "interval_s is 0: give more than 0"),
    ],
)
def test_bad_arguments(bad: dict, message: str) -> None:
    with pytest.raises(Exception, match=message):
        RolloutTrace("trace", **bad)


# --- other processes -------------------------------------------------------------------------------------------------


def test_closed_at_exit(tmp_path: Path) -> None:
    script(
        "import sys; from rtrace_analytics.recording import RolloutTrace\n"
        "trace = RolloutTrace(sys.argv[1], enabled=True, interval_s=60)\n"
        "for n in range(3000): trace.emit('x', n=n)",
        tmp_path / "trace",
    )
    assert [row["n"] for row in rows(tmp_path / "trace")] == list(range(3000))


def test_two_processes_append_whole_lines(tmp_path: Path) -> None:
    code = (
        "import sys; from rtrace_analytics.recording import RolloutTrace\n"
        "with RolloutTrace(sys.argv[1], enabled=True, run=sys.argv[2], interval_s=0.001) as trace:\n"
        "    for n in range(20000): trace.emit('x', n=n)"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "trace"), run]) for run in ("a1", "b2")]
    assert [process.wait(60) for process in both] == [0, 0]
    written = rows(tmp_path / "trace")
    for run in ("a1", "b2"):
        assert [row["n"] for row in written if row["run"] == run] == list(range(20000))


def test_forked_child_repeats_nothing_and_does_not_hang(tmp_path: Path) -> None:
    script(
        "import os, sys, warnings\n"
        "warnings.simplefilter('ignore', DeprecationWarning)  # Python 3.12: fork with threads\n"
        "from rtrace_analytics.recording import RolloutTrace\n"
        "trace = RolloutTrace(sys.argv[1], enabled=True, run='parent', interval_s=60)\n"
        "trace.emit('x', n=0); trace.flush()\n"
        "for n in range(1, 1000): trace.emit('x', n=n)\n"
        "children = []\n"
        "for emits in (True, False):\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        if emits: trace.emit('child', n=trace.run)\n"
        "        trace.close(); os._exit(0)\n"
        "    children.append(child)\n"
        "assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]\n"
        "trace.close()",
        tmp_path / "trace",
    )
    written = rows(tmp_path / "trace")
    assert [row["n"] for row in written if row["event"] == "x"] == list(range(1000))
    [child] = [row for row in written if row["event"] == "child"]
    assert child["run"] == child["n"] != "parent"


def test_a_million_events_through_sigkill(tmp_path: Path) -> None:
    code = (
        "import sys; from rtrace_analytics.recording import RolloutTrace\n"
        "trace = RolloutTrace(sys.argv[1], enabled=True, run='a1', interval_s=0.001)\n"
        "for n in range(1_000_000):\n"
        "    trace.emit('attempt_dispatched', prompt_id=str(n), generation_index=0, attempt=0)\n"
        "    if n == 1000: trace.flush(); print(flush=True)\n"
        "trace.flush()"
    )
    path = tmp_path / "trace"
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(int.from_bytes(os.urandom(1), "big") / 256)
        child.kill()
    whole, _, torn = path.read_bytes().rpartition(b"\n")
    numbers = [int(json.loads(line)["prompt_id"]) for line in whole.split(b"\n")]
    assert numbers == list(range(len(numbers)))  # in order: none torn, none twice, none missing in between
    assert len(numbers) > 1000
    with RolloutTrace(path, enabled=True, run="b2") as trace:
        trace.emit("restore_started", path="p")
    lines = path.read_bytes().splitlines()
    assert len(lines) == len(numbers) + bool(torn) + 1
    assert json.loads(lines[-1])["run"] == "b2"


def test_recording_is_importable_without_anything_heavy() -> None:
    script(
        "import sys\n"
        "heavy = ('duckdb', 'pandas', 'matplotlib', 'pyarrow', 'numpy', 'click', 'scipy')\n"
        "sys.modules.update(dict.fromkeys(heavy))  # importing one of them raises now\n"
        "import rtrace_analytics.recording, rtrace_analytics.recording.simulate, rtrace_analytics.recording.real"
    )
