"""Snapshots on disk: there whole or not at all, numbered as asked, the newest found."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from rtrace_analytics.errors import RtraceError
from rtrace_analytics.recording import RecoveryLedger
from rtrace_analytics.recording.snapshots import FolderStore, MemoryStore, Snapshot

FIRST = Snapshot(
    cut_time=10.5, train_step=0, weight_version=0, cursor=3, buffer=["g"], versions={}, ledger=RecoveryLedger().state()
)
CUTS = [FIRST, replace(FIRST, cut_time=20.0), replace(FIRST, cut_time=30.0, train_step=7)]
UPSTREAM = ["bootstrap/rollout_snapshots/snapshot_000001", "bootstrap/rollout_snapshots/snapshot_000002"]
UPSTREAM += ["step_7/rollout_snapshots/snapshot_000001"]
GLOBAL = [f"rollout_snapshots/snapshot_00000{number}" for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("numbering", "paths", "steps"), [("upstream", UPSTREAM, [0, 0, 7]), ("global", GLOBAL, [1, 2, 3])]
)
def test_both_stores_number_alike(tmp_path: Path, numbering: str, paths: list[str], steps: list[int]) -> None:
    for store, root in ((FolderStore(numbering, tmp_path), str(tmp_path)), (MemoryStore(numbering), "/ckpt")):
        assert store.newest() is None
        published = [store.publish(snapshot) for snapshot in CUTS]
        assert [one.path for one in published] == [f"{root}/{path}" for path in paths]
        assert [one.step for one in published] == steps
        assert store.newest() == published[-1]
    found = FolderStore(numbering, tmp_path).newest()  # by another process
    assert found is not None
    assert (found.snapshot, found.path, found.step) == (CUTS[-1], f"{tmp_path}/{paths[-1]}", steps[-1])


def test_killed_while_writing_leaves_the_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FolderStore("upstream", tmp_path)
    first = store.publish(FIRST)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            store.publish(CUTS[1])
    assert store.newest() == first
    assert store.publish(CUTS[1]).path.endswith("snapshot_000002")


def test_a_broken_snapshot_is_named(tmp_path: Path) -> None:
    path = FolderStore("global", tmp_path).publish(FIRST).path
    (Path(path) / "snapshot.json").write_text("{}")
    with pytest.raises(
        RtraceError, match=r"snapshot .*snapshot_000001/snapshot.json cannot be read .*remove its folder"
    ):
        FolderStore("global", tmp_path).newest()
