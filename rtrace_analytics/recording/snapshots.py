"""Snapshots of a controller: what one holds, how they are numbered, and the places they are published to.

Numbering `upstream`: `step_N/rollout_snapshots/snapshot_K` (`bootstrap` for N = 0), K from 1 anew under every step.
Numbering `global`: `rollout_snapshots/snapshot_K`, K counting on, and K is also the `step` that is reported.
"""

import json
import os
import shutil
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from rtrace_analytics.errors import RtraceError

NUMBERINGS = ("upstream", "global")


@dataclass(frozen=True)
class Snapshot:
    """The controller at one moment, the cut; plain JSON values only."""

    cut_time: float  # wall clock, seconds since the epoch
    train_step: int  # trainer steps finished
    weight_version: int
    cursor: int  # prompts taken from the data so far
    buffer: list[str]  # groups handed to training and not trained on for good
    versions: dict[str, int]  # the weights each group of the ledger began with
    ledger: dict[str, Any]  # RecoveryLedger.state()


@dataclass(frozen=True)
class Published:
    """A snapshot with the path it lies under and the `step` its line bears."""

    snapshot: Snapshot
    path: str
    step: int


class Store(Protocol):
    """Where snapshots are published to and restored from: the newest is the one with the latest cut."""

    def publish(self, snapshot: Snapshot) -> Published: ...

    def newest(self) -> Published | None: ...


def place(numbering: str, train_step: int, number: int) -> str:
    """Return a snapshot's path under the checkpoint folder."""
    if numbering == "global":
        return f"rollout_snapshots/snapshot_{number:06d}"
    anchor = f"step_{train_step}" if train_step else "bootstrap"
    return f"{anchor}/rollout_snapshots/snapshot_{number:06d}"


class MemoryStore:
    """Snapshots of a simulated world; the paths are only names."""

    def __init__(self, numbering: str) -> None:
        self._numbering = numbering
        self._count: dict[int, int] = {}
        self._newest: Published | None = None

    def publish(self, snapshot: Snapshot) -> Published:
        under = 0 if self._numbering == "global" else snapshot.train_step
        number = self._count[under] = self._count.get(under, 0) + 1
        path = f"/ckpt/{place(self._numbering, snapshot.train_step, number)}"
        step = number if self._numbering == "global" else snapshot.train_step
        self._newest = Published(snapshot, path, step)
        return self._newest

    def newest(self) -> Published | None:
        return self._newest


class FolderStore:
    """Snapshots on disk, a folder each: written aside, then renamed into place, so that one is there whole or not."""

    def __init__(self, numbering: str, root: Path) -> None:
        self._numbering, self._root = numbering, root

    def publish(self, snapshot: Snapshot) -> Published:
        """Write a snapshot, safe on disk when this returns."""
        folder = self._root / Path(place(self._numbering, snapshot.train_step, 0)).parent
        folder.mkdir(parents=True, exist_ok=True)
        number = 1 + max((int(p.name.rpartition("_")[2]) for p in folder.glob("snapshot_*")), default=0)
        path = self._root / place(self._numbering, snapshot.train_step, number)
        aside = folder / ".unfinished"
        shutil.rmtree(aside, ignore_errors=True)  # of a process that was killed while it wrote
        aside.mkdir()
        with open(aside / "snapshot.json", "w") as file:
            json.dump(asdict(snapshot), file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(aside, path)
        return self._published(path, snapshot)

    def newest(self) -> Published | None:
        """Return the snapshot with the latest cut, None where there is none.

        Raises:
            RtraceError: a snapshot cannot be read.
        """
        found = []
        for folder in self.folders():
            file = folder / "snapshot.json"
            try:
                saved = json.loads(file.read_text())
                snapshot = Snapshot(**{field.name: saved[field.name] for field in fields(Snapshot)})
            except (KeyError, TypeError, ValueError) as error:
                raise RtraceError(f"snapshot {file} cannot be read ({error!r}): remove its folder") from error
            found.append(self._published(folder, snapshot))
        return max(found, key=lambda published: published.snapshot.cut_time, default=None)

    def folders(self) -> list[Path]:
        """Return the folders of all snapshots, in no order."""
        anchors = "*/" if self._numbering == "upstream" else ""
        return list(self._root.glob(f"{anchors}rollout_snapshots/snapshot_*"))

    def _published(self, path: Path, snapshot: Snapshot) -> Published:
        number = int(path.name.rpartition("_")[2])
        return Published(snapshot, str(path), number if self._numbering == "global" else snapshot.train_step)
