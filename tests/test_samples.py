"""data/samples: the PR's example gives 28 s, the real traces the figures expected of them."""

import json
from pathlib import Path

import pytest

import rtrace_analytics as rta

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "data/samples"
EXPERIMENTS = ["names-say-nothing", "pr-example", "stale-drops", "two-kills"]
EXPECTED = ROOT / "tests/data/traces"
NAMES = {"cut": "cut_t", "parent": "parent_run"}


@pytest.fixture(scope="module")
def traces():
    with rta.load([SAMPLES / name for name in EXPERIMENTS]) as traces:
        yield traces


def test_experiments_are_named_by_their_folders(traces):
    assert sorted(traces.trace_files()["experiment"]) == EXPERIMENTS


def test_the_prs_example(traces):
    waste = traces.cut_time_waste(experiment="pr-example").iloc[0].to_dict()
    assert waste == {
        "experiment": "pr-example",
        "run": "b2",
        "parent_run": "a1",
        "restore_t": 60.0,
        "snapshot_step": 4,
        "match": "step",
        "contradictions": 0,
        "cut_t": 40.0,
        "stop_t": 43.0,
        "reported": 1,
        "counted": 1,
        "repeated": 0,
        "never_dispatched": 0,
        "unresolved": 0,
        "not_stopped": 0,
        "unreported": 0,
        "lost_attempts": 1,
        "lost_sealed": 0,
        "lost_after_cut": 0,
        "thrown_away_s": 28.0,
        "never_saved_s": 3.0,
        "never_saved_max_s": 20.0,
        "lost_s": 31.0,
        "lost_fleet_s": 31.0 / (62.0 / 33.0),  # 62 attempt-seconds in the 33 s of run a1
        "naive_s": 28.0,
    }


@pytest.mark.parametrize("name", ["names-say-nothing", "stale-drops", "two-kills"])
def test_a_real_trace(traces, name):
    expected = json.loads((EXPECTED / f"{name}.expected.json").read_text())
    assert len(traces.events(experiment=name)) == expected["events"]
    assert len(traces.runs(experiment=name)) == expected["runs"]
    found = {row["run"]: row for row in traces.cut_time_waste(experiment=name).to_dict("records")}
    assert set(found) == {restore["run"] for restore in expected["restores"]}
    for restore in expected["restores"]:
        row = {key: found[restore["run"]][NAMES.get(key, key)] for key in restore}
        assert row == {k: pytest.approx(v, rel=1e-9) if isinstance(v, float) else v for k, v in restore.items()}
    fates = traces.rollout_seconds(experiment=name).set_index("fate")
    assert fates["spans"].to_dict() == expected["spans"]
    seconds = fates["seconds"].to_dict() | {"total": fates["seconds"].sum()}
    assert seconds == pytest.approx(expected["seconds"], rel=1e-9)
    assert fates["share"].sum() == pytest.approx(1)


def test_nothing_odd_but_in_the_trace_with_silent_drops(traces):
    quality = traces.quality()
    odd = quality[quality["count"] > 0]
    assert set(odd["experiment"]) == {"stale-drops"}
    assert dict(zip(odd["check"], odd["count"], strict=True)) == {
        "lineage_contradicted": 2,
        "lost_in_silence": 20,
        "same_step_many_runs": 1,
    }
