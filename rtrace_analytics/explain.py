"""Explanations people can check: plain sentences, each with the file and line that says so."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rtrace_analytics import database
from rtrace_analytics.errors import InputError
from rtrace_analytics.text import clean, count, listed, number
from rtrace_analytics.views import FOUND, check_spans

if TYPE_CHECKING:
    import duckdb

Row = dict[str, Any]
Place = tuple[str, int]  # file, line of it from 1
Key = tuple[str, int]  # run, seq of the line in the database

_HOW = {
    "reported": "",
    "silent": "it says nothing of this attempt, which its snapshot held as running",
    "redone": "it does this sibling again, though its snapshot held the attempt as sealed",
    "dropped": "neither it nor a run after it mentions the group again, though its snapshot held the attempt as sealed",
    "after_cut": "the attempt began after that cut: the snapshot knows nothing of it",
    "discarded_branch": "that snapshot is not of this run's line: all of the run was left behind",
}


@dataclass(frozen=True)
class Fact:
    """A sentence and the lines that say so: (file, line) each, the first one first to look at."""

    text: str
    places: tuple[Place, ...]

    def __str__(self) -> str:
        return f"{self.text} [{', '.join(f'{clean(path)}:{line}' for path, line in self.places)}]"


@dataclass(frozen=True)
class Explanation:
    """Facts in the order they are best read in; `str()` is the text, one line a fact."""

    title: str
    facts: tuple[Fact, ...]

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"- {fact}" for fact in self.facts)])

    __repr__ = __str__  # what a notebook shows


def explain(
    con: "duckdb.DuckDBPyConnection",
    *,
    prompt_id: str | None = None,
    restore: str | None = None,
    experiment: str | None = None,
    limit: int = 20,
) -> Explanation:
    """What became of a prompt's attempts, or what a restore threw away, each sentence with the file and line behind it.

    Args:
        con: The database.
        prompt_id: The prompt (or the group, where lines name no prompt).
        restore: The run that restored.
        experiment: Which one; may be left away where only one has it.
        limit: At most so many lost attempts of a restore are told one by one, the costliest.

    Raises:
        InputError: neither or both are given, or there is no such prompt, restore or experiment.
    """
    check_spans(con)
    if (prompt_id is None) == (restore is None):
        raise InputError("explain takes a prompt or a restore: give one of the two")
    if prompt_id is not None:
        return _prompt(con, str(prompt_id), experiment)
    assert restore is not None
    return _restore(con, str(restore), experiment, limit)


def _number(value: float) -> str:
    """A moment or length to a microsecond, without the noise of a difference."""
    return number(value, 6)


class _Story:
    """Facts as they are told; keys of lines are turned into files and lines all at once at the end."""

    def __init__(self, experiment: str) -> None:
        self.experiment = experiment
        self.told: list[tuple[str, list[Key]]] = []

    def tell(self, text: str, *keys: Key | None) -> None:
        self.told.append((text, list(dict.fromkeys(key for key in keys if key is not None))))

    def end(self, con: "duckdb.DuckDBPyConnection", title: str) -> Explanation:
        keys = sorted({key for _, found in self.told for key in found})
        runs, seqs = [run for run, _ in keys], [seq for _, seq in keys]
        rows = _rows(con, "places", experiment=self.experiment, runs=runs, seqs=seqs)
        places = {(run, seq): (path, line) for run, seq, path, line in (row.values() for row in rows)}
        return Explanation(title, tuple(Fact(text, tuple(places[key] for key in found)) for text, found in self.told))


def _rows(con: "duckdb.DuckDBPyConnection", step: str, **parameters: Any) -> list[Row]:
    found = database.run_step(con, "explain.sql", step, parameters)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _names(con: "duckdb.DuckDBPyConnection", step: str, **parameters: Any) -> list[str]:
    """The one column of a step's rows."""
    return [name for row in _rows(con, step, **parameters) for name in row.values()]


def _only(word: str, name: str, experiment: str | None, there: Iterable[str], known: list[str]) -> str:
    """The experiment that has it. Raises `InputError`."""
    having = [found for found in there if experiment in (None, found)]
    if len(having) == 1:
        return having[0]
    if having:
        raise InputError(f"{word} {name!r} is in experiments {', '.join(map(repr, having))}: name one")
    where = "" if experiment is None else f" in experiment {experiment!r}"
    raise InputError(f"no {word} {name!r}{where}: {listed(known)}")


# A prompt


