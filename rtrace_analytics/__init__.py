"""What a stop and restore of asynchronous RL training threw away, from its rollout trace.

import rtrace_analytics as rta
traces = rta.load("logs/")            # or rta.connect("traces.duckdb")
traces.cut_time_waste()               # a DataFrame: one row per restore

The way through the house, in the order data flows:

recording   beside the rest: writes a trainer's trace, simulates worlds with their truth; events lists what lines say
loading     trace files to the table `events`; database opens the file and runs `sql/`, where all figures are made
views       which views and tables there are, their rows, their order; labels and compare go by label over experiments
traces      `Traces`: every view as a DataFrame, and the way to all that follows; card shows one in a notebook
mixing      several databases as one
decisions   what another snapshot interval would have cost, and advice; explain tells it in sentences with file and line
plots       a picture each, from views; report puts them, tables and definitions on one page
export      the views as Parquet, kept up to date under readers, and the spans for Perfetto; fleet does it by Ray
cli         `rtrace`: a module a command, each over one of the functions above
text        how names and figures are told; whole writes files whole or not at all; errors are one line each

Nothing heavy is imported here: a trainer that only records pays for no analysis. The names below are fetched from
their modules when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rtrace_analytics.errors import DatabaseError, InputError, RtraceError
    from rtrace_analytics.export.reading import open_parquet
    from rtrace_analytics.mixing import mix
    from rtrace_analytics.traces import Traces, connect, load

__all__ = ["DatabaseError", "InputError", "RtraceError", "Traces", "connect", "load", "mix", "open_parquet"]

_MODULES = {
    "DatabaseError": "errors",
    "InputError": "errors",
    "RtraceError": "errors",
    "Traces": "traces",
    "connect": "traces",
    "load": "traces",
    "mix": "mixing",
    "open_parquet": "export.reading",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("rtrace_analytics")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
