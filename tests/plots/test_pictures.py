"""The other pictures: drawn values against the views; nothing, one attempt, long names, many experiments."""

import subprocess
import sys

import pytest
from matplotlib import pyplot as plt

import rtrace_analytics as rta
from rtrace_analytics import plots
from rtrace_analytics.plots import in_flight, style
from rtrace_analytics.text import length

NAMES = ("timeline", "waste", "fates", "in_flight", "durations", "lineage", "compare")


def _widths(ax, label):
    (container,) = [c for c in ax.containers if c.get_label() == f"_{label}"]
    return [bar.get_width() for bar in container]


def test_waste_is_the_views(real):
    rows = real.cut_time_waste()
    ax = real.plot.waste()
    assert _widths(ax, style.LOOKS["thrown_away"].label) == pytest.approx(rows["thrown_away_s"].tolist())
    assert _widths(ax, style.LOOKS["never_saved"].label) == pytest.approx(rows["never_saved_s"].tolist())
    (marks,) = [line for line in ax.lines if line.get_gid() == "naive"]
    assert marks.get_xdata().tolist() == pytest.approx(rows["naive_s"].tolist())
    assert "attempt-seconds" in ax.get_title(loc="left")


def test_waste_of_one_says_its_share(pr):
    assert [text.get_text() for text in pr.plot.waste().texts] == ["31 s · 35 %"]


def test_waste_of_an_unknown_cut_says_so(world):
    rows = [{"t": 1, "run": "b", "event": "restore_started", "path": "/x/snapshot_3"}]
    rows += [{"t": 2, "run": "b", "event": "attempt_dispatched", "prompt_id": "1", "generation_index": 0, "attempt": 0}]
    traces = world(x=rows)
    assert traces.plot.waste().texts[0].get_text() == "unknown: the cut is not known"
    assert "no restore of known cut" in traces.plot.compare().texts[0].get_text()


def test_fates_add_up_to_all(real):
    ax = real.plot.fates()
    experiments = sorted(real.runs()["experiment"].unique())
    ends = dict.fromkeys(range(len(experiments)), 0.0)
    for container in ax.containers:
        for place, bar in enumerate(container):
            ends[place] += bar.get_width()
    assert list(ends.values()) == pytest.approx([100.0] * len(experiments))
    shares = real.rollout_seconds().query("fate == 'restart'").set_index("experiment")["share"]
    lost = dict(zip(experiments, _widths(ax, "lost to restores"), strict=True))
    assert {name: lost[name] for name in shares.index} == pytest.approx((100 * shares).to_dict())


def test_in_flight_is_the_view(real):
    name = "two-kills"
    ax = real.plot.in_flight(experiment=name)
    steps = [line for line in ax.lines if line.get_gid() == "running"]
    rows = real.in_flight(experiment=name)
    assert sum(len(line.get_xdata()) for line in steps) == len(rows)
    assert sorted(y for line in steps for y in line.get_ydata()) == sorted(rows["in_flight"].tolist())
    area = sum(((line.get_xdata()[1:] - line.get_xdata()[:-1]) * line.get_ydata()[:-1]).sum() for line in steps)
    assert area == pytest.approx(real.attempt_spans(experiment=name)["duration_s"].sum())
    (marks,) = [line for line in ax.lines if line.get_gid() == "snapshots"]
    assert len(marks.get_xdata()) == len(real.snapshots(experiment=name))


def test_thinned_steps_keep_the_highest_and_the_end():
    import numpy as np

    t, running = np.arange(10_000.0), np.r_[np.ones(5000), 9, np.ones(4998), 0]
    thin_t, thin = in_flight.thinned(t, running, most=100)
    assert len(thin) <= 101 and thin.max() == 9 and thin_t[-1] == 9999 and thin[-1] == 0


def test_durations_count_every_attempt(real):
    spans = real.attempt_spans()
    ax = real.plot.durations()
    heights = {c.get_label(): sum(bar.get_height() for bar in c) for c in ax.containers}
    assert heights["_lost"] == (spans["fate"] == "restart").sum()
    assert sum(heights.values()) == len(spans)


