"""The timeline: the PR's figure, and that what is drawn is what the views say."""

import time

import numpy as np
import pytest

import rtrace_analytics as rta
from rtrace_analytics.plots import bars, plot_timeline, style


def _boxes(ax, kind):
    """(left, right, middle) of each bar of a kind."""
    found = [c for c in ax.collections if c.get_gid() == f"bars-{kind}"]
    paths = [path.vertices for c in found for path in c.get_paths()]
    return [(p[:, 0].min(), p[:, 0].max(), (p[:, 1].min() + p[:, 1].max()) / 2) for p in paths]


def _lines(ax, kind):
    return sorted(line.get_xdata()[0] for line in ax.lines if line.get_gid() == f"line-{kind}")


def test_the_prs_figure(pr):
    ax = pr.plot.timeline(siblings=(0, 2))
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "sibling 0 · run a1",
        "sibling 2 · run a1",
        "sibling 2 · attempt 1 · run b2",
    ]
    assert _boxes(ax, "kept") == [(10, 25, 0), (63, 89, 2)]
    assert _boxes(ax, "thrown_away") == [(12, 40, 1)]
    assert _boxes(ax, "never_saved") == [(40, 43, 1)]
    assert (_lines(ax, "cut"), _lines(ax, "stop"), _lines(ax, "restore")) == ([40], [43], [60])
    texts = [text.get_text() for text in ax.texts]
    assert "thrown away: 40 - 12 = 28 s" in texts
    assert {"run a1", "run b2"} <= set(texts)
    low, high = ax.get_xlim()
    assert low == 0 and 89 <= high <= 92
    assert ax.get_xlabel() == "time (s)" and "wall-seconds" in ax.get_title(loc="left")


def test_bars_are_the_views_seconds(real):
    for name in real.runs()["experiment"].unique():
        spans = real.attempt_spans(experiment=name)
        parts = bars.pieces(spans)
        lengths = (parts["end_t"] - parts["start_t"]).groupby(parts["kind"]).sum()
        waste = real.cut_time_waste(experiment=name)
        assert lengths.get("thrown_away", 0) == pytest.approx(waste["thrown_away_s"].sum(), abs=1e-6)
        assert lengths.get("never_saved", 0) == pytest.approx(waste["never_saved_s"].sum(), abs=1e-6)
        assert lengths.sum() == pytest.approx(spans["duration_s"].sum())
        drawn = real.plot.timeline(experiment=name)
        kept = sum(right - left for left, right, _ in _boxes(drawn, "kept"))
        assert kept == pytest.approx(spans.loc[spans["fate"] == "kept", "duration_s"].sum())


def test_no_bars_overlap_in_a_shared_row(real):
    spans = real.attempt_spans(experiment="wide-groups").sort_values("start_t")
    rows = spans.assign(row=bars.shared_rows(spans))
    for _, own in rows.groupby("row"):
        assert (own["start_t"].to_numpy()[1:] >= own["end_t"].to_numpy()[:-1]).all()


def test_merging_keeps_what_is_covered():
    row = np.array([0, 0, 0, 0, 1, 1, 2])
    start = np.array([5.0, 0.0, 1.0, 9.0, 0.0, 2.0, 3.0])
    end = np.array([6.0, 4.0, 2.0, 9.5, 1.0, 3.0, 3.0])
    merged = bars.merge(row, start, end, 1.0)
    assert [part.tolist() for part in merged] == [[0, 0, 1, 2], [0, 9, 0, 3], [6, 9.5, 3, 3]]


def test_a_group_a_prompt_a_window(real, pr):
    spans = real.attempt_spans(experiment="two-kills")
    group = spans.loc[spans["fate"] == "restart", "group_key"].iloc[0]
    assert (
        len(real.plot.timeline(experiment="two-kills", group=group).get_yticks()) == (spans["group_key"] == group).sum()
    )
    assert "prompt 7" in pr.plot.timeline(group="7").get_title(loc="left")
    ax = pr.plot.timeline(window=(50, 70))
    assert ax.get_xlim() == (50, 70) and [y for _, _, y in _boxes(ax, "kept")] == [0]
    assert "no attempt runs in this window" in pr.plot.timeline(window=(500, 700)).texts[0].get_text()
    for options, said in (
        ({"group": "8"}, "no group or prompt '8'"),
        ({"window": (5, 5)}, r"window \(5, 5\) ends before it begins"),
        ({"experiment": "x"}, "no experiment 'x': there are 'pr-example'"),
    ):
        with pytest.raises(rta.InputError, match=said):
            pr.plot.timeline(**options)


def test_a_frame_draws_the_same(pr):
    ax = plot_timeline(pr.attempt_spans())
    assert _boxes(ax, "thrown_away") == _boxes(pr.plot.timeline(), "thrown_away")
    assert (_lines(ax, "cut"), _lines(ax, "stop")) == ([40], [43])
    with pytest.raises(rta.InputError, match="the frame has no column"):
        plot_timeline(pr.attempt_spans()[["experiment", "run"]])


def test_of_many_experiments_the_one_that_lost_most(real):
    lost = real.experiment_waste().set_index("experiment")["lost_s"].idxmax()
    assert f"{lost}: of 7 the one that lost most" in real.plot.timeline().get_title(loc="left")


def test_twenty_thousand_attempts_in_a_few_seconds(real):
    spans = real.attempt_spans(experiment="wide-groups")
    shift = [spans.assign(start_t=spans["start_t"] + 600 * i, end_t=spans["end_t"] + 600 * i) for i in range(40)]
    many = spans.__class__(
        {name: np.concatenate([part[name].to_numpy(object) for part in shift]) for name in spans.columns}
    )
    many = many.astype(
        {"start_t": float, "end_t": float, "duration_s": float, "thrown_away_s": float, "never_saved_s": float}
    )
    assert len(many) > 20_000
    began = time.perf_counter()
    ax = plot_timeline(many)
    ax.figure.canvas.draw()
    assert time.perf_counter() - began < 10  # about one on a machine that does nothing else
    assert len([c for c in ax.collections if (c.get_gid() or "").startswith("bars-")]) <= len(style.LOOKS)
