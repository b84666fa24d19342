"""The Chrome trace: whole as JSON, sorted, every slice inside its parent, arrows paired, sums those of the views."""

import gzip
import json
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rtrace_analytics as rta
from rtrace_analytics.export import perfetto


def written(traces, path, **options) -> list[dict]:
    with traces.opened() as con:
        count = perfetto.export(con, path, **options)
    data = path.read_bytes()
    events = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)["traceEvents"]
    assert len(events) == count
    return events


@pytest.fixture(scope="module")
def events(nasty, tmp_path_factory):
    return written(nasty, tmp_path_factory.mktemp("perfetto") / "trace.json")


def slices(events) -> list[dict]:
    return [event for event in events if event["ph"] == "X"]


def test_names_come_first_and_the_rest_is_sorted(events):
    kinds = [event["ph"] == "M" for event in events]
    assert kinds == sorted(kinds, reverse=True)
    times = [event["ts"] for event in events if event["ph"] != "M"]
    assert times == sorted(times) and all(isinstance(ts, int) for ts in times)


def test_every_slice_lies_in_its_parent_and_none_overlap(events):
    tracks = defaultdict(list)
    for event in slices(events):
        tracks[event["pid"], event["tid"]].append(event)
    for track in tracks.values():
        stack = []
        for event in track:
            while stack and stack[-1] <= event["ts"]:
                stack.pop()
            assert event["dur"] > 0 and (not stack or event["ts"] + event["dur"] <= stack[-1])
            assert (event["cat"] == "attempt") == (not stack)
            stack.append(event["ts"] + event["dur"])


def test_processes_and_lanes_are_named_and_numbers_are_unique(nasty, events):
    named = {
        (e["pid"], e.get("tid")): e["args"]["name"] for e in events if e["name"] in ("process_name", "thread_name")
    }
    assert {(e["pid"], e.get("tid")) for e in events if e["ph"] != "M" and e["ph"] != "C"} <= named.keys()
    assert {(e["pid"], None) for e in events} <= named.keys()
    tids = [tid for _, tid in named if tid is not None]
    assert len(tids) == len(set(tids)) and not {pid for pid, _ in named} & set(tids)
    experiments = set(nasty.runs()["experiment"])
    assert {named[key] for key in named if key[1] is None} == {
        f"run {run} of {name}" for name, run in nasty.runs()[["experiment", "run"]].itertuples(index=False)
    } | {f"lost to restores: {name}" for name in experiments}


def test_slices_are_the_spans(nasty, events):
    spans = nasty.attempt_spans()
    attempts = [event for event in slices(events) if event["cat"] == "attempt"]
    assert Counter(event["name"] for event in attempts) == Counter(spans["fate"])
    assert len({(event["name"], event["cname"]) for event in attempts}) == len(set(spans["fate"]))
    for part, column in (("thrown away", "thrown_away_s"), ("never saved", "never_saved_s")):
        parts = [event for event in slices(events) if event["name"] == part]
        assert sum(event["dur"] for event in parts) / 1e6 == pytest.approx(spans[column].sum(), abs=1e-6 * len(spans))


def test_lanes_are_as_few_as_overlap(events):
    for pid in {event["pid"] for event in slices(events)}:
        own = [event for event in slices(events) if event["pid"] == pid and event["cat"] == "attempt"]
        steps = sorted([(e["ts"], 1) for e in own] + [(e["ts"] + e["dur"], -1) for e in own])
        most = max(np.cumsum([step for _, step in steps]))
        assert len({event["tid"] for event in own}) == most


def test_arrows_lead_from_a_lost_attempt_to_the_try_that_replaced_it(events):
    begins, ends = ({e["id"]: e for e in events if e["ph"] == ph} for ph in "sf")
    assert begins and begins.keys() == ends.keys()
    assert len(begins) == sum(event["ph"] == "s" for event in events)
    attempts = [event for event in slices(events) if event["cat"] == "attempt"]
    at = defaultdict(list)
    for event in attempts:
        at[event["pid"], event["tid"]].append(event)
    for key, begin in begins.items():
        source, target = (
            next(e for e in at[x["pid"], x["tid"]] if e["ts"] <= x["ts"] < e["ts"] + e["dur"])
            for x in (begin, ends[key])
        )
        assert source["name"] == "restart" and target["ts"] == ends[key]["ts"] and begin["ts"] <= ends[key]["ts"]
        for name in ("group", "sibling"):
            assert source["args"][name] == target["args"][name]


def test_marks_and_counters(nasty, events):
    marks = Counter(event["args"]["kind"] for event in events if event["ph"] == "i")
    snapshots, restores = nasty.snapshots(), nasty.restores()
    assert marks["cut"] == snapshots["cut_t"].notna().sum() and marks["published"] == len(snapshots)
    assert marks["restore"] == len(restores)
    assert marks["stop"] == len(restores.dropna(subset="parent_run").drop_duplicates(["experiment", "parent_run"]))
    last = {}
    for event in events:
        if event["ph"] == "C":
            last[event["pid"], event["name"]] = event["args"]
    assert {args["running"] for (_, name), args in last.items() if name == "rollouts in flight"} == {0}
    lost = sum(sum(args.values()) for (_, name), args in last.items() if name == "attempt-seconds lost")
    assert lost == pytest.approx(nasty.cut_time_waste()["lost_s"].sum())


def test_one_experiment_and_gzip(nasty, events, tmp_path):
    one = written(nasty, tmp_path / "trace.json.gz", experiment="0042")
    assert (
        0
        < len(slices(one))
        == (nasty.attempt_spans(experiment="0042").shape[0])
        + len([event for event in slices(one) if event["cat"] == "lost"])
    )
    assert list(tmp_path.iterdir()) == [tmp_path / "trace.json.gz"]
    with pytest.raises(rta.InputError, match="no experiment 'x'"):
        written(nasty, tmp_path / "x.json", experiment="x")
    with pytest.raises(rta.InputError, match="cannot be written"):
        written(nasty, tmp_path / "no folder" / "x.json")


def test_more_than_one_stretch_of_time(nasty, events, tmp_path, monkeypatch):
    steps = perfetto.database.steps("perfetto.sql")
    assert "100000" in steps["windows"]
    steps["windows"] = steps["windows"].replace("100000", "50")
    monkeypatch.setattr(perfetto.database, "steps", lambda name: steps)
    assert written(nasty, tmp_path / "trace.json") == events


def test_times_that_are_no_seconds_are_refused(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"t": 1.8e12, "run": "a", "event": "heartbeat"}\n')
    with rta.load(tmp_path / "t.jsonl") as traces, pytest.raises(rta.InputError, match="seconds since the epoch"):
        written(traces, tmp_path / "x.json")


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=40))
def test_lanes(intervals):
    intervals = sorted(intervals)
    start = np.array([begin for begin, _ in intervals], dtype=np.int64)
    end = start + np.array([length for _, length in intervals], dtype=np.int64)
    lane = perfetto.lanes(start, end)
    most = max((int(((start <= t) & (end > t)).sum()) for t in start), default=0)
    assert sorted(set(lane)) == list(range(1, most + 1))
    for number in set(lane):
        assert (end[lane == number][:-1] <= start[lane == number][1:]).all()
