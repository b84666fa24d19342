"""How an export lies on disk: `DIR/<view>/experiment_key=<key>/data.parquet` and `DIR/manifest.json`.

The key is made from the experiment's name so that no reader takes it for a number, a date or a path, and none decodes
it: DuckDB, pyarrow, pandas and polars all show the same text in the column `experiment_key`. The name itself stands in
the column `experiment` inside every file, as it is.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from rtrace_analytics.errors import InputError

SCHEMA_VERSION = 1
"""Raised with every change of the exported columns, their order or types, and written down in CHANGELOG.md."""

FORMAT = "rtrace parquet"
MANIFEST = "manifest.json"
PARTITION = "experiment_key"
DATA = "data.parquet"
PARTIAL = ".partial-"

_LONGEST = 120  # characters of a key before its hash: short of every file system's 255 bytes
_HASH = 16
_OTHER = re.compile(rb"[^A-Za-z0-9._-]")


def partition_key(experiment: str) -> str:
    """The folder key of an experiment: `exp-` and its name.

    Each UTF-8 byte of the name but `A-Z a-z 0-9 . _ -` becomes `~` and two hex digits. Where the name has capitals
    (some file systems do not tell them from small letters) or is too long, `~~` and the first 16 digits of its SHA-256
    follow; a long one is cut before. `0042` is `exp-0042`, `a/b` is `exp-a~2fb`, the empty name is `exp-`. Two names
    never share a key.
    """
    name = experiment.encode("utf-8", "surrogatepass")
    text = _OTHER.sub(lambda byte: b"~%02x" % byte[0][0], name).decode("ascii")
    if len(text) <= _LONGEST and text == text.lower():
        return f"exp-{text}"
    cut = re.sub("~[0-9a-f]?$", "", text[:_LONGEST]) if len(text) > _LONGEST else text
    return f"exp-{cut}~~{hashlib.sha256(name).hexdigest()[:_HASH]}"


def relative_path(view: str, experiment: str) -> str:
    """Where the file of a view and an experiment lies in the export's folder."""
    return f"{view}/{PARTITION}={partition_key(experiment)}/{DATA}"


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of an export, None where the folder has none. Raises `InputError` for one that is not ours."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise InputError(f"{str(folder)!r} is not a folder: name a folder") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)!r} cannot be read ({error}): export into another folder, or delete it") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"{str(path)!r} is not the manifest of an rtrace export: name another folder")
    return manifest


def check_ours(folder: Path, views: Set[str]) -> None:
    """Raise `InputError` where `folder` holds, without a manifest, anything that is not of an export."""
    try:
        strange = sorted(
            entry.name for entry in folder.iterdir() if entry.name not in views and not entry.name.startswith(PARTIAL)
        )
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise InputError(f"{str(folder)!r} is not a folder: name a folder") from None
    if strange:
        raise InputError(f"{str(folder)!r} holds {strange[0]!r} and no {MANIFEST}: name an empty folder or a new one")


def write_manifest(folder: Path, staging: Path, manifest: Mapping[str, Any]) -> None:
    """Put the manifest in place, written beside and renamed."""
    beside = staging / MANIFEST
    beside.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(beside, folder / MANIFEST)


def remove_others(folder: Path, kept: set[str]) -> list[str]:
    """Delete every data file of our layout whose relative path is not in `kept`; returns what went."""
    gone = []
    for path in sorted(folder.glob(f"*/{PARTITION}=exp-*/{DATA}")):
        relative = path.relative_to(folder).as_posix()
        if relative in kept:
            continue
        path.unlink(missing_ok=True)
        for parent in (path.parent, path.parent.parent):  # folders that others use stay
            if not any(parent.iterdir()):
                parent.rmdir()
        gone.append(relative)
    return gone
