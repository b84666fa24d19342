"""From paths, folders and globs to trace files, each with its experiment."""

import glob
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtrace_analytics.errors import InputError
from rtrace_analytics.text import is_text

_TRACE = re.compile(r"\.jsonl(\.\d+)?(\.gz|\.zst)?$")
_LAUNCH = re.compile(r"exp_\d+")


@dataclass(frozen=True)
class Found:
    """A file to load: absolute path, its experiment, whether the user named it, and whether the experiment."""

    path: str
    experiment: str
    named: bool
    experiment_named: bool


def find(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    experiment: str | None = None,
    experiment_from: str | None = None,
) -> list[Found]:
    """The files of these paths (a file, a folder searched for traces, a glob), sorted, each once.

    Raises `InputError` for a path that does not exist, a folder or glob without a trace, and a pattern that cannot
    be used or does not match.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not given:
        raise InputError("no path given: name a trace file, a folder or a glob")
    pattern = _pattern(experiment, experiment_from)
    found: dict[str, bool] = {}
    for path in given:
        files, named = _files(os.fspath(path))
        for file in files:
            absolute = os.path.abspath(file)
            found[absolute] = found.get(absolute, False) or named
    for path in found:
        must_be_text("the name", path)
    return [
        Found(path, _experiment(path, experiment, pattern), named, experiment is not None or pattern is not None)
        for path, named in sorted(found.items())
    ]


def experiment_of(path: str, experiment_from: str | None = None) -> str:
    """The experiment of a file that need not be here (an address, say). Raises `InputError`."""
    return _experiment(path, None, _pattern(None, experiment_from))


def must_be_text(what: str, value: str) -> None:
    """Raises `InputError` for what is not."""
    if not is_text(value):
        raise InputError(f"{what} {value!r} is not UTF-8: rename it")


def default_experiment(path: str) -> str:
    """The name of the folder the file lies in; above a launch folder of NeMo-RL (`exp_001`)."""
    folder = Path(path).parent
    if _LAUNCH.fullmatch(folder.name) and folder.parent.name:
        folder = folder.parent
    return folder.name or "default"


def _files(path: str) -> tuple[Sequence[str], bool]:
    """The files a path stands for, and whether it names one file itself."""
    if os.path.isdir(path):
        files = [str(file) for file in Path(path).rglob("*") if _TRACE.search(file.name) and file.is_file()]
        if not files:
            raise InputError(f"no trace in folder {path!r}: it is searched for *.jsonl, *.jsonl.gz and *.jsonl.zst")
        return files, False
    if os.path.exists(path):
        if not os.path.isfile(path):
            raise InputError(f"{path!r} is neither a file nor a folder: name a trace file, a folder or a glob")
        return [path], True
    if glob.has_magic(path):
        matched = glob.glob(path, recursive=True)
        files = [file for file in matched if os.path.isfile(file)]
        for folder in set(matched) - set(files):
            files.extend(str(file) for file in Path(folder).rglob("*") if _TRACE.search(file.name) and file.is_file())
        if not files:
            raise InputError(f"no file matches {path!r}: check the pattern")
        return files, False
    raise InputError(f"no file or folder {path!r}: check the path")


def _pattern(experiment: str | None, experiment_from: str | None) -> re.Pattern[str] | None:
    if experiment is not None and experiment_from is not None:
        raise InputError("both an experiment and a pattern for it are given: give one of them")
    if experiment is not None:
        must_be_text("the experiment name", experiment)
        if not experiment:
            raise InputError("the experiment name is empty: give it a name")
    if experiment_from is None:
        return None
    try:
        pattern = re.compile(experiment_from)
    except re.error as error:
        raise InputError(f"pattern {experiment_from!r} for the experiment is not one: {error}") from error
    if not pattern.groups:
        raise InputError(f"pattern {experiment_from!r} for the experiment has no group: put ( ) around the name")
    return pattern


def _experiment(path: str, experiment: str | None, pattern: re.Pattern[str] | None) -> str:
    if experiment is not None:
        return experiment
    if pattern is None:
        return default_experiment(path)
    match = pattern.search(path)
    name = match and (match["experiment"] if "experiment" in pattern.groupindex else match[1])
    if not name:
        raise InputError(f"pattern {pattern.pattern!r} finds no experiment in path {path!r}: change it")
    return name
