"""Advice: never without the stops behind it, silent where they are too few or nothing would be won; `rtrace whatif`."""

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_worlds import Span, World, fill, read

import rtrace_analytics as rta
from rtrace_analytics import database
from rtrace_analytics.cli import rtrace
from rtrace_analytics.decisions import advice, whatif_interval

TRACES = Path(__file__).parents[1] / "data" / "traces"
SAMPLES = Path(__file__).parents[2] / "data" / "samples"


@pytest.fixture(scope="module")
def con():
    with database.connect() as con:
        fill(con, {path.stem: read(path) for path in sorted(TRACES.glob("*.jsonl"))})
        yield con


def test_its_figures_are_those_of_the_replay(con):
    told = advice(con, experiment="stale-drops", intervals=[10])
    frame = whatif_interval(con, [10], experiment="stale-drops", stops="actual")
    other, seen = frame["lost_s_per_stop"]
    minutes = 3 * (seen - other) / 60
    more = frame["snapshots"].iloc[0] - frame["snapshots"].iloc[1]
    assert told[0] == (
        f"Snapshots every 10 s instead of about 35 s would have saved {minutes:.3g} min of rollout time over the 3 "
        f"stops seen, for {more} snapshots more."
    )
    assert told[1].startswith("After 2 of 3 stops 5 groups that the restored snapshot held were never taken up again")
    assert len(told) <= 3


def test_with_a_cost_it_says_what_is_paid(con):
    (first, *_) = advice(con, experiment="names-say-nothing", intervals=[10, 20], save_cost_s=0.1)
    assert "for 3.6 s of saving (36 snapshots more)." in first


def test_a_dear_snapshot_is_worth_fewer_of_them(con):
    (first, *_) = advice(con, experiment="names-say-nothing", intervals=[10, 70], save_cost_s=60)
    assert first.startswith("Snapshots every 70 s instead of about 35 s would have cost ")
    assert "over the 3 stops seen" in first
    assert "less saving (5 snapshots fewer)" in first


@pytest.mark.parametrize("name", ["two-kills", "no-kill", "four-siblings"])
def test_silent_where_stops_are_too_few(con, name):
    assert advice(con, experiment=name) == []


def test_silent_where_nothing_would_be_won(con):
    assert advice(con, experiment="names-say-nothing", intervals=[200]) == []


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    path = tmp_path_factory.mktemp("whatif") / "t.db"
    with database.connect(path) as con:
        fill(con, {"stale-drops": read(TRACES / "stale-drops.jsonl")})
    return str(path)


def invoke(*arguments):
    return CliRunner().invoke(rtrace, ["whatif", *arguments], catch_exceptions=False)


def test_command_line_table_ends_in_advice(db):
    lines = invoke("--db", db, "--interval", "10,20", "--save-cost", "0.5").output.splitlines()
    assert lines[0].split() == [
        *("granularity", "cadence", "interval_s", "stops", "lost_s_per_stop", "thrown_away_s", "never_saved_s"),
        *("p50", "p95", "lost_share", "snapshots", "overhead_s_per_hour", "total_s_per_hour", "is_best"),
    ]
    assert [line.split()[1] for line in lines[2:5]] == ["replayed", "replayed", "recorded"]
    assert "Young/Daly's interval is 12.7" in lines[6]
    assert lines[7].startswith("recorded: snapshots were cut about every 35 s; 2 of 3 stops differ (before ")
    assert lines[8].startswith("Snapshots every 20 s instead of about 35 s would have saved ")


def test_command_line_json_is_the_frame(db):
    found = json.loads(
        invoke("--db", db, "--interval", "10,20", "--mtbf", "90", "--save-cost", "1", "--format", "json").output
    )
    with database.connect(db, read_only=True) as con:
        frame = whatif_interval(con, [10, 20], save_cost_s=1, mtbf=90)
    assert list(found[0]) == list(frame.columns)
    assert [row["lost_s_per_stop"] for row in found] == frame["lost_s_per_stop"].tolist()
    assert (found[0]["agrees"], found[-1]["agrees"], found[-1]["interval_s"]) == (None, False, None)


def test_command_line_errors():
    import rtrace_analytics.errors as errors

    for arguments, said in (
        (["--db", "none.db", "--interval", "10"], "no database 'none.db'"),
        (["--db", "none.db", "--interval", "10;20"], "--interval '10;20' is not a list of numbers like 30,60,120"),
    ):
        with pytest.raises(errors.RtraceError, match=said):
            invoke(*arguments)


def test_a_mix_says_where_to_ask():
    with rta.load(SAMPLES / "two-kills") as a, rta.load(SAMPLES / "simulated") as b, rta.mix({"a": a, "b": b}) as mixed:
        for ask in (
            lambda: mixed.whatif_interval([20], experiment="two-kills"),
            lambda: mixed.advice(experiment="two-kills"),
            lambda: mixed.explain(prompt_id="7"),
        ):
            with pytest.raises(rta.InputError, match="ask the database the traces were loaded into"):
                ask()


def test_a_world_without_rollouts_costs_nothing():
    con = database.connect()
    fill(con, {"x": World([], [40.0], {}).events()})
    frame = whatif_interval(con, [10], publish_lag_s=0)
    assert frame["lost_s_per_stop"].iloc[0] == 0
    assert math.isnan(frame["lost_share"].astype(float).iloc[0])
    fill(con, {"x": World([Span(1, 0, 0, 1, 5, "failed")], [40.0], {}).events()})
    assert whatif_interval(con, [10], publish_lag_s=0)["lost_s_per_stop"].iloc[0] == pytest.approx(4 * 4 / 2 / 40)
