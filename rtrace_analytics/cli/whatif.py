"""`rtrace whatif`: what other snapshot intervals would have cost."""

from pathlib import Path
from typing import Any

import click

from rtrace_analytics.cli import options, output
from rtrace_analytics.errors import InputError
from rtrace_analytics.text import clean
from rtrace_analytics.traces import Traces

_TOLD = (
    *("granularity", "cadence", "interval_s", "stops", "lost_s_per_stop", "thrown_away_s", "never_saved_s"),
    *("p50", "p95", "lost_share", "snapshots", "overhead_s_per_hour", "total_s_per_hour", "is_best"),
)


@click.command("whatif")
@options.db()
@click.option("--interval", required=True, metavar="S,S,...", help="Wall-seconds between cuts: one or several.")
@click.option("--experiment", metavar="NAME", help="Which one; may be left away where there is only one.")
@click.option(
    "--stops",
    default="uniform",
    show_default=True,
    metavar="uniform|actual|T,T,...",
    help="Spread evenly over the trace, those that came, or moments as the trace has them.",
)
@click.option("--publish-lag", type=float, metavar="S", help="From cut to publication [the median of the trace].")
@click.option("--save-cost", type=float, metavar="S", help="How long a snapshot holds up all rollouts.")
@click.option("--mtbf", type=float, metavar="S", help="Work between stops, with --save-cost [as the trace shows].")
@click.option("--granularity", metavar="G", help="sibling, prompt_group or both [as the trace is].")
@options.form
def command(
    db: str,
    interval: str,
    experiment: str | None,
    stops: str,
    publish_lag: float | None,
    save_cost: float | None,
    mtbf: float | None,
    granularity: str | None,
    form: str,
) -> None:
    """Replay the trace with snapshots every so many seconds: what would a stop have cost?

    A row per interval, and one (recorded) for the cuts and stops of the trace. Lengths are attempt-seconds per stop.
    The table ends with advice, where there are stops enough behind it.
    """
    intervals = numbers("--interval", interval)
    moments = stops if stops in ("uniform", "actual") else numbers("--stops", stops)
    with Traces(path=Path(db)) as traces:
        frame = traces.whatif_interval(
            intervals,
            experiment=experiment,
            stops=moments,
            publish_lag_s=publish_lag,
            save_cost_s=save_cost,
            mtbf=mtbf,
            granularity=granularity,
        )
        rows = frame.astype(object).where(frame.notna(), None)
        if form != "table":
            output.print_rows(list(rows.columns), rows.to_numpy().tolist(), form)
            return
        told = [name for name in _TOLD if name in rows.columns]
        output.print_table(told, rows[told].to_numpy().tolist())
        _tell(list(rows.to_dict("records")))
        name = rows["experiment"].iloc[0]
        for sentence in traces.advice(
            experiment=name, intervals=intervals, publish_lag_s=publish_lag, save_cost_s=save_cost
        ):
            print(clean(sentence))


def numbers(option: str, text: str) -> list[float]:
    """`30,60` as numbers. Raises `InputError`."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} {text!r} is not a list of numbers like 30,60,120") from None


def _tell(rows: list[dict[Any, Any]]) -> None:
    replayed, recorded = rows[0], rows[-1]
    print(f"publication {output.number(replayed['publish_lag_s'])} s after the cut", end="")
    if "young_daly_s" in replayed:
        cost, mtbf = output.number(replayed["save_cost_s"]), output.seconds(replayed["mtbf_s"])
        print(f"; a save holds up {cost} s, stops come every {mtbf}: Young/Daly's interval is", end=" ")
        print(output.seconds(replayed["young_daly_s"]), end="")
    print(f"\nrecorded: {clean(recorded['note'])}" if recorded["note"] else "")
