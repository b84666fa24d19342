"""`Traces`: loaded traces in Python, a DataFrame per view."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtrace_analytics import database, views
from rtrace_analytics.errors import DatabaseError, InputError
from rtrace_analytics.text import one_line

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

    from rtrace_analytics.explain import Explanation
    from rtrace_analytics.loading import LoadReport
    from rtrace_analytics.plots import Pictures

Names = str | Sequence[str] | None
Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


def _view(name: str, grain: str) -> Callable[..., "pd.DataFrame"]:
    def method(self: "Traces", *, experiment: Names = None, run: Names = None) -> "pd.DataFrame":
        return self.view(name, experiment=experiment, run=run)

    method.__name__ = name
    method.__qualname__ = f"Traces.{name}"
    method.__doc__ = f"{grain}; `experiment=` and `run=` (a name or several) filter."
    return method


class Traces:
    """Loaded traces: a DataFrame per view, SQL over all of them. `connect` and `load` make one.

    Over a file the database is open only while a call needs it (or while a result of `sql` lives), for reading where
    that is enough: a notebook does not stand in the way of a load beside it. Columns `_t` are moments, seconds since
    the epoch; `_s` are lengths, in attempt-seconds unless the view's comment says wall-seconds.
    """

    _only_reads: str | None = None  # of a kind of traces that is not loaded into: what to do instead

    def __init__(self, con: "duckdb.DuckDBPyConnection | None" = None, *, path: Path | None = None) -> None:
        if (con is None) == (path is None):
            raise TypeError("Traces takes a connection or a path: use rtrace_analytics.load or connect")
        self._con = con
        self._path = path
        self._closed = False

    runs = _view("runs", "One row per process that wrote lines")
    snapshots = _view("snapshots", "One row per published snapshot")
    restores = _view("restores", "One row per restore: the snapshot taken and how it was found")
    attempt_spans = _view("attempt_spans", "One row per dispatch: how it ended, its fate, what was lost of it")
    restart_reports = _view("restart_reports", "One row per attempt a restoring run abandons with reason restart")
    restart_abandonment = _view("restart_abandonment", "One row per dispatch lost to a restore and reported, once")
    cut_time_waste = _view("cut_time_waste", "One row per restore: what it threw away")
    rollout_seconds = _view("rollout_seconds", "One row per experiment and fate: where the rollout time went")
    experiment_waste = _view("experiment_waste", "One row per experiment: what its restores threw away, per hour too")
    in_flight = _view("in_flight", "One row per run and moment at which its number of running rollouts changes")
    group_spans = _view("group_spans", "One row per group and time it was rolled out: dispatch to seal, the straggler")
    survivorship = _view("survivorship", "One row per experiment and decile of how long dispatches ran: which are lost")
    repeat_losers = _view("repeat_losers", "One row per prompt that lost anything to a restore, and its cost")
    lag = _view("lag", "One row per restore with a known cut: what it lost though a newer snapshot held it")
    staleness = _view("staleness", "One row per sealed dispatch: how many weight versions passed while it ran")
    progress = _view("progress", "One row per moment at which a run seals groups or restores: sealed, and net")
    lost_in_silence = _view("lost_in_silence", "One row per restore and group in its snapshot never dispatched again")
    quality = _view("quality", "One row per experiment and quality check")
    events = _view("events", "One row per event")
    trace_files = _view("trace_files", "One row per trace file")
    rejects = _view("rejects", "One row per fragment of a file that is no event")
    labels = _view("labels", "One row per experiment and label")

    def view(self, name: str, *, experiment: Names = None, run: Names = None) -> "pd.DataFrame":
        """The rows of any public view or table, in its order, only of these experiments and runs.

        Raises `InputError` for a view, an experiment or a run that is not there.
        """
        with self.opened() as con:
            text, parameters = views.query(con, name, experiment=experiment, run=run)
            return views.frame(con.sql(text, params=parameters))

    def sql(self, query: str, params: object = None) -> "duckdb.DuckDBPyRelation":
        """The DuckDB relation of a query: `.df()`, `.pl()`, `.to_arrow_table()`.

        Over a file it reads only, and the file stays open until the relation is let go. Raises `DatabaseError`.
        """
        import duckdb

        con = self._con if self._con is not None else self._open(write=False)
        try:
            return con.sql(query, params=params)
        except duckdb.Error as error:
            raise DatabaseError(f"SQL: {one_line(error)}") from error

    def load(
        self,
        paths: Paths,
        *,
        experiment: str | None = None,
        experiment_from: str | None = None,
        labels: Mapping[str, object] | None = None,
        rename: Mapping[str, str] | None = None,
        progress: Any = None,
    ) -> "LoadReport":
        """Load traces, or bring them up to date: files, folders or globs; see `rtrace_analytics.loading.load`."""
        from rtrace_analytics import loading

        with self.opened(write=True) as con:
            return loading.load(
                con,
                paths,
                experiment=experiment,
                experiment_from=experiment_from,
                labels=labels,
                rename=rename,
                progress=progress,
            )

    def label(self, labels: Mapping[str, Mapping[str, object]] | str | PathLike[str]) -> int:
        """Label experiments, `{"a": {"interval_s": 120}}` or a CSV file of experiment,key,value; returns how many.

        A key that is there gets the new value. Raises `InputError` for an experiment not there or a key told twice.
        """
        from rtrace_analytics.labels import read, set_all

        found = read(labels) if isinstance(labels, (str, PathLike)) else labels
        with self.opened(write=True) as con:
            return set_all(con, found)

    def compare(self, by: str = "experiment", metric: str = "lost_s_per_restore", *, seed: int = 0) -> "pd.DataFrame":
        """One row per experiment, by label: what it lost, its group's mean; see `rtrace_analytics.compare.compare`."""
        from rtrace_analytics import compare

        return compare.compare(self, by, metric, seed=seed)

    @property
    def plot(self) -> "Pictures":
        """Pictures: `plot.timeline()`, `waste`, `fates`, `in_flight`, `durations`, `lineage`, `compare`, `whatif`."""
        from rtrace_analytics.plots import Pictures

        return Pictures(self)

    def forget(self, experiment: str) -> int:
        """Let an experiment go; the number of its events. Raises `InputError` where it is not there."""
        with self.opened(write=True) as con:
            return _forget(con, experiment)

    def export_parquet(
        self,
        folder: str | PathLike[str],
        *,
        views: str | Sequence[str] | None = None,
        experiment: str | Sequence[str] | None = None,
    ) -> list[Path]:
        """Bring `folder/<view>/experiment_key=<key>/` up to date; returns its files. See `export.parquet.update`."""
        from rtrace_analytics.export import parquet

        with self.opened() as con:
            return parquet.update(con, folder, views=views, experiment=experiment).files()

    def export_perfetto(self, path: str | PathLike[str], *, experiment: str | Sequence[str] | None = None) -> int:
        """Write the spans as Chrome trace JSON for Perfetto; returns its lines. See `export.perfetto.export`."""
        from rtrace_analytics.export import perfetto

        with self.opened() as con:
            return perfetto.export(con, path, experiment=experiment)

    def whatif_interval(
        self,
        intervals: Sequence[float],
        *,
        experiment: str | None = None,
        stops: str | Sequence[float] = "uniform",
        publish_lag_s: float | None = None,
        save_cost_s: float | None = None,
        mtbf: float | None = None,
        granularity: str | None = None,
    ) -> "pd.DataFrame":
        """What stops would have cost at other snapshot intervals; see `rtrace_analytics.decisions.whatif_interval`."""
        from rtrace_analytics import decisions

        with self.opened() as con:
            return decisions.whatif_interval(
                con,
                intervals,
                experiment=experiment,
                stops=stops,
                publish_lag_s=publish_lag_s,
                save_cost_s=save_cost_s,
                mtbf=mtbf,
                granularity=granularity,
            )

    def advice(
        self,
        *,
        experiment: str | None = None,
        intervals: Sequence[float] | None = None,
        publish_lag_s: float | None = None,
        save_cost_s: float | None = None,
    ) -> list[str]:
        """At most three sentences on what would have saved rollout time; see `rtrace_analytics.decisions.advice`."""
        from rtrace_analytics import decisions

        with self.opened() as con:
            return decisions.advice(
                con,
                experiment=experiment,
                intervals=intervals,
                publish_lag_s=publish_lag_s,
                save_cost_s=save_cost_s,
            )

    def explain(
        self,
        *,
        prompt_id: str | None = None,
        restore: str | None = None,
        experiment: str | None = None,
        limit: int = 20,
    ) -> "Explanation":
        """What happened to a prompt, or at a restore, with file and line; see `rtrace_analytics.explain.explain`."""
        from rtrace_analytics import explain

        with self.opened() as con:
            return explain.explain(con, prompt_id=prompt_id, restore=restore, experiment=experiment, limit=limit)

    @contextmanager
    def opened(self, *, write: bool = False) -> Iterator["duckdb.DuckDBPyConnection"]:
        """A connection to the database, closed again at the end where it is a file's. Raises `InputError`."""
        if write and self._only_reads:
            raise InputError(self._only_reads)
        if self._con is not None:
            yield self._con
            return
        con = self._open(write=write)
        try:
            yield con
        finally:
            con.close()

    def _open(self, *, write: bool) -> "duckdb.DuckDBPyConnection":
        if self._path is None or self._closed:
            raise InputError("these traces are closed: load or connect again")
        try:
            return database.connect(self._path, read_only=not write)
        except DatabaseError as error:
            if "different configuration" in str(error):
                way = "let go of the results of `traces.sql` (`del` them), or close what else has it open"
                raise DatabaseError(f"{str(self._path)!r} is open in this process: {way}") from error
            raise

    def close(self) -> None:
        """Let the database go; a second time does nothing."""
        if self._con is not None:
            self._con.close()
            self._con = None
        self._closed = True

    def __enter__(self) -> "Traces":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        from rtrace_analytics import card

        return f"<Traces: {card.text(self)}>"

    def _repr_html_(self) -> str:
        from rtrace_analytics import card

        return card.html(self)


