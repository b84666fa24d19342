"""Simulated worlds: the same every time, of every kind asked for, their truth as the oracle reads the trace."""

import json
import re
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from oracle import reckon
from simulated import RESTORE_KEYS, SPAN_KEYS, played, told, worlds

from rtrace_analytics.errors import RtraceError
from rtrace_analytics.recording.options import WorldOptions
from rtrace_analytics.recording.simulate import simulate

RARE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def agrees(options: WorldOptions) -> None:
    """Check the truth of a world against the oracle, row by row; all times are exact."""
    events, truth = told(options)
    if len(events) > 3000:
        return  # the oracle is slow
    figures = reckon(events)
    assert [{k: row[k] for k in RESTORE_KEYS} for row in truth["restores"]] == [
        {k: row[k] for k in RESTORE_KEYS} for row in figures.restores
    ]
    assert [{k: row[k] for k in SPAN_KEYS} for row in truth["attempts"]] == [
        {k: row[k] for k in SPAN_KEYS} for row in figures.spans
    ]
    assert {row["fate"]: row["seconds"] for row in truth["rollout_seconds"]} == figures.seconds


@settings(RARE, max_examples=60)
@given(worlds())
def test_truth_agrees_with_the_oracle(options: WorldOptions) -> None:
    agrees(options)


@pytest.mark.slow
@settings(RARE, max_examples=1000)
@given(worlds())
def test_truth_agrees_with_the_oracle_on_many(options: WorldOptions) -> None:
    agrees(options)


@settings(RARE, max_examples=60)
@given(worlds())
def test_reporting_again_changes_only_repeated_and_naive(options: WorldOptions) -> None:
    settled = []
    for again in (False, True):
        _, truth = told(WorldOptions(**{**vars(options), "report_again": again}))
        for row in truth["restores"]:
            assert row["reported"] == row["counted"] + row["repeated"] + row["never_dispatched"]
            for key in ("reported", "repeated", "naive_s"):
                del row[key]
        settled.append(truth)
    assert settled[0] == settled[1]


@settings(RARE, max_examples=60)
@given(worlds())
def test_nothing_is_unaccounted(options: WorldOptions) -> None:
    events, truth = told(options)
    dispatched = [row for row in events if row["event"] == "attempt_dispatched"]
    assert [row["t"] for row in dispatched] == [row["start_t"] for row in truth["attempts"]]
    assert len(truth["restores"]) == options.kills
    all_s = sum(row["end_t"] - row["start_t"] for row in truth["attempts"])
    assert sum(row["seconds"] for row in truth["rollout_seconds"]) == all_s
    for row in truth["attempts"]:
        assert row["start_t"] <= row["end_t"] <= row["stopped_t"]
        if row["lost_by_run"] is not None:
            assert row["thrown_away_s"] + row["never_saved_s"] == row["end_t"] - row["start_t"]
            assert row["never_saved_s"] <= row["never_saved_true_s"] <= row["never_saved_max_s"]
    for row in truth["restores"]:
        mine = [attempt for attempt in truth["attempts"] if attempt["lost_by_run"] == row["run"]]
        assert row["lost_attempts"] == len(mine)
        for key in ("thrown_away_s", "never_saved_s", "never_saved_max_s", "never_saved_true_s"):
            assert row[key] == sum(attempt[key] for attempt in mine)


def test_kills_come_at_all_kinds_of_moments() -> None:
    seen: Counter[str] = Counter()
    for seed in range(60):
        events, world = played(WorldOptions(groups=40, kills=4, seed=seed, stale_rate=0.2))
        cuts = Counter((restore.parent.id, restore.cut) for restore in world.restores)
        seen["the same snapshot restored again"] += max(cuts.values()) > 1
        seen["killed while restoring"] += any(not restore.ready for restore in world.restores)
        for restore in world.restores:
            seen["restored from the run before"] += restore.parent is world.runs[world.runs.index(restore.run) - 1]
            seen["groups dropped without a word"] += bool(restore.silent)
        published = [(row["run"], row["cut_time"]) for row in events if row["event"] == "snapshot_published"]
        assert len(published) == len(set(published))
        # with a lag of 2 to 6 s: stops later than one interval after the last published cut lost a snapshot under way
        for run in world.runs[:-1]:
            last = max((cut for name, cut in published if name == run.id), default=None)
            stop = 1_700_000_000 + run.stopped / 1024
            seen["killed between cut and publication"] += last is not None and stop > last + 60
    assert all(count >= 5 for count in seen.values()), seen


def published_and_restored(numbering: str) -> tuple[list[int], list[str]]:
    """Return the steps published and the paths restored in a world with many snapshots."""
    options = WorldOptions(
        groups=60, kills=2, seed=3, snapshot_interval_s=8.0, publish_lag_s=1.0, numbering=numbering
    )  # fmt: skip
    events, _ = told(options)
    steps = [row["step"] for row in events if row["event"] == "snapshot_published"]
    return steps, [row["path"] for row in events if row["event"] == "restore_started"]


