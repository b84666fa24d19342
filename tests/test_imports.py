"""Imports: what `import rtrace_analytics` costs, what it gives, and that modules import only what lies below them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rtrace_analytics as rta

PACKAGE = Path(rta.__file__).parent
HEAVY = ("duckdb", "pandas", "pyarrow", "matplotlib", "numpy", "scipy", "ray", "click", "jinja2", "tqdm")

# A module may import, when it is itself imported, only modules of a lower floor, or of its own.
FLOORS = {
    "errors": 0,
    "events": 0,
    "text": 0,
    "whole": 1,
    "recording": 1,
    "database": 1,
    "views": 2,
    "loading": 2,
    "card": 3,
    "compare": 3,
    "labels": 3,
    "traces": 4,
    "plots": 6,
    "fleet": 7,
    "report": 7,
    "cli": 9,
}
ABOVE_TRACES = 5  # what builds on Traces and is not named above


@pytest.mark.parametrize("module", ["rtrace_analytics", "rtrace_analytics.recording"])
def test_import_is_light(module):
    code = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_recording_imports_nothing_of_the_analysis():
    code = "import sys, rtrace_analytics.recording; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    tops = {name.split(".")[1] for name in done.stdout.split() if name.startswith("rtrace_analytics.")}
    assert tops <= {"recording", "errors", "events"}


def test_public_names_are_sorted_and_there():
    assert rta.__all__ == sorted(rta.__all__)
    assert set(rta.__all__) == set(rta._MODULES)
    assert set(rta.__all__) <= set(dir(rta))
    for name in rta.__all__:
        assert getattr(rta, name).__name__ == name


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = rta.nonsense


def test_version_is_the_packages():
    assert rta.__version__ == "0.1.0"


def _imported(tree: ast.Module):
    """Names of modules imported when the module itself is: not in functions, not for the type checker only."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            children = ast.iter_child_nodes(node)
            waiting += [child for child in children if isinstance(child, (ast.stmt, ast.ExceptHandler))]


def test_modules_import_only_what_lies_below():
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        for name in _imported(ast.parse(path.read_text(encoding="utf-8"))):
            parts = name.split(".")
            if parts[0] != "rtrace_analytics" or len(parts) < 2 or parts[1] == own:
                continue
            below = FLOORS.get(parts[1], ABOVE_TRACES)
            allowed = below < FLOORS.get(own, ABOVE_TRACES) and (own != "recording" or below == 0)
            if not allowed:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert wrong == []
