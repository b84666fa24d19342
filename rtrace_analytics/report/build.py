"""Build the report: rows of the views, pictures and definitions into one page."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtrace_analytics import views
from rtrace_analytics.errors import InputError
from rtrace_analytics.report import pictures, words
from rtrace_analytics.text import clean, count, share, short
from rtrace_analytics.traces import Traces
from rtrace_analytics.whole import whole_file

if TYPE_CHECKING:
    import duckdb

Row = dict[str, Any]
_MOST = 200  # rows of a table in the page; the rest is counted
_VIEWS = (
    "runs",
    "restores",
    "cut_time_waste",
    "rollout_seconds",
    "restart_reports",
    "quality",
    "experiment_waste",
    "labels",
)
_READ = {
    "waste": (
        "Each restore's bar is as long as what it threw away: hatched what ran before the snapshot's cut, dotted what "
        "ran after it. The diamond is what would be said to be thrown away if every report counted."
    ),
    "timeline": (
        "Every attempt from its dispatch to its end; the lines are the cut that was restored, the stop and the restore."
    ),
    "in_flight": "How many rollouts ran at once; triangles are the moments that snapshots hold.",
    "durations": (
        "How long attempts ran, by what became of them; above each bar the share that was lost to a restore."
    ),
    "fates": "All rollout time, by what became of it.",
    "lineage": ("Which run restored which snapshot of which run; dashed is the work that a later run threw away."),
}
_DEFINED = ("cut_time_waste", "rollout_seconds", "experiment_waste", "restart_reports")


def write(traces: Traces, path: str | PathLike[str], *, experiment: str | Sequence[str] | None = None) -> str:
    """Write the report to `path`, wholly or not at all; returns its headline.

    `experiment`: only these (a name or several). Raises `InputError` where an experiment is not there or the file
    cannot be written.
    """
    with whole_file(path) as file:
        page, said = _page(traces, experiment)
        file.write(page.encode())
    return said


def html(traces: Traces, *, experiment: str | Sequence[str] | None = None) -> str:
    """The report as text. Raises `InputError` where an experiment is not there."""
    return _page(traces, experiment)[0]


def _page(traces: Traces, experiment: str | Sequence[str] | None) -> tuple[str, str]:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    with traces.opened() as con:
        rows = {view: views.rows(con, view, experiment=experiment) for view in _VIEWS}
        definitions = {view: _definitions(con, view) for view in _DEFINED}
    total_s = sum(row["seconds"] or 0.0 for row in rows["rollout_seconds"])
    whole: dict[str, float] = {}
    for row in rows["rollout_seconds"]:
        whole[row["experiment"]] = whole.get(row["experiment"], 0.0) + (row["seconds"] or 0.0)
    said = words.headline(rows["cut_time_waste"], total_s)
    own = {(row["experiment"], row["run"]): row for row in rows["restores"]}
    told = [row for row in rows["restart_reports"] if row["verdict"] != "counted"]
    labels: dict[str, list[str]] = {}
    for row in rows["labels"]:
        labels.setdefault(row["experiment"], []).append(clean(f"{row['key']} = {row['value']}"))
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(words=words, clean=clean, count=count, share=share, short=short, found_how=views.FOUND)
    page = environment.get_template("page.html.j2").render(
        headline=said,
        double_count=words.double_count(rows["cut_time_waste"]),
        experiments=rows["experiment_waste"],
        labels=labels,
        runs=rows["runs"],
        attempts=sum(row["spans"] for row in rows["rollout_seconds"]),
        total_s=total_s,
        restores=rows["cut_time_waste"][:_MOST],
        more_restores=max(0, len(rows["cut_time_waste"]) - _MOST),
        own=own,
        whole=whole,
        fates=rows["rollout_seconds"],
        told=told[:_MOST],
        more_told=max(0, len(told) - _MOST),
        odd=[row for row in rows["quality"] if row["count"]],
        checks=len({row["check"] for row in rows["quality"]}),
        definitions=definitions,
        about={view: dict(defined) for view, defined in definitions.items()},
        pictures=_pictures(traces, experiment),
        advice=_advice(traces, rows["experiment_waste"]),
    )
    return page, said


def _advice(traces: Traces, experiments: list[Row]) -> tuple[str, list[str]]:
    """The experiment that lost most and at most three sentences on it; none where there is no database to replay."""
    if not experiments:
        return "", []
    most = max(experiments, key=lambda row: row["lost_s"] or 0.0)["experiment"]
    try:
        return most, traces.advice(experiment=most)
    except InputError:
        return most, []


def _definitions(con: "duckdb.DuckDBPyConnection", view: str) -> list[tuple[str, str]]:
    """The columns of a view with what the database says they mean."""
    found = con.execute(
        "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = ? AND database_name = current_database() "
        "AND comment IS NOT NULL ORDER BY column_index",
        [view],
    )
    return found.fetchall()


def _pictures(traces: Traces, experiment: str | Sequence[str] | None) -> list[tuple[str, str]]:
    """Each picture with the sentence that says how to read it."""
    from markupsafe import Markup

    one = experiment if isinstance(experiment, str) else experiment[0] if experiment and len(experiment) == 1 else None
    many = None if experiment is None else [experiment] if isinstance(experiment, str) else list(experiment)
    if one is None and many:
        one = _lost_most(traces, many)
    plot = traces.plot
    drawn = {
        "waste": lambda: plot.waste(experiment=many),
        "timeline": lambda: plot.timeline(experiment=one),
        "in_flight": lambda: plot.in_flight(experiment=one),
        "durations": lambda: plot.durations(experiment=many),
        "fates": lambda: plot.fates(experiment=many),
        "lineage": lambda: plot.lineage(experiment=many),
    }
    return [(Markup(pictures.svg(name, draw, _READ[name])), _READ[name]) for name, draw in drawn.items()]


def _lost_most(traces: Traces, names: list[str]) -> str:
    waste = traces.experiment_waste(experiment=names).set_index("experiment")["lost_s"]
    return str(waste.fillna(-1.0).idxmax())
