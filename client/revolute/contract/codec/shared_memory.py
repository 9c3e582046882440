"""Arrays in memory shared by a client and a server on one machine (Linux).

A client offers a block of memory with a call, in the metadata `x-shared-memory`. A Tensor then holds the
offset of its bytes in the block (`shared`) instead of the bytes. The block is a memfd: it has no file name
and disappears with the last process that holds it. The server opens it as /proc/PID/fd/FD, so it must run as
the client's user and see the client's processes. The block must begin with the secret in the offer, so nobody
can make a server read or write a block whose secret they do not know.

Both sides copy and never map the block. If its owner shortens or changes it during a call, the other side
gets an error or wrong numbers, but never a signal.
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
"""Metadata key of a client's offer: `pid:fd:secret:capacity`."""

OPENED = "opened"
"""Value of HEADER in the trailing metadata of GetServerInfo if the server could open the block."""

AVAILABLE = hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd")

SHARED_FROM = 64 * 1024
"""Smallest total size of a message's arrays in bytes for which sharing is faster than sending."""

CAPACITY = 256 * 1024**2
"""Size of a client's block in bytes. Pages take memory when they are first written."""

FIRST = 64
"""Offset of the first array; the secret is before it."""

_SHARE = 4
"""Blocks may use 1 / _SHARE of a process's file descriptors."""

_SECRET_BYTES = 32
_ALIGNMENT = 64
_LEAST = 1024
"""Smallest size of a shared array in bytes; smaller ones are sent."""

_MOST_PIECES = 64
"""Largest number of pieces per write; the system allows at least 1024."""

_NAME = "revolute"
_OFFER = re.compile(r"([0-9]{1,10}):([0-9]{1,10}):([0-9a-f]{64}):([0-9]{1,15})")
_TENSOR = tensor_pb2.Tensor.DESCRIPTOR.full_name


class SharedMemory:
    """A block of memory shared by two processes.

    Args:
        descriptor: file descriptor; this object closes it.
        capacity: usable size in bytes.
        offer: metadata value with which a server can open the block.
    """

    def __init__(self, descriptor: int, capacity: int, offer: str = "") -> None:
        self._descriptor = descriptor
        self._finalizer = weakref.finalize(self, _close, descriptor)
        self._capacity = capacity
        self.offer = offer
        self.was_read = False
        """Whether the other side has written to the block, which proves that it can open it."""

    @classmethod
    def create(cls) -> SharedMemory:
        """Create a block.

        Raises:
            OSError: the system has no memory or no descriptor left.
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
        """Open a block that another process offers.

        Raises:
            ArgumentError: this process cannot open the block, or the block does not match the offer.
        """
        match = _OFFER.fullmatch(offer)
        if match is None:
            raise refused("pid:fd:secret:capacity", "something else")
        try:
            descriptor = _opened(f"/proc/{match[1]}/fd/{match[2]}")
        except OSError:
            # do not reveal what other processes have open
            raise _unreachable() from None
        memory = cls(descriptor, int(match[4]), offer)
        if not hmac.compare_digest(os.pread(descriptor, _SECRET_BYTES, 0), bytes.fromhex(match[3])):
            memory.close()
            raise _unreachable()
        return memory

    def size(self) -> int:
        """Return the current size of the block in bytes."""
        return os.fstat(self._descriptor).st_size

    def read(self, place: int, into: np.ndarray) -> int:
        """Copy bytes out of the block.

        Args:
            place: offset of the first byte.
            into: contiguous array of bytes to fill.

        Returns:
            Number of bytes copied; fewer than requested at the end of the block or for a bad offset.
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
        """Write the arrays of a message into the block, and their offsets into the message.

        The previous content is overwritten. This is safe because each side reads a message before it writes
        the next one.

        Args:
            start: the message; its Tensors are set here.
            values: arrays and bytes by field path.

        Returns:
            The values that were not written: bytes, small arrays, and arrays that do not fit.
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
        """Copy bytes into the block, from offset FIRST on."""
        place = FIRST
        while pieces:
            count = os.pwritev(self._descriptor, pieces[:_MOST_PIECES], place)
            place += count
            while pieces and count >= len(pieces[0]):
                count -= len(pieces.pop(0))
            if count:
                pieces[0] = pieces[0][count:]

    def close(self) -> None:
        """Close the block. Closing twice has no effect; garbage collection closes it too."""
        self._descriptor = -1
        self._finalizer()


def array_bytes(values: Mapping[str, Value]) -> int:
    """Return the total size in bytes of the arrays among `values`."""
    return sum(value.nbytes for value in values.values() if isinstance(value, np.ndarray))


def shared(start: Message, values: dict[str, Value], memory: SharedMemory | None) -> dict[str, Value]:
    """Write a message's arrays into shared memory if that is available and faster; return the other
    values."""
    if memory is None or array_bytes(values) < SHARED_FROM:
        return values
    return memory.put(start, values)


def most_blocks() -> int:
    """Return the largest number of blocks of this process; it leaves descriptors for other uses."""
    # imported here because `resource` exists only on Unix
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (soft if soft != resource.RLIM_INFINITY else sys.maxsize) // _SHARE


def _close(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        os.close(descriptor)


def _is_tensor(message: Any) -> bool:
    return message.DESCRIPTOR.full_name == _TENSOR


def _opened(path: str) -> int:
    """Open a block by its link in /proc.

    The link is first opened with O_PATH and checked, so that nothing but a block is ever opened, even if the
    link changes in the meantime.

    Raises:
        OSError: the link cannot be opened, or is not a block.
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
    """Return the device number of the kernel's file system for memfds.

    Files on it are always memory, so reading one never blocks. A file elsewhere can imitate a block's name,
    but not its device number.
    """
    descriptor = os.memfd_create(_NAME)
    try:
        return os.fstat(descriptor).st_dev
    finally:
        os.close(descriptor)


def _unreachable() -> ArgumentError:
    return refused("a block of memory that this server can open", "none")


def refused(expected: str, got: str) -> ArgumentError:
    """Return the error for shared memory that the server cannot open."""
    return ArgumentError.expected(HEADER, expected, got, advice="send the arrays over the connection")