def test_global_numbering() -> None:
    steps, paths = published_and_restored("global")
    assert steps == list(range(1, len(steps) + 1))
    assert all(re.fullmatch(r"/ckpt/rollout_snapshots/snapshot_\d{6}", path) for path in paths)


def test_numbering_anew_under_every_step() -> None:
    steps, paths = published_and_restored("upstream")
    assert steps[0] == 0
    assert max(Counter(steps).values()) > 1
    for path in paths:
        assert (found := re.fullmatch(r"/ckpt/(bootstrap|step_(\d+))/rollout_snapshots/snapshot_(\d{6})", path))
        assert 1 <= int(found[3]) <= Counter(steps)[int(found[2] or 0)]


def test_bootstrap_before_the_first_step() -> None:
    options = WorldOptions(groups=30, kills=1, snapshot_interval_s=2.0, publish_lag_s=0.5, groups_per_step=30)
    events, _ = told(options)
    [path] = [row["path"] for row in events if row["event"] == "restore_started"]
    assert path.startswith("/ckpt/bootstrap/rollout_snapshots/snapshot_0000")


def test_the_form_of_lines() -> None:
    events, _ = told(WorldOptions(groups=20, kills=2))
    forms = {row["event"]: list(row) for row in events}
    assert forms == {
        "group_reserved": ["t", "run", "event", "group_id", "prompt_id"],
        "group_admitted": ["t", "run", "event", "group_id", "prompt_id"],
        "attempt_dispatched": [
            "t", "run", "event", "group_id", "prompt_id", "generation_index", "attempt", "weight_version",
        ],
        "attempt_sealed": ["t", "run", "event", "group_id", "prompt_id", "generation_index", "attempt"],
        "attempt_abandoned": ["t", "run", "event", "group_id", "prompt_id", "generation_index", "attempt", "reason"],
        "group_sealed": ["t", "run", "event", "group_id", "prompt_id"],
        "group_finalizing": ["t", "run", "event", "group_id", "prompt_id"],
        "group_finalized": ["t", "run", "event", "group_id", "prompt_id"],
        "snapshot_published": ["t", "run", "event", "step", "cut_time"],
        "restore_started": ["t", "run", "event", "path"],
        "restore_finished": ["t", "run", "event"],
        "train_step_started": ["t", "run", "event", "step"],
        "train_step_finished": ["t", "run", "event", "step"],
        "weights_synced": ["t", "run", "event", "weight_version"],
    }  # fmt: skip


def test_files(tmp_path: Path) -> None:
    options = WorldOptions(groups=25, kills=3, seed=11, stale_rate=0.1)
    truth = simulate(tmp_path / "a", options)
    simulate(tmp_path / "b", options)
    for name in ("rollout_trace.jsonl", "ground_truth.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    events, _ = told(options)
    assert [json.loads(line) for line in (tmp_path / "a" / "rollout_trace.jsonl").read_text().splitlines()] == events
    written = json.loads((tmp_path / "a" / "ground_truth.json").read_text())
    assert written == {"options": vars(options), **truth}
    with pytest.raises(RtraceError, match=r"rollout_trace\.jsonl exists: give --out a folder without"):
        simulate(tmp_path / "a", options)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"groups": 0}, "--groups is 0: give 1 or more"),
        ({"kills": -1}, "--kills is -1: give 0 or more"),
        ({"failure_rate": 1.0}, "--failure-rate is 1.0: give a share from 0 to 0.95"),
        ({"stale_rate": float("nan")}, "--stale-rate is nan"),
        ({"snapshot_interval_s": 0.0}, "--snapshot-interval is 0.0: give seconds"),
        ({"snapshot_interval_s": float("inf")}, "--snapshot-interval is inf: give seconds"),
        ({"granularity": "turn"}, "--granularity is turn: give sibling or prompt_group"),
        ({"numbering": "roman"}, "--numbering is roman: give upstream or global"),
    ],
)
def test_bad_options(option: dict, message: str) -> None:
    with pytest.raises(RtraceError, match=message):
        WorldOptions(**option)


def test_a_literal_world() -> None:
    """One group of one rollout, killed at the end of its work and restored: every figure by hand."""
    options = WorldOptions(
        groups=1, siblings=1, kills=1, failure_rate=0.0, tail=0.0, rollout_s=10.0, snapshot_interval_s=6.0,
        publish_lag_s=0.5, seed=next(s for s in range(99) if Random(f"kills {s}").random() >= 0.25),
    )  # fmt: skip
    _, truth = told(options)
    [restore] = truth["restores"]
    first, second = truth["attempts"]
    assert first["fate"] == "restart"
    assert first["thrown_away_s"] == 6.0
    assert second["fate"] == "kept"
    assert second["attempt"] == 1
    assert second["end_t"] - second["start_t"] == 10 + 1 / 1024
    assert restore["cut_t"] == 1_700_000_006.0
    assert (restore["reported"], restore["counted"], restore["thrown_away_s"], restore["naive_s"]) == (1, 1, 6.0, 6.0)
