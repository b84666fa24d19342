"""`rtrace simulate`: a training job that is killed and restored, with the truth about what it lost."""

from typing import Any

import click

from rtrace_analytics.cli import options, output

_COLUMNS = (
    *("run", "parent_run", "snapshot_step", "restore_t", "cut_t", "reported", "counted", "repeated"),
    *("never_dispatched", "unreported", "lost_attempts", "lost_sealed", "thrown_away_s", "never_saved_s", "naive_s"),
)


@click.command("simulate")
@click.option(
    "--out", type=options.Place(), required=True, metavar="DIR", help="Folder to write to; it must hold no trace."
)
@click.option("--groups", type=int, default=100, show_default=True, help="Prompts to work through.")
@click.option("--siblings", type=int, default=4, show_default=True, help="Rollouts of one prompt.")
@click.option("--kills", type=int, default=2, show_default=True, help="Stops, each followed by a restore.")
@click.option("--snapshot-interval", type=float, default=60.0, show_default=True, help="Seconds between two cuts.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed and options give the same files.")
@click.option(
    "--granularity",
    default="sibling",
    show_default=True,
    help="sibling: sealed siblings survive a restore; prompt_group: groups are sealed, or thrown away, whole.",
)
@click.option(
    "--report-again", is_flag=True, help="As NeMo-RL, report at a restore also what had been given up before."
)
@click.option("--publish-lag", type=float, default=4.0, show_default=True, help="Mean seconds from cut to publication.")
@click.option(
    "--failure-rate", type=float, default=0.05, show_default=True, help="Share of attempts that fail or are cancelled."
)
@click.option("--concurrency", type=int, default=32, show_default=True, help="Rollouts in flight at most.")
@click.option(
    "--stale-rate", type=float, default=0.0, show_default=True, help="Share of unfinished groups found stale."
)
@click.option(
    "--numbering",
    default="upstream",
    show_default=True,
    help="upstream: step_N/rollout_snapshots/snapshot_K, K anew under every step; global: snapshot_K counting on.",
)
@click.option("--rollout", type=float, default=20.0, show_default=True, help="Median seconds of a rollout.")
@click.option(
    "--tail", type=float, default=0.9, show_default=True, help="Sigma of its log-normal length: 0 is all alike."
)
@click.option("--groups-per-step", type=int, default=8, show_default=True, help="Groups that start a train step.")
@click.option("--real", is_flag=True, help="Real processes, really killed; no ground truth.")
@click.option("--speed", type=float, default=60.0, show_default=True, help="With --real: its seconds to one of ours.")
@options.form
def command(out: str, real: bool, speed: float, form: str, **given: Any) -> None:
    """Play a training job with kills and restores, and write its trace to DIR/rollout_trace.jsonl.

    In simulated time (the default) it is done at once, and DIR/ground_truth.json tells what every restore lost; the
    rows printed are from there. With --real the job runs in processes of its own that are killed with SIGKILL and
    restored from disk.
    """
    from pathlib import Path

    from rtrace_analytics.recording.options import WorldOptions
    from rtrace_analytics.recording.simulate import TRACE_NAME, simulate

    for name in ("snapshot_interval", "publish_lag", "rollout"):
        given[f"{name}_s"] = given.pop(name)
    options = WorldOptions(**given)
    if real:
        from rtrace_analytics.recording.real import run_real

        kills = run_real(Path(out), options, speed)
        output.print_rows(["trace", "kills"], [[str(Path(out) / TRACE_NAME), kills]], form)
        return
    truth = simulate(Path(out), options)
    output.print_rows(_COLUMNS, [[row[name] for name in _COLUMNS] for row in truth["restores"]], form)
    if form == "table":
        print(f"wrote {Path(out) / TRACE_NAME}: try rtrace waste {out}")
