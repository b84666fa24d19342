"""What-if against worlds that were really run again with the other interval: one stop each, many seeds."""

from random import Random

import pytest
from small_worlds import fill

from rtrace_analytics import database
from rtrace_analytics.decisions import whatif_interval
from rtrace_analytics.recording.controller import KILL, Controller
from rtrace_analytics.recording.options import TICKS, WorldOptions
from rtrace_analytics.recording.records import Run
from rtrace_analytics.recording.snapshots import MemoryStore
from rtrace_analytics.recording.truth import wall

LAG_S = 4.0
INTERVALS = (20.0, 40.0, 80.0)


class Chance(Random):
    """Publication lags are drawn apart, so that another interval leaves the rest of the world as it was; or are all
    alike, as the replay has them.
    """

    def __init__(self, seed: int, lags_vary: bool) -> None:
        super().__init__(seed)
        self.lags = Random(f"lags {seed}") if lags_vary else None

    def __new__(cls, seed: int, lags_vary: bool) -> "Chance":
        return super().__new__(cls, seed)

    def uniform(self, a: float, b: float) -> float:
        if (a, b) == (LAG_S * 0.5, LAG_S * 1.5):
            return self.lags.uniform(a, b) if self.lags else LAG_S
        return super().uniform(a, b)


def play(seed: int, interval: float, kill: int | None, lags_vary: bool = False, **options) -> list[dict]:
    """The events of a world that is killed at most once, at a tick, and restored 30 s later."""
    world = WorldOptions(groups=120, seed=seed, snapshot_interval_s=interval, publish_lag_s=LAG_S, **options)
    store, first = MemoryStore(world.numbering), []
    killed = process("a", world, store, Chance(seed, lags_vary), first, kill=kill)
    if kill is None:
        return first
    second = []
    process("b", world, store, Chance(seed + 1, lags_vary), second, now=killed.now + 30 * TICKS, witness=killed.witness)
    return first + second


def process(name, world, store, chance, events, *, now=0, witness=None, kill=None) -> Controller:
    """Let one process run to its end; its events are added to `events`."""

    def clock() -> float:
        return wall(controller.now)

    def emit(event, /, **fields):
        events.append({"t": clock(), "run": name, "event": event, **fields})

    controller = Controller(world, Run(name, last=now), emit, store, chance, clock, now)
    if kill is not None:
        controller.at(kill, lambda _: setattr(controller, "done", True), turn=KILL)
    controller.start(store.newest(), witness)
    while not controller.done:
        controller.step()
    return controller


def compare(seeds: range, **options) -> dict[float, float]:
    """Of each interval: what stops cost by the replay of an undisturbed world, as part of what they cost in truth."""
    con = database.connect()
    ratios = {}
    for interval in INTERVALS:
        worlds = {}
        for seed in seeds:
            kill = Random(f"kill {seed}").randrange(100 * TICKS, 320 * TICKS)
            worlds[f"undisturbed {seed}"] = play(seed, 55.0, None, **options)
            worlds[f"killed {seed}"] = play(seed, interval, kill, **options)
        fill(con, worlds)
        expected = measured = 0.0
        for seed in seeds:
            query = "SELECT lost_s, stop_t FROM cut_time_waste WHERE experiment = ?"
            ((lost_s, stop_t),) = con.execute(query, [f"killed {seed}"]).fetchall()
            frame = whatif_interval(
                con, [interval], experiment=f"undisturbed {seed}", stops=[stop_t], publish_lag_s=LAG_S
            )
            expected += frame["lost_s_per_stop"].iloc[0]
            measured += lost_s
        ratios[interval] = float(expected / measured)
    return ratios


def test_replay_equals_worlds_run_again():
    assert compare(range(5)) == {interval: pytest.approx(1, abs=0.02) for interval in INTERVALS}


@pytest.mark.slow
@pytest.mark.parametrize("tail", [0.4, 0.9, 1.4])
def test_replay_equals_many_worlds_run_again(tail):
    ratios = compare(range(100, 150), tail=tail)
    assert ratios == {interval: pytest.approx(1, abs=0.02) for interval in INTERVALS}


@pytest.mark.slow
def test_lags_that_vary_even_out():
    ratios = compare(range(100, 150), lags_vary=True)
    assert sum(ratios.values()) / len(ratios) == pytest.approx(1, abs=0.02)
