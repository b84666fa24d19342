"""What a load did, file by file."""

from dataclasses import dataclass, field


@dataclass
class FileReport:
    """One file of a load.

    `events` and `rejects` are those this load added, `pending` is 1 while its last line is unfinished. `duplicate_keys`
    counts events in which a key stands twice (the last one counts), with the first lines and their keys; keys of nested
    objects are looked at by `rtrace check` only.
    """

    path: str
    experiment: str
    events: int = 0
    rejects: int = 0
    pending: int = 0
    warnings: list[str] = field(default_factory=list)
    duplicate_keys: int = 0
    duplicate_examples: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)


@dataclass
class LoadReport:
    """A load: its files and their sums."""

    files: list[FileReport] = field(default_factory=list)

    @property
    def events(self) -> int:
        """Events that are new in the database."""
        return sum(file.events for file in self.files)

    @property
    def rejects(self) -> int:
        """Fragments met that are no event."""
        return sum(file.rejects for file in self.files)

    @property
    def pending(self) -> int:
        """Files whose last line is unfinished."""
        return sum(file.pending for file in self.files)

    @property
    def warnings(self) -> list[str]:
        """What was odd, each with its file."""
        return [f"{file.path}: {warning}" for file in self.files for warning in file.warnings]
