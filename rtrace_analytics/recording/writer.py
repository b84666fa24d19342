"""`RolloutTrace`: events of a trainer to lines of `rollout_trace.jsonl`, written by a background thread.

The caller only puts an event into a queue. What may be lost, and how it is told:

- **Queue full** (the disk is slower than the trainer, or stuck): the new event is dropped and counted, never the caller
  held up. When there is room again one line `trace_dropped` with the field `dropped` says how many are missing.
- **Write error** (disk full, folder gone): logged once, kept, and raised by every later `flush` and `close` as
  `TraceWriteError`; `emit` never raises it. The events of the failed write are lost and counted in the same line.
- **Killed** (SIGKILL): the events of the last `interval_s` (20 ms) may be lost and the last line may be torn. The next
  writer of the file starts on a new line. Lines already written stay: they are in the system's page cache.
- **Fork**: the child starts with an empty queue and, if it emits at all, a run id and a thread of its own.
"""

import atexit
import contextlib
import logging
import os
import stat
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rtrace_analytics.errors import RtraceError
from rtrace_analytics.recording.lines import line

_log = logging.getLogger(__name__)
_CHUNK = 1000  # events to one append: about a millisecond of the interpreter lock
_writers: "weakref.WeakSet[RolloutTrace]" = weakref.WeakSet()


class TraceWriteError(RtraceError, OSError):
    """The trace is not complete on disk: a write failed, or was not done in time."""


