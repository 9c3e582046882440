"""Arrays in memory that client and server share, where both run on one machine (Linux).

A client offers a block of its memory with a call, in the metadata `x-shared-memory`; a Tensor then says where
in it its bytes are (`shared`) instead of carrying them. The block is a memfd: it has no name in any folder,
and is gone when the last process that holds it is. The server opens it as /proc/PID/fd/FD, so it must run as
the client's user and see the client's processes. What it finds there must begin with the secret that the
offer names: nobody can make a server read or write memory of which they do not know that much.

Neither side maps the block, both copy: a block that its owner shortens or changes meanwhile gives an error
or other numbers, and never a signal.
"""

from __future__ import annotations

import contextlib
import functools
import hmac
import os
import re
import secrets
import sys
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
from google.protobuf.message import Message

from ..errors import ArgumentError
from ..v1 import tensor_pb2
from .parts import Value, declare, locate

HEADER = "x-shared-memory"
"""Metadata by which a client offers memory: `pid:fd:secret:capacity`."""

OPENED = "opened"
"""Value of the same name in the trailing metadata of GetServerInfo, where the server could open it."""

AVAILABLE = hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd")

SHARED_FROM = 64 * 1024
"""Bytes of a message's arrays from which on sharing costs less than sending."""

CAPACITY = 256 * 1024**2
"""Bytes of a client's block. Pages are taken when they are first written."""

FIRST = 64
"""Place of the first array; the secret lies before it."""

_SHARE = 4
"""Blocks may have this part of the descriptors of a process."""

_SECRET_BYTES = 32
_ALIGNMENT = 64
_LEAST = 1024
"""Bytes of an array that is worth its place."""

_MOST_PIECES = 64
"""Of one write; the system takes at least 1024."""

_NAME = "revolute"
_OFFER = re.compile(r"([0-9]{1,10}):([0-9]{1,10}):([0-9a-f]{64}):([0-9]{1,15})")
_TENSOR = tensor_pb2.Tensor.DESCRIPTOR.full_name


class SharedMemory:
    """A block of memory that two processes hold.

    Args:
        descriptor: its file descriptor, owned from now on.
        capacity: bytes that may be used.
        offer: what a client sends so that a server opens it.
    """

    def __init__(self, descriptor: int, capacity: int, offer: str = "") -> None:
        self._descriptor = descriptor
        self._finalizer = weakref.finalize(self, _close, descriptor)
        self._capacity = capacity
        self.offer = offer
        self.was_read = False
        """Whether the other side has put something there: it can open the block."""

    @classmethod
    def create(cls) -> SharedMemory:
        """Make a block of this process.

        Raises:
            OSError: the system has no memory or no descriptor for it.
        """
        secret = secrets.token_bytes(_SECRET_BYTES)
        descriptor = os.memfd_create(_NAME)
        offer = f"{os.getpid()}:{descriptor}:{secret.hex()}:{CAPACITY}"
        memory = cls(descriptor, CAPACITY, offer)
        try:
            os.pwrite(descriptor, secret, 0)
        except OSError:
            memory.close()
            raise
        return memory

    @classmethod
    def open(cls, offer: str) -> SharedMemory:
        """Open the block that another process offers.

        Raises:
            ArgumentError: this process cannot reach such a block, or it is not what the offer says.
        """
        match = _OFFER.fullmatch(offer)
        if match is None:
            raise refused("pid:fd:secret:capacity", "something else")
        try:
            descriptor = _opened(f"/proc/{match[1]}/fd/{match[2]}")
        except OSError:
            # whoever asks is not told what other processes have
            raise _unreachable() from None
        memory = cls(descriptor, int(match[4]), offer)
        if not hmac.compare_digest(os.pread(descriptor, _SECRET_BYTES, 0), bytes.fromhex(match[3])):
            memory.close()
            raise _unreachable()
        return memory

    def size(self) -> int:
        """Return the bytes that it occupies."""
        return os.fstat(self._descriptor).st_size

    def read(self, place: int, into: np.ndarray) -> int:
        """Copy bytes out of the block.

        Args:
            place: where they begin.
            into: contiguous array of bytes that takes them.

        Returns:
            How many there were; fewer than asked for where the block ends or there is no such place.
        """
        self.was_read = True
        if place < 0:
            return 0
        view, done = into.data, 0
        with contextlib.suppress(OSError, OverflowError):
            while done < len(view) and (count := os.preadv(self._descriptor, [view[done:]], place + done)):
                done += count
        return done

    def put(self, start: Message, values: Mapping[str, Value]) -> dict[str, Value]:
        """Put the arrays of a message into the block, and their places into the message.

        What lay in the block is overwritten: a message is read before the other side writes the next one.

        Args:
            start: the message; its Tensors are filled in here.
            values: arrays and bytes by field path.

        Returns:
            Those that did not go there: bytes, small arrays, and what there is no room for.
        """
        left: dict[str, Value] = {}
        pieces: list[memoryview | bytes] = []
        places: list[tuple[Any, int]] = []
        end = FIRST
        for path, value in values.items():
            tensor = locate(start, path)
            size, view = declare(tensor, value) if _is_tensor(tensor) else (0, memoryview(b""))
            if size < _LEAST or end + size > self._capacity:
                left[path] = value
                continue
            places.append((tensor, end))
            gap = -size % _ALIGNMENT
            pieces += [view, bytes(gap)]
            end += size + gap
        try:
            self._write(pieces)
        except OSError:
            return dict(values)
        for tensor, place in places:
            tensor.shared = place
        return left

    def _write(self, pieces: list[memoryview | bytes]) -> None:
        """Copy bytes into the block, from its first place on."""
        place = FIRST
        while pieces:
            count = os.pwritev(self._descriptor, pieces[:_MOST_PIECES], place)
            place += count
            while pieces and count >= len(pieces[0]):
                count -= len(pieces.pop(0))
            if count:
                pieces[0] = pieces[0][count:]

    def close(self) -> None:
        """Let go of the block, as happens to one that nobody holds; once is enough, more do no harm."""
        self._descriptor = -1
        self._finalizer()


