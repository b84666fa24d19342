"""`RecoveryLedger`: the groups under way, their siblings and all attempts, and the one hook that tells of changes.

A small reference for the ledger of NeMo-RL's single controller, with its states:

- attempt: `reserved` -> `dispatched` -> `sealed` | `failed` | `abandoned`; a `retry` adds the next attempt, `reserved`;
- group: `generating` -> `ready_to_finalize` -> `finalizing` -> gone, `finalization_unknown` after a stop in between;
- admission: `reserved` -> `admitted`.

Every change goes through `_tell`, which calls the event sink if there is one. A change of the wrong order is a
`LedgerError` and changes nothing.

With granularity `sibling` sealed siblings survive a restart. With `prompt_group` a group is sealed all at one moment
(`seal_group`), and an unfinished one is thrown away whole.
"""

from collections.abc import Callable, Iterator
from typing import Any

from rtrace_analytics.errors import RtraceError

GRANULARITIES = ("sibling", "prompt_group")

# change of an attempt: states it may come from, state after, reason given
_ATTEMPT_CHANGES: dict[str, tuple[tuple[str, ...], str, str | None]] = {
    "dispatch": (("reserved",), "dispatched", None),
    "seal": (("dispatched",), "sealed", None),
    "fail": (("dispatched",), "failed", "failed"),
    "cancel": (("reserved", "dispatched"), "abandoned", "cancelled"),
    "abandon": (("reserved", "dispatched"), "abandoned", "abandoned"),
    "restart": (("reserved", "dispatched"), "abandoned", "restart"),
    "restart again": (("reserved", "dispatched", "failed", "abandoned"), "abandoned", "restart"),
    "retry": (("failed", "abandoned"), "reserved", None),
}
# change of a group: states it may come from, state after (None: it leaves the ledger)
_GROUP_CHANGES: dict[str, tuple[tuple[str, ...], str | None]] = {
    "admit": (("generating",), "generating"),
    "seal_group": (("generating",), "ready_to_finalize"),
    "start_finalizing": (("ready_to_finalize", "finalization_unknown"), "finalizing"),
    "finalize": (("finalizing",), None),
    "lose_finalization": (("finalizing",), "finalization_unknown"),
    "discard": (("generating", "ready_to_finalize", "finalizing", "finalization_unknown"), None),
    "drop": (("generating", "ready_to_finalize", "finalizing", "finalization_unknown"), None),
}
# the line each change is told by; None: it has none (a retry is told by the dispatch that follows)
EVENT_OF_CHANGE: dict[str, str | None] = {
    "reserve": "group_reserved",
    "admit": "group_admitted",
    "dispatch": "attempt_dispatched",
    "seal": "attempt_sealed",
    "fail": "attempt_abandoned",
    "cancel": "attempt_abandoned",
    "abandon": "attempt_abandoned",
    "restart": "attempt_abandoned",
    "restart again": "attempt_abandoned",
    "retry": None,
    "seal_group": "group_sealed",
    "start_finalizing": "group_finalizing",
    "finalize": "group_finalized",
    "lose_finalization": None,
    "discard": "group_discarded",
    "drop": None,
}


class LedgerError(RtraceError):
    """A change that the state of the group or attempt does not allow, or a group that is not in the ledger."""


class _Attempt:
    """One attempt: `reason` says why it was given up (`failed`, `cancelled`, `restart`, another word), else None."""

    __slots__ = ("reason", "state")

    def __init__(self, state: str, reason: str | None = None) -> None:
        self.state, self.reason = state, reason


class Group:
    """One prompt's siblings; `siblings[i][k]` is attempt k of generation_index i, the last one being the current."""

    __slots__ = ("admission", "group_id", "prompt_id", "siblings", "state")

    def __init__(self, group_id: str, prompt_id: str, siblings: list[list[_Attempt]]) -> None:
        self.group_id, self.prompt_id, self.siblings = group_id, prompt_id, siblings
        self.state, self.admission = "generating", "reserved"


