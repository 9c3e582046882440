"""Mends the journal (WAL) that a crash has left, where it is damaged.

    header   magic, format, page size, checkpoints, 2 salts, 2 checksums            big-endian uint32
    frame    page, pages of the file if it ends a transaction else 0, 2 salts, 2 checksums; the page

The checksum of a frame goes on from that of the frame before, and frames of this journal have the salts of
its header. SQLite reads as far as all of that is right and takes what follows for what an unfinished
transaction has left: one wrong byte, and everything that was committed after it is gone without a word. Here
the frames behind it are found, and all checksums written anew. The wrong byte is in the page then, as if it
had been in the database itself: a check of the pages finds it if it matters to SQLite, the checksum of a
record if it is in that record.

This is for what a killed process has left. After a power failure (boot.py) frames in the middle may be
missing which were never synced, and SQLite is right to stop there.

A frame that ends a transaction and has the right salts and checksum was committed, since frames are written
in their order and only a committed one is followed by others' commits. Whether the last frame was committed
is read from the index (-shm), which the process that crashed has left behind.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_MAGIC = (0x377F0682, 0x377F0683)
"""With checksums over little-endian and over big-endian words."""

_FORMAT = 3007000
_HEADER, _FRAME = 32, 24
_INDEX_HEADER = 48
"""Bytes of the index's header, which stands there twice."""

_INDEX_PAGES, _INDEXED = 136, 4062
"""Where the index has the pages of frames, and how many there."""

_LOCK_BYTE = 128
"""Byte of the index on which every process that has the file open holds a shared lock."""

_BLOCK = 1024
"""Frames whose checksums are computed at once."""

_MASK = 0xFFFFFFFF

_Sum = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Mended:
    """What was done.

    Attributes:
        damaged: number of frames whose checksum was wrong.
        rescued: number of frames that SQLite would have taken for leftovers.
    """

    damaged: int
    rescued: int


def mend(path: Path) -> Mended | None:
    """Mend the journal of a database that no process has open.

    Args:
        path: the database.

    Returns:
        What was done; None where nothing was wrong, or where another process has the database open.

    Raises:
        OSError: a file cannot be read or written.
    """
    place = path.with_name(f"{path.name}-wal")
    if not place.exists() or (journal := _Journal.of(place.read_bytes(), path)) is None:
        return None
    readable, end = journal.readable_commit(), journal.last_commit()
    if not journal.mine[readable + 1 :].any():
        return None
    index = _Index.of(path, journal.salts)
    if index is not None:
        end = max(end, min(index.frames, len(journal.frames)) - 1)
    if end <= readable:
        return None
    with alone(path) as is_alone:
        if not is_alone:
            return None
        draft = path.with_name(f"{path.name}-repair")
        draft.write_bytes(journal.rewritten(end, index))
        draft.replace(place)
    return Mended(int(np.count_nonzero(~journal.good[: end + 1])), end - readable)