def array_bytes(values: Mapping[str, Value]) -> int:
    """Count the bytes of the arrays among values by field path."""
    return sum(value.nbytes for value in values.values() if isinstance(value, np.ndarray))


def shared(start: Message, values: dict[str, Value], memory: SharedMemory | None) -> dict[str, Value]:
    """Put a message's arrays into shared memory if there is some and it is worth it; return the others."""
    if memory is None or array_bytes(values) < SHARED_FROM:
        return values
    return memory.put(start, values)


def most_blocks() -> int:
    """Return how many blocks this process may have, so that there are descriptors for all else."""
    # not everywhere, but wherever there are blocks
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (soft if soft != resource.RLIM_INFINITY else sys.maxsize) // _SHARE


def _close(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        os.close(descriptor)


def _is_tensor(message: Any) -> bool:
    return message.DESCRIPTOR.full_name == _TENSOR


def _opened(path: str) -> int:
    """Open a block by its link in /proc; nothing that is no block is opened, however it changes meanwhile.

    Raises:
        OSError: it cannot be opened, or is something else.
    """
    found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        link = f"/proc/self/fd/{found}"
        if os.fstat(found).st_dev != _device() or not os.readlink(link).startswith(f"/memfd:{_NAME} "):
            raise FileNotFoundError(path)
        return os.open(link, os.O_RDWR | os.O_CLOEXEC)
    finally:
        os.close(found)


@functools.cache
def _device() -> int:
    """Return the number of the file system of all blocks. The kernel has it for itself: what lies there is
    memory, so that reading it never waits for anybody, whatever the name of a file elsewhere."""
    descriptor = os.memfd_create(_NAME)
    try:
        return os.fstat(descriptor).st_dev
    finally:
        os.close(descriptor)


def _unreachable() -> ArgumentError:
    return refused("a block of memory that this server can open", "none")


def refused(expected: str, got: str) -> ArgumentError:
    """Return the error of a request whose arrays lie in memory that the server does not open."""
    return ArgumentError.expected(HEADER, expected, got, advice="send the arrays over the connection")
