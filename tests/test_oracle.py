"""The oracle against the figures NeMo-RL's ledger gives, the broken traces, and its own invariants."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from oracle import reckon
from random_traces import traces

DATA = Path(__file__).parent / "data"
TRACES = sorted((DATA / "traces").glob("*.jsonl"))
FAULTS = json.loads((DATA / "faults" / "expected.json").read_text())
NEEDS_THE_LOADER = {"torn-line-glued", "truncated-gz"}
SUMMED = (
    *("counted", "repeated", "never_dispatched", "unreported", "unresolved", "not_stopped"),
    *("lost_sealed", "thrown_away_s", "never_saved_s", "naive_s"),
)


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def read(path: Path) -> list[dict]:
    """Return the events of a file, skipping every line that is not plain JSON with a finite `t`."""
    events = []
    for line in path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        try:
            event = json.loads(line.strip(b"\0 \r"))
        except ValueError:
            continue
        if math.isfinite(event["t"]):
            ids = {key: str(event[key]) for key in ("group_id", "prompt_id") if event.get(key) is not None}
            events.append(event | ids)
    return events


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_real_trace(path):
    expected = json.loads(path.with_suffix(".expected.json").read_text())
    figures = reckon(read(path))
    assert len(figures.restores) == len(expected["restores"])
    for row, want in zip(figures.restores, expected["restores"], strict=True):
        want = {{"cut": "cut_t", "parent": "parent_run"}.get(key, key): value for key, value in want.items()}
        exact = {key: value for key, value in want.items() if not isinstance(value, float)}
        assert {key: row[key] for key in exact} == exact
        for key in want.keys() - exact.keys():
            assert row[key] == close(want[key]), key
    assert Counter(span["fate"] for span in figures.spans) == expected["spans"]
    total = expected["seconds"].pop("total")
    assert figures.seconds == {fate: close(seconds) for fate, seconds in expected["seconds"].items()}
    assert sum(span["duration_s"] for span in figures.spans) == close(total)


@pytest.mark.parametrize("case", sorted(FAULTS.keys() - NEEDS_THE_LOADER))
def test_fault(case):
    figures = reckon(read(DATA / "faults" / case / "t.jsonl"))
    for key, want in FAULTS[case].items():
        if key == "match":
            assert [row["match"] for row in figures.restores] == [want]
        elif key in SUMMED:
            values = [row[key] for row in figures.restores]
            assert (None if None in values else sum(values)) == (None if want is None else close(want)), key
        elif key.endswith("_s"):
            assert figures.seconds.get(key.removesuffix("_s"), 0) == close(want), key


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(traces())
def test_invariants(events):
    figures = reckon(events)
    assert len(figures.spans) <= sum(event["event"] == "attempt_dispatched" for event in events)
    assert all(span["fate"] for span in figures.spans)
    total = sum(span["duration_s"] for span in figures.spans)
    assert sum(figures.seconds.values()) == close(total)
    for span in figures.spans:
        assert (span["fate"] == "restart") == (span["lost_by_run"] is not None)
        if span["cut_t"] is not None:
            assert span["thrown_away_s"] + span["never_saved_s"] == close(span["duration_s"])
    for row in figures.restores:
        verdicts = ("counted", "repeated", "never_dispatched", "unresolved", "not_stopped")
        assert row["reported"] == sum(row[verdict] for verdict in verdicts)
        if row["cut_t"] is None:
            assert row["unresolved"] == row["reported"]
            assert row["lost_attempts"] is row["naive_s"] is row["match"] is None
        else:
            lost = [span for span in figures.spans if span["lost_by_run"] == row["run"]]
            assert row["counted"] == sum(span["lost_how"] == "reported" for span in lost)
            assert row["lost_s"] == close(sum(span["duration_s"] for span in lost))
