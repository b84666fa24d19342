"""Small random traces of one experiment: plausible stories of runs, stops and restores, some of them damaged.

`traces()` is a hypothesis strategy of event lists; the lines of a run keep their order in the list. A story is played
on a ledger (what each sibling is at), so that restores report what was running; then a few lines are dropped, doubled,
swapped or altered.
"""

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

MAX_EVENTS = 60
STEPS_OF_TIME = (0, 0.25, 0.25, 0.5, 1, 1, 2)
REASONS = ("failed", "failed", "cancelled", None, "timeout", "restart")
ALTERED = ("group_id", "prompt_id", "attempt", "generation_index", "reason", "step", "cut_time", "path")
EVENTS = (
    *("attempt_dispatched", "attempt_sealed", "attempt_abandoned", "attempt_reserved", "group_sealed"),
    *("group_finalized", "group_discarded", "group_admitted", "snapshot_published", "restore_finished", "heartbeat"),
)

# What a run does next, by weight
ACTIONS = (
    *("dispatch",) * 7,
    *("seal",) * 6,
    *("close",) * 3,
    *("snapshot",) * 4,
    *("abandon", "abandon", "discard", "supersede", "train_step", "foreign"),
)
# How a restore treats what its snapshot holds
HABITS = ("reports", "reports", "reports", "whole groups", "silent", "drops", "dies", "finishes", "fails some")
PATHS = ("anchor", "anchor", "anchor", "path", "path", "step", "none", "no number", "no form", "wrong", "bootstrap")


