"""RecoveryLedger: which orders of changes are right, what each tells the sink, what a restart reports."""

import json
from typing import Any

import pytest

from rtrace_analytics.events import EVENTS
from rtrace_analytics.recording import LedgerError, RecoveryLedger
from rtrace_analytics.recording.ledger import EVENT_OF_CHANGE


def ledger(granularity: str = "sibling", **options: Any) -> tuple[RecoveryLedger, list[str]]:
    """Return a ledger and the list its sink appends to: events as `name index/attempt reason`."""
    told: list[str] = []
    book = RecoveryLedger(granularity, **options)
    book.set_event_sink(lambda event, **fields: told.append(short(event, fields)))
    return book, told


def short(event: str, fields: dict[str, Any]) -> str:
    assert fields["group_id"] == "g"
    assert fields["prompt_id"] == "7"
    parts = [event]
    if "generation_index" in fields:
        parts.append(f"{fields['generation_index']}/{fields['attempt']}")
    parts += [str(fields[key]) for key in ("weight_version", "reason") if key in fields]
    return " ".join(parts)


def do(book: RecoveryLedger, changes: str) -> None:
    """Do changes written as `name` or `name:argument`, on group g with two siblings."""
    for change in changes.split():
        name, _, argument = change.partition(":")
        arguments: tuple[Any, ...] = (int(argument),) if argument else ()
        if name == "reserve":
            arguments = ("7", 2)
        getattr(book, name)("g", *arguments)


BEGIN = "reserve admit dispatch:0 dispatch:1"
BEGIN_TOLD = ["group_reserved", "group_admitted", "attempt_dispatched 0/0", "attempt_dispatched 1/0"]

RIGHT_ORDERS = {
    "all goes well": (
        f"{BEGIN} seal:1 seal:0 seal_group start_finalizing finalize",
        ["attempt_sealed 1/0", "attempt_sealed 0/0", "group_sealed", "group_finalizing", "group_finalized"],
    ),
    "failed, cancelled and tried again": (
        f"{BEGIN} fail:0 cancel:1 retry:1 retry:0 dispatch:0 dispatch:1",
        [
            "attempt_abandoned 0/0 failed",
            "attempt_abandoned 1/0 cancelled",
            "attempt_dispatched 0/1",
            "attempt_dispatched 1/1",
        ],
    ),
    "given up for another reason": (f"{BEGIN} abandon:0", ["attempt_abandoned 0/0 abandoned"]),
    "discarded while it runs": (f"{BEGIN} seal:0 discard", ["attempt_sealed 0/0", "group_discarded"]),
    "discarded when sealed": (
        f"{BEGIN} seal:0 seal:1 seal_group discard",
        ["attempt_sealed 0/0", "attempt_sealed 1/0", "group_sealed", "group_discarded"],
    ),
    "dropped without a word": (f"{BEGIN} drop", []),
    "hand-over begun again": (
        f"{BEGIN} seal:0 seal:1 seal_group start_finalizing lose_finalization start_finalizing finalize",
        [
            "attempt_sealed 0/0",
            "attempt_sealed 1/0",
            "group_sealed",
            "group_finalizing",
            "group_finalizing",
            "group_finalized",
        ],
    ),
}


@pytest.mark.parametrize("case", RIGHT_ORDERS)
def test_right_orders(case: str) -> None:
    changes, told_after = RIGHT_ORDERS[case]
    book, told = ledger()
    do(book, changes)
    assert told == BEGIN_TOLD + told_after