def _forget(con: "duckdb.DuckDBPyConnection", experiment: str) -> int:
    views.experiments(con, experiment)  # raises where it is not there
    events = con.execute("SELECT count(*) FROM events WHERE experiment = ?", [experiment]).fetchall()[0][0]
    tables: dict[str, set[str]] = {}
    for table, column in con.execute(
        "SELECT table_name, column_name FROM duckdb_columns() JOIN duckdb_tables() USING (database_name, table_name) "
        "WHERE column_name IN ('experiment', 'file_id')"
    ).fetchall():
        tables.setdefault(table, set()).add(column)
    con.execute("BEGIN")
    try:
        for table, columns in tables.items():
            if "experiment" not in columns:
                con.execute(
                    f"DELETE FROM {table} WHERE file_id IN (SELECT file_id FROM trace_files WHERE experiment = ?)",
                    [experiment],
                )
        for table, columns in tables.items():
            if "experiment" in columns:
                con.execute(f"DELETE FROM {table} WHERE experiment = ?", [experiment])
        con.execute("COMMIT")
    except BaseException:
        con.execute("ROLLBACK")
        raise
    return int(events)


def connect(path: str | PathLike[str]) -> Traces:
    """The traces of a database file; it is made where it is not there. Raises `DatabaseError`."""
    where = Path(path)
    database.connect(where, read_only=where.exists()).close()
    return Traces(path=where)


def load(
    paths: Paths,
    *,
    experiment: str | None = None,
    experiment_from: str | None = None,
    labels: Mapping[str, object] | None = None,
    rename: Mapping[str, str] | None = None,
    progress: Any = None,
) -> Traces:
    """Load traces into memory: files, folders (searched for traces) or globs.

    `experiment` names what is loaded; `experiment_from` is a pattern searched in each path whose first group is the
    name; by default it is the folder's name. `labels` are kept with the experiments; `rename` maps another producer's
    event names onto ours. Raises `InputError`.
    """
    traces = Traces(database.connect())
    try:
        traces.load(
            paths,
            experiment=experiment,
            experiment_from=experiment_from,
            labels=labels,
            rename=rename,
            progress=progress,
        )
    except BaseException:
        traces.close()
        raise
    return traces
