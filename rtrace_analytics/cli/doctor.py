"""`rtrace doctor`: what is installed, in ten lines."""

from importlib.metadata import PackageNotFoundError, version

import click

_NEEDED = ("duckdb", "pyarrow", "pandas", "matplotlib", "scipy")
_EXTRAS = {"notebook": "jupyterlab", "fast": "orjson", "ray": "ray"}


@click.command("doctor")
def command() -> None:
    """Say what is installed: versions, the database format, the extras."""
    import platform

    from rtrace_analytics import database

    print(f"rtrace {version('rtrace_analytics')}, Python {platform.python_version()}, {platform.system()}")
    print(f"database format {database.FORMAT}, SQL in {database.sql_folder()}")
    for name in _NEEDED:
        print(f"{name} {_found(name) or 'is missing: pip install rtrace_analytics again'}")
    for extra, name in _EXTRAS.items():
        way = f"not installed: pip install 'rtrace_analytics[{extra}]'"
        print(f"extra {extra}: {name} {_found(name) or way}")


def _found(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
