"""The notebooks run from top to bottom, use only public names, and are committed with their outputs, small."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# jupyter's own, on the way to its kernel
@pytest.mark.filterwarnings("default::DeprecationWarning", "default::pytest.PytestUnraisableExceptionWarning")
def test_notebook_runs(path):
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    loud = [o.get("text") for cell in notebook.cells for o in cell.get("outputs", []) if o.get("name") == "stderr"]
    assert loud == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_committed_run_and_small(path):
    assert path.stat().st_size < 600_000
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        assert "rtrace_analytics._" not in cell.source and "traces._" not in cell.source
        assert not any(output.output_type == "error" for output in cell.outputs)
