"""A file that is there whole or not at all: written beside, then renamed."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rtrace_analytics.errors import InputError


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that becomes `path` when all went well. Raises `InputError` where it cannot be written."""
    target = Path(path)
    beside = target.parent / f".{target.name}.{os.getpid()}.partial"
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():  # a device would be replaced by a file
            raise OSError(errno.EINVAL, "a device or pipe")
        with open(beside, "wb") as file:
            yield file
        os.replace(beside, target)
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"{str(path)!r} cannot be written ({why}): give a file in a folder that is there") from error
    finally:
        with suppress(OSError):
            beside.unlink()
