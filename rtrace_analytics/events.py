"""The event list: every event of a rollout trace, its fields, their types and units, and whose name it is.

One event is one JSON object on a line of `rollout_trace.jsonl`. `COMMON` fields stand on every line, `OPTIONAL` ones
may stand on any. Everything else a line bears is kept in the column `extra` of the table `events`.
"""

from dataclasses import dataclass

PR = "NeMo-RL PR #5048"
OURS = "ours: upstream has such an event, its name there is not known"
OURS_ONLY = "ours: of the writer in rtrace_analytics.recording"


@dataclass(frozen=True)
class Field:
    """A field of an event: its SQL type in the table `events`, its unit (None where it has none) and its meaning."""

    name: str
    sql_type: str
    unit: str | None
    meaning: str


@dataclass(frozen=True)
class Event:
    """An event: the fields it bears beside the common ones, what it says, and where its name comes from."""

    name: str
    fields: tuple[str, ...]
    meaning: str
    source: str


COMMON = (
    Field("t", "DOUBLE", "seconds since the epoch, wall clock", "when the line was emitted"),
    Field("run", "VARCHAR", None, "the process that wrote it: a new id per process"),
    Field("event", "VARCHAR", None, "what happened"),
)

OPTIONAL = (
    Field("group_id", "VARCHAR", None, "the group: the siblings made from one prompt at one time"),
    Field("prompt_id", "VARCHAR", None, "the prompt; it may come again in a later epoch"),
    Field("generation_index", "INTEGER", None, "the sibling: 0 to n-1 within its group"),
    Field("attempt", "INTEGER", None, "the attempt of a sibling: 0, 1, ..."),
    Field("reason", "VARCHAR", None, "why an attempt was abandoned: restart, failed, cancelled or another word"),
    Field("step", "BIGINT", None, "the trainer step"),
    Field("cut_time", "DOUBLE", "seconds since the epoch, wall clock", "the moment a snapshot holds"),
    Field("path", "VARCHAR", None, "the snapshot or checkpoint on disk"),
    Field("weight_version", "BIGINT", None, "the weights in use"),
    Field("tokens", "BIGINT", "tokens", "tokens generated"),
    Field("reward", "DOUBLE", None, "the reward given"),
)

FIELDS = COMMON + OPTIONAL

_ATTEMPT = ("prompt_id", "generation_index", "attempt")

EVENTS = (
    Event("attempt_dispatched", _ATTEMPT, "an attempt of a sibling starts", PR),
    Event("attempt_sealed", _ATTEMPT, "an attempt has succeeded", PR),
    Event(
        "attempt_abandoned", (*_ATTEMPT, "reason"), "an attempt is given up; reason restart: by the restoring run", PR
    ),
    Event("group_sealed", ("prompt_id",), "a group is complete; it seals the attempts of it still open", PR),
    Event("snapshot_published", ("step", "cut_time"), "a snapshot of the ledger is safe on disk", PR),
    Event("restore_started", ("path",), "a process starts from a snapshot", PR),
    Event("restore_finished", (), "the restore is done", OURS),
    Event("group_reserved", ("prompt_id",), "a group has its place in the ledger", OURS),
    Event("group_admitted", ("prompt_id",), "a group may be dispatched", OURS),
    Event("group_finalizing", ("prompt_id",), "a group is being handed to training", OURS),
    Event("group_finalized", ("prompt_id",), "a group has been handed to training", OURS),
    Event("group_discarded", ("prompt_id",), "a group is dropped, stale say", OURS),
    Event("train_step_started", ("step",), "a trainer step starts", OURS),
    Event("train_step_finished", ("step",), "a trainer step is done", OURS),
    Event("weights_synced", ("weight_version",), "the rollout workers have new weights", OURS),
    Event("trace_dropped", ("dropped",), "the writer's queue was full: so many events were not written", OURS_ONLY),
)
