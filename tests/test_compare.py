"""Labels, comparisons, several databases as one."""

from pathlib import Path

import pandas as pd
import pytest

import rtrace_analytics as rta
from rtrace_analytics.compare import group_means
from rtrace_analytics.recording.options import WorldOptions
from rtrace_analytics.recording.simulate import simulate

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """Two snapshot intervals, four small worlds each, one without a kill; a database file per interval."""
    folder = tmp_path_factory.mktemp("worlds")
    for interval in (20, 80):
        with rta.connect(folder / f"{interval}.duckdb") as traces:
            for seed in range(4):
                name = f"every-{interval}-{seed}"
                options = {"groups": 20, "siblings": 2, "concurrency": 8, "snapshot_interval_s": interval, "seed": seed}
                simulate(folder / name, WorldOptions(kills=0 if seed == 3 else 2, **options))
                traces.load(folder / name, experiment=name, labels={"interval_s": interval})
    return folder


@pytest.fixture
def mixed(worlds):
    with rta.mix({"often": worlds / "20.duckdb", "seldom": str(worlds / "80.duckdb")}) as traces:
        yield traces


def test_experiment_waste_is_told_by_the_other_views(worlds):
    traces = rta.connect(worlds / "20.duckdb")
    rows = traces.experiment_waste().set_index("experiment")
    waste, spans, runs = traces.cut_time_waste(), traces.attempt_spans(), traces.runs()
    for name, row in rows.iterrows():
        own = waste[waste["experiment"] == name]
        assert row["restores"] == len(own) and row["lost_s"] == pytest.approx(own["lost_s"].sum())
        assert row["rollouts"] == (spans["experiment"] == name).sum()
        assert row["lost_share"] == pytest.approx(
            row["lost_s"] / spans.loc[spans["experiment"] == name, "duration_s"].sum()
        )
        wall = (runs["last_t"] - runs["first_t"])[runs["experiment"] == name].sum()  # no two at once here
        assert row["wall_s"] == pytest.approx(wall)
        assert row["lost_s_per_hour"] == pytest.approx(3600 * row["lost_s"] / wall)
        assert row["lost_s_per_1000_rollouts"] == pytest.approx(1000 * row["lost_s"] / row["rollouts"])
    calm = rows.loc["every-20-3"]
    assert (calm["restores"], calm["lost_s"], calm["lost_share"]) == (0, 0, 0) and pd.isna(calm["lost_s_per_restore"])


def test_wall_time_of_runs_at_once_counts_once():
    traces = rta.load(ROOT / "tests/data/faults/parent-went-on")
    runs = traces.runs()
    both = (runs["last_t"] - runs["first_t"]).sum()
    assert traces.experiment_waste()["wall_s"][0] == runs["last_t"].max() - runs["first_t"].min() < both


def test_compare_has_a_row_per_experiment_and_the_groups_mean(mixed):
    frame = mixed.compare(by="interval_s", metric="lost_s_per_restore")
    assert frame["interval_s"].tolist() == [20] * 4 + [80] * 4
    for _, own in frame.groupby("interval_s"):
        figures = own["lost_s_per_restore"].dropna()
        first = own.iloc[0]
        assert (
            first["group_experiments"] == len(figures) == 3 and first["group_restores"] == own["known_restores"].sum()
        )
        assert first["group_mean"] == pytest.approx(figures.mean())
        assert figures.min() <= first["group_low"] <= first["group_mean"] <= first["group_high"] <= figures.max()
    assert frame.equals(mixed.compare(by="interval_s", metric="lost_s_per_restore"))  # the same every time


def test_too_few_have_no_interval_and_no_warning(mixed):
    frame = mixed.compare()
    assert frame["group_low"].isna().all() and frame["group_high"].isna().all()
    assert frame["group_mean"].equals(frame["lost_s_per_restore"])


def test_the_interval_of_equal_figures_is_that_figure(mixed):
    frame = mixed.compare(by="interval_s").assign(lost_share=0.5)
    assert (
        group_means(frame, "interval_s", "lost_share")[["group_low", "group_high"]].to_numpy().tolist()
        == [[0.5, 0.5]] * 2
    )


def test_the_plot_draws_the_figures(mixed):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    frame = mixed.compare(by="interval_s", metric="lost_share")
    ax = mixed.plot.compare("interval_s", "lost_share")
    drawn = {line.get_gid(): line.get_ydata().tolist() for line in ax.lines if line.get_gid()}
    assert sorted(drawn["experiments"]) == pytest.approx(sorted(100 * frame["lost_share"]))
    groups = group_means(frame, "interval_s", "lost_share")
    assert drawn["means"] == pytest.approx((100 * groups["group_mean"]).tolist())
    assert [label.get_text().split("\n")[0] for label in ax.get_xticklabels()] == ["20", "80"]
    assert "4 exp., 6 restores" in ax.get_xticklabels()[0].get_text()
    plt.close("all")


def test_what_cannot_be_compared_is_named(mixed, worlds):
    with pytest.raises(rta.InputError, match="no label 'nonsense': there are 'interval_s', 'source'"):
        mixed.compare(by="nonsense")
    with pytest.raises(rta.InputError, match="no metric 'lost': there are lost_s_per_restore"):
        mixed.compare(metric="lost")
    traces = rta.load([worlds / "every-20-0", worlds / "every-20-1"])
    assert traces.label({"every-20-0": {"kind": "a", "restores": 3}}) == 2
    with pytest.raises(rta.InputError, match="experiment 'every-20-1' has no label 'kind'"):
        traces.compare(by="kind")
    with pytest.raises(rta.InputError, match="label 'restores' has the name of a figure"):
        traces.compare(by="restores")


