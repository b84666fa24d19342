"""What a simulated world remembers of itself: its runs, rollouts and restores, in ticks of 1/1024 s.

Nothing here is read from the trace. A record points to the very rollouts concerned, so that no id has to be matched.
"""

from dataclasses import dataclass, field

SEALED, FAILED, CANCELLED, DISCARDED = "sealed", "failed", "cancelled", "discarded"


@dataclass(eq=False)
class Run:
    """One process. `history`: the runs whose work the snapshot it restored holds, each up to a tick."""

    id: str
    last: int = 0  # of its last line
    stopped: int = 0  # when it was killed or came to its end
    restore: "Restore | None" = None
    history: "dict[Run, int]" = field(default_factory=dict)
    rollouts: "list[Rollout]" = field(default_factory=list)


class Rollout:
    """One dispatched attempt and what became of it in its own run.

    `kind` says how its run ended it, at tick `end`; None while it runs and for ever if its run was stopped first.
    `finished` is when its own generation was done: with `prompt_group` before the group's seal. `dropped_later`: it was
    sealed, and its group was discarded afterwards.
    """

    __slots__ = (
        "attempt",
        "dropped_later",
        "end",
        "finished",
        "group_id",
        "how",
        "index",
        "kind",
        "lost",
        "prompt_id",
        "run",
        "start",
    )

    def __init__(self, run: Run, group_id: str, prompt_id: str, index: int, attempt: int, start: int) -> None:
        self.run, self.group_id, self.prompt_id = run, group_id, prompt_id
        self.index, self.attempt, self.start = index, attempt, start
        self.end = 0
        self.kind: str | None = None
        self.finished: int | None = None
        self.dropped_later = False
        self.lost: Restore | None = None  # set by truth.settle, with `how`
        self.how: str | None = None

    def ended_by(self, tick: int) -> bool:
        """Tell whether its own run had ended it by a tick."""
        return self.kind is not None and self.end <= tick


@dataclass(eq=False)
class Kept:
    """A group with sealed siblings, taken over unfinished by a restore; `mentioned` once a line speaks of it again."""

    sealed: list[Rollout]
    mentioned: bool = False


@dataclass(eq=False)
class Restore:
    """One restore: run `run` from the snapshot that `parent` cut at tick `cut`."""

    run: Run
    parent: Run
    start: int
    cut: int
    step: int
    path: str
    ready: bool = False  # it finished: from here on silence about a group means something
    alive: list[Rollout] = field(default_factory=list)  # running at the cut
    reported: list[Rollout | None] = field(default_factory=list)  # None: only reserved, never dispatched
    silent: list[Rollout] = field(default_factory=list)  # running at the cut, of groups dropped without a word
    kept: list[Kept] = field(default_factory=list)


@dataclass(eq=False)
class Witness:
    """What a snapshot stands for: the rollouts behind its ledger, by group, current attempt by sibling."""

    run: Run
    cut: int
    current: dict[str, list[Rollout | None]]
    kept: dict[str, list[Kept]]
