"""The picture of what-if draws the frame's own figures."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from rtrace_analytics.errors import InputError
from rtrace_analytics.plots import plot_whatif


def frame(**columns):
    rows = {
        "experiment": ["x"] * 4,
        "granularity": ["sibling"] * 4,
        "cadence": ["replayed"] * 3 + ["recorded"],
        "interval_s": [60.0, 30.0, 120.0, None],
        "lost_s_per_stop": [100.0, 80.0, 150.0, 90.0],
        "thrown_away_s": [50.0, 50.0, 48.0, 40.0],
        "usual_gap_s": [None, None, None, 55.0],
        "stops": [None, None, None, 4],
    }
    return pd.DataFrame(rows | columns)


COSTS = {
    "save_cost_s": [2.0] * 4,
    "mtbf_s": [900.0] * 4,
    "overhead_s_per_hour": [120.0, 240.0, 60.0, 130.0],
    "total_s_per_hour": [520.0, 560.0, 660.0, 490.0],
    "is_best": [True, False, False, False],
    "young_daly_s": [60.0] * 4,
}


def drawn(ax):
    return {line.get_label(): [list(line.get_xdata()), list(line.get_ydata())] for line in ax.get_lines()}


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_costs_are_those_of_the_frame():
    lines = drawn(plot_whatif(frame(**COSTS)))
    assert lines["lost to stops, one every 15 min"] == [[30, 60, 120], [320, 400, 600]]
    assert lines["saving, 2 s each time"] == [[30, 60, 120], [240, 120, 60]]
    assert lines["both together"] == [[30, 60, 120], [560, 520, 660]]
    assert lines["best of these: 60 s"] == [[60], [520]]
    assert lines["Young/Daly: 60 s"][0] == [60, 60]
    assert lines["as it was: 55 s"][0] == [55, 55]
    assert lines["its own 4 stops"] == [[55], [490]]


def test_losses_without_costs():
    ax = plot_whatif(frame())
    assert [[30, 60, 120], [80, 100, 150]] in drawn(ax).values()
    assert ax.get_ylabel() == "attempt-seconds per stop"
    thrown, unsaved = ax.collections
    assert thrown.get_paths()[0].get_extents().ymax == 50
    assert (unsaved.get_paths()[0].get_extents().ymin, unsaved.get_paths()[0].get_extents().ymax) == (48, 150)


def test_without_a_stop_only_the_line_and_on_given_axes():
    _, ax = plt.subplots()
    nothing = frame(stops=[None, None, None, 0], lost_s_per_stop=[100.0, 80.0, 150.0, None])
    assert plot_whatif(nothing, ax=ax, legend=False) is ax
    assert not any("stops" in label for label in drawn(ax))
    assert ax.get_legend() is None


def test_bad_frames():
    with pytest.raises(InputError, match="no column 'usual_gap_s': give the rows of"):
        plot_whatif(frame().drop(columns="usual_gap_s"))
    with pytest.raises(InputError, match="granularities"):
        plot_whatif(frame(granularity=["sibling", "prompt_group", "sibling", "sibling"]))
