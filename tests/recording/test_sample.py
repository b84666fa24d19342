"""data/samples/simulated: made again by its command, byte for byte; its views are its truth."""

from pathlib import Path

from click.testing import CliRunner
from test_views import assert_views

import rtrace_analytics as rta
from rtrace_analytics.cli.simulate import command
from rtrace_analytics.recording.options import WorldOptions
from rtrace_analytics.recording.simulate import simulate

SAMPLE = Path(__file__).parents[2] / "data/samples/simulated"
COMMAND = "--groups 60 --kills 4 --seed 6 --snapshot-interval 40 --stale-rate 0.08 --report-again"
OPTIONS = WorldOptions(groups=60, kills=4, seed=6, snapshot_interval_s=40.0, stale_rate=0.08, report_again=True)


def test_the_command_makes_it_again(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["--out", str(tmp_path), *COMMAND.split()])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in SAMPLE.iterdir()) == ["ground_truth.json", "rollout_trace.jsonl"]
    for path in SAMPLE.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


def test_its_views_are_its_truth(tmp_path: Path) -> None:
    truth = simulate(tmp_path, OPTIONS)
    with rta.load(str(SAMPLE)) as traces, traces.opened() as con:
        assert_views(con, truth)
