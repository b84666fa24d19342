"""Worlds for the tests: random options, played into a list of events instead of a file."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from rtrace_analytics.recording.options import WorldOptions
from rtrace_analytics.recording.simulate import play
from rtrace_analytics.recording.truth import World, ground_truth

# fmt: off
RESTORE_KEYS = (
    "run", "parent_run", "restore_t", "cut_t", "stop_t", "snapshot_step", "reported", "counted", "repeated",
    "never_dispatched", "unresolved", "not_stopped", "unreported", "lost_attempts", "lost_sealed", "lost_after_cut",
    "thrown_away_s", "never_saved_s", "never_saved_max_s", "naive_s",
)
SPAN_KEYS = (
    "run", "prompt_id", "generation_index", "attempt", "start_t", "end_t", "end_kind", "end_is_bound", "fate",
    "lost_by_run", "lost_how", "thrown_away_s", "never_saved_s", "never_saved_max_s",
)
# fmt: on


class ListTrace:
    """Stands in for `RolloutTrace`: appends each event to a list."""

    def __init__(self, events: list[dict[str, Any]], run: str, clock: Callable[[], float]) -> None:
        self.events, self.run, self.clock = events, run, clock

    def emit(self, event: str, /, **fields: Any) -> None:
        self.events.append({"t": self.clock(), "run": self.run, "event": event, **fields})

    def close(self) -> None:
        pass


def played(options: WorldOptions) -> tuple[list[dict[str, Any]], World]:
    """Play a world; return its events in order, and what it remembers."""
    events: list[dict[str, Any]] = []
    world = play(options, lambda run, clock: ListTrace(events, run, clock))
    return events, world


def told(options: WorldOptions) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """Play a world; return its events in order, and the ground truth."""
    events, world = played(options)
    return events, ground_truth(world)


def worlds(max_groups: int = 30, max_kills: int = 5) -> st.SearchStrategy[WorldOptions]:
    """Return random options: all of them vary."""
    return st.builds(
        WorldOptions,
        groups=st.integers(1, max_groups),
        siblings=st.integers(1, 5),
        kills=st.integers(0, max_kills),
        snapshot_interval_s=st.sampled_from([0.5, 5.0, 20.0, 60.0, 300.0]),
        seed=st.integers(0, 10**6),
        granularity=st.sampled_from(["sibling", "prompt_group"]),
        report_again=st.booleans(),
        publish_lag_s=st.sampled_from([0.01, 4.0, 30.0]),
        failure_rate=st.sampled_from([0.0, 0.05, 0.4]),
        concurrency=st.integers(1, 40),
        stale_rate=st.sampled_from([0.0, 0.1, 0.6]),
        numbering=st.sampled_from(["upstream", "global"]),
        rollout_s=st.sampled_from([0.05, 5.0, 20.0]),
        tail=st.sampled_from([0.0, 0.9, 2.0]),
        groups_per_step=st.integers(1, 8),
    )
