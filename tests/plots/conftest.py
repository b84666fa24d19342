"""Worlds to draw: the PR's example, real traces, nothing, one attempt, names nobody should have chosen."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib
import pytest

import rtrace_analytics as rta

ROOT = Path(__file__).parents[2]
LONG = "$x_1^2$ <b>&" + "long_id_" * 24


@pytest.fixture(autouse=True)
def _no_screen() -> Iterator[None]:
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="session")
def pr() -> rta.Traces:
    return rta.load(ROOT / "data/samples/pr-example")


@pytest.fixture(scope="session")
def real() -> rta.Traces:
    """Seven real traces, one of them with a snapshot restored six times."""
    paths = sorted((ROOT / "tests/data/traces").glob("*.jsonl"))
    return rta.load(paths, experiment_from=r"([^/\\]+)\.jsonl$")


@pytest.fixture
def world(tmp_path: Path) -> Callable[..., rta.Traces]:
    """Traces of literal events: experiment to rows."""

    def make(**experiments: list[dict[str, Any]]) -> rta.Traces:
        traces = rta.Traces(rta.traces.database.connect())
        for i, (name, rows) in enumerate(experiments.items()):
            path = tmp_path / f"{i}.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            traces.load(path, experiment=name)
        return traces

    return make


@pytest.fixture
def pr_rows() -> list[dict[str, Any]]:
    text = (ROOT / "data/samples/pr-example/rollout_trace.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def long_names(world: Callable[..., rta.Traces], pr_rows: list[dict[str, Any]]) -> rta.Traces:
    rows = [row | {"run": LONG + row["run"]} | ({"prompt_id": LONG} if "prompt_id" in row else {}) for row in pr_rows]
    rows = [{key: value for key, value in row.items() if key != "group_id"} for row in rows]
    other = [row | {"t": row["t"] + 0.5} for row in rows]
    return world(**{LONG + "a": rows, LONG + "b": other})
