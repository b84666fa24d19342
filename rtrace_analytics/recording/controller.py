"""A single-controller loop like NeMo-RL's: rollout pump, train pump, weight sync, snapshotter and restorer.

It is driven by a heap of due actions and knows time only as ticks of 1/1024 s. `simulate.py` lets it run as fast as it
can, `real.py` lets it wait for the wall clock. One controller is one process: after a kill a new one restores.
Random numbers are drawn alike whether the ledger reports again or not, so both worlds are the same.
"""

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from rtrace_analytics.recording.ledger import RecoveryLedger
from rtrace_analytics.recording.options import TICKS, WorldOptions
from rtrace_analytics.recording.records import (
    CANCELLED,
    DISCARDED,
    FAILED,
    SEALED,
    Kept,
    Restore,
    Rollout,
    Run,
    Witness,
)
from rtrace_analytics.recording.snapshots import Published, Snapshot, Store

_SOON, _CUT, KILL = 0, 1, 2  # of actions due at one tick a cut comes after all work and a kill after that


class _Group:
    """A group of the ledger as the pumps see it: `left` siblings have not succeeded yet."""

    __slots__ = ("current", "gone", "id", "kept", "left", "prompt_id", "version")

    def __init__(self, id_: str, prompt_id: str, siblings: int, version: int) -> None:
        self.id, self.prompt_id, self.version = id_, prompt_id, version
        self.current: list[Rollout | None] = [None] * siblings
        self.left = siblings
        self.gone = False
        self.kept: list[Kept] = []  # restores that took it over and have not been heard of it yet

    def mention(self) -> None:
        if self.kept:
            for kept in self.kept:
                kept.mentioned = True
            self.kept = []