def test_labels_from_a_csv(worlds, tmp_path):
    traces = rta.load([worlds / "every-20-0", worlds / "every-20-1"])
    table = tmp_path / "labels.csv"
    table.write_text("experiment,key,value\nevery-20-0,kind,x\nevery-20-1,kind,y\n")
    assert traces.label(table) == 2 and traces.compare(by="kind")["kind"].tolist() == ["x", "y"]
    for text, said in (
        ("experiment,key,value\na,k,1\na,k,2\n", "line 3: label 'k' of experiment 'a' is there twice"),
        ("experiment,key\na,k\n", "no column 'value'"),
        ("experiment,key,value\na,k\n", "line 2: experiment, key and value are wanted"),
        ("experiment,key,value\nnobody,k,1\n", "no experiment 'nobody' to label: there are 'every-20-0'"),
        ("experiment,key,value\nevery-20-0,k,\n", "label 'k' of experiment 'every-20-0' has the value ''"),
    ):
        table.write_text(text)
        with pytest.raises(rta.InputError, match=said):
            traces.label(table)
    with pytest.raises(rta.InputError, match="cannot be read"):
        traces.label(tmp_path / "none.csv")


def test_a_mix_has_all_rows_of_all(mixed, worlds):
    sources = [rta.connect(worlds / f"{interval}.duckdb") for interval in (20, 80)]
    for view in ("attempt_spans", "cut_time_waste", "events", "trace_files", "in_flight", "quality"):
        assert len(mixed.view(view)) == sum(len(source.view(view)) for source in sources)
    assert mixed.compare(by="source")["source"].tolist() == ["often"] * 4 + ["seldom"] * 4
    joined = mixed.sql("SELECT count(*) FROM events JOIN trace_files USING (experiment, file_id)").fetchall()
    assert joined == [(len(mixed.events()),)]  # a file of one is no file of another
    comments = mixed.sql(
        "SELECT comment FROM duckdb_columns() WHERE database_name = 'memory' AND column_name = 'lost_s'"
    )
    assert all(comment for (comment,) in comments.fetchall())
    assert "experiments: 8" in repr(mixed)


def test_traces_in_memory_and_in_files_mix(worlds):
    inside = rta.load(ROOT / "data/samples/pr-example")
    with rta.mix({"a": inside, "b": rta.connect(worlds / "20.duckdb")}) as mixed:
        assert mixed.cut_time_waste(experiment="pr-example")["thrown_away_s"].tolist() == [28.0]
        assert len(mixed.runs()["experiment"].unique()) == 5
        with rta.mix({"all": mixed, "c": worlds / "80.duckdb"}) as again:
            assert len(again.experiment_waste()) == 9
            sources = again.labels().query("key == 'source'").set_index("experiment")["value"]
            assert sources["pr-example"] == "a" and sources["every-80-0"] == "c"


def test_doubled_names_are_named_or_prefixed(worlds):
    sources = {"x": worlds / "20.duckdb", "it's": worlds / "20.duckdb"}
    with pytest.raises(rta.InputError, match="experiment 'every-20-0' is in 'x' and in \"it's\": mix with prefix=True"):
        rta.mix(sources)
    inside = rta.load(worlds / "every-20-0")
    with rta.mix({"x": worlds / "20.duckdb", "it's": inside}, prefix=True) as mixed:
        names = mixed.experiment_waste()["experiment"].tolist()
        assert names == ["it's/every-20-0", *(f"x/every-20-{seed}" for seed in range(4))]
        assert mixed.attempt_spans(experiment="it's/every-20-0")["duration_s"].sum() > 0


def test_a_mix_only_reads_and_says_what_is_wrong(mixed, tmp_path, worlds):
    for call in (lambda: mixed.load("x"), lambda: mixed.forget("x"), lambda: mixed.label({})):
        with pytest.raises(rta.InputError, match="a mix only reads"):
            call()
    for back in (
        lambda: mixed.explain(prompt_id="0", experiment="every-20-0"),
        lambda: mixed.whatif_interval([20], experiment="every-20-0"),
        lambda: mixed.advice(experiment="every-20-0"),
    ):
        with pytest.raises(rta.InputError, match="a mix or an export has no lines to go back to"):
            back()
    with pytest.raises(rta.DatabaseError, match="no database"):
        rta.mix({"a": tmp_path / "none.duckdb"})
    with pytest.raises(rta.InputError, match="nothing to mix"):
        rta.mix({})
    with pytest.raises(rta.InputError, match="'a' is a int: give traces"):
        rta.mix({"a": 3})
    (tmp_path / "text.duckdb").write_text("not a database " * 1000)
    with pytest.raises(rta.DatabaseError, match=r"text\.duckdb"):
        rta.mix({"a": tmp_path / "text.duckdb"})


def test_a_file_in_a_mix_can_be_loaded_again_once_the_mix_is_closed(worlds, tmp_path):
    path = tmp_path / "a.duckdb"
    with rta.connect(path) as traces:
        traces.load(worlds / "every-20-0")
        with rta.mix({"a": path}) as mixed:
            assert len(mixed.runs())
            with pytest.raises(rta.DatabaseError, match="open"):
                traces.load(worlds / "every-20-1")
        traces.load(worlds / "every-20-1")
        assert len(traces.experiment_waste()) == 2
