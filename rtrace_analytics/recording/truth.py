"""Ground truth: what every restore of a simulated world lost and what became of every attempt, from its own memory.

The world knows which rollouts stood behind a snapshot, which it reported and which groups it dropped; `settle` gives
each lost rollout to the restore that lost it. Beside what a trace can know (a stopped rollout ran at least until the
last line of its run) stands what the world knows (`stopped_t`, `never_saved_true_s`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rtrace_analytics.recording.options import TICKS
from rtrace_analytics.recording.records import CANCELLED, DISCARDED, FAILED, SEALED, Restore, Rollout, Run

EPOCH = 1_700_000_000  # the wall clock at tick 0, seconds


@dataclass
class World:
    """A world that has ended: its runs and restores in order."""

    runs: list[Run] = field(default_factory=list)
    restores: list[Restore] = field(default_factory=list)

    def rollouts(self) -> Iterator[Rollout]:
        """All dispatches, in the order of the trace."""
        for run in self.runs:
            yield from run.rollouts


def wall(tick: int) -> float:
    """Return the wall clock of a tick, in seconds; exact."""
    return EPOCH + tick / TICKS


def ground_truth(world: World) -> dict[str, list[dict[str, Any]]]:
    """Return `restores`, `attempts` and `rollout_seconds`: rows with the names of the views, times in seconds.

    `restores` has a row per restore with the columns of `cut_time_waste` that a world knows, and `alive`: the attempts
    running at its cut, with what this restore lost of each. `attempts` has a row per dispatch, in the order of the
    trace. `rollout_seconds` has a row per fate.
    """
    settle(world)
    lost: dict[Restore, list[Rollout]] = {restore: [] for restore in world.restores}
    fates: dict[str, list[int]] = {}
    for rollout in world.rollouts():
        if rollout.lost is not None:
            lost[rollout.lost].append(rollout)
        spans = fates.setdefault(fate(rollout), [0, 0])
        spans[0] += 1
        spans[1] += end(rollout) - rollout.start
    return {
        "restores": [_restore_row(restore, lost[restore]) for restore in world.restores],
        "attempts": [_attempt_row(rollout) for rollout in world.rollouts()],
        "rollout_seconds": [
            {"fate": name, "spans": spans, "seconds": ticks / TICKS} for name, (spans, ticks) in sorted(fates.items())
        ],
    }


def settle(world: World) -> None:
    """Give every lost rollout to one restore: the earliest that lost it."""
    for restore in world.restores:
        for rollout, how in _losses(world, restore):
            exempt = rollout.lost is not None or rollout.kind in (FAILED, CANCELLED, DISCARDED)
            if not exempt and not _brought_back(world, rollout, restore):
                rollout.lost, rollout.how = restore, how


def _losses(world: World, restore: Restore) -> Iterator[tuple[Rollout, str]]:
    for rollout in restore.reported:
        if rollout is not None:
            yield rollout, "reported"
    if restore.ready:
        for rollout in restore.silent:
            yield rollout, "silent"
        for kept in restore.kept:
            if not kept.mentioned:
                for rollout in kept.sealed:
                    yield rollout, "dropped"
    for rollout in restore.parent.rollouts:
        if rollout.start > restore.cut:
            yield rollout, "after_cut"
    for run in world.runs:  # all descend from the first
        if run is not restore.run and run not in restore.run.history and run.stopped < restore.start:
            for rollout in run.rollouts:
                yield rollout, "discarded_branch"


def _brought_back(world: World, rollout: Rollout, restore: Restore) -> bool:
    """Tell whether a later restore, of a snapshot that holds this seal, undid the restore that lost it."""
    return rollout.kind == SEALED and any(
        later.start > restore.start
        and restore.run not in later.run.history
        and later.run.history.get(rollout.run, -1) >= rollout.end
        for later in world.restores
    )


def end(rollout: Rollout) -> int:
    """Return the tick at which a trace sees it end: the last line of its run where nothing ended it."""
    return rollout.run.last if rollout.kind is None else rollout.end


def stopped(rollout: Rollout) -> int:
    """Return the tick at which it really stopped."""
    return rollout.run.stopped if rollout.kind is None else rollout.end


def fate(rollout: Rollout) -> str:
    """Return the one fate of a rollout; `settle` comes first."""
    if rollout.kind in (FAILED, CANCELLED):
        return str(rollout.kind)
    if rollout.lost is not None:
        return "restart"
    if rollout.kind == DISCARDED or rollout.dropped_later:
        return "discarded"
    return "kept" if rollout.kind == SEALED else "open"


def _parts(rollout: Rollout, lost_by: Restore) -> dict[str, float]:
    """Return what was lost before and after the cut, in seconds."""
    after = max(rollout.start, lost_by.cut)
    bound = lost_by.start if rollout.kind is None else rollout.end
    return {
        "thrown_away_s": max(0, min(lost_by.cut, end(rollout)) - rollout.start) / TICKS,
        "never_saved_s": max(0, end(rollout) - after) / TICKS,
        "never_saved_max_s": max(0, bound - after) / TICKS,
        "never_saved_true_s": max(0, stopped(rollout) - after) / TICKS,
    }


_NO_PARTS = dict.fromkeys(("thrown_away_s", "never_saved_s", "never_saved_max_s", "never_saved_true_s"))


def _attempt_row(rollout: Rollout) -> dict[str, Any]:
    lost = rollout.lost
    return {
        "run": rollout.run.id,
        "group_id": rollout.group_id,
        "prompt_id": rollout.prompt_id,
        "generation_index": rollout.index,
        "attempt": rollout.attempt,
        "start_t": wall(rollout.start),
        "end_t": wall(end(rollout)),
        "end_kind": rollout.kind,
        "end_is_bound": rollout.kind is None,
        "finished_t": None if rollout.finished is None else wall(rollout.finished),
        "stopped_t": wall(stopped(rollout)),
        "fate": fate(rollout),
        "lost_by_run": None if lost is None else lost.run.id,
        "lost_how": rollout.how,
        **(_NO_PARTS if lost is None else _parts(rollout, lost)),
    }


def _restore_row(restore: Restore, lost: list[Rollout]) -> dict[str, Any]:
    dispatched = [rollout for rollout in restore.reported if rollout is not None]
    counted = sum(rollout.lost is restore for rollout in dispatched)
    parts = [_parts(rollout, restore) for rollout in lost]
    return {
        "run": restore.run.id,
        "parent_run": restore.parent.id,
        "restore_t": wall(restore.start),
        "path": restore.path,
        "snapshot_step": restore.step,
        "cut_t": wall(restore.cut),
        "stop_t": wall(restore.parent.last),
        "reported": len(restore.reported),
        "counted": counted,
        "repeated": len(dispatched) - counted,
        "never_dispatched": len(restore.reported) - len(dispatched),
        "unresolved": 0,
        "not_stopped": 0,
        "unreported": sum(rollout.how in ("silent", "redone", "dropped") for rollout in lost),
        "lost_attempts": len(lost),
        "lost_sealed": sum(rollout.kind == SEALED for rollout in lost),
        "lost_after_cut": sum(rollout.start > restore.cut for rollout in lost),
        **{key: sum(part[key] for part in parts) for key in _NO_PARTS},
        "naive_s": sum(restore.cut - rollout.start for rollout in dispatched) / TICKS,
        "alive": [
            {
                "run": rollout.run.id,
                "group_id": rollout.group_id,
                "generation_index": rollout.index,
                "attempt": rollout.attempt,
                **(_parts(rollout, restore) if rollout.lost is restore else _NO_PARTS),
            }
            for rollout in restore.alive
        ],
    }