class Controller:
    """One process of the training job.

    Args:
        options: the world.
        run: the record of this process.
        emit: takes each event, `emit(event, **fields)`.
        store: where snapshots go.
        rng: all chance comes from it.
        wall: returns the wall clock in seconds.
        now: the tick it starts at.
    """

    def __init__(
        self,
        options: WorldOptions,
        run: Run,
        emit: Callable[..., None],
        store: Store,
        rng: Random,
        wall: Callable[[], float],
        now: int = 0,
    ) -> None:
        self.options, self.run, self.store, self.now = options, run, store, now
        self.done = False
        self.on_cut: Callable[[int], None] = lambda _due: None  # told the tick at which the cut will be published
        self.on_done: Callable[[], None] = self._stop
        self.flush: Callable[[], None] = lambda: None  # gets the lines so far to the trace's file
        self.witness: Witness | None = None  # of the last snapshot published
        self._emit, self._rng, self._wall = emit, rng, wall
        self._due: list[tuple[int, int, int, Callable[..., None], Any]] = []
        self._order = count()
        self._ledger = RecoveryLedger(options.granularity, report_again=options.report_again)
        self._ledger.set_event_sink(emit)
        self._groups: dict[str, _Group] = {}
        self._fresh: deque[_Group] = deque()  # reserved, not admitted
        self._waiting: deque[tuple[_Group, int]] = deque()  # attempts reserved, to be dispatched
        self._in_flight = self._cursor = self._train_step = self._version = 0
        self._buffer: list[str] = []
        self._training: list[str] = []
        self._interval = max(1, round(options.snapshot_interval_s * TICKS))
        self._median = max(1, round(options.rollout_s * TICKS))

    def at(self, tick: int, action: Callable[..., None], arg: Any = None, turn: int = _SOON) -> None:
        """Do `action(arg)` at a tick."""
        heapq.heappush(self._due, (tick, turn, next(self._order), action, arg))

    def next_due(self) -> int:
        """Return the tick of the next action."""
        return self._due[0][0]

    def step(self) -> None:
        """Do the next action."""
        self.now, _, _, action, arg = heapq.heappop(self._due)
        action(arg)

    def start(self, published: Published | None = None, witness: Witness | None = None) -> None:
        """Begin afresh, or with the restore of a snapshot."""
        if published is None:
            self._begin(None)
        else:
            self._restore(published, witness)

    def _stop(self) -> None:
        self.done = True

    def _between(self, low_s: float, high_s: float) -> int:
        return 1 + int(self._rng.uniform(low_s, high_s) * TICKS)

    # --- rollout pump ------------------------------------------------------------------------------------------------

    def _pump_rollouts(self) -> None:
        """Fill the free slots: first with attempts that wait, then with fresh groups, all siblings of one at a time."""
        siblings, concurrency = self.options.siblings, self.options.concurrency
        while True:
            while self._cursor < self.options.groups and len(self._fresh) < 2:
                self._reserve()
            free = concurrency - self._in_flight
            if self._waiting and free > 0:
                group, index = self._waiting.popleft()
                if not group.gone:
                    self._dispatch(group, index)
            elif self._fresh and not self._waiting and free >= min(siblings, concurrency):
                group = self._fresh.popleft()
                if not group.gone:
                    self._ledger.admit(group.id)
                    self._waiting.extend((group, index) for index in range(siblings))
            else:
                return

    def _reserve(self) -> None:
        id_, prompt = f"{self._rng.getrandbits(64):016x}", str(self._cursor)
        self._cursor += 1
        group = self._groups[id_] = _Group(id_, prompt, self.options.siblings, self._version)
        self._ledger.reserve(id_, prompt, self.options.siblings)
        self._fresh.append(group)

    def _dispatch(self, group: _Group, index: int) -> None:
        attempt = self._ledger.dispatch(group.id, index, self._version)
        rollout = Rollout(self.run, group.id, group.prompt_id, index, attempt, self.now)
        self.run.rollouts.append(rollout)
        group.current[index] = rollout
        group.mention()
        self._in_flight += 1
        length = 1 + int(self._median * self._rng.lognormvariate(0.0, self.options.tail))
        chance = self._rng.random()
        if chance < self.options.failure_rate:
            early = 1 + int(length * self._rng.random())
            self.at(self.now + early, self._break, (group, rollout, chance < self.options.failure_rate * 2 / 3))
        else:
            self.at(self.now + length, self._succeed, (group, rollout))

    def _succeed(self, arg: tuple[_Group, Rollout]) -> None:
        group, rollout = arg
        if rollout.kind is not None:
            return
        self._in_flight -= 1
        rollout.finished = self.now
        if self.options.granularity == "sibling":
            rollout.kind, rollout.end = SEALED, self.now
            self._ledger.seal(group.id, rollout.index)
        group.left -= 1
        if group.left == 0:
            self.at(self.now + self._between(0.05, 0.5), self._seal_group, group)
        self._pump_rollouts()

    def _break(self, arg: tuple[_Group, Rollout, bool]) -> None:
        """Let a rollout fail or be cancelled; with `prompt_group` all that runs of its group is cancelled with it."""
        group, rollout, fails = arg
        if rollout.kind is not None:
            return
        self._end(rollout, FAILED if fails else CANCELLED)
        (self._ledger.fail if fails else self._ledger.cancel)(group.id, rollout.index)
        if self.options.granularity == "prompt_group":
            for other in group.current:
                if other is not None and other.kind is None:
                    self._end(other, CANCELLED)
                    self._ledger.cancel(group.id, other.index)
            group.left = self.options.siblings
        self.at(self.now + self._between(0.5, 3.0), self._retry, group)
        self._pump_rollouts()

    def _end(self, rollout: Rollout, kind: str) -> None:
        rollout.kind, rollout.end = kind, self.now
        if rollout.finished is None:
            self._in_flight -= 1

    def _retry(self, group: _Group) -> None:
        if group.gone:
            return
        for index in self._ledger.unsealed(group.id):
            self._ledger.retry(group.id, index)
            group.current[index] = None
            self._waiting.append((group, index))
        self._pump_rollouts()

    def _seal_group(self, group: _Group) -> None:
        if group.gone:
            return
        if self.options.granularity == "prompt_group":
            for rollout in group.current:
                if rollout is not None:
                    rollout.kind, rollout.end = SEALED, self.now
        self._ledger.seal_group(group.id)
        group.mention()
        self.at(self.now + self._between(0.05, 0.3), self._finalize, group)

    def _finalize(self, group: _Group) -> None:
        if not group.gone:
            self._ledger.start_finalizing(group.id)
            self.at(self.now + self._between(0.05, 0.3), self._hand_over, group)

    def _hand_over(self, group: _Group) -> None:
        if not group.gone:
            self._ledger.finalize(group.id)
            self._forget(group)
            self._buffer.append(group.id)
            self._pump_training()

    def _forget(self, group: _Group) -> None:
        group.gone = True
        del self._groups[group.id]

    # --- train pump and weight sync ----------------------------------------------------------------------------------

    def _pump_training(self) -> None:
        if self._training:
            return
        last = self._cursor == self.options.groups and not self._groups
        if len(self._buffer) >= self.options.groups_per_step or (last and self._buffer):
            self._training, self._buffer = self._buffer, []
            self._emit("train_step_started", step=self._train_step + 1)
            self.at(self.now + self._between(2.0, 6.0), self._trained)
        elif last:
            self.on_done()

    def _trained(self, _: None) -> None:
        self._train_step += 1
        self._training = []
        self._emit("train_step_finished", step=self._train_step)
        self.at(self.now + self._between(0.1, 0.5), self._sync_weights, self._train_step)
        self._pump_training()

    def _sync_weights(self, version: int) -> None:
        self._version = version
        self._emit("weights_synced", weight_version=version)
        old = [g for g in self._groups.values() if version - g.version >= 2] if self.options.stale_rate else []
        for group in old:
            if self._rng.random() < self.options.stale_rate:
                self._discard(group)
        if old:
            self._pump_rollouts()
            self._pump_training()

    def _discard(self, group: _Group) -> None:
        for rollout in group.current:
            if rollout is not None and rollout.kind is None and rollout.run is self.run:
                self._end(rollout, DISCARDED)
            elif rollout is not None and rollout.kind == SEALED:
                rollout.dropped_later = True
        self._ledger.discard(group.id)
        group.mention()
        self._forget(group)

    # --- snapshotter -------------------------------------------------------------------------------------------------

    def _cut(self, _: None) -> None:
        """Take the state of this moment, and publish it later."""
        snapshot = Snapshot(
            cut_time=self._wall(),
            train_step=self._train_step,
            weight_version=self._version,
            cursor=self._cursor,
            buffer=self._training + self._buffer,  # a step under way is done again after a restore
            versions={group.id: group.version for group in self._groups.values()},
            ledger=self._ledger.state(),
        )
        witness = Witness(
            run=self.run,
            cut=self.now,
            current={group.id: list(group.current) for group in self._groups.values()},
            kept={group.id: list(group.kept) for group in self._groups.values() if group.kept},
        )
        due = self.now + self._between(self.options.publish_lag_s * 0.5, self.options.publish_lag_s * 1.5)
        self.at(due, self._publish, (snapshot, witness))
        self.at(max(self.now + self._interval, due + 1), self._cut, turn=_CUT)
        self.on_cut(due)

    def _publish(self, arg: tuple[Snapshot, Witness]) -> None:
        snapshot, self.witness = arg
        self.flush()  # what a snapshot holds must not be missing in the trace, nor its own line for long
        published = self.store.publish(snapshot)
        self._emit("snapshot_published", step=published.step, cut_time=snapshot.cut_time)
        self.flush()

    # --- restorer ----------------------------------------------------------------------------------------------------

    def _restore(self, published: Published, witness: Witness | None) -> None:
        """Take over a snapshot: drop what is stale, report what was running, then try it again."""
        snapshot, options = published.snapshot, self.options
        self._emit("restore_started", path=published.path)
        self._ledger = RecoveryLedger.from_state(snapshot.ledger, report_again=options.report_again)
        self._cursor, self._train_step = snapshot.cursor, snapshot.train_step
        self._version, self._buffer = snapshot.weight_version, list(snapshot.buffer)
        record = self._record_restore(published, witness)
        for saved in list(self._ledger.groups.values()):
            group = _Group(saved.group_id, saved.prompt_id, len(saved.siblings), snapshot.versions[saved.group_id])
            unfinished = saved.state == "generating"
            if witness is not None:
                group.current = list(witness.current[group.id])
                if unfinished:
                    self._take_over(group, record, witness)
            if unfinished and options.stale_rate and self._rng.random() < options.stale_rate:
                self._ledger.drop(group.id)
                record.silent += [r for r in group.current if r is not None and not r.ended_by(record.cut)]
                continue
            if unfinished:
                group.left = sum(attempts[-1].state != SEALED for attempts in saved.siblings)
            self._groups[group.id] = group
        self._ledger.set_event_sink(self._emit)
        takes = self._between(1.0, 5.0)
        for place, group in enumerate(list(self._groups.values())):
            self.at(self.now + place * takes // (len(self._groups) + 1), self._report, (record, group))
        self.at(self.now + takes, self._restored, record)

    def _record_restore(self, published: Published, witness: Witness | None) -> Restore:
        parent, cut = (witness.run, witness.cut) if witness is not None else (self.run, self.now)
        self.run.history = {ancestor: min(limit, cut) for ancestor, limit in parent.history.items()}
        self.run.history[parent] = cut
        self.run.restore = Restore(self.run, parent, self.now, cut, published.step, published.path)
        return self.run.restore

    def _take_over(self, group: _Group, record: Restore, witness: Witness) -> None:
        current = [rollout for rollout in group.current if rollout is not None]
        record.alive += [rollout for rollout in current if not rollout.ended_by(record.cut)]
        sealed = [rollout for rollout in current if rollout.kind == SEALED and rollout.end <= record.cut]
        if sealed:
            record.kept.append(Kept(sealed))
            group.kept = [*witness.kept.get(group.id, []), record.kept[-1]]

    def _report(self, arg: tuple[Restore, _Group]) -> None:
        record, group = arg
        for _, index, _ in self._ledger.prepare_group_for_restart(group.id):
            record.reported.append(group.current[index])
            group.mention()

    def _restored(self, record: Restore) -> None:
        self._emit("restore_finished")
        record.ready = True
        for group in list(self._groups.values()):
            saved = self._ledger.group(group.id)
            if saved.admission == "reserved":
                self._fresh.append(group)
            elif saved.state != "generating":
                self._finalize(group)
            elif group.left == 0:
                self._seal_group(group)
            else:
                self._retry(group)
        self._begin(None)

    def _begin(self, _: None) -> None:
        self.at(self.now + self._interval, self._cut, turn=_CUT)
        self._pump_rollouts()
        self._pump_training()
