"""What is to be done with each file found: new, grown, rewritten, moved, a copy, or nothing new.

A file is known by its first complete event (its identity). At its own path it goes on where it was left, or replaces
what it no longer holds. At another path it is a copy: it must hold the same as far as both go.
"""

import glob
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rtrace_analytics.errors import InputError
from rtrace_analytics.loading.compare import difference, still_holds
from rtrace_analytics.loading.files import Head, TraceFile, disk_state, known_files, read_head, save_files, unchanged
from rtrace_analytics.loading.find import Found, default_experiment
from rtrace_analytics.loading.intake import Intake
from rtrace_analytics.loading.lines import Job
from rtrace_analytics.loading.report import FileReport, LoadReport

if TYPE_CHECKING:
    import duckdb

_SIBLINGS = 100  # files beside one that was replaced, looked through for what it held


class Plan:
    """The jobs of a load and its report; `touched`: experiments some of whose events went away."""

    def __init__(self, con: "duckdb.DuckDBPyConnection", found: list[Found]) -> None:
        self._con = con
        self._files = known_files(con)
        self._next_id = max((file.file_id for file in self._files), default=0) + 1
        self._by_path = {file.path: file for file in self._files}
        self._by_identity = {file.identity: file for file in self._files if file.identity}
        self._copies: list[tuple[Found, FileReport]] = []
        self._heads: dict[str, Head] = {}
        self.report = LoadReport()
        self.jobs: list[Job] = []
        self.experiments: set[str] = set()
        self.touched: set[str] = set()
        self._make(found)

    def bytes_ahead(self) -> int:
        """Bytes on disk that the jobs will read, about."""
        return sum(max(0, os.path.getsize(job.path) - job.file.bytes) for job in self.jobs)

    def _make(self, found: list[Found]) -> None:
        changed: list[Found] = []
        for f in found:
            file = self._by_path.get(f.path)
            if file is None or not unchanged(file, f.path):
                changed.append(f)
                self._heads[f.path] = read_head(f.path)
            else:
                self._same_experiment(f, file, file.path)
                self.report.files.append(FileReport(f.path, file.experiment, pending=file.pending))
                self.experiments.add(file.experiment)
        for f in list(changed):
            changed.extend(self._moved(f, {c.path for c in changed}))
        for f in self._longest_first(changed):
            self._file(f)
        if not self.experiments:
            files = f"the file {found[0].path!r}" if len(found) == 1 else f"the {len(found)} files"
            raise InputError(f"no trace: {files} found holds no event; {self.report.warnings[0]}")
        self.report.files.sort(key=lambda report: report.path)

    def _longest_first(self, found: list[Found]) -> list[Found]:
        """So that of several copies the longest is taken up and the others are prefixes."""
        return sorted(found, key=lambda f: (f.path not in self._by_path, -os.path.getsize(f.path), f.path))

    def _moved(self, f: Found, coming: set[str]) -> list[Found]:
        """Where a path holds another file now (rotation), what it held may lie beside it: then it is followed there."""
        file = self._by_path.get(f.path)
        if file is None or file.identity is None or self._heads[f.path].identity == file.identity:
            return []
        new: list[Found] = []
        paths = [path for path, head in self._heads.items() if head.identity == file.identity]
        if not paths:
            stem = Path(f.path).name.split(".jsonl")[0]
            beside = sorted(Path(f.path).parent.glob(f"{glob.escape(stem)}*"))[:_SIBLINGS]
            for other in map(str, beside):
                unknown = other != f.path and other not in self._by_path and os.path.isfile(other)
                if unknown and read_head(other).identity == file.identity:
                    paths = [other]
                    break
        if not paths:
            return []
        del self._by_path[f.path]
        file.path = max(paths, key=os.path.getsize)
        self._by_path[file.path] = file
        if file.path not in coming:
            self._heads[file.path] = read_head(file.path)
            new.append(Found(file.path, file.experiment, False, False))
        return new

    def _file(self, f: Found) -> None:
        head = self._heads[f.path]
        file = self._by_path.get(f.path)
        report = FileReport(f.path, f.experiment)
        if head.identity is None and head.rejects:
            problem = f"no event in it: none of its lines is one, the first begins {head.first[:40]!r}"
            if f.named:
                raise InputError(f"{f.path!r} is no rollout trace, {problem}")
            report.warnings.append(f"not loaded, {problem}")
            self.report.files.append(report)
            return
        self.report.files.append(report)
        other = self._by_identity.get(head.identity) if head.identity else None
        if other is not None and other.unread:
            file = other
        if file is not None and (other is None or other is file):
            self._same_path(f, file, head, report)
            return
        if file is not None:
            self._clear(file)
            self._con.execute("DELETE FROM trace_files WHERE file_id = ?", [file.file_id])
            del self._by_path[f.path]
        if other is not None:
            self._copies.append((f, report))
            self.experiments.add(other.experiment)
            return
        file = TraceFile(self._next_id, f.path, f.experiment)
        self._next_id += 1
        self._begin(file, head, report)

    def _same_path(self, f: Found, file: TraceFile, head: Head, report: FileReport) -> None:
        self._same_experiment(f, file, f.path)
        report.experiment = file.experiment
        size = os.path.getsize(f.path)
        if file.identity is not None and head.identity == file.identity and still_holds(self._con, file, f.path, size):
            self._job(file, f.path, report)
            return
        if file.bytes:
            report.warnings.append("rewritten: what was loaded of it is replaced")
        self._clear(file)
        file.path = f.path
        self._begin(file, head, report)

    def _begin(self, file: TraceFile, head: Head, report: FileReport) -> None:
        file.identity = head.identity
        if head.identity:
            self._by_identity[head.identity] = file
        self._by_path[file.path] = file
        self._job(file, file.path, report)

    def _job(self, file: TraceFile, path: str, report: FileReport) -> None:
        file.disk_bytes, file.modified_ns = disk_state(path)
        file.pending = 0
        file.path = path
        self.experiments.add(file.experiment)
        self.jobs.append(Job(file, path, report))

    def _clear(self, file: TraceFile) -> None:
        """Take what the file gave out of the database."""
        for table in ("events", "rejects", "_blocks", "_run_files"):
            self._con.execute(f"DELETE FROM {table} WHERE file_id = ?", [file.file_id])
        if file.identity:
            self._by_identity.pop(file.identity, None)
        if file.events:
            self.touched.add(file.experiment)
        file.forget_content()

    def take_copies(self, intake: Intake) -> None:
        """Compare the files that begin like one known at another path with it, and take up what they have beyond it."""
        for f, report in self._copies:
            head = self._heads[f.path]
            assert head.identity is not None
            file = self._by_identity[head.identity]
            self._same_experiment(f, file, f.path, copy=True)
            report.experiment = file.experiment
            line, common = difference(self._con, intake, file, f.path)
            if line is not None:
                raise InputError(
                    f"{f.path!r} begins like {file.path!r} but differs from it at line {line}: "
                    "load one of them (rtrace forget lets what is loaded go)"
                )
            if common == file.bytes:
                self._extend(file, f.path, report, intake)
            if file.path == f.path:
                continue
            if os.path.exists(file.path):
                report.warnings.append(f"copy of {file.path!r}: adds nothing")
            else:
                report.warnings.append(f"was loaded as {file.path!r}, which is gone")
                file.path = f.path
                file.disk_bytes, file.modified_ns = disk_state(f.path) if common == file.bytes else (None, None)
                save_files(self._con, [file])

    def _extend(self, file: TraceFile, path: str, report: FileReport, intake: Intake) -> None:
        """Take up what the file at another path has beyond what is known; then that path is its own."""
        before, bytes_before = replace(file), file.bytes
        self._job(file, path, report)
        intake.take([self.jobs[-1]])
        if file.bytes > bytes_before:
            report.warnings.append(f"begins like {before.path!r} and goes on: only what is new is added")
        else:
            self.jobs.pop()
            file.path, file.pending = before.path, before.pending
            file.disk_bytes, file.modified_ns = before.disk_bytes, before.modified_ns
            save_files(self._con, [file])

    def _same_experiment(self, f: Found, file: TraceFile, path: str, *, copy: bool = False) -> None:
        given = f.experiment_named or (copy and f.experiment != default_experiment(file.path))
        if given and f.experiment != file.experiment:
            as_path = "" if path == file.path else f" as {file.path!r}"
            raise InputError(
                f"{path!r} is loaded{as_path} under experiment {file.experiment!r}, not {f.experiment!r}: "
                f"load it as {file.experiment!r}, or let that go first (rtrace forget)"
            )
