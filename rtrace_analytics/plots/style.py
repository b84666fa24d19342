"""What all pictures share: the look of each kind of time, axes, legends, readable times on an axis."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Look:
    """How a kind of time is drawn: luminance steps and hatches tell kinds apart without colour."""

    label: str
    face: str
    edge: str
    hatch: str = ""


LOOKS = {
    "kept": Look("finished and saved", "#c3dbef", "#7fa9cc"),
    "thrown_away": Look("ran before the cut, then thrown away", "#9c1f1f", "#d98c8c", "////"),
    "never_saved": Look("ran after the cut, never saved", "#f2a33a", "#9c5f00", ".."),
    "lost": Look("lost to a restore, cut unknown", "#6d2a63", "#c99ac1", "xxxx"),
    "failed": Look("failed, cancelled or other reason", "#767676", "#c4c4c4", "\\\\\\\\"),
    "dropped": Look("discarded or superseded", "#dedede", "#8a8a8a", "||||"),
    "open": Look("still running at the end", "#f7f7f7", "#8a8a8a"),
}
LOST = Look("lost to restores", "#9c1f1f", "#d98c8c", "////")  # before and after the cut together
CUT, STOP, RESTORE, SNAPSHOT = "cut", "stop", "restore", "snapshot"
LINES: dict[str, tuple[str, Any]] = {
    CUT: ("snapshot cut that was restored", "-"),
    STOP: ("stop (last line of the run)", ":"),
    RESTORE: ("restore", "--"),
}


def kind_of_fate(fate: str) -> str:
    """The look of a fate; a lost one is `lost`, its two parts are told apart by their own seconds."""
    fates = {"kept": "kept", "restart": "lost", "discarded": "dropped", "superseded": "dropped", "open": "open"}
    return fates.get(fate, "failed")


_OFF_SCREEN = ContextVar("off_screen", default=False)


@contextmanager
def off_screen() -> Iterator[None]:
    """Within it new figures are not pyplot's: no screen, no backend, nothing kept open."""
    token = _OFF_SCREEN.set(True)
    try:
        yield
    finally:
        _OFF_SCREEN.reset(token)


def new_axes(ax: "Axes | None", width: float, height: float) -> "Axes":
    """The axes to draw on: those given, or new ones of this size in inches."""
    if ax is not None:
        return ax
    if _OFF_SCREEN.get():
        from matplotlib.figure import Figure

        return Figure(figsize=(width, height), layout="constrained").add_subplot()
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def ink() -> str:
    """The colour of text, as the reader has set it."""
    from matplotlib import rcParams

    return str(rcParams["text.color"])


def title(ax: "Axes", text: str, *, pad: float | None = None) -> None:
    """The title, at the left, nothing in it read as a formula."""
    ax.set_title(text, loc="left", fontsize=10.5, parse_math=False, pad=pad)


def empty(ax: "Axes", heading: str, sentence: str, *, xlabel: str, ylabel: str = "") -> "Axes":
    """A picture of nothing: labelled, with a sentence that says why."""
    title(ax, heading)
    ax.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
    ax.set_xlabel(xlabel, parse_math=False)
    ax.set_ylabel(ylabel, parse_math=False)
    ax.text(0.5, 0.5, sentence, ha="center", va="center", transform=ax.transAxes, wrap=True, parse_math=False)
    bare(ax)
    return ax


def bare(ax: "Axes") -> None:
    """Leave the frame's upper and right side away."""
    ax.spines[["top", "right"]].set_visible(False)


