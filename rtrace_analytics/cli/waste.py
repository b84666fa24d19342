"""`rtrace waste`: the main job: what every stop and restore threw away, in words that can be checked by hand."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtrace_analytics import views
from rtrace_analytics.cli import options, output
from rtrace_analytics.cli.output import moment, seconds
from rtrace_analytics.errors import InputError
from rtrace_analytics.text import clean, count
from rtrace_analytics.traces import Traces

if TYPE_CHECKING:
    import duckdb

Row = dict[str, Any]

_MOST = 50  # runs and restores of an experiment told one by one


@click.command("waste")
@click.argument("paths", nargs=-1, metavar="PATH...")
@options.db(required=False)
@options.load
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="json: one object.")
def command(paths: tuple[str, ...], db: str | None, strict: bool, form: str, **how: Any) -> None:
    """Print what each restore threw away, and where all rollout time went.

    Traces of PATH... (files, folders, globs) are loaded, with --db into that file; without PATH the
    experiments of the file are told, or the one named by --experiment.
    """
    if not paths and db is None:
        raise InputError("nothing to read: give PATH... or --db FILE")
    if not paths and db is not None:
        for name in ("experiment_from", "labels", "rename"):
            if how[name] is not None:
                raise InputError(f"--{name.removesuffix('s').replace('_', '-')} is for loading: give PATH... too")
        with Traces(path=Path(db)) as traces, traces.opened() as con:
            _tell(con, how["experiment"], form, strict)
        return
    with options.to_load(db) as traces:
        report = traces.load(paths, **how)
        with traces.opened() as con:
            _tell(con, sorted({file.experiment for file in report.files}), form, strict)


def _tell(con: "duckdb.DuckDBPyConnection", experiments: str | list[str] | None, form: str, strict: bool) -> None:
    def rows(view: str) -> list[Row]:
        return views.rows(con, view, experiment=experiments)

    restores, totals, quality = rows("cut_time_waste"), rows("rollout_seconds"), rows("quality")
    if form == "json":
        print(output.to_json({"restores": restores, "totals": totals, "quality": quality}, indent=1))
    else:
        runs, lineage = rows("runs"), rows("restores")
        names = list(dict.fromkeys(row["experiment"] for row in quality))
        for i, name in enumerate(names):
            told = (runs, lineage, restores, totals, quality)
            print("\n" * (i > 0), end="")
            for line in _lines(name, *([row for row in rows if row["experiment"] == name] for rows in told)):
                print(line)
        if not names:
            print("no traces are loaded")
    rejected = sum(row["count"] for row in quality if row["check"] == "rejects")
    if strict and rejected:
        print(f"rtrace: {count(rejected, 'reject')} (--strict)", file=sys.stderr)
        sys.exit(1)


def _lines(
    name: str, runs: list[Row], lineage: list[Row], restores: list[Row], totals: list[Row], quality: list[Row]
) -> Iterator[str]:
    by_run = {row["run"]: row for row in lineage}
    total_s = sum(row["seconds"] for row in totals)
    yield f"EXPERIMENT {clean(name)}: {count(len(runs), 'run')}, {count(len(restores), 'restore')}"
    yield ""
    yield "Chain of runs"
    for run in runs[:_MOST]:
        when = f"{moment(run['first_t'])} to {moment(run['last_t'])}"
        yield f"  {clean(run['run'])}  {when}, {count(run['events'], 'event')}"
        yield from (f"      {line}" for line in _origin(by_run.get(run["run"])))
    if len(runs) > _MOST:
        yield f"  ... {len(runs) - _MOST} more runs: rtrace show runs"
    for restore in restores[:_MOST]:
        yield ""
        yield from _restore(restore, total_s)
    if len(restores) > _MOST:
        yield f"  ... {len(restores) - _MOST} more restores: --format json tells all"
    yield ""
    yield f"Where all rollout time went ({seconds(total_s)}, concurrent rollouts added up)"
    yield from _aligned(
        [
            (
                "lost to restores" if row["fate"] == "restart" else row["fate"],
                count(row["spans"], "attempt"),
                seconds(row["seconds"]),
                _share(row["seconds"], total_s),
            )
            for row in totals
        ]
    )
    yield ""
    yield "Quality"
    odd: list[tuple[str, ...]] = []
    for row in quality:
        if row["count"]:
            first, *others = (row["detail"] or "").split("; ")
            odd += [(row["check"], f"{row['count']:,}", first), *(("", "", other) for other in others)]
    yield from _aligned(odd) if odd else ["  nothing was rejected, unresolved or contradicted"]


def _origin(restore: Row | None) -> Iterator[str]:
    if restore is None:
        yield "restored nothing"
        return
    path = f"path {clean(restore['path'])}" if restore["path"] is not None else "no path named"
    if restore["parent_run"] is None:
        yield f"restored a snapshot that is not in these traces ({path})"
        return
    step = "" if restore["snapshot_step"] is None else f" of step {restore['snapshot_step']}"
    against = f"; {restore['contradictions']} things speak against it" if restore["contradictions"] else ""
    yield f"restored the snapshot{step} of {clean(restore['parent_run'])}, cut at {moment(restore['cut_t'])} ({path})"
    yield f"found {views.FOUND[restore['match']]}{against}"


def _restore(row: Row, total_s: float) -> Iterator[str]:
    yield f"Restore by {clean(row['run'])} at {moment(row['restore_t'])}"
    reports = ", ".join(
        f"{row[key]} {word}"
        for key, word in (
            ("counted", "counted"),
            ("repeated", "repeated"),
            ("never_dispatched", "never dispatched"),
            ("unresolved", "unresolved"),
            ("not_stopped", "not stopped"),
        )
        if row[key] or key == "counted"
    )
    reported = ("reported as abandoned", f"{row['reported']:,}: {reports}")
    if row["lost_s"] is None:
        yield from _aligned([reported, ("lost", "unknown: its cut is not known")])
        return
    most = "" if row["never_saved_max_s"] == row["never_saved_s"] else f", at most {seconds(row['never_saved_max_s'])}"
    lost = f"{row['lost_sealed']} finished, {row['lost_after_cut']} started after the cut"
    if row["unreported"]:
        lost += f", {row['unreported']} never reported"
    yield from _aligned(
        [
            ("rollouts lost", f"{row['lost_attempts']:,}: {lost}"),
            ("thrown away", f"{seconds(row['thrown_away_s'])} ran before the cut"),
            ("never saved", f"{seconds(row['never_saved_s'])} ran after the cut{most}"),
            ("together", f"{seconds(row['lost_s'])}, {_share(row['lost_s'], total_s)} of all rollout time"),
            ("not deduplicated", f"{seconds(row['naive_s'])} thrown away, if every report counted"),
            reported,
        ]
    )


def _share(part: float, total: float) -> str:
    return f"{part / total:.1%}" if total else "no time"


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    cells = [[clean(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