class RecoveryLedger:
    """The groups of one process, by group_id.

    Args:
        granularity: `sibling` or `prompt_group`.
        report_again: NeMo-RL's habit of reporting at a restart, with reason `restart`, also attempts that had failed or
            been cancelled before the stop and not been tried again. Off, they are skipped, for single siblings and for
            whole groups alike.
    """

    def __init__(self, granularity: str = "sibling", *, report_again: bool = False) -> None:
        if granularity not in GRANULARITIES:
            raise LedgerError(f"granularity {granularity!r} is not known: give {' or '.join(GRANULARITIES)}")
        self.granularity = granularity
        self.report_again = report_again
        self.groups: dict[str, Group] = {}
        self._sink: Callable[..., None] | None = None

    def set_event_sink(self, sink: Callable[..., None] | None) -> None:
        """Call `sink(event, **fields)` at every change that has a line; None (a trace that is off) tells nothing.

        The fields are `group_id`, `prompt_id`, and for attempts `generation_index`, `attempt`, with `weight_version` or
        `reason` where known. With no sink nothing is built or copied. `RolloutTrace.sink` fits.
        """
        self._sink = sink

    # --- groups ------------------------------------------------------------------------------------------------------

    def reserve(self, group_id: str, prompt_id: str, siblings: int) -> None:
        """Give a group its place, with attempt 0 of each of its `siblings` reserved."""
        if group_id in self.groups:
            raise LedgerError(f"group {group_id!r} is in the ledger already: give each group an id of its own")
        if siblings < 1:
            raise LedgerError(f"group {group_id!r} has {siblings} siblings: give 1 or more")
        group = Group(group_id, prompt_id, [[_Attempt("reserved")] for _ in range(siblings)])
        self.groups[group_id] = group
        self._tell("reserve", group)

    def admit(self, group_id: str) -> None:
        """Let the siblings of a group be dispatched."""
        group = self.group(group_id)
        if group.admission != "reserved":
            raise LedgerError(f"group {group_id!r} is {group.admission} already: admit a group once")
        self._change_group("admit", group)
        group.admission = "admitted"

    def seal_group(self, group_id: str) -> None:
        """Complete a group: all siblings sealed; with `prompt_group` this seals them, all at this moment."""
        group = self.group(group_id)
        needed = "sealed" if self.granularity == "sibling" else "dispatched"
        for index, attempts in enumerate(group.siblings):
            if attempts[-1].state != needed:
                raise LedgerError(f"group {group_id!r} is not complete: sibling {index} is {attempts[-1].state}")
        for attempts in group.siblings:
            attempts[-1].state = "sealed"
        self._change_group("seal_group", group)

    def start_finalizing(self, group_id: str) -> None:
        """Begin to hand a sealed group to training."""
        self._change_group("start_finalizing", self.group(group_id))

    def finalize(self, group_id: str) -> None:
        """End the hand-over: the group leaves the ledger."""
        self._change_group("finalize", self.group(group_id))

    def lose_finalization(self, group_id: str) -> None:
        """Note that nobody knows whether the hand-over was done (a stop came): it has to be begun again."""
        self._change_group("lose_finalization", self.group(group_id))

    def discard(self, group_id: str) -> None:
        """Throw a group away, and say so."""
        self._change_group("discard", self.group(group_id))

    def drop(self, group_id: str) -> None:
        """Throw a group away without a word, as NeMo-RL does with prompts it finds stale at a restore."""
        self._change_group("drop", self.group(group_id))

    # --- attempts ----------------------------------------------------------------------------------------------------

    def dispatch(self, group_id: str, index: int, weight_version: int | None = None) -> int:
        """Start the reserved attempt of a sibling of an admitted group; return its number."""
        group = self.group(group_id)
        if group.admission != "admitted":
            raise LedgerError(f"group {group_id!r} is only reserved: admit it before a dispatch")
        if weight_version is None:
            return self._change_attempt("dispatch", group, index)
        return self._change_attempt("dispatch", group, index, weight_version=weight_version)

    def seal(self, group_id: str, index: int) -> int:
        """Note that the running attempt has succeeded, under `sibling`; return its number."""
        if self.granularity != "sibling":
            raise LedgerError(f"group {group_id!r}: with prompt_group siblings are sealed by seal_group only")
        return self._change_attempt("seal", self.group(group_id), index)

    def fail(self, group_id: str, index: int) -> int:
        """Note that the running attempt has failed; return its number."""
        return self._change_attempt("fail", self.group(group_id), index)

    def cancel(self, group_id: str, index: int) -> int:
        """Note that the attempt was cancelled from outside; return its number."""
        return self._change_attempt("cancel", self.group(group_id), index)

    def abandon(self, group_id: str, index: int, reason: str = "abandoned") -> int:
        """Give the attempt up for a reason of the caller's own; return its number."""
        if reason in ("restart", "failed", "cancelled"):
            raise LedgerError(f"reason {reason!r} has a method of its own: prepare_for_restart, fail or cancel")
        return self._change_attempt("abandon", self.group(group_id), index, reason=reason)

    def retry(self, group_id: str, index: int) -> int:
        """Reserve the next attempt of a sibling whose last one failed or was given up; return its number."""
        return self._change_attempt("retry", self.group(group_id), index)

    # --- stop and restore --------------------------------------------------------------------------------------------

    def prepare_for_restart(self) -> list[tuple[str, int, int]]:
        """Abandon what was running or reserved at the cut; return the reports as (group_id, generation_index, attempt).

        Groups not admitted yet stay as they are: nothing of them was handed out. Afterwards `retry` is due for every
        other sibling that is not sealed, and `start_finalizing` for every sealed group.
        """
        return [report for group_id in list(self.groups) for report in self.prepare_group_for_restart(group_id)]

    def prepare_group_for_restart(self, group_id: str) -> Iterator[tuple[str, int, int]]:
        """As `prepare_for_restart`, for one group, one report at a time."""
        group = self.group(group_id)
        if group.state == "finalizing":
            self._change_group("lose_finalization", group)
        if group.state != "generating" or group.admission == "reserved":
            return
        change = "restart again" if self.report_again else "restart"
        may = _ATTEMPT_CHANGES[change][0]
        for index, attempts in enumerate(group.siblings):
            if attempts[-1].state in may:
                yield group_id, index, self._change_attempt(change, group, index)

    def unsealed(self, group_id: str) -> list[int]:
        """Return the siblings whose last attempt has failed or was given up: those to `retry`."""
        tried = enumerate(self.group(group_id).siblings)
        return [index for index, attempts in tried if attempts[-1].state in ("failed", "abandoned")]

    def state(self) -> dict[str, Any]:
        """Return the ledger as plain JSON values, sharing nothing with it: what a snapshot holds at its cut."""
        groups = [
            {
                "group_id": group.group_id,
                "prompt_id": group.prompt_id,
                "state": group.state,
                "admission": group.admission,
                "siblings": [[[a.state, a.reason] for a in attempts] for attempts in group.siblings],
            }
            for group in self.groups.values()
        ]
        return {"version": 1, "granularity": self.granularity, "groups": groups}

    @classmethod
    def from_state(cls, state: dict[str, Any], *, report_again: bool = False) -> "RecoveryLedger":
        """Make the ledger that `state()` described; its sink is not set.

        Raises:
            LedgerError: not the state of a ledger of version 1.
        """
        if state.get("version") != 1:
            raise LedgerError(f"ledger version {state.get('version')!r} is not known: give a state of version 1")
        ledger = cls(state["granularity"], report_again=report_again)
        for saved in state["groups"]:
            siblings = [[_Attempt(now, reason) for now, reason in attempts] for attempts in saved["siblings"]]
            group = Group(saved["group_id"], saved["prompt_id"], siblings)
            group.state, group.admission = saved["state"], saved["admission"]
            ledger.groups[group.group_id] = group
        return ledger

    def group(self, group_id: str) -> Group:
        """Return a group of the ledger.

        Raises:
            LedgerError: it is not, or no longer, in the ledger.
        """
        try:
            return self.groups[group_id]
        except KeyError:
            raise LedgerError(f"group {group_id!r} is not in the ledger: reserve it first") from None

    # --- the one way of every change ---------------------------------------------------------------------------------

    def _change_group(self, change: str, group: Group) -> None:
        may, after = _GROUP_CHANGES[change]
        if group.state not in may:
            raise LedgerError(f"group {group.group_id!r} is {group.state}: {change} needs {' or '.join(may)}")
        if after is None:
            del self.groups[group.group_id]
        else:
            group.state = after
        self._tell(change, group)

    def _change_attempt(self, change: str, group: Group, index: int, **said: Any) -> int:
        if group.state != "generating" or not 0 <= index < len(group.siblings):
            raise LedgerError(
                f"group {group.group_id!r}, {group.state}, has {len(group.siblings)} siblings:"
                f" {change} of sibling {index} is not possible"
            )
        attempts = group.siblings[index]
        now = attempts[-1]
        may, after, reason = _ATTEMPT_CHANGES[change]
        if now.state not in may:
            raise LedgerError(
                f"group {group.group_id!r}, sibling {index}, attempt {len(attempts) - 1} is {now.state}:"
                f" {change} needs {' or '.join(may)}"
            )
        if change == "retry":
            attempts.append(_Attempt(after))
        else:
            now.state = after
            if reason is not None:
                said.setdefault("reason", reason)
                now.reason = said["reason"]
        attempt = len(attempts) - 1
        self._tell(change, group, generation_index=index, attempt=attempt, **said)
        return attempt

    def _tell(self, change: str, group: Group, **fields: Any) -> None:
        if self._sink is not None:
            event = EVENT_OF_CHANGE[change]
            if event is not None:
                self._sink(event, group_id=group.group_id, prompt_id=group.prompt_id, **fields)
