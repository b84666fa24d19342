"""What a stop and restore of asynchronous RL training threw away, from its rollout trace.

import rtrace_analytics as rta
traces = rta.load("logs/")            # or rta.connect("traces.duckdb")
traces.cut_time_waste()               # a DataFrame: one row per restore

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