WRONG_ORDERS = [
    ("admit", "group 'g' is not in the ledger: reserve it first"),
    ("reserve reserve", "group 'g' is in the ledger already"),
    ("reserve admit admit", "group 'g' is admitted already"),
    ("reserve dispatch:0", "group 'g' is only reserved: admit it before a dispatch"),
    ("reserve admit seal:0", "sibling 0, attempt 0 is reserved: seal needs dispatched"),
    ("reserve admit retry:0", "sibling 0, attempt 0 is reserved: retry needs failed or abandoned"),
    ("reserve admit dispatch:2", "has 2 siblings: dispatch of sibling 2 is not possible"),
    ("reserve admit dispatch:-1", "has 2 siblings: dispatch of sibling -1 is not possible"),
    (f"{BEGIN} dispatch:0", "sibling 0, attempt 0 is dispatched: dispatch needs reserved"),
    (f"{BEGIN} seal:0 seal:0", "is sealed: seal needs dispatched"),
    (f"{BEGIN} seal:0 fail:0", "is sealed: fail needs dispatched"),
    (f"{BEGIN} fail:0 seal:0", "is failed: seal needs dispatched"),
    (f"{BEGIN} fail:0 cancel:0", "is failed: cancel needs reserved or dispatched"),
    (f"{BEGIN} fail:0 fail:0", "is failed: fail needs dispatched"),
    (f"{BEGIN} seal:0 seal_group", "group 'g' is not complete: sibling 1 is dispatched"),
    (f"{BEGIN} start_finalizing", "is generating: start_finalizing needs ready_to_finalize"),
    (f"{BEGIN} seal:0 seal:1 seal_group seal_group", "is ready_to_finalize: seal_group needs generating"),
    (f"{BEGIN} seal:0 seal:1 seal_group fail:0", "'g', ready_to_finalize, has 2 siblings: fail of sibling 0"),
    (f"{BEGIN} seal:0 seal:1 seal_group finalize", "is ready_to_finalize: finalize needs finalizing"),
    (f"{BEGIN} discard discard", "group 'g' is not in the ledger"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG_ORDERS)
def test_wrong_orders_change_and_tell_nothing(changes: str, message: str) -> None:
    before, _, last = changes.rpartition(" ")
    book, told = ledger()
    do(book, before)
    state, said = book.state(), list(told)
    with pytest.raises(LedgerError, match=message):
        do(book, last)
    assert book.state() == state
    assert told == said


def test_a_group_sealed_all_at_one_moment() -> None:
    book, told = ledger("prompt_group")
    do(book, BEGIN)
    with pytest.raises(LedgerError, match="sealed by seal_group only"):
        book.seal("g", 0)
    book.seal_group("g")
    assert told == [*BEGIN_TOLD, "group_sealed"]


def test_dispatch_tells_its_weights_and_abandon_its_reason() -> None:
    book, told = ledger()
    do(book, "reserve admit")
    assert book.dispatch("g", 1, weight_version=3) == 0
    book.abandon("g", 1, "timeout")
    assert told[2:] == ["attempt_dispatched 1/0 3", "attempt_abandoned 1/0 timeout"]
    with pytest.raises(LedgerError, match="reason 'restart' has a method of its own"):
        book.abandon("g", 0, "restart")


def test_every_change_is_told_by_a_known_event() -> None:
    assert {event for event in EVENT_OF_CHANGE.values() if event} <= {event.name for event in EVENTS}


def test_without_a_sink_all_works_alike() -> None:
    quiet, (loud, _) = RecoveryLedger(), ledger()
    for book in (quiet, loud):
        do(book, f"{BEGIN} seal:0 fail:1 retry:1 dispatch:1")
    assert quiet.state() == loud.state()


# what is reported at a restart, by ours and by NeMo-RL's habit: changes before the cut, granularity, then both
RESTARTS = {
    "running": ("sibling", BEGIN, ["0/0", "1/0"], ["0/0", "1/0"]),
    "sealed sibling survives": ("sibling", f"{BEGIN} seal:0", ["1/0"], ["1/0"]),
    "not admitted": ("sibling", "reserve", [], []),
    "only reserved": ("sibling", "reserve admit dispatch:0", ["0/0", "1/0"], ["0/0", "1/0"]),
    "failed before the cut": ("sibling", f"{BEGIN} fail:0", ["1/0"], ["0/0", "1/0"]),
    "cancelled before the cut": ("sibling", f"{BEGIN} cancel:1", ["0/0"], ["0/0", "1/0"]),
    "failed, then tried again": ("sibling", f"{BEGIN} fail:0 retry:0 dispatch:0", ["0/1", "1/0"], ["0/1", "1/0"]),
    "sealed group": ("sibling", f"{BEGIN} seal:0 seal:1 seal_group", [], []),
    "whole group": ("prompt_group", BEGIN, ["0/0", "1/0"], ["0/0", "1/0"]),
    "whole group, one failed": ("prompt_group", f"{BEGIN} fail:0 cancel:1", [], ["0/0", "1/0"]),
    "whole group, sealed": ("prompt_group", f"{BEGIN} seal_group", [], []),
}


@pytest.mark.parametrize("again", [False, True], ids=["ours", "upstream"])
@pytest.mark.parametrize("case", RESTARTS)
def test_restart(case: str, again: bool) -> None:
    granularity, changes, ours, upstream = RESTARTS[case]
    before, _ = ledger(granularity)
    do(before, changes)
    saved = json.loads(json.dumps(before.state()))
    book = RecoveryLedger.from_state(saved, report_again=again)
    assert book.state() == before.state()
    told: list[str] = []
    book.set_event_sink(lambda event, **fields: told.append(short(event, fields)))
    reports = book.prepare_for_restart()
    expected = upstream if again else ours
    assert [f"{index}/{attempt}" for _, index, attempt in reports] == expected
    assert told == [f"attempt_abandoned {report} restart" for report in expected]
    if book.group("g").state == "generating" and book.group("g").admission == "admitted":
        left = [index for index, tries in enumerate(book.group("g").siblings) if tries[-1].state != "sealed"]
        assert book.unsealed("g") == left  # all of them can be tried again
        for index in left:
            assert book.retry("g", index) == book.dispatch("g", index)


def test_a_hand_over_cut_in_two_is_begun_again() -> None:
    before, _ = ledger()
    do(before, f"{BEGIN} seal:0 seal:1 seal_group start_finalizing")
    book = RecoveryLedger.from_state(before.state())
    assert book.prepare_for_restart() == []
    assert book.group("g").state == "finalization_unknown"
    do(book, "start_finalizing finalize")
    assert book.groups == {}


def test_failed_and_cancelled_are_told_apart_in_the_state() -> None:
    book, _ = ledger()
    do(book, f"{BEGIN} fail:0 cancel:1")
    assert book.state() == {
        "version": 1,
        "granularity": "sibling",
        "groups": [
            {
                "group_id": "g",
                "prompt_id": "7",
                "state": "generating",
                "admission": "admitted",
                "siblings": [[["failed", "failed"]], [["abandoned", "cancelled"]]],
            }
        ],
    }


def test_bad_arguments() -> None:
    with pytest.raises(LedgerError, match="granularity 'turn' is not known: give sibling or prompt_group"):
        RecoveryLedger("turn")
    with pytest.raises(LedgerError, match="group 'g' has 0 siblings: give 1 or more"):
        RecoveryLedger().reserve("g", "7", 0)
    with pytest.raises(LedgerError, match="ledger version 2 is not known"):
        RecoveryLedger.from_state({"version": 2})