def row_names(ax: "Axes", names: Sequence[str]) -> None:
    """Name the rows of a picture from the top; where there are too many for its height, every so many."""
    fits = max(1, int(height_px(ax) / (ax.figure.dpi / 72 * 11)))
    every = -(-len(names) // fits)
    ax.set_yticks(range(0, len(names), every), labels=list(names)[::every], parse_math=False, fontsize=8.5)
    ax.tick_params(axis="y", length=0)


def round_step(least: float) -> int:
    """A round step between ticks: 1, 2 or 5 times a power of ten, at least `least`."""
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power >= least:
                return digit * power
        power *= 10


def whole_numbers(ax: "Axes") -> None:
    """Only whole numbers on the y axis."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    ax.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def height_px(ax: "Axes") -> float:
    """Height of the axes in pixels, before layout."""
    return float(ax.get_position().height * ax.figure.bbox.height)


def width_px(ax: "Axes") -> float:
    """Width of the axes in pixels, before layout."""
    return float(ax.get_position().width * ax.figure.bbox.width)


def letter(ax: "Axes") -> float:
    """Width of a letter of size 1 in the units of the x axis, about: to see what text fits."""
    low, high = ax.get_xlim()
    return 0.6 * float(high - low) / max(1.0, width_px(ax)) * float(ax.figure.dpi) / 72


def patch(look: Look) -> Any:
    """What stands for a kind in a legend."""
    from matplotlib.patches import Patch

    return Patch(facecolor=look.face, edgecolor=look.edge, hatch=look.hatch, label=look.label, linewidth=0.6)


def line(kind: str) -> Any:
    """What stands for a vertical line in a legend."""
    from matplotlib.lines import Line2D

    label, dashes = LINES[kind]
    return Line2D([], [], color=ink(), linestyle=dashes, linewidth=1.2, label=label)


def line_look(kind: str) -> dict[str, Any]:
    """How the vertical line of a cut, stop or restore is drawn."""
    return {"color": ink(), "linestyle": LINES[kind][1], "linewidth": 1.2, "zorder": 3, "gid": f"line-{kind}"}


def legend_below(ax: "Axes", handles: Iterable[Any], *, columns: int = 3, under: float = 0.55) -> None:
    """The legend `under` inches below the axes, off the data."""
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    found = list(handles)
    if not found:
        return
    alone = len(ax.figure.axes) == 1  # then from the figure's left: beside long names of rows it would not fit
    across = blended_transform_factory(ax.figure.transFigure, ax.transAxes) if alone else ax.transAxes
    place = across + ScaledTranslation(0, -under, ax.figure.dpi_scale_trans)
    ax.legend(
        handles=found,
        loc="upper left",
        bbox_to_anchor=(0.01 if alone else 0, 0),
        bbox_transform=place,
        borderaxespad=0,
        ncols=min(columns, len(found)),
        fontsize=8.5,
        frameon=False,
        handlelength=2.2,
    )


def unit_of(span_s: float) -> tuple[int, str]:
    """The unit in which an axis this long is told: its seconds and its name."""
    for below, unit, word in ((180, 1, "s"), (10_800, 60, "min"), (259_200, 3600, "h")):
        if span_s < below:
            return unit, word
    return 86_400, "d"


def time_axis(ax: "Axes", name: str, *, which: str = "x") -> None:
    """Readable times on an axis whose data are seconds: ticks at whole seconds, minutes, hours or days."""
    from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator

    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)

    class TimeLocator(Locator):
        def __call__(self) -> Any:
            return self.tick_values(*axis.get_view_interval())

        def tick_values(self, vmin: float, vmax: float) -> Any:
            from numpy import arange, asarray, ceil

            span = abs(vmax - vmin)
            if span < 6 or span > 12 * 86_400:
                unit = 1 if span < 6 else 86_400
                return asarray(MaxNLocator(8).tick_values(vmin / unit, vmax / unit)) * unit
            step = next((s for s in steps if span / s <= 9), 2 * 86_400)
            return arange(ceil(min(vmin, vmax) / step) * step, max(vmin, vmax) + step * 1e-6, step)

    axis = ax.xaxis if which == "x" else ax.yaxis
    low, high = sorted(axis.get_view_interval())
    unit, word = unit_of(high - low)
    axis.set_major_locator(TimeLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{round(value / unit, 9) or 0:,.6g}"))
    axis.set_label_text(f"{name} ({word})")
