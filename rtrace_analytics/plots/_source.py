"""What a picture is drawn from: rows of the views, out of loaded traces or out of a frame the caller has."""

from collections.abc import Sequence
from typing import Any

from rtrace_analytics import views
from rtrace_analytics.errors import InputError
from rtrace_analytics.text import listed, short


def known(value: Any) -> bool:
    """Whether a cell has a value: not None, NaN or NA."""
    import pandas as pd

    return not pd.isna(value)


def is_frame(source: Any) -> bool:
    """Whether the source is a frame (else it is traces)."""
    return hasattr(source, "columns") and not hasattr(source, "sql")


def rows(
    source: Any,
    view: str,
    columns: Sequence[str],
    *,
    experiment: str | Sequence[str] | None = None,
    where: str = "true",
    parameters: Sequence[Any] = (),
    order: str = "ALL",
) -> Any:
    """These columns of a view's rows, a DataFrame; a frame is taken as the view's rows.

    `where`, `parameters` and `order` are used on traces only. Raises `InputError` where a frame lacks a column, or an
    experiment is not there.
    """
    wanted = None if experiment is None else [experiment] if isinstance(experiment, str) else list(experiment)
    if is_frame(source):
        missing = [name for name in columns if name not in source.columns]
        if missing:
            raise InputError(f"the frame has no column {missing[0]!r}: give the rows of {view}, or the traces")
        frame = source[list(columns)]
        if wanted is not None:
            there = sorted(str(name) for name in frame["experiment"].unique())
            for name in wanted:
                if name not in there:
                    raise InputError(f"no experiment {name!r}: {listed(there)}")
            frame = frame[frame["experiment"].isin(wanted)]
        return frame.reset_index(drop=True)
    names = ", ".join(map(views.quoted, columns))
    with source.opened() as con:
        if wanted is not None:
            views.experiments(con, wanted)
            where, parameters = f"({where}) AND list_contains(?, experiment)", [*parameters, wanted]
        query = f"SELECT {names} FROM {view} WHERE {where} ORDER BY {order}"
        frame = con.sql(query, params=list(parameters)).df()
    return frame


def one_experiment(source: Any, experiment: str | None) -> tuple[str | None, int]:
    """The experiment that a picture of one shows, and how many there are: the one given, else the one that lost most.

    Of a frame the one with the most seconds lost, where it tells; None where there is none.
    """
    if experiment is not None:
        return experiment, 1
    if is_frame(source):
        names = source["experiment"].dropna()
        if names.empty:
            return None, 0
        lost = (
            source[["thrown_away_s", "never_saved_s"]].sum(axis=1).groupby(source["experiment"]).sum()
            if "thrown_away_s" in source.columns
            else names.groupby(names).size()
        )
        return str(lost.sort_index().idxmax()), int(names.nunique())
    with source.opened() as con:
        found = con.execute(
            "SELECT r.experiment FROM (SELECT DISTINCT experiment FROM runs) r "
            "LEFT JOIN (SELECT experiment, sum(lost_s) AS lost_s FROM cut_time_waste GROUP BY experiment) w "
            "USING (experiment) "
            "ORDER BY w.lost_s DESC NULLS LAST, r.experiment"
        ).fetchall()
    return (found[0][0] if found else None), len(found)


def extent(source: Any, experiment: str | None, starts: Any, ends: Any) -> tuple[float, float]:
    """First and last moment of the experiment shown; of a frame, of its starts and ends (0 and 0 where it is empty)."""
    if not is_frame(source) and experiment is not None:
        runs = rows(source, "runs", ("first_t", "last_t"), experiment=experiment)
        starts, ends = runs["first_t"], runs["last_t"]
    return (float(starts.min()), float(ends.max())) if len(starts) else (0.0, 0.0)


def told_of(experiment: str | None, of: int) -> str:
    """What the title says of the experiment shown."""
    if experiment is None:
        return ""
    if of > 1:
        return f"\nexperiment {short(experiment)}: of {of:,} the one that lost most"
    return f" · {short(experiment)}"


def origin(first_t: float, last_t: float) -> tuple[float, str]:
    """Where a picture's time begins, and what the axis is called.

    Moments that begin near 0, within a quarter of their length, are no dates: they stay as they are.
    """
    if 0 <= first_t <= (last_t - first_t) / 4:
        return 0.0, "time"
    return first_t, "time since the first event"