class _Journal:
    """The frames of a journal, and which of them are right.

    Attributes:
        frames: [n, 24 + page size] bytes.
        salts: of this journal, as they stand in it.
        mine: [n] whether a frame has these salts; what an earlier journal has left has others.
        good: [n] whether the checksum is right as well, given the one before.
    """

    def __init__(self, header: bytes, intact: bool, frames: np.ndarray) -> None:
        self.frames = frames
        self._intact = intact
        self._fields = np.ascontiguousarray(frames[:, :_FRAME]).view(">u4").astype(np.uint64)
        self.salts = header[16:24] if intact else frames[0, 8:16].tobytes()
        head = header if intact else _new_header(frames.shape[1] - _FRAME, self.salts)
        self._header = head
        self._order = ">" if struct.unpack(">I", head[:4])[0] & 1 else "<"
        self._rule = _Rule((frames.shape[1] - 16) // 8)
        self._sums = np.concatenate([self._rule.parts(self._words(b)) for b in self._blocks()])
        before = np.vstack([np.array([struct.unpack(">2I", head[24:])], np.uint64), self._fields[:-1, 4:6]])
        right = (self._rule.carried(before) + self._sums) & _MASK == self._fields[:, 4:6]
        self.mine = (frames[:, 8:16] == np.frombuffer(self.salts, np.uint8)).all(axis=1)
        self.good = self.mine & right.all(axis=1)
        if not intact:
            # the checksum that it goes on from is lost
            self.good[0] = self.mine[0]

    @classmethod
    def of(cls, content: bytes, path: Path) -> _Journal | None:
        """Read a journal; None for one without frames."""
        header = content[:_HEADER].ljust(_HEADER, b"\0")
        intact = _is_header(header)
        page = struct.unpack(">I", header[8:12])[0] if intact else _page_size(path)
        count = (len(content) - _HEADER) // (_FRAME + page) if page else 0
        if count <= 0:
            return None
        frames = np.frombuffer(content, np.uint8, count * (_FRAME + page), _HEADER)
        return cls(header, intact, frames.reshape(count, _FRAME + page))

    def last_commit(self) -> int:
        """Return the last right frame that ends a transaction; -1 for none."""
        return _last(self.good & (self._fields[:, 1] > 0))

    def readable_commit(self) -> int:
        """Return the last frame that SQLite would read; -1 for none."""
        if not self._intact:
            return -1
        wrong = np.flatnonzero(~self.good)
        ends = self._fields[:, 1] > 0
        return _last(ends[: wrong[0]] if len(wrong) else ends)

    def rewritten(self, end: int, index: _Index | None) -> bytes:
        """Return the journal up to a frame, with salts and checksums that are right.

        Args:
            end: the last frame.
            index: what the index knows of it.
        """
        frames = self.frames[: end + 1].copy()
        frames[:, 8:16] = np.frombuffer(self.salts, np.uint8)
        # a wrong frame may say anything of the length of the file; the next right one says what it is
        wrong = np.flatnonzero(~self.good[: end + 1])
        frames[wrong, 4:8] = 0
        if index is not None:
            for place in wrong[wrong < len(index.pages)]:
                frames[place, :4] = _big_endian(int(index.pages[place]))
            if index.frames - 1 == end:
                frames[end, 4:8] = _big_endian(index.file_pages)
        total: _Sum = struct.unpack(">2I", self._header[24:])
        for first in range(0, len(frames), _BLOCK):
            block = frames[first : first + _BLOCK]
            for frame, part in zip(block, self._rule.parts(self._words(block)), strict=True):
                total = self._rule.after(total, (int(part[0]), int(part[1])))
                frame[16:24] = _big_endian(*total)
        return self._header + frames.tobytes()

    def _blocks(self) -> Iterator[np.ndarray]:
        for first in range(0, len(self.frames), _BLOCK):
            yield self.frames[first : first + _BLOCK]

    def _words(self, frames: np.ndarray) -> np.ndarray:
        """Return what the checksums of frames are of."""
        counted = np.hstack([frames[:, :8], frames[:, _FRAME:]])
        return counted.view(f"{self._order}u4").astype(np.uint64)


class _Rule:
    """The checksum of 2 n words, which is linear in them and in the checksum before, modulo 2^32:

        s1 += x + s2;  s2 += y + s1        for each pair of words x, y

    Args:
        pairs: n.
    """

    def __init__(self, pairs: int) -> None:
        columns, power = [], ((1, 0), (0, 1))
        for _ in range(pairs):
            (a, b), (c, d) = power
            columns.append(((a + b, c + d), (b, d)))
            power = (((a + b) & _MASK, (a + 2 * b) & _MASK), ((c + d) & _MASK, (c + 2 * d) & _MASK))
        self._power = power
        self._weights = np.array([weight for pair in reversed(columns) for weight in pair], np.uint64)

    def parts(self, words: np.ndarray) -> np.ndarray:
        """Return what rows of words add, [rows, 2]; products wrap at 2^64, which is a multiple of 2^32."""
        return (words @ self._weights) & _MASK

    def carried(self, sums: np.ndarray) -> np.ndarray:
        """Return what becomes of checksums before, [rows, 2]."""
        return (sums @ np.array(self._power, np.uint64).T) & _MASK

    def after(self, before: _Sum, part: _Sum) -> _Sum:
        """Return one checksum."""
        (a, b), (c, d) = self._power
        return (
            (a * before[0] + b * before[1] + part[0]) & _MASK,
            (c * before[0] + d * before[1] + part[1]) & _MASK,
        )


def _is_header(header: bytes) -> bool:
    """Tell whether a header is right."""
    magic, format_number, page = struct.unpack(">3I", header[:12])
    if magic not in _MAGIC or format_number != _FORMAT or page < 512 or page > 65536 or page & (page - 1):
        return False
    return _header_sum(header) == struct.unpack(">2I", header[24:])


def _header_sum(header: bytes) -> _Sum:
    order = ">" if struct.unpack(">I", header[:4])[0] & 1 else "<"
    words = np.frombuffer(header[:24], f"{order}u4").astype(np.uint64)[None]
    found = _Rule(3).parts(words)[0]
    return int(found[0]), int(found[1])


def _new_header(page: int, salts: bytes) -> bytes:
    head = struct.pack(">4I", _MAGIC[0], _FORMAT, page, 0) + salts
    return head + struct.pack(">2I", *_header_sum(head))


def _page_size(path: Path) -> int:
    """Return the size of a database's pages as its own header says; 0 if it says nothing that can be."""
    with path.open("rb") as file:
        head = file.read(18)
    size = struct.unpack(">H", head[16:18])[0] if len(head) == 18 else 0
    size = 65536 if size == 1 else size
    return size if size >= 512 and not size & (size - 1) else 0


@dataclasses.dataclass(frozen=True)
class _Index:
    """What the last process that had a database open knew of its journal.

    Attributes:
        frames: how many were committed.
        file_pages: pages of the database after them.
        pages: page of each frame, of the first ones.
    """

    frames: int
    file_pages: int
    pages: np.ndarray

    @classmethod
    def of(cls, path: Path, salts: bytes) -> _Index | None:
        """Read the index of a journal with these salts; None if there is none."""
        try:
            with path.with_name(f"{path.name}-shm").open("rb") as file:
                content = file.read(_INDEX_PAGES + 4 * _INDEXED)
        except FileNotFoundError:
            return None
        one, other = content[:_INDEX_HEADER], content[_INDEX_HEADER : 2 * _INDEX_HEADER]
        if len(content) < _INDEX_PAGES + 4 * _INDEXED or one != other or one[32:40] != salts:
            return None
        frames, file_pages = struct.unpack("=2I", one[16:24])
        pages = np.frombuffer(content, np.uint32, min(frames, _INDEXED), _INDEX_PAGES)
        return cls(frames, file_pages, pages)


def _big_endian(*numbers: int) -> np.ndarray:
    return np.frombuffer(struct.pack(f">{len(numbers)}I", *numbers), np.uint8)


@contextlib.contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Tell whether no other process has a database open, and keep it so."""
    with path.with_name(f"{path.name}-shm").open("a+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LOCK_BYTE)
        except OSError:
            yield False
            return
        yield True


def _last(which: np.ndarray) -> int:
    """Return the last place that is true; -1 for none."""
    places = np.flatnonzero(which)
    return int(places[-1]) if len(places) else -1
