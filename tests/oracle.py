"""A second, plain and slow reading of `semantics.md`, sections 2 to 5, to hold the project's SQL against.

It shares no code with the package. Where the text is silent it reads:

- Lines of any event tell which group_id a prompt bears; only `attempt_*` and `group_*` lines are given a group.
- A run begins at the t of its first line (not its least t). Runs, and restores of equal t, go by (that t, run id).
- A run's restore is the last `restore_started` before its first dispatch; one only after that dispatch is none at all.
  Its reports, seals and mentions are those of the whole run, also of lines before its restore line.
- Reports without attempt or group are distinct by (group, generation_index, attempt), None being a value.
- A restart line without attempt names no attempt; another line without attempt its run's open span of that sibling.
- The very path: the latest candidate that bears it; a bearer that is no candidate names nothing. "" is no path.
- "Began before" compares the t of first lines and does not leave out the restoring run itself.
- Without a name the prompts count in the ranking and in "nothing against it". A prompt counts if the first dispatch
  of it (by seq) in the candidate's run has t > cut; a dispatch without prompt id stands for its group.
- A chain of histories ends at an unknown cut, and before a run that it already holds.
- `running` and `closed` look at lines later than the dispatch. A descendant in the history that seals an attempt, or
  its group, before it dispatches the sibling anew, has ended it there. A `group_sealed` that ends a span closes its
  group.
- "After", "before T" are strict. (c) unreported: r has no report of that attempt, whichever dispatch it would match.
- A running span that r abandons: r's first line abandoning it before r dispatches its sibling decides, `restart` or a
  reason of its own. Such a reason settles the fate for later restores, even if the own run sealed it or went on.
- Verdicts, first that applies: unresolved, never_dispatched, not_stopped, counted, repeated. A report's `span` is the
  dispatch found in the history; with an unknown cut the one it takes, else None.
- Sealed by the run that restored it: `attempt_sealed` or `group_sealed` there before it dispatches that sibling.
- `discarded` after a seal: that seal must lie in the history of the discarding run; it may be the restorer's seal.
"""

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

DISPATCH, SEAL, ABANDON, PUBLISH = "attempt_dispatched", "attempt_sealed", "attempt_abandoned", "snapshot_published"
VERDICTS = ("counted", "repeated", "never_dispatched", "unresolved", "not_stopped")
History = dict[str, float]  # the runs of a chain, the parent first, and the t up to which the events of each belong


@dataclass
class Figures:
    """Rows of the restores, spans and reports of one experiment, and the seconds of each fate."""

    restores: list[dict[str, Any]]
    spans: list[dict[str, Any]]
    reports: list[dict[str, Any]]
    seconds: dict[str, float]


class Line:
    """One event; `pos` is its place in its run, `key` the (group, generation_index, attempt) it names."""

    def __init__(self, event: dict[str, Any], position: int) -> None:
        self.run, self.t, self.event = event["run"], event["t"], event["event"]
        self.group_id, self.prompt = event.get("group_id"), event.get("prompt_id")
        self.index, self.attempt = event.get("generation_index"), event.get("attempt")
        self.step, self.cut, self.path = event.get("step"), event.get("cut_time"), event.get("path")
        self.reason = "abandoned" if event.get("reason") is None else event["reason"]
        self.seq, self.pos = event.get("seq", position), 0
        self.group, self.sibling, self.key = self.group_id, None, None
        self.in_a_group = self.event.startswith(("attempt_", "group_"))


@dataclass(eq=False)
class Span:
    """One dispatch: its `line`, the line that ends it, and what became of it."""

    line: Line
    bound: float
    end: Line | None = None
    kind: str | None = None
    sealed: bool = False
    fate: str | None = None
    lost_to: "Restore | None" = None
    how: str | None = None


@dataclass(eq=False)
class Restore:
    """The counted restore of a run; `snapshot` is the published line it took, None when the cut is unknown."""

    run: str
    line: Line
    acted: bool
    order: tuple
    reports: set[tuple]
    snapshot: Line | None = None
    match: str | None = None
    contradictions: int | None = None


def reckon(events: list[dict[str, Any]]) -> Figures:
    """Return the figures of the events of one experiment."""
    x = _Experiment(events)
    spans = [x.span_row(span) for span in x.spans]
    reports = [x.report_row(run, key) for run in x.runs for key in x.reports(run)]
    fates = {row["fate"] for row in spans}
    seconds = {fate: sum(row["duration_s"] for row in spans if row["fate"] == fate) for fate in fates}
    return Figures([x.restore_row(r, spans, reports) for r in x.restores.values()], spans, reports, seconds)


