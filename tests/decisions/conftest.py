"""Helpers of the view tests can be imported here too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "views"))
