"""The errors a user can meet.

RtraceError            one line: the thing, the value seen, the way out; the command line prints it and exits 2
├── InputError         a path, a trace, an option or a name that cannot be used as given
└── DatabaseError      a database that is locked, of another version, not one of ours, or an SQL statement that fails
"""


class RtraceError(Exception):
    """A mistake or a state of the world that the user can mend; its text is one line."""


class InputError(RtraceError):
    """A path, a trace, an option or a name that cannot be used as given."""


class DatabaseError(RtraceError):
    """A database that is locked, of another version, not one of ours, or a statement that fails in it."""
