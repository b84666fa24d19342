"""The footer of a Parquet file, with every place in it moved: what writing the same pages further back would give.

No library that is at hand writes pages anywhere but at the begin of a file. The footer is a Thrift struct in the
compact protocol (parquet-format, `parquet.thrift`); it is copied as it is but for the fields that are places in the
file.
"""

_PLACES = frozenset(
    {
        (4, 5),  # row_groups.file_offset
        (4, 1, 2),  # row_groups.columns.file_offset
        (4, 1, 4),  # .offset_index_offset
        (4, 1, 6),  # .column_index_offset
        (4, 1, 3, 9),  # .meta_data.data_page_offset
        (4, 1, 3, 10),  # .meta_data.index_page_offset
        (4, 1, 3, 11),  # .meta_data.dictionary_page_offset
        (4, 1, 3, 14),  # .meta_data.bloom_filter_offset
    }
)
_STOP, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 0, 3, 7, 8, 9, 10, 11, 12
_BOOLS, _WHOLE = (1, 2), (4, 5, 6)


def moved(footer: bytes, by: int) -> bytes:
    """The footer (its struct alone, without length and magic) of the same pages `by` bytes further back."""
    copy = _Copy(footer, by)
    copy.struct(())
    return bytes(copy.out)


class _Copy:
    """Reads a struct and writes it, value by value."""

    def __init__(self, data: bytes, by: int) -> None:
        self.data, self.by, self.at, self.out = data, by, 0, bytearray()

    def struct(self, path: tuple[int, ...]) -> None:
        field = 0
        while (head := self.take(1)[0]) != _STOP:
            field = field + (head >> 4) if head >> 4 else _signed(self.varint())
            if head & 15 not in _BOOLS:  # a field's head holds its truth
                self.value(head & 15, (*path, field))

    def value(self, kind: int, path: tuple[int, ...]) -> None:
        if kind == _STRUCT:
            self.struct(path)
        elif kind in _WHOLE:
            self.whole(path)
        elif kind == _BINARY:
            self.take(self.varint())
        elif kind in (_LIST, _SET):
            head = self.take(1)[0]
            for _ in range(self.varint() if head >> 4 == 15 else head >> 4):
                self.value(head & 15, path)
        elif kind == _MAP:
            if count := self.varint():
                kinds = self.take(1)[0]
                for _ in range(count):
                    self.value(kinds >> 4, (*path, 0))
                    self.value(kinds & 15, (*path, 0))
        else:
            self.take({_DOUBLE: 8, _BYTE: 1, **dict.fromkeys(_BOOLS, 1)}[kind])

    def whole(self, path: tuple[int, ...]) -> None:
        begin = len(self.out)
        value = _signed(self.varint())
        if path in _PLACES and value > 0:  # 0: not told
            del self.out[begin:]
            rest = (value + self.by) << 1
            while rest > 127:
                self.out.append(rest & 127 | 128)
                rest >>= 7
            self.out.append(rest)

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def take(self, count: int) -> bytes:
        piece = self.data[self.at : self.at + count]
        if len(piece) < count:
            raise ValueError("a Parquet footer that ends too early")
        self.at += count
        self.out += piece
        return piece


def _signed(zigzag: int) -> int:
    return (zigzag >> 1) ^ -(zigzag & 1)