def within(line: Line | None, history: History) -> bool:
    return line is not None and line.run in history and line.t <= history[line.run]


def place(line: Line, history: History) -> tuple[int, int]:
    """Order lines within a chain: a descendant's are later than its ancestor's."""
    return (-list(history).index(line.run), line.pos)


def ends(line: Line, span: Span) -> bool:
    """Tell whether a line of a restoring run abandons or seals the attempt of a span, or seals its group."""
    of_attempt = line.event in (SEAL, ABANDON) and line.key == span.line.key
    return of_attempt or (line.event == "group_sealed" and line.group == span.line.group)


def path_form(path: str | None) -> tuple[str | None, int, int]:
    """Return (match, N, K) by the forms 2 to 4 of a restore's path; match None where it names nothing."""
    if not path or not re.search("[0-9]", path):
        return "latest", 0, 0
    *above, last = path.rstrip("/").split("/")
    if not (number := re.fullmatch("snapshot_([0-9]+)", last)):
        return None, 0, 0
    for part in reversed(above):
        if anchor := re.fullmatch("step_([0-9]+)|bootstrap", part):
            return "anchor", int(anchor[1] or 0), int(number[1])
    return "step", 0, int(number[1])


class _Experiment:
    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.runs: dict[str, list[Line]] = defaultdict(list)
        for position, event in enumerate(events):
            self.runs[event["run"]].append(Line(event, position))
        for lines in self.runs.values():
            lines.sort(key=lambda line: line.seq)
            for pos, line in enumerate(lines):
                line.pos = pos
        self.lines = [line for lines in self.runs.values() for line in lines]
        self.began = {run: (lines[0].t, run) for run, lines in self.runs.items()}
        self.stop_t = {run: max(line.t for line in lines) for run, lines in self.runs.items()}
        self.resolve_groups()
        self.of_group: dict[str | None, list[Line]] = defaultdict(list)
        for line in [line for line in self.lines if line.in_a_group]:
            line.sibling = (line.group, line.index)
            self.of_group[line.group].append(line)
        self.spans = [span for run in sorted(self.runs, key=self.began.get) for span in self.run_spans(self.runs[run])]
        restores = [restore for run in self.runs if (restore := self.counted_restore(run))]
        self.restores = {restore.run: restore for restore in sorted(restores, key=lambda r: r.order)}
        for restore in self.restores.values():
            self.choose_snapshot(restore)
        self.settle_fates()

    def resolve_groups(self) -> None:
        both = [line for line in self.lines if line.group_id is not None and line.prompt is not None]
        for line in self.lines:
            if line.in_a_group and line.group_id is None and line.prompt is not None:
                here = [o.group_id for o in both if o.run == line.run and o.pos < line.pos and o.prompt == line.prompt]
                only = {other.group_id for other in both if other.prompt == line.prompt}
                line.group = here[-1] if here else only.pop() if len(only) == 1 else line.prompt
        dispatched = [line for line in self.lines if line.event == DISPATCH and line.group is not None]
        for line in [line for line in self.lines if line.in_a_group and line.group is None]:
            groups = {other.group for other in dispatched if other.index == line.index}
            line.group = groups.pop() if len(groups) == 1 and line.index is not None else None

    def run_spans(self, lines: list[Line]) -> list[Span]:
        """Return the spans of one run, and give its attempt lines their keys."""
        spans: list[Span] = []
        for line in [line for line in lines if line.in_a_group and line.group is not None]:
            still_open = [span for span in spans if span.end is None and span.line.group == line.group]
            own = [span for span in still_open if span.line.index == line.index]
            restart = line.event == ABANDON and line.reason == "restart"
            ended, kind = [], line.event.removeprefix("group_")
            if line.attempt is not None or line.event == DISPATCH:
                line.key = (*line.sibling, line.attempt)
            elif own and not restart:
                line.key = own[0].line.key
            if line.event == DISPATCH:
                ended, kind = own, "superseded"
                spans.append(Span(line, max(later.t for later in lines[line.pos :])))
            elif line.event in (SEAL, ABANDON) and not restart:
                ended = [span for span in own if span.line.key == line.key]
                kind = "sealed" if line.event == SEAL else line.reason
            elif line.event in ("group_sealed", "group_discarded"):
                ended = still_open
            for span in ended:
                span.end, span.kind, span.sealed = line, kind, line.event in (SEAL, "group_sealed")
                span.fate = kind if line.event in (ABANDON, DISPATCH) else None
        return spans

    def reports(self, run: str) -> set[tuple]:
        """Return the distinct attempts a run abandons with reason restart."""
        restarts = [line for line in self.runs[run] if (line.event, line.reason) == (ABANDON, "restart")]
        return {(*line.sibling, line.attempt) for line in restarts}

    def first_dispatch(self, run: str, sibling: tuple | None = None) -> Line | None:
        dispatches = [line for line in self.runs[run] if line.event == DISPATCH]
        return next((line for line in dispatches if sibling is None or line.sibling == sibling), None)

    def before_redispatch(self, run: str, sibling: tuple) -> list[Line]:
        """Return the lines about the sibling's group in a run before the run dispatches that sibling."""
        again = self.first_dispatch(run, sibling)
        return [o for o in self.of_group[sibling[0]] if o.run == run and (again is None or o.pos < again.pos)]

    def counted_restore(self, run: str) -> Restore | None:
        first = self.first_dispatch(run)
        before = self.runs[run][: first.pos if first else None]
        if not (tries := [line for line in before if line.event == "restore_started"]):
            return None
        acts = (DISPATCH, PUBLISH, "restore_finished")
        acted = any(line.event in acts for line in self.runs[run][tries[-1].pos :])
        resolved = {key for key in self.reports(run) if key[0] is not None and key[2] is not None}
        return Restore(run, tries[-1], acted, (tries[-1].t, self.began[run]), resolved)

    def choose_snapshot(self, restore: Restore) -> None:
        path, others = restore.line.path, [line for line in self.lines if line.run != restore.run]
        published = [line for line in others if line.event == PUBLISH and line.t <= restore.line.t]
        published.sort(key=lambda line: (line.t, self.began[line.run], line.pos))
        candidates = [line for line in published if line.cut is not None]
        named = [line for line in candidates if path and line.path == path]
        form, step, number = ("path", 0, 0) if named else path_form(path)
        if form == "anchor":
            named = [line for line in published if line.step == step][:number]
            named = [line for line in named[-1:] if len(named) == number and line.cut is not None]
        elif form in ("step", "latest"):
            named = [line for line in candidates if form == "latest" or line.step == number]
        name = named[-1] if named else None
        newest = [line for other in self.runs for line in [line for line in candidates if line.run == other][-10:]]
        pool = [name] if form == "path" else [line for line in candidates if line is name or line in newest]
        weights = {line: self.weigh(line, restore, prompts=name is None) for line in pool}
        ranks = {line: (weights[line][0], line is name, -weights[line][1], candidates.index(line)) for line in pool}
        taken = max(pool, key=ranks.get, default=None)
        if taken and (name or (weights[taken][0] and not weights[taken][1])):
            restore.snapshot, restore.contradictions = taken, weights[taken][1]
            restore.match = form if taken is name else "evidence"

    def weigh(self, snapshot: Line, restore: Restore, prompts: bool) -> tuple[int, int]:
        """Count what a candidate explains and what stands against it, `prompts` too where the path names nothing."""
        run, cut, began = restore.run, snapshot.cut, self.began[snapshot.run]
        own = [span for span in self.spans if span.line.run == snapshot.run]
        by_the_cut = {
            s.line.key
            for s in self.spans
            if s.line.t <= cut and (s.line.run == snapshot.run or self.began[s.line.run][0] < began[0])
        }
        explained = restore.reports & by_the_cut
        count = len((restore.reports - explained) & {span.line.key for span in own})
        for span in own:
            if restore.acted and self.running(span, {snapshot.run: cut}):
                ended = any(ends(line, span) for line in self.runs[run])
                count += not ended and self.first_dispatch(run, span.line.sibling) is None
        if prompts:
            firsts: dict[str, dict[tuple, float]] = {snapshot.run: {}, run: {}}
            for line in [span.line for span in self.spans if span.line.run in firsts]:
                firsts[line.run].setdefault((line.prompt, line.prompt is None and line.group), line.t)
            count += sum(t > cut and prompt not in firsts[run] for prompt, t in firsts[snapshot.run].items())
        return len(explained), count

    def history(self, run: str) -> History:
        history: History = {}
        limit, child = math.inf, run
        while child in self.restores and (snapshot := self.restores[child].snapshot):
            if snapshot.run in history or snapshot.run == run:
                break
            child, limit = snapshot.run, min(limit, snapshot.cut)
            history[child] = limit
        return history

    def later(self, line: Line, history: History, *events: str) -> list[Line]:
        """Return the lines of those events about the group of a line, later than it in a history."""
        lines = [other for other in self.of_group[line.group] if other.event in events and within(other, history)]
        return [other for other in lines if place(other, history) > place(line, history)]

    def running(self, span: Span, history: History) -> bool:
        if not within(span.line, history) or within(span.end, history):
            return False
        abandoned = [line.key for line in self.later(span.line, history, ABANDON)]
        again = [line.sibling for line in self.later(span.line, history, DISPATCH)]
        if span.line.key in abandoned or span.line.sibling in again:
            return False
        seals = self.later(span.line, history, SEAL, "group_sealed")
        return not any(ends(line, span) for line in seals if line.run != span.line.run)

    def sealed_in(self, span: Span, history: History) -> bool:
        """Tell whether its own run, or one that went on with it, sealed the span in a history."""
        if not within(span.line, history) or within(span.end, history):
            return span.sealed and within(span.line, history)
        heirs = [run for run in history if run != span.line.run]
        lines = [o for run in heirs for o in self.before_redispatch(run, span.line.sibling) if within(o, history)]
        return any(
            line.event == SEAL and line.key == span.line.key and place(line, history) > place(span.line, history)
            for line in lines
        )

    def latest_dispatch(self, key: tuple, history: History) -> Span | None:
        spans = [span for span in self.spans if span.line.key == key and within(span.line, history)]
        return max(spans, key=lambda span: place(span.line, history), default=None)

    def went_on(self, run: str, restore: Restore) -> bool:
        after = (self.first_dispatch(restore.run) or restore.line).t
        return any(line.event in (DISPATCH, PUBLISH) and line.t > after for line in self.runs[run])

    def failed_by(self, span: Span, restore: Restore) -> str | None:
        """Return the reason of its own for which the restoring run abandons a span running in its history."""
        lines = [line for line in self.before_redispatch(restore.run, span.line.sibling) if line.event == ABANDON]
        reason = next((line.reason for line in lines if line.key == span.line.key), "restart")
        return reason if reason != "restart" and self.running(span, self.history(restore.run)) else None

    def brought_back(self, span: Span, restore: Restore) -> bool:
        afterwards = [self.history(run) for run, other in self.restores.items() if other.order > restore.order]
        return span.sealed and any(restore.run not in chain and within(span.end, chain) for chain in afterwards)

    def lost_how(self, span: Span, restore: Restore) -> str | None:
        """Return which of (a) to (f) loses the span to a restore with a known cut, the first that does."""
        line, r, history = span.line, restore.run, self.history(restore.run)
        if line.run == r or (span.end and not span.sealed) or self.went_on(line.run, restore):
            return None
        if self.brought_back(span, restore):
            return None
        if line.key in restore.reports and self.latest_dispatch(line.key, history) is span:
            return "reported"
        before = self.before_redispatch(r, line.sibling)
        if restore.acted and self.running(span, history) and not any(ends(other, span) for other in before):
            return "silent"
        if restore.acted and self.sealed_in(span, history):
            closed = self.later(line, history, "group_sealed", "group_finalized", "group_discarded")
            again = self.first_dispatch(r, line.sibling) and all(other.event != "group_sealed" for other in before)
            if not closed and line.key not in restore.reports and again:
                return "redone"
            heirs = {r} | {run for run in self.runs if r in self.history(run)}
            if not closed and all(other.run not in heirs for other in self.of_group[line.group]):
                return "dropped"
        if line.run == restore.snapshot.run and line.t > restore.snapshot.cut:
            return "after_cut"
        descends = any(run in history for run in self.history(line.run)) and line.run not in history
        return "discarded_branch" if descends and self.stop_t[line.run] < restore.line.t else None

    def settle_fates(self) -> None:
        for restore in [restore for restore in self.restores.values() if restore.snapshot]:
            for span in [span for span in self.spans if span.fate is None]:
                if reason := self.failed_by(span, restore):
                    span.fate = reason
                elif how := self.lost_how(span, restore):
                    span.fate, span.lost_to, span.how = "restart", restore, how
        for restore in [restore for restore in self.restores.values() if not restore.snapshot]:
            elsewhere = [s for s in self.spans if s.line.run != restore.run and s.line.t <= restore.line.t]
            elsewhere.sort(key=lambda span: (span.line.t, self.began[span.line.run], span.line.pos))
            latest = {span.line.key: span for span in elsewhere if span.line.key in restore.reports}
            for span in latest.values():
                free = span.fate is None and (span.end is None or span.sealed)
                if free and not self.went_on(span.line.run, restore) and not self.brought_back(span, restore):
                    span.fate, span.lost_to, span.how = "restart", restore, "reported"
        for span in [span for span in self.spans if span.fate is None]:
            seals = self.seals(span)
            after = any(self.discarded_after(span, seal, run) for seal in seals for run in self.runs)
            span.fate = "discarded" if after or span.kind == "discarded" else "kept" if seals else "open"

    def seals(self, span: Span) -> list[Line]:
        """Return the lines that sealed a span: its own end, or those of runs that restored it running."""
        seals = [span.end] if span.sealed else []
        for restore in [restore for restore in self.restores.values() if self.running(span, self.history(restore.run))]:
            lines = self.before_redispatch(restore.run, span.line.sibling)
            if not any(line.event == ABANDON and line.key == span.line.key for line in lines):
                seals += [line for line in lines if ends(line, span)]
        return seals

    def discarded_after(self, span: Span, seal: Line, run: str) -> bool:
        """Tell whether a run with that seal in its history discards the group, the sibling not dispatched between."""
        history = {run: math.inf, **self.history(run)}
        if not within(seal, history):
            return False
        again = [d for d in self.later(seal, history, DISPATCH) if d.sibling == span.line.sibling]
        discards = [line for line in self.later(seal, history, "group_discarded") if line.run == run]
        return any(all(place(line, history) < place(d, history) for d in again) for line in discards)

    def span_row(self, span: Span) -> dict[str, Any]:
        line, start, end_t = span.line, span.line.t, span.end.t if span.end else span.bound
        cut = thrown = never = never_max = None
        if span.lost_to and span.lost_to.snapshot:
            cut = span.lost_to.snapshot.cut
            thrown, never = max(0, min(cut, end_t) - start), max(0, end_t - max(cut, start))
            never_max = never if span.end else max(0, max(end_t, span.lost_to.line.t) - max(cut, start))
        return {
            **{"run": line.run, "seq": line.seq, "group_key": line.group, "prompt_id": line.prompt},
            **{"generation_index": line.index, "attempt": line.attempt, "start_t": start, "end_t": end_t},
            **{"duration_s": max(0, end_t - start), "end_kind": span.kind, "end_is_bound": span.end is None},
            **{"fate": span.fate, "lost_by_run": span.lost_to and span.lost_to.run, "lost_how": span.how},
            **{"cut_t": cut, "thrown_away_s": thrown, "never_saved_s": never, "never_saved_max_s": never_max},
        }

    def report_row(self, run: str, key: tuple) -> dict[str, Any]:
        restore, span, verdict = self.restores.get(run), None, "unresolved"
        if restore and key in restore.reports and restore.snapshot:
            span = self.latest_dispatch(key, self.history(restore.run))
            verdict = "counted" if span and span.lost_to is restore else "repeated" if span else "never_dispatched"
            verdict = "not_stopped" if span and self.went_on(span.line.run, restore) else verdict
        elif restore and key in restore.reports:
            span = next((s for s in self.spans if s.lost_to is restore and s.line.key == key), None)
        row = {"run": run, "group_key": key[0], "generation_index": key[1], "attempt": key[2]}
        return {**row, "span": span and (span.line.run, span.line.seq), "verdict": verdict}

    def restore_row(self, restore: Restore, spans: list[dict], reports: list[dict]) -> dict[str, Any]:
        run, snapshot, known = restore.run, restore.snapshot, restore.snapshot is not None
        mine = [report for report in reports if report["run"] == run]
        verdicts = Counter(report["verdict"] for report in mine)
        lost = [span for span in spans if span["lost_by_run"] == run]
        starts = {(span["run"], span["seq"]): span["start_t"] for span in spans}
        sums = {c: sum(s[c] or 0 for s in lost) for c in ("thrown_away_s", "never_saved_s", "never_saved_max_s")}
        needs_cut = {
            **{"unreported": sum(span["lost_how"] in ("silent", "redone", "dropped") for span in lost)},
            **{"lost_attempts": len(lost), "lost_sealed": sum(span["end_kind"] == "sealed" for span in lost)},
            **{"lost_after_cut": sum(known and span["start_t"] > snapshot.cut for span in lost)},
            **{**sums, "lost_s": sums["thrown_away_s"] + sums["never_saved_s"]},
            **{"naive_s": sum(known and snapshot.cut - starts[report["span"]] for report in mine if report["span"])},
        }
        return {
            **{"run": run, "restore_t": restore.line.t, "parent_run": snapshot and snapshot.run},
            **{"snapshot_step": snapshot and snapshot.step, "cut_t": snapshot and snapshot.cut},
            **{"stop_t": snapshot and self.stop_t[snapshot.run], "match": restore.match},
            **{"contradictions": restore.contradictions, "reported": len(mine)},
            **{name: verdicts[name] for name in VERDICTS},
            **{name: value if known else None for name, value in needs_cut.items()},
        }
