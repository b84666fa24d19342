"""Short words for literal lines: the PR's example and its parts."""

from typing import Any

Line = dict[str, Any]


def attempt(t: float, run: str, event: str, sibling: int, attempt: int = 0, prompt: str = "7", **more: Any) -> Line:
    """A line about an attempt; event without its `attempt_`."""
    of = {"prompt_id": prompt, "generation_index": sibling, "attempt": attempt}
    return {"t": t, "run": run, "event": f"attempt_{event}", **of, **more}


def group(t: float, run: str, event: str, prompt: str = "7", **more: Any) -> Line:
    """A line about a group; event without its `group_`."""
    return {"t": t, "run": run, "event": f"group_{event}", "prompt_id": prompt, **more}


def published(t: float, run: str, step: int, cut: float | None, **more: Any) -> Line:
    """A snapshot's publication."""
    return {"t": t, "run": run, "event": "snapshot_published", "step": step, "cut_time": cut, **more}


def restore(t: float, run: str, path: str | None = "/ckpt/snapshot_000004") -> Line:
    """The start of a restore."""
    return {"t": t, "run": run, "event": "restore_started", "path": path}


def report(t: float, run: str, sibling: int, number: int = 0, prompt: str = "7") -> Line:
    """A restart abandonment."""
    return attempt(t, run, "abandoned", sibling, number, prompt, reason="restart")


def example() -> list[Line]:
    """The PR's example: dispatched at 12, cut at 40, abandoned at the restore: 28 s."""
    return [
        attempt(10, "a1", "dispatched", 0),
        attempt(11, "a1", "dispatched", 1),
        attempt(12, "a1", "dispatched", 2, weight_version=3),
        attempt(25, "a1", "sealed", 0),
        attempt(27, "a1", "sealed", 1),
        published(43, "a1", 4, 40),
        restore(60, "b2"),
        report(60, "b2", 2),
        attempt(63, "b2", "dispatched", 2, 1),
        attempt(89, "b2", "sealed", 2, 1),
        group(90, "b2", "sealed"),
    ]
