"""What-if by interval: against a slow replay, hand-made cases, the recorded row, and every bad input."""

import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from small_worlds import DOWN_S, FIRST_T, Span, World, fill, read, worlds
from worlds import world

from rtrace_analytics import database
from rtrace_analytics.decisions import whatif_interval
from rtrace_analytics.errors import InputError

DATA = Path(__file__).parents[1] / "data"
CASES = {"deadline": None, "print_blob": False, "suppress_health_check": list(HealthCheck)}


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def replayed(frame):
    return frame[frame["cadence"] == "replayed"].set_index("interval_s")


def recorded(frame):
    return frame[frame["cadence"] == "recorded"].iloc[0]


CON = database.connect()


def again(events):
    """The one connection, holding these events only."""
    fill(CON, {"x": events})
    return CON


def trace(name: str):
    return world(read(DATA / "traces" / f"{name}.jsonl"))


PR = World([Span(7, 0, 0, 1, 30, "sealed"), Span(7, 2, 0, 12, 43, "cut")], [43.0], {})


@settings(max_examples=25, **CASES)
@example(PR, [20.0, 40.0], 0.0)
@given(
    worlds(),
    st.lists(st.sampled_from((0.5, 1.75, 4.0, 9.0, 16.0, 39.0)), min_size=1, unique=True),
    st.sampled_from((0.0, 0.25, 2.0, 7.3, 50.0)),
)
def test_means_over_all_stops_equal_the_slow_replay(small, intervals, lag):
    frame = replayed(whatif_interval(again(small.events()), intervals, publish_lag_s=lag))
    for interval in intervals:
        lost, thrown_away = small.mean(interval, lag)
        row = frame.loc[interval]
        assert row["lost_s_per_stop"] == close(lost)
        assert row["thrown_away_s"] == close(thrown_away)
        assert row["never_saved_s"] == close(lost - thrown_away)
        total = sum(span.end - span.start for span in small.spans)
        assert row["lost_share"] == close(lost / total) if total else math.isnan(row["lost_share"] or math.nan)
        for name, share in (("p50", 0.5), ("p95", 0.95)):
            assert small.share_below(row[name] - 1e-6, interval, lag) <= share + 0.005
            assert small.share_below(row[name] + 1e-2, interval, lag) >= share - 0.005


@settings(max_examples=15, **CASES)
@given(worlds(), st.sampled_from((0.75, 4.0, 9.0)), st.sampled_from((0.0, 2.0)))
def test_whole_groups_equal_the_slow_replay(small, interval, lag):
    assume(small.group_sealed)
    con = again(small.events())
    frame = whatif_interval(con, [interval], publish_lag_s=lag, granularity="both")
    for kind, whole in (("sibling", False), ("prompt_group", True)):
        row = replayed(frame[frame["granularity"] == kind]).loc[interval]
        lost, thrown_away = small.mean(interval, lag, whole)
        assert row["lost_s_per_stop"] == close(lost)
        assert row["thrown_away_s"] == close(thrown_away)
    at = [3.0, 17.5, 40.0]
    moments = [small.wall(next(r for r, stop in enumerate(small.stops) if s <= stop), s) for s in at]
    frame = whatif_interval(con, [interval], publish_lag_s=lag, granularity="prompt_group", stops=moments)
    costs = [small.cost(s, small.cut(s, interval, lag), True)[0] for s in at]
    assert replayed(frame)["lost_s_per_stop"][interval] == close(sum(costs) / 3)


@settings(max_examples=15, **CASES)
@given(worlds(), st.sampled_from((0.75, 4.0, 9.0)), st.sampled_from((0.0, 2.0)))
def test_actual_stops_equal_the_slow_replay(small, interval, lag):
    assume(len(small.stops) > 1)
    row = replayed(whatif_interval(again(small.events()), [interval], publish_lag_s=lag, stops="actual")).loc[interval]
    costs = [small.cost(s, small.cut(s, interval, lag)) for s in small.stops[:-1]]
    assert row["stops"] == len(costs)
    assert row["lost_s_per_stop"] == close(sum(lost for lost, _ in costs) / len(costs))
    assert row["thrown_away_s"] == close(sum(thrown for _, thrown in costs) / len(costs))
    assert (row["p50"], row["p95"]) == (close(quantile(costs, 0.5)), close(quantile(costs, 0.95)))