@st.composite
def traces(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return the events of one experiment: at most about 60, 1-5 runs, 1-4 groups of 1-3 siblings."""
    story = _Story(draw)
    for _ in range(draw(st.sampled_from((1, 2, 2, 3, 3, 3, 4, 5)))):
        story.play_run()
    return _damaged(draw, story.events[:MAX_EVENTS])


class _Story:
    """Plays runs one after another; `ledger` is what a run knows: sibling -> [attempt, state], closed groups."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.t = 10.0
        self.events: list[dict[str, Any]] = []
        self.snapshots: list[dict[str, Any]] = []
        self.ledgers: dict[str, dict[tuple, list]] = {}
        self.ids = self.pick("both", "both", "prompt", "group", "sometimes")
        self.prompts = self.pick(("0", "1", "2", "3"), ("0", "1", "2", "3"), ("0", "1", "1", "0"))
        self.groups = self.pick(2, 3, 1, 4)
        self.siblings = self.pick(2, 2, 1, 3)
        self.bears_path = self.pick(False, False, True)
        self.steps = self.pick("global", "trainer", "trainer", "stuck")
        self.numbers = 0

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def rarely(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == one_in

    def say(self, run: str, event: str, **fields: Any) -> dict[str, Any]:
        self.t += self.pick(*STEPS_OF_TIME)
        line = {"t": self.t, "run": run, "event": event, **fields}
        self.events.append(line)
        return line

    def names(self, group: int) -> dict[str, str]:
        """Return the ids a line about a group bears."""
        ids = {"group_id": f"g{group}", "prompt_id": self.prompts[group]}
        habit = self.pick("both", "prompt", "group", "none") if self.ids == "sometimes" else self.ids
        drop = {"both": (), "prompt": ("group_id",), "group": ("prompt_id",), "none": ("group_id", "prompt_id")}[habit]
        return {name: value for name, value in ids.items() if name not in drop}

    def try_line(self, run: str, event: str, sibling: tuple, attempt: int, **fields: Any) -> None:
        group, index = sibling
        self.say(run, event, **self.names(group), generation_index=index, attempt=attempt, **fields)

    def dispatch(self, run: str, sibling: tuple) -> None:
        ledger = self.ledgers[run]
        attempt = ledger[sibling][0] + 1 if sibling in ledger else 0
        ledger[sibling] = [attempt, "running"]
        self.try_line(run, "attempt_dispatched", sibling, attempt)

    def in_state(self, run: str, *states: str) -> list[tuple]:
        return [sibling for sibling, (_, state) in self.ledgers[run].items() if state in states]

    def play_run(self) -> None:
        run = "abcde"[len(self.ledgers)]
        self.ledgers[run] = {}
        if len(self.ledgers) > 1:
            self.t += self.pick(0, 0.25, 1, 3, 5)
            if not self.rarely(8):
                self.restore(run)
        elif not self.rarely(6):
            for sibling in self.members(0):
                self.dispatch(run, sibling)
        for part in range(self.pick(0, 1, 1, 2, 2)):
            for _ in range(self.pick(0, 1, 2, 3, 4)):
                self.act(run)
            if part == 0 and not self.rarely(4):
                self.snapshot(run)
        for _ in range(self.pick(0, 1, 2, 4, 6)):
            self.act(run)
        if len(self.ledgers) > 1 and self.rarely(6):
            parent = self.pick(*[other for other in self.ledgers if other != run])
            for _ in range(self.pick(1, 2, 4)):
                self.act(parent)

    def act(self, run: str) -> None:
        action, ledger = self.pick(*ACTIONS), self.ledgers[run]
        running = self.in_state(run, "running")
        everything = [(group, index) for group in range(self.groups) for index in range(self.siblings)]
        if action == "dispatch":
            waiting = [sibling for sibling in everything if ledger.get(sibling, [0, "failed"])[1] == "failed"]
            if waiting:
                self.dispatch(run, waiting[0] if self.pick(True, True, False) else self.pick(*waiting))
        elif action == "snapshot":
            self.snapshot(run)
        elif action == "train_step":
            self.say(run, self.pick("train_step_finished", "weights_synced", "restore_finished", "group_admitted"))
        elif action == "foreign":
            self.try_line(run, self.pick("attempt_sealed", "attempt_abandoned"), self.pick(*everything), 0)
        elif action in ("close", "discard") and ledger:
            full = [g for g in range(self.groups) if all(ledger.get(s, "--")[1] == "sealed" for s in self.members(g))]
            if not full and not self.rarely(3):
                return
            group = self.pick(*full) if full and not self.rarely(6) else self.pick(*ledger)[0]
            closing = self.pick("group_sealed", "group_sealed", "group_finalized")
            self.say(run, closing if action == "close" else "group_discarded", **self.names(group))
            for sibling in set(self.members(group)) & ledger.keys():
                ledger[sibling][1] = "closed"
        elif running:
            sibling = self.pick(*running)
            attempt = ledger[sibling][0]
            if action == "supersede":
                self.dispatch(run, sibling)
            elif action == "seal":
                ledger[sibling][1] = "sealed"
                self.try_line(run, "attempt_sealed", sibling, attempt)
            elif action == "abandon":
                ledger[sibling][1] = "failed"
                self.try_line(run, "attempt_abandoned", sibling, attempt, reason=self.pick(*REASONS))

    def members(self, group: int) -> list[tuple]:
        return [(group, index) for index in range(self.siblings)]

    def snapshot(self, run: str) -> None:
        """Cut the ledger, perhaps go on for a line, publish."""
        cut, ledger = self.t + self.pick(0, 0, 0.25, 0.5), deepcopy(self.ledgers[run])
        self.t = cut
        if self.pick(True, False):
            running = self.in_state(run, "running")
            if running and self.pick(True, False):
                self.ledgers[run][running[0]][1] = "sealed"
                self.try_line(run, "attempt_sealed", running[0], self.ledgers[run][running[0]][0])
            else:
                self.dispatch(run, (self.pick(*range(self.groups)), 0))
        self.numbers += self.steps == "global" or (self.steps == "trainer" and self.pick(0, 1))
        number = 1 + sum(snapshot["step"] == self.numbers for snapshot in self.snapshots)
        path = f"/c/step_{self.numbers}/rollout_snapshots/snapshot_{number}"
        fields = {"step": self.numbers, "cut_time": cut} | ({"path": path} if self.bears_path else {})
        self.say(run, "snapshot_published", **fields)
        self.snapshots.append({"step": self.numbers, "number": number, "path": path, "ledger": ledger})

    def path_of(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        form = self.pick(*PATHS)
        step, number = snapshot["step"], snapshot["number"]
        slash = self.pick("", "", "", "/")
        paths = {
            "path": snapshot["path"],
            "anchor": f"/c/step_{step}/rollout_snapshots/snapshot_{number:06d}{slash}",
            "bootstrap": f"/c/bootstrap/rollout_snapshots/snapshot_{number}",
            "step": f"/c/snapshot_{step}{slash}",
            "no number": self.pick("/c/latest", "", "/c/snapshot_"),
            "no form": self.pick(f"/c/step_{step}", f"/c/step_{step}/snapshot_{number}.tmp"),
            "wrong": self.pick(
                *(f"/c/step_{step + 1}/snapshot_{number}", f"/c/step_{step}/x/snapshot_{number + 1}"),
                *(
                    f"/c/step_9/bootstrap/snapshot_{number}",
                    f"/c/my_step_{step}/snapshot_{step}",
                    "/c/step_0/snapshot_0",
                ),
            ),
        }
        return {} if form == "none" else {"path": paths[form]}

    def restore(self, run: str) -> None:
        """Start from a snapshot, mostly the last one: report, seal or drop what it held, and try that again."""
        if not self.snapshots:
            self.say(run, "restore_started", path="/c/step_0")
            return
        snapshot = self.snapshots[-1] if not self.rarely(3) else self.pick(*self.snapshots)
        if self.rarely(6):
            self.say(run, "restore_started", **self.path_of(self.pick(*self.snapshots)))
        self.say(run, "restore_started", **self.path_of(snapshot))
        ledger = self.ledgers[run] = deepcopy(snapshot["ledger"])
        habit = self.pick(*HABITS)
        if habit == "dies":
            return
        if habit == "drops" and ledger:
            dropped = self.pick(*ledger)[0]
            for sibling in [sibling for sibling in ledger if sibling[0] == dropped]:
                del ledger[sibling]
        if habit == "whole groups":
            groups = {group for group, _ in self.in_state(run, "running")}
            reported = [s for s in self.in_state(run, "running", "sealed") if s[0] in groups]
        else:
            reported = self.in_state(run, "running")
        if self.rarely(5):
            reported += self.in_state(run, "failed")[:1]
        for sibling in reported:
            failed = habit == "fails some" and self.pick(True, False)
            if habit != "silent":
                reason = self.pick(*REASONS) if failed else "restart"
                self.try_line(run, "attempt_abandoned", sibling, ledger[sibling][0], reason=reason)
            ledger[sibling][1] = "failed"
        if habit == "finishes":
            self.say(run, "restore_finished")
        elif not self.rarely(4):
            again = [sibling for sibling in reported if not self.rarely(5)]
            again += self.in_state(run, "sealed")[:1] if self.rarely(6) else []
            for sibling in again:
                self.dispatch(run, sibling)


def _damaged(draw: st.DrawFn, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop, double, swap and alter a few lines of half the traces."""
    events = [dict(event) for event in events]
    for _ in range(draw(st.sampled_from((0, 0, 0, 0, 1, 2, 3, 6)))):
        if not events:
            break
        at = draw(st.integers(0, len(events) - 1))
        event = events[at]
        how = draw(
            st.sampled_from(("drop", "double", "swap", "time", "clock", "strip", "strip", "number", "event", "cut"))
        )
        if how == "drop":
            del events[at]
        elif how == "double":
            events.insert(draw(st.integers(at, len(events))), dict(event))
        elif how == "swap":
            other = draw(st.integers(0, len(events) - 1))
            events[at], events[other] = events[other], event
        elif how == "time":
            event["t"] += draw(st.sampled_from((-5, -1, -0.25, 0.25, 1, 5)))
        elif how == "clock":
            for later in [later for later in events[at:] if later["run"] == event["run"]]:
                later["t"] -= draw(st.sampled_from((0.5, 3)))
        elif how == "strip":
            event.pop(draw(st.sampled_from(ALTERED)), None)
        elif how == "number":
            name = draw(st.sampled_from(("generation_index", "attempt", "step")))
            if name in event:
                event[name] = draw(st.integers(0, 2))
        elif how == "event":
            event["event"] = draw(st.sampled_from(EVENTS))
        elif "cut_time" in event:
            event["cut_time"] += draw(st.sampled_from((-3, -0.25, 0.25, 3)))
    return events