def _prompt(con: "duckdb.DuckDBPyConnection", prompt_id: str, experiment: str | None) -> Explanation:
    there = _names(con, "experiments_of_prompt", prompt=prompt_id)
    known = [] if experiment in (None, *there) and there else _names(con, "prompts", experiment=experiment)
    name = _only("prompt", prompt_id, experiment, there, known)
    spans = _rows(con, "spans_of_prompt", experiment=name, prompt=prompt_id)
    story = _Story(name)
    groups = {span["group_key"] for span in spans}
    for span in spans:
        _tell_span(story, span, name_group=len(groups) > 1)
        if span["span_id"] == span["last_of_group"]:
            for line in _rows(con, "group_lines", experiment=name, group=span["group_key"]):
                did = line["event"].removeprefix("group_")
                text = f"Group {clean(span['group_key'])}: {did} by run {clean(line['run'])} at {_number(line['t'])}."
                story.tell(text, (line["run"], line["seq"]))
    lost = [span for span in spans if span["fate"] == "restart"]
    total, lost_s = sum(span["duration_s"] for span in spans), sum(span["duration_s"] for span in lost)
    stops = len({span["lost_by_run"] for span in lost})
    text = f"In all: {count(len(spans), 'attempt')} of {count(len(groups), 'group')} ran {_number(total)} s; "
    text += f"{count(len(lost), 'attempt')} of {_number(lost_s)} s lost to {count(stops, 'stop')}."
    story.tell(text if lost else text.split(";")[0] + "; none was lost to a stop.", *map(_dispatch, lost or spans))
    return story.end(con, f"Prompt {clean(prompt_id)} of experiment {clean(name)}")


def _dispatch(span: Row) -> Key:
    return span["run"], span["seq"]


def _tell_span(story: _Story, span: Row, *, name_group: bool) -> None:
    what = _name(span) + (f" of group {clean(span['group_key'])}" if name_group else "")
    run, start_t = clean(span["run"]), span["start_t"]
    again = " again" if span["is_again"] else ""
    story.tell(f"{what} was dispatched{again} by run {run} at {_number(start_t)}.", _dispatch(span))
    if span["end_kind"] is None:
        text = f"Nothing in run {run} ends it; the run's latest line is at {_number(span['end_t'])}: "
        story.tell(text + f"it ran at least {_number(span['duration_s'])} s.", _last(span))
    else:
        text = f"{_ended(span)} at {_number(span['end_t'])}, after {_number(span['duration_s'])} s."
        story.tell(text, (span["run"], span["end_seq"]))
    if span["fate"] == "restart":
        _tell_loss(story, span)
    for report in span["repeats"] or []:
        text = f"Run {clean(report['run'])} abandons it with reason restart at {_number(report['t'])}: "
        story.tell(text + _VERDICTS[report["verdict"]], (report["run"], report["seq"]))


_VERDICTS = {
    "repeated": "it was lost or over before, so this counts nothing.",
    "not_stopped": "its run had not stopped, so this counts nothing.",
    "unresolved": "which snapshot was restored is not known, so the two parts of the loss are not.",
}


def _name(span: Row) -> str:
    sibling = "A sibling" if span["generation_index"] is None else f"Sibling {span['generation_index']}"
    return sibling if span["attempt"] is None else f"{sibling}, attempt {span['attempt']},"


def _ended(span: Row) -> str:
    kinds = {
        "sealed": "It was sealed",
        "failed": "It failed",
        "cancelled": "It was cancelled",
        "discarded": "Its group was discarded",
        "superseded": "Its sibling was dispatched again, with no word on this attempt,",
    }
    return kinds.get(span["end_kind"], f"It was abandoned with reason {clean(span['end_kind'])}")


def _last(span: Row) -> Key:
    return span["run"], span["run_last_seq"]


def _tell_loss(story: _Story, span: Row) -> None:
    by = clean(span["lost_by_run"])
    restore, snapshot = (span["lost_by_run"], span["restore_seq"]), None
    if span["cut_t"] is None:
        story.tell(f"Run {by} restored at {_number(span['restore_t'])}, from a snapshot that is not known.", restore)
    else:
        snapshot = (span["parent_run"], span["snapshot_seq"])
        of = clean(span["parent_run"])
        story.tell(f"Run {of} published a snapshot cut at {_number(span['cut_t'])}.", snapshot)
        if span["end_kind"] is not None:
            text = f"Run {clean(span['run'])} stopped: its latest line is at {_number(span['run_last_t'])}."
            story.tell(text, _last(span))
        text = f"Run {by} restored that snapshot at {_number(span['restore_t'])}"
        how = _HOW[span["lost_how"]]
        story.tell(f"{text}; {how}." if how else f"{text}.", restore)
    report = None if span["report_seq"] is None else (span["lost_by_run"], span["report_seq"])
    if report is not None:
        story.tell(f"Run {by} abandoned the attempt with reason restart at {_number(span['report_t'])}.", report)
    story.tell(f"It cost {_cost(span)}.", _dispatch(span), snapshot, _end(span))


def _end(span: Row) -> Key:
    return (span["run"], span["end_seq"]) if span["end_seq"] is not None else _last(span)


def _cost(span: Row) -> str:
    """The loss of a span as a sum that can be done by hand."""
    if span["cut_t"] is None:
        return f"{_number(span['duration_s'])} s; how much of it before the cut is not known"
    start_t, end_t, cut_t = span["start_t"], span["end_t"], span["cut_t"]
    if cut_t <= start_t:
        return f"{_number(end_t)} - {_number(start_t)} = {_number(span['never_saved_s'])} s that no snapshot saved"
    before = f"{_number(min(cut_t, end_t))} - {_number(start_t)} = {_number(span['thrown_away_s'])} s thrown away"
    if end_t <= cut_t:
        return f"{before}, all before the cut"
    after = f"{_number(end_t)} - {_number(cut_t)} = {_number(span['never_saved_s'])} s after it never saved"
    return f"{before}, before the cut, and {after}: {_number(span['duration_s'])} s"