def quantile(costs, q):
    values = sorted(lost for lost, _ in costs)
    at = q * (len(values) - 1)
    low = values[int(at)]
    return low + (values[min(int(at) + 1, len(values) - 1)] - low) * (at - int(at))


def test_the_prs_example_by_hand():
    # cuts at 0, 20 and 40; a stop at 43 falls back to 40: sibling 2 has run 28 s before the cut and 3 s after it
    frame = replayed(whatif_interval(world(PR.events()), [20], publish_lag_s=0, stops=[FIRST_T + 43]))
    row = frame.loc[20]
    assert (row["lost_s_per_stop"], row["thrown_away_s"], row["never_saved_s"]) == (31, 28, 3)
    # published 5 s later it falls back to 20: sibling 0, sealed at 30, goes with it
    frame = replayed(whatif_interval(world(PR.events()), [20], publish_lag_s=5, stops=[FIRST_T + 43]))
    assert frame.loc[20, "lost_s_per_stop"] == 31 + 29
    assert frame.loc[20, "thrown_away_s"] == 8 + 19


def test_down_time_is_left_out_and_a_moment_in_it_is_the_stop():
    small = World([Span(1, 0, 0, 1, 10, "cut"), Span(1, 1, 1, 12, 20, "sealed")], [10.0, 20.0], {})
    con = again(small.events())
    frame = whatif_interval(con, [4], publish_lag_s=0, stops=[FIRST_T + 10 + DOWN_S / 2])
    assert frame["wall_s"].tolist() == [20, 20]
    assert replayed(frame).loc[4, "lost_s_per_stop"] == 9


def test_forks_are_replayed_each_on_its_own():
    def run(name, t):
        ids = {"run": name, "prompt_id": name, "generation_index": 0, "attempt": 0}
        return [{"t": t, "event": "attempt_dispatched", **ids}, {"t": t + 8, "event": "attempt_sealed", **ids}]

    events = [
        *run("a", 0.0),
        {"t": 9.0, "run": "a", "event": "snapshot_published", "step": 1, "cut_time": 9.0, "path": "/c/snapshot_1"},
        {"t": 20.0, "run": "b", "event": "restore_started", "path": "/c/snapshot_1"},
        *run("b", 21.0),
        {"t": 22.0, "run": "a", "event": "attempt_dispatched", "prompt_id": "z", "generation_index": 0, "attempt": 0},
        {"t": 30.0, "run": "a", "event": "attempt_sealed", "prompt_id": "z", "generation_index": 0, "attempt": 0},
    ]
    frame = whatif_interval(world(events), [30], publish_lag_s=0)
    assert frame["wall_s"].tolist() == [30 + 9] * 2  # a from 0 to 30, b from its first event, 20, to 29
    a = 8 * 8 / 2 + 8 * 22 + 8 * 8 / 2  # grows for 8 s, then stays until the end
    b = 8 * 8 / 2
    assert replayed(frame).loc[30, "lost_s_per_stop"] == close((a + b) / 39)
    assert recorded(frame)["note"] == "no stop with a known cut; 1 restores were forks: nothing stopped"


@pytest.mark.parametrize("name", ["four-siblings", "two-kills", "wide-groups", "names-say-nothing"])
def test_recorded_gives_back_the_measured_loss(name):
    con = trace(name)
    row = recorded(whatif_interval(con, [20]))
    restores, thrown_away, never_saved = con.execute(
        "SELECT count(*), sum(thrown_away_s), sum(never_saved_s) FROM cut_time_waste"
    ).fetchone()
    assert row["agrees"]
    assert row["stops"] == restores
    assert row["thrown_away_s"] * restores == close(thrown_away)
    assert row["never_saved_s"] * restores == close(never_saved)
    assert "differ" not in row["note"]


def test_recorded_says_where_it_does_not():
    row = recorded(whatif_interval(trace("stale-drops"), [20]))  # sealed groups that restores dropped
    assert not row["agrees"]
    assert "2 of 3 stops differ (before 6b215cb5: 1150.14 s replayed, 1282.44 s measured" in row["note"]