def test_lineage_has_every_run_snapshot_and_restore(real):
    name = "same-snapshot-again"
    ax = real.plot.lineage(experiment=name)
    assert len(ax.get_yticklabels()) == len(real.runs(experiment=name))
    starts = [line for line in ax.lines if line.get_gid() == "starts"]
    assert len(starts[0].get_xdata()) == len(real.restores(experiment=name))
    dots = [line for line in ax.lines if (line.get_gid() or "").startswith("snapshots")]
    assert sum(len(line.get_xdata()) for line in dots) == len(real.snapshots(experiment=name))
    assert [text.get_text() for text in ax.texts] == ["left: all of it lost"] * 5


def test_lineage_tells_a_fork():
    path = plots.__file__.replace("rtrace_analytics/plots/__init__.py", "tests/data/faults/parent-went-on")
    assert [text.get_text() for text in rta.load(path).plot.lineage().texts] == ["forked from a1"]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_a_labelled_picture_and_a_sentence(name, world):
    ax = getattr(world().plot, name)()
    assert ax.get_title(loc="left") and ax.get_xlabel() and ax.get_ylabel()
    assert len(ax.texts) == 1 and " " in ax.texts[0].get_text()
    ax.figure.canvas.draw()


@pytest.mark.parametrize("name", NAMES)
def test_one_attempt(name, world):
    one = [
        {"t": 1.76e9, "run": "a", "event": "attempt_dispatched", "prompt_id": 1, "generation_index": 0, "attempt": 0}
    ]
    ax = getattr(world(x=one).plot, name)()
    assert ax.get_title(loc="left") and ax.get_xlabel()
    ax.figure.canvas.draw()


@pytest.mark.parametrize("name", NAMES)
def test_long_names_are_shortened_and_are_no_formulas(name, long_names):
    ax = getattr(long_names.plot, name)()
    ax.figure.canvas.draw()
    texts = [
        ax.title,
        ax._left_title,
        ax.xaxis.label,
        ax.yaxis.label,
        *ax.texts,
        *ax.get_xticklabels(),
        *ax.get_yticklabels(),
    ]
    for text in texts:
        assert max(map(len, text.get_text().split("\n"))) < 110
        assert "$" not in text.get_text() or not text.get_parse_math()


@pytest.mark.parametrize("name", NAMES)
def test_given_axes_are_drawn_on_and_nothing_is_shown(name, pr, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *a, **k: pytest.fail("shown"))
    _, own = plt.subplots()
    assert getattr(pr.plot, name)(ax=own) is own
    assert plt.get_fignums() == [own.figure.number]


def test_each_picture_is_also_a_function_with_the_same_result(pr):
    for name in NAMES:
        function = getattr(plots, f"plot_{name}")
        assert function(pr).get_title(loc="left") == getattr(pr.plot, name)().get_title(loc="left")


def test_looks_are_apart_in_grey():
    from matplotlib.colors import to_rgb

    def luminance(look):
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), to_rgb(look.face), strict=True))

    looks = list(style.LOOKS.values())
    for i, one in enumerate(looks):
        for other in looks[i + 1 :]:
            assert one.hatch != other.hatch or abs(luminance(one) - luminance(other)) > 0.1


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (28, "28 s"), (99.94, "99.9 s"), (750, "12.5 min"), (11_520, "3.2 h"), (440_640, "5.1 d")],
)
def test_lengths_are_readable(seconds, said):
    assert length(seconds) == said


def test_no_backend_is_set_and_the_package_stays_light():
    code = (
        "import matplotlib; before = matplotlib.rcParams._get_backend_or_none()\n"
        "import rtrace_analytics.plots, sys\n"
        "assert matplotlib.rcParams._get_backend_or_none() == before\n"
        "assert 'matplotlib.pyplot' not in sys.modules and 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
