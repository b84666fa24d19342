"""A bar on stderr for loads that take long, never in piped output."""

import sys
from typing import Any

_DELAY = 2  # seconds before the bar is shown


class Progress:
    """A bar over the bytes to read; `shown` None: where stderr is a terminal, and in notebooks."""

    def __init__(self, total: int, shown: bool | None) -> None:
        self._bar: Any = None
        if _wanted() if shown is None else shown:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, unit="B", unit_scale=True, desc="loading", delay=_DELAY, leave=False)

    def advance(self, size: int) -> None:
        """So many bytes more are done."""
        if self._bar is not None:
            self._bar.update(size)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _wanted() -> bool:
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"
