"""The report's pictures as SVG inside the page: text in the page's colours, light and dark, the same every time."""

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

from rtrace_analytics.plots import style

_INK = "#0a0b0c"  # stands for the page's own colour of text
_STYLE: Any = {
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), _INK),
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
}


def svg(name: str, draw: Callable[[], Any], description: str) -> str:
    """What `draw` returns (axes) as an `<svg>` element; ids begin with `name`, unique in the page."""
    import matplotlib
    from markupsafe import escape

    with (
        matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}),
        style.off_screen(),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the browser has its own fonts
        text = io.StringIO()
        draw().figure.savefig(text, format="svg", bbox_inches="tight", transparent=True, metadata={"Date": None})
    return _inside(text.getvalue(), name, str(escape(description)))


def _inside(text: str, name: str, description: str) -> str:
    """The element alone: no prolog, no metadata, no name of any host; colours of text are the page's."""
    text = re.sub(r"\A.*?(?=<svg\b)", "", text, flags=re.S)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.S)
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", text, count=1, flags=re.S)  # the page has it
    box = re.search(r'viewBox="([^"]*)"', text)
    assert box is not None
    text = re.sub(r"\A<svg\b[^>]*>", f'<svg viewBox="{box[1]}" role="img" aria-label="{description}">', text)
    used = set(re.findall(r"""(?:url\(|href=")#([^")]+)""", text))
    text = re.sub(r'\sid="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r'(?:xlink:)?href="#', f'href="#{name}-', text)
    text = text.replace("xlink:href", "href")
    return text.replace(_INK, "currentColor")