def test_costs_and_the_best_interval():
    frame = whatif_interval(trace("wide-groups"), [5, 10, 20], save_cost_s=2, mtbf=100)
    rows = replayed(frame)
    fleet = rows["mean_in_flight"].iloc[0]
    for interval, row in rows.iterrows():
        assert row["overhead_s_per_hour"] == close(3600 / interval * 2 * fleet)
        assert row["total_s_per_hour"] == close(row["overhead_s_per_hour"] + 36 * row["lost_s_per_stop"])
    assert rows["is_best"].tolist() == (rows["total_s_per_hour"] == rows["total_s_per_hour"].min()).tolist()
    assert set(frame["young_daly_s"]) == {20.0}  # sqrt(2 * 2 * 100)


def test_steady_work_has_its_best_interval_where_young_says():
    # rollouts short beside the interval and always as many: the assumption of the formula
    spans = [Span(n, 0, 0, n, n + 0.5, "sealed") for n in range(1000)]
    con = again(World(spans, [1001.0], {}).events())
    intervals = [10, 15, 18, 20, 22, 25, 30]
    frame = whatif_interval(con, intervals, publish_lag_s=0, save_cost_s=0.5, mtbf=400)
    assert replayed(frame)["is_best"].idxmax() == 20
    assert frame["young_daly_s"].iloc[0] == 20


def test_the_lag_is_the_measured_median():
    con = trace("four-siblings")
    measured = con.execute("SELECT median(publish_lag_s) FROM snapshots").fetchone()[0]
    by_default, given_ = (whatif_interval(con, [20], publish_lag_s=lag) for lag in (None, measured))
    assert by_default.equals(given_)
    assert replayed(by_default)["publish_lag_s"].iloc[0] == measured


def test_sealed_at_one_moment_has_a_figure_only_as_it_is():
    con = world(read(DATA / "faults" / "groups-sealed-at-once" / "t.jsonl"))
    assert set(whatif_interval(con, [1], publish_lag_s=0)["granularity"]) == {"prompt_group"}
    for kind in ("sibling", "prompt_group", "both"):
        with pytest.raises(InputError, match="all at one moment and cannot tell when each sibling finished"):
            whatif_interval(con, [1], publish_lag_s=0, granularity=kind)


BAD = {
    "interval 0 ": {"intervals": [0]},
    "interval -5 ": {"intervals": [10, -5]},
    "interval nan ": {"intervals": [math.nan]},
    "interval 'soon' is not a number": {"intervals": ["soon"]},
    "no interval": {"intervals": []},
    "interval 9999 s is longer than experiment 'x', 307.": {"intervals": [9999]},
    "publish lag -1 ": {"publish_lag_s": -1},
    "experiment 'x' has no stop with a known cut": {"stops": "actual"},
    "no stop at all": {"stops": []},
    "stop 5.0 is not within experiment 'x', 1000.1 to 1307.": {"stops": [5]},
    "stops 'often': give 'uniform', 'actual' or moments": {"stops": "often"},
    "granularity 'group': give": {"granularity": "group"},
    "no experiment 'y': there are 'x'": {"experiment": "y"},
    "mtbf 60 tells a cost only together with a save cost": {"mtbf": 60},
    "has no stop to tell the time between stops: give mtbf": {"save_cost_s": 1},
    "save cost inf ": {"save_cost_s": math.inf, "mtbf": 1},
    "mtbf 0 ": {"save_cost_s": 1, "mtbf": 0},
}


@pytest.fixture(scope="module")
def no_kill():
    return trace("no-kill")


@pytest.mark.parametrize("said", BAD)
def test_bad_input_is_one_clear_line(no_kill, said):
    with pytest.raises(InputError) as error:
        whatif_interval(no_kill, **({"intervals": [10]} | BAD[said]))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_nothing_stays_behind(no_kill):
    whatif_interval(no_kill, [10])
    assert no_kill.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchone() == (0,)


def test_without_a_snapshot_the_lag_must_be_given():
    events = [{**event, "event": "x"} if event["event"] == "snapshot_published" else event for event in PR.events()]
    with pytest.raises(InputError, match="has no snapshot that tells a publish lag: give one"):
        whatif_interval(world(events), [10])
    assert len(whatif_interval(world(events), [10], publish_lag_s=0)) == 2
