"""Many experiments side by side: figures of each, with the means of the groups that a label makes of them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rtrace_analytics.errors import InputError
from rtrace_analytics.text import listed

if TYPE_CHECKING:
    import pandas as pd

METRICS = {
    "lost_s_per_restore": "attempt-seconds lost per restore",
    "lost_s_per_hour": "attempt-seconds lost per wall-hour",
    "lost_s_per_1000_rollouts": "attempt-seconds lost per 1,000 rollouts",
    "lost_share": "share of all attempt-seconds lost to restores",
}
FEWEST = 3  # experiments that an interval takes
_GROUP = ("group_experiments", "group_restores", "group_mean", "group_low", "group_high")
_RESAMPLES = 9_999


def compare(
    traces: Any, by: str = "experiment", metric: str = "lost_s_per_restore", *, seed: int = 0
) -> "pd.DataFrame":
    """What each experiment lost, beside the mean of the experiments that bear the same label.

    Args:
        traces: Loaded traces.
        by: Key of a label that every experiment has, or `experiment`.
        metric: What the group's mean is of: `lost_s_per_restore`, `lost_s_per_hour` (of wall time),
            `lost_s_per_1000_rollouts` or `lost_share`.
        seed: Of the resampling; the same seed gives the same interval.

    Returns:
        One row per experiment, by label: the columns of `experiment_waste`, the label in a column of its key's name
        (numbers where all of them are), and `group_experiments` (how many have a figure), `group_restores` (of known
        cut, behind the figure), `group_mean`, `group_low` and `group_high`: the mean of the experiments with that label
        and its bootstrap 95 % interval, NaN for fewer than three experiments.

    Raises:
        InputError: a metric or label that is not there, or an experiment without the label.
    """
    if metric not in METRICS:
        raise InputError(f"no metric {metric!r}: there are {', '.join(METRICS)}")
    frame = traces.view("experiment_waste")
    if by != "experiment":
        frame.insert(1, by, _values(traces.view("labels"), frame["experiment"], by, frame.columns))
    groups = group_means(frame, by, metric, seed=seed)
    own = groups.set_index(by)[list(_GROUP)]
    joined: pd.DataFrame = (
        frame.join(own, on=by).sort_values([by, "experiment"] if by != "experiment" else by).reset_index(drop=True)
    )
    return joined


def _values(labels: "pd.DataFrame", experiments: "pd.Series[str]", by: str, taken: Iterable[str]) -> "pd.Series[Any]":
    """The label `by` of each experiment, as numbers where all are."""
    import pandas as pd

    if by in taken or by in _GROUP:
        raise InputError(f"label {by!r} has the name of a figure: give it another name")
    own = labels[labels["key"] == by].set_index("experiment")["value"]
    if own.empty and len(experiments):
        keys = listed(sorted(labels["key"].unique()))
        raise InputError(f"no label {by!r}: {keys}; labels come with `labels=` at load or `rtrace label`")
    missing = sorted(set(experiments) - set(own.index))
    if missing:
        more = f" (nor have {len(missing) - 1} others)" if len(missing) > 1 else ""
        raise InputError(f"experiment {missing[0]!r} has no label {by!r}{more}: set it with `rtrace label`")
    values = experiments.map(own)
    try:
        return pd.to_numeric(values)
    except (ValueError, TypeError):
        return values


def group_means(frame: "pd.DataFrame", by: str, metric: str, *, seed: int = 0) -> "pd.DataFrame":
    """One row per value of column `by`, in order: experiments and restores behind it, mean of `metric`, 95 % interval.

    `frame` is a result of `compare`. Experiments without the figure (no restore of known cut) are not counted. The
    interval is the percentile bootstrap over experiments (scipy.stats.bootstrap, 9,999 resamples).
    """
    import pandas as pd

    rows = []
    for value, own in frame.groupby(by, sort=True):
        own = own[own[metric].notna()]
        figures = own[metric].astype(float).to_numpy()
        low, high = _interval(figures, seed)
        mean = float(figures.mean()) if len(figures) else float("nan")
        rows.append((value, len(own), int(own["known_restores"].sum()), mean, low, high))
    return pd.DataFrame(rows, columns=[by, *_GROUP])


def _interval(figures: Any, seed: int) -> tuple[float, float]:
    import numpy as np
    from scipy import stats

    if len(figures) < FEWEST:
        return float("nan"), float("nan")
    found = stats.bootstrap(
        (np.sort(figures),), np.mean, n_resamples=_RESAMPLES, method="percentile", rng=np.random.default_rng(seed)
    ).confidence_interval
    return float(found.low), float(found.high)