# A restore


def _restore(con: "duckdb.DuckDBPyConnection", run: str, experiment: str | None, limit: int) -> Explanation:
    there = _names(con, "experiments_of_restore", run=run)
    known = [] if there else _names(con, "restoring_runs", experiment=experiment)
    name = _only("restore by run", run, experiment, there, known)
    (row,) = _rows(con, "restore", experiment=name, run=run)
    story, by = _Story(name), clean(run)
    path = "no path" if row["path"] is None else f"path {clean(row['path'])}"
    story.tell(f"Run {by} started to restore at {_number(row['restore_t'])}, {path}.", (run, row["restore_seq"]))
    if row["parent_run"] is None:
        text = f"Which snapshot that was is not in these traces: its {row['reported']:,} reports cannot be reckoned."
        story.tell(text, (run, row["restore_seq"]))
        return story.end(con, f"Restore by run {by} of experiment {clean(name)}")
    parent, snapshot = clean(row["parent_run"]), (row["parent_run"], row["snapshot_seq"])
    text = f"The snapshot was cut at {_number(row['cut_t'])} by run {parent} and published at "
    text += f"{_number(row['published_t'])}: found {FOUND[row['match']]}"
    against = f"; {row['contradictions']} things speak against it" if row["contradictions"] else ""
    story.tell(f"{text}{against}.", snapshot)
    last = (row["parent_run"], row["parent_last_seq"])
    if row["went_on"]:
        text = f"Run {parent} went on until {_number(row['stop_t'])}: a fork, it was not stopped and lost nothing."
    else:
        text = f"Run {parent} stopped: its latest line is at {_number(row['stop_t'])}"
        text += f", {_number(row['stop_t'] - row['cut_t'])} s after the cut."
    story.tell(text, last)
    if row["first_dispatch_seq"] is not None:
        text = f"Run {by} dispatched again at {_number(row['first_dispatch_t'])}."
        story.tell(text, (run, row["first_dispatch_seq"]))
    spans = _rows(con, "spans_of_restore", experiment=name, run=run)
    for span in spans[:limit]:
        _tell_lost(story, span, snapshot)
    if spans[limit:]:
        rest = sum(span["duration_s"] for span in spans[limit:])
        text = f"It lost {count(len(spans) - limit, 'more attempt')}, {_number(rest)} s"
        story.tell(f"{text}; their dispatches begin with the one shown.", _dispatch(spans[limit]))
    _tell_sum(story, row, run, snapshot, last)
    return story.end(con, f"Restore by run {by} of experiment {clean(name)}")


def _tell_lost(story: _Story, span: Row, snapshot: Key) -> None:
    report = None if span["report_seq"] is None else (span["lost_by_run"], span["report_seq"])
    how = "reported as abandoned" if span["lost_how"] == "reported" else _HOW[span["lost_how"]]
    prompt = (
        f"Prompt {clean(span['prompt_id'])}" if span["prompt_id"] is not None else f"Group {clean(span['group_key'])}"
    )
    what = f"{prompt}, {_name(span)[0].lower()}{_name(span)[1:].rstrip(',')}, dispatched by run {clean(span['run'])}"
    end = "" if span["end_kind"] is None else f", sealed at {_number(span['end_t'])}"
    story.tell(f"{what}{end}: {_cost(span)}; {how}.", _dispatch(span), _end(span), report, snapshot)


def _tell_sum(story: _Story, row: Row, run: str, snapshot: Key, last: Key) -> None:
    text = f"In all it lost {count(row['lost_attempts'], 'attempt')}: {_number(row['thrown_away_s'])} s "
    text += f"thrown away + {_number(row['never_saved_s'])} s never saved = {_number(row['lost_s'])} s."
    story.tell(text, (run, row["restore_seq"]), snapshot, last)
    if row["first_report_seq"] is not None:
        verdicts = ("counted", "repeated", "never_dispatched", "unresolved", "not_stopped")
        each = ", ".join(f"{row[name]} {name.replace('_', ' ')}" for name in verdicts if row[name])
        text = f"Run {clean(run)} reports {count(row['reported'], 'attempt')} as abandoned: {each}"
        naive = f"; counted each time, without regard to earlier losses, they would make {_number(row['naive_s'])} s"
        story.tell(f"{text}{naive}.", (run, row["first_report_seq"]), (run, row["last_report_seq"]))


def sentences(explanation: Explanation) -> Iterator[tuple[str, str, int, str]]:
    """Rows (text, file, line, all lines as file:line) of an explanation, for programs."""
    for fact in explanation.facts:
        path, line = fact.places[0]
        yield fact.text, path, line, " ".join(f"{path}:{line}" for path, line in fact.places)
