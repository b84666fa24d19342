"""The options of a simulated world, and their limits."""

import math
from dataclasses import dataclass

from rtrace_analytics.errors import RtraceError
from rtrace_analytics.recording.ledger import GRANULARITIES
from rtrace_analytics.recording.snapshots import NUMBERINGS

MOST = 10_000_000  # of anything: a world is held in memory
TICKS = 1024  # moments of a simulated world to a second: sums of such times are exact


@dataclass(frozen=True)
class WorldOptions:
    """What `rtrace simulate` takes; times in seconds of the world, rates as shares from 0 to 1."""

    groups: int = 100
    siblings: int = 4
    kills: int = 2
    snapshot_interval_s: float = 60.0
    seed: int = 0
    granularity: str = "sibling"
    report_again: bool = False
    publish_lag_s: float = 4.0  # from cut to publication, on average
    failure_rate: float = 0.05  # of attempts: two thirds of them fail, one third is cancelled
    concurrency: int = 32  # rollouts in flight at most
    stale_rate: float = (
        0.0  # of unfinished groups: dropped silently at a restore; of old ones: discarded at a weight sync
    )
    numbering: str = "upstream"
    rollout_s: float = 20.0  # median length of a rollout
    tail: float = 0.9  # sigma of its log-normal distribution
    groups_per_step: int = 8  # groups that start a train step

    def __post_init__(self) -> None:
        for name, least in (("groups", 1), ("siblings", 1), ("kills", 0), ("concurrency", 1), ("groups_per_step", 1)):
            if not least <= getattr(self, name) <= MOST:
                raise _bad(name, getattr(self, name), f"{least} or more, {MOST:,} at most")
        if self.groups * self.siblings > MOST:
            raise _bad("groups", f"{self.groups}, of {self.siblings} siblings", f"{MOST:,} rollouts at most")
        for name in ("snapshot_interval_s", "publish_lag_s", "rollout_s"):
            if not (1 / TICKS <= getattr(self, name) < 1e9):
                raise _bad(name, getattr(self, name), "seconds from 0.001 to 1e9")
        for name in ("failure_rate", "stale_rate"):
            if not 0 <= getattr(self, name) <= 0.95:
                raise _bad(name, getattr(self, name), "a share from 0 to 0.95")
        if not 0 <= self.tail <= 3 or not math.isfinite(self.tail):
            raise _bad("tail", self.tail, "a number from 0 to 3")
        for name, known in (("granularity", GRANULARITIES), ("numbering", NUMBERINGS)):
            if getattr(self, name) not in known:
                raise _bad(name, getattr(self, name), " or ".join(known))


def _bad(name: str, value: object, allowed: str) -> RtraceError:
    option = "--" + name.removesuffix("_s").replace("_", "-")
    return RtraceError(f"{option} is {value}: give {allowed}")
