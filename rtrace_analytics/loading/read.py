"""The text of a trace file in chunks of whole lines, from any place on. The first bytes tell what is compressed."""

import io
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

CHUNK = 48 * 2**20  # bytes of text read at a time; a longer line is read whole
ROW_GROUP = 122_880  # lines: DuckDB's tables are made of such groups, each written by one thread
_PAIR = 2 * ROW_GROUP  # a chunk holds whole pairs of them where it can
BLOCK = 64 * 2**10  # bytes of text that one hash stands for
_PIECE = 4096  # of compressed bytes at a time
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_WEIGHTS = (np.arange(BLOCK // 8, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)

Bytes = NDArray[np.uint8]


class Text(Protocol):
    """The text of a file: `readinto` fills a buffer as far as there is text, `damage` says what was odd at its end."""

    damage: str | None

    def readinto(self, into: memoryview) -> int: ...
    def skip(self, size: int) -> None: ...
    def close(self) -> None: ...


class _Plain:
    def __init__(self, path: str) -> None:
        self.damage: str | None = None
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by close)

    def readinto(self, into: memoryview) -> int:
        done = 0
        while done < len(into) and (n := self._file.readinto(into[done:])):
            done += n
        return done

    def skip(self, size: int) -> None:
        self._file.seek(size, io.SEEK_CUR)

    def close(self) -> None:
        self._file.close()


class _Compressed:
    """Text of the members (frames) of a `.gz` or `.zst`, one after the other, as far as it can be read."""

    def __init__(self, path: str, kind: str) -> None:
        self.damage: str | None = None
        self._kind = kind
        self._file = open(path, "rb")  # noqa: SIM115 (closed by close)
        self._member: Any = _member(kind)
        self._begins = 0  # of the member, in the file
        self._fed = 0  # bytes of the member taken
        self._output = memoryview(b"")
        self._ended = False

    def readinto(self, into: memoryview) -> int:
        done = 0
        while done < len(into):
            if not self._output and not self._more():
                break
            n = min(len(self._output), len(into) - done)
            into[done : done + n] = self._output[:n]
            self._output = self._output[n:]
            done += n
        return done

    def skip(self, size: int) -> None:
        into = memoryview(bytearray(min(size, 2**20)))
        while size > 0 and (n := self.readinto(into[: min(size, len(into))])):
            size -= n

    def _more(self) -> bool:
        """Get some output; False where there is no more."""
        while not self._ended and not self._output:
            if self._member.eof and not self._next_member():
                self._ended = True
                break
            piece = self._file.read(_PIECE)
            if not piece:
                self._ended = True
                self.damage = f"the .{self._kind} is truncated"
                break
            try:
                self._output = memoryview(self._member.decompress(piece))
                self._fed += len(piece)
            except Exception as error:  # zlib.error or ZstdError
                self._ended = True
                self.damage = f"the .{self._kind} is damaged, nothing after the damage can be read ({error})"
                self._output = memoryview(self._before_damage(piece))
        return bool(self._output)

    def _next_member(self) -> bool:
        """Begin the member that follows in the file, if one does: zeros after the last one are padding."""
        at = self._begins + self._fed - len(self._member.unused_data)
        self._file.seek(at)
        while padding := self._file.read(_PIECE):
            rest = padding.lstrip(b"\0")
            at += len(padding) - len(rest)
            if rest:
                self._file.seek(at)
                self._member, self._begins, self._fed = _member(self._kind), at, 0
                return True
        return False

    def _before_damage(self, piece: bytes) -> bytes:
        """What the piece that failed holds before the damage: the member is read again, and then byte by byte."""
        member, left = _member(self._kind), self._fed
        self._file.seek(self._begins)
        while left:
            again = self._file.read(min(_PIECE, left))
            member.decompress(again)
            left -= len(again)
        output = bytearray()
        try:
            for byte in piece:
                output += member.decompress(bytes([byte]))
        except Exception:  # the damage again
            pass
        return bytes(output)

    def close(self) -> None:
        self._file.close()


def _member(kind: str) -> Any:
    if kind == "gz":
        return zlib.decompressobj(wbits=31)
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.ZstdDecompressor()
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj()


def open_text(path: str) -> Text:
    """The text of a file, decompressed where it is compressed. Raises `OSError`."""
    with open(path, "rb") as file:
        magic = file.read(4)
    if magic.startswith(_GZIP):
        return _Compressed(path, "gz")
    if magic == _ZSTD:
        return _Compressed(path, "zst")
    return _Plain(path)


def is_compressed(path: str) -> bool:
    """Whether a file is compressed, by its first bytes."""
    with open(path, "rb") as file:
        magic = file.read(4)
    return magic.startswith(_GZIP) or magic == _ZSTD


@dataclass
class Chunk:
    """Whole lines of a file's text (the `last` chunk: all that is left of it, perhaps without an LF)."""

    data: Bytes
    starts: NDArray[np.int64]  # where each line begins in the data, and where the last whole one ends
    offset: int  # of the first byte, in the text
    before: Bytes  # what stands before it in the text, a block at most
    last: bool
    hashes: NDArray[np.uint64]  # of the whole blocks read with it
    damage: str | None = None  # why the text ends here, where that is not the end of the file


def chunks(text: Text, offset: int, size: int = CHUNK) -> Iterator[Chunk]:
    """The text from `offset` on, in chunks; `text` stands at the beginning of the block that holds it."""
    carry = np.empty(0, np.uint8)  # bytes read and not given yet
    at = offset // BLOCK * BLOCK  # where they begin in the text
    skip = offset - at
    before = np.empty(0, np.uint8)
    while True:
        pad = -len(carry) % 8  # what is read now lies on a whole word
        buffer = np.empty(pad + len(carry) + size, np.uint8)[pad:]
        buffer[: len(carry)] = carry
        n = text.readinto(buffer[len(carry) :].data)
        new = buffer[len(carry) : len(carry) + n]
        hashes = block_hashes(new[: n // BLOCK * BLOCK])
        have = buffer[: len(carry) + n]
        if skip:
            before, have, at, skip = have[:skip], have[skip:], at + skip, 0
        last = n < size
        starts = line_starts(have)
        lines = len(starts) - 1
        if not last and lines > _PAIR:
            starts = starts[: lines - lines % _PAIR + 1]
        cut = len(have) if last else int(starts[-1])
        yield Chunk(have[:cut], starts, at, before, last, hashes, text.damage if last else None)
        if last:
            return
        if cut:
            before = np.concatenate([before, have[max(0, cut - BLOCK) : cut]])[-BLOCK:]
        else:
            size *= 2  # a line longer than this
        carry = have[cut:]
        at += cut


def line_starts(data: Bytes) -> NDArray[np.int64]:
    """Where each line begins, and the end of the last whole one: n + 1 places for n lines ended by LF."""
    step = 2**20
    parts = [np.flatnonzero(data[at : at + step] == 10) + (at + 1) for at in range(0, len(data), step)]
    return np.concatenate([np.zeros(1, np.int64), *parts])


def block_hashes(data: Bytes) -> NDArray[np.uint64]:
    """Hashes of the blocks of `data`, which begins where a block does; the last one may be short.

    A sum of the words of a block, each times its own odd weight: a change of one word always changes it, and it is as
    fast as reading. It tells accidents, not forgeries.
    """
    whole = len(data) // BLOCK * BLOCK
    hashes: NDArray[np.uint64] = data[:whole].view(np.uint64).reshape(-1, BLOCK // 8) @ _WEIGHTS
    if whole == len(data):
        return hashes
    rest = np.zeros(BLOCK, np.uint8)
    rest[: len(data) - whole] = data[whole:]
    return np.append(hashes, rest.view(np.uint64) @ _WEIGHTS)