class RolloutTrace:
    """A rollout trace, written as events come; off unless `enabled`: then it opens nothing and starts no thread.

    Args:
        path: the file to append to; missing folders are made. Several processes may append to one file.
        enabled: False makes every method do nothing.
        run: the id of this process; a new one by default.
        clock: returns the `t` of an event, in seconds since the epoch.
        max_queued: events waiting at most (about 0.4 GB for the default of a million, reached only by a stuck disk).
        when_full: `drop` the new event and count it, or `wait` for room (only for programs that must lose nothing).
        interval_s: how long an event may wait before it is written, in wall seconds.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        enabled: bool = False,
        run: str | None = None,
        *,
        clock: Callable[[], float] = time.time,
        max_queued: int = 1_000_000,
        when_full: str = "drop",
        interval_s: float = 0.02,
    ) -> None:
        if max_queued < 1:
            raise RtraceError(f"max_queued is {max_queued}: give 1 or more")
        if when_full not in ("drop", "wait"):
            raise RtraceError(f"when_full is {when_full!r}: give 'drop' or 'wait'")
        if interval_s <= 0:
            raise RtraceError(f"interval_s is {interval_s}: give more than 0")
        self.path = Path(path)
        self.enabled = enabled
        self.run = run if run is not None else _new_run()
        self._clock, self._max_queued, self._when_full, self._interval_s = clock, max_queued, when_full, interval_s
        self._begin()
        if enabled:
            _writers.add(self)
            atexit.register(_close_at_exit, weakref.ref(self))

    def _begin(self) -> None:
        """Start with an empty queue, a new lock, no file and no thread (also in a forked child)."""
        # An event is three items in a row (t, event, fields): a tuple kept in the queue would be one more object for
        # the garbage collector to walk, which costs more than all the rest of `emit`. `extend` by a tuple is atomic.
        self._queue: deque[Any] = deque()
        self._room = 0  # items the queue may hold; 0 sends `emit` the slow way: off, not begun or closed
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._fd: int | None = None
        self._closed = False
        self._error: BaseException | None = None
        self._dropped = self._lost = self._told = 0

    @property
    def sink(self) -> Callable[..., None] | None:
        """`emit`, or None when the trace is off: what `RecoveryLedger.set_event_sink` takes."""
        return self.emit if self.enabled else None

    @property
    def dropped(self) -> int:
        """Events dropped so far because the queue was full."""
        return self._dropped if self.enabled else 0

    def emit(self, event: str, /, **fields: Any) -> None:
        """Queue one event; `t` and `run` are added. Never waits on the disk and never raises for a failed write.

        Values must not be changed afterwards. Those that JSON does not know become text, NaN and infinity null.
        After `close` an event is dropped and counted.
        """
        queue = self._queue
        if len(queue) < self._room:
            queue.extend((self._clock(), event, fields))
        elif self.enabled:
            self._emit_slowly(event, fields)

    def flush(self, timeout_s: float = 30.0) -> None:
        """Wait until every event emitted so far is in the file.

        Raises:
            TraceWriteError: a write has failed (now or earlier), or took longer than `timeout_s` seconds.
        """
        if not self.enabled:
            return
        if self._thread is not None and not self._closed:
            self._await_written(timeout_s)
        self._raise_kept()

    def close(self, timeout_s: float = 30.0) -> None:
        """Write what is queued, end the thread and close the file; a second call only raises the kept error again.

        Raises:
            TraceWriteError: as `flush`.
        """
        if not self.enabled:
            return
        self._closed, self._room = True, 0
        _writers.discard(self)
        if self._thread is not None:
            self._wake.set()
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                raise TraceWriteError(self._late(timeout_s))
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
        self._raise_kept()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:  # the error under way must not be hidden by ours, which is logged already
            with contextlib.suppress(TraceWriteError):
                self.close()

    # --- the caller's side, seldom -----------------------------------------------------------------------------------

    def _emit_slowly(self, event: str, fields: dict[str, Any]) -> None:
        """Start the thread at the first event; wait or drop where the queue is full; drop after `close`."""
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._write_all, name="rollout-trace", daemon=True)
                self._thread.start()
                self._room = 3 * self._max_queued
        while self._when_full == "wait" and len(self._queue) >= self._room > 0:
            self._wake.set()
            time.sleep(self._interval_s)
        if len(self._queue) < self._room:
            self._queue.extend((self._clock(), event, fields))
        else:
            with self._lock:
                self._dropped += 1

    def _await_written(self, timeout_s: float) -> None:
        written = threading.Event()
        self._queue.extend((None, written, None))
        self._wake.set()
        give_up = time.monotonic() + timeout_s
        while not written.wait(0.05):
            if self._thread is None or not self._thread.is_alive():
                return  # it died, or `close` in another thread ended it: what it left is in the kept error
            if time.monotonic() >= give_up:
                raise TraceWriteError(self._late(timeout_s))

    def _late(self, timeout_s: float) -> str:
        return f"trace {self.path}: {len(self._queue) // 3} events not written within {timeout_s} s: is its disk stuck?"

    def _raise_kept(self) -> None:
        if self._error is not None:
            raise TraceWriteError(
                f"trace {self.path} lacks {self._lost} events: {self._error}; mend the disk or folder and restart"
            ) from self._error

    # --- the thread --------------------------------------------------------------------------------------------------

    def _write_all(self) -> None:
        """Write what is queued every `interval_s`, until closed and empty."""
        try:
            while True:
                closing = self._closed
                self._wake.clear()
                while self._queue:
                    self._write_chunk()
                missing = self._dropped + self._lost
                if missing > self._told and not self._append(self._dropped_line(missing - self._told)):
                    self._told = missing
                if closing:
                    return
                self._wake.wait(self._interval_s)
        except BaseException as error:  # whatever it is, callers must neither wait for a dead thread nor fill its queue
            self._closed, self._room = True, 0
            self._lost += len(self._queue) // 3
            self._keep(error)

    def _write_chunk(self) -> None:
        take, run = self._queue.popleft, self.run
        lines: list[bytes] = []
        waiting: list[threading.Event] = []
        for _ in range(min(len(self._queue) // 3, _CHUNK)):
            t, event, fields = take(), take(), take()
            if fields is None:
                waiting.append(event)
            else:
                lines.append(line(t, run, event, fields))
        if lines:
            self._lost += self._append(b"".join(lines))
        for written in waiting:
            written.set()

    def _append(self, data: bytes) -> int:
        """Append whole lines in one write, never behind a torn one; return how many lines were not written."""
        rest = memoryview(data)
        try:
            fd = self._open()
            if _ends_torn(fd):
                rest = memoryview(b"\n" + data)
            while rest:
                rest = rest[os.write(fd, rest) :]
        except OSError as error:
            self._keep(error)
        return bytes(rest).count(b"}\n")

    def _dropped_line(self, dropped: int) -> bytes:
        return line(self._clock(), self.run, "trace_dropped", {"dropped": dropped})

    def _keep(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error
            _log.error("trace %s: write failed, events are being lost: %s", self.path, error)

    def _open(self) -> int:
        """Return the open file; one that was moved away or removed is made anew."""
        if self._fd is not None:
            try:
                if os.path.samestat(os.fstat(self._fd), os.stat(self.path)):
                    return self._fd
            except FileNotFoundError:
                pass
            os.close(self._fd)
            self._fd = None
        else:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        return self._fd


def _new_run() -> str:
    return uuid.uuid4().hex[:12]


def _ends_torn(fd: int) -> bool:
    """Tell whether the file's last line lacks its newline: a writer was killed in the middle of one."""
    about = os.fstat(fd)
    return stat.S_ISREG(about.st_mode) and about.st_size > 0 and os.pread(fd, 1, about.st_size - 1) != b"\n"


def _close_at_exit(writer: "weakref.ref[RolloutTrace]") -> None:
    trace = writer()
    if trace is not None and not trace._closed:
        try:
            trace.close(timeout_s=10.0)
        except TraceWriteError as error:
            _log.error("%s", error)


def _after_fork_in_child() -> None:
    """Queue, lock, thread and file are the parent's: begin anew under a run id of our own."""
    for trace in list(_writers):
        trace._begin()
        trace.run = _new_run()


os.register_at_fork(after_in_child=_after_fork_in_child)
