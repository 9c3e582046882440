"""A client of HTTP/2 that sends frames as it likes, to see what a server makes of them."""

from __future__ import annotations

import collections
import contextlib
import socket
import struct
import time
from collections.abc import Mapping

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    """Return the bytes of a frame."""
    return struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, stream) + content


def fields(values: Mapping[str, str]) -> bytes:
    """Return header fields without compression (HPACK, literals that are not indexed)."""
    return b"".join(b"\x00" + _text(name) + _text(value) for name, value in values.items())


def _text(text: str) -> bytes:
    content = text.encode("latin-1")
    if len(content) < 127:
        return bytes([len(content)]) + content
    rest, size = len(content) - 127, b"\x7f"
    while rest >= 128:
        size += bytes([rest % 128 + 128])
        rest //= 128
    return size + bytes([rest]) + content


def call_fields(path: str, **more: str) -> dict[str, str]:
    """Return the header fields of a gRPC call."""
    return {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
        **more,
    }


class Http2:
    """A connection; a context manager that closes it.

    Args:
        target: host and port.
        window: bytes of answers that the server may send on each stream before it is told to go on.

    Attributes:
        ended: the calls that the server has ended, by stream, as far as `is_open` has read.
    """

    def __init__(self, target: str, window: int = 65535) -> None:
        host, port = target.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=15.0)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # bytes that the server takes of a new stream, and of each
        self._window = 65535
        self._windows: dict[int, int] = collections.defaultdict(lambda: self._window, {0: 65535})
        self._unread = b""
        self.ended: list[int] = []
        self.send(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, window)))

    def send(self, content: bytes) -> None:
        """Send bytes."""
        self.socket.sendall(content)

    def call(self, path: str, stream: int = 1, **more: str) -> None:
        """Begin a call, with nothing of its request."""
        self.send(frame(HEADERS, END_HEADERS, stream, fields(call_fields(path, **more))))

    def message(
        self,
        content: bytes,
        declared: int | None = None,
        stream: int = 1,
        *,
        end: bool = True,
        seconds: float = 0.5,
    ) -> int:
        """Send a message, or the beginning of one of `declared` bytes.

        Returns:
            The bytes for which the server had no room within some seconds.
        """
        size = len(content) if declared is None else declared
        left = memoryview(b"\x00" + struct.pack(">I", size) + content)
        until = time.monotonic() + seconds
        while left and time.monotonic() < until and self.is_open():
            room = min(16384, self._windows[0], self._windows[stream], len(left))
            if room <= 0:
                time.sleep(0.002)
                continue
            last = end and room == len(left)
            self.send(frame(DATA, END_STREAM if last else 0, stream, bytes(left[:room])))
            self._windows[0] -= room
            self._windows[stream] -= room
            left = left[room:]
        return len(left)

    def is_open(self) -> bool:
        """Tell whether the server keeps the connection open; reads what has arrived."""
        self.socket.setblocking(False)
        try:
            while found := self.socket.recv(65536):
                self._read(found)
        except BlockingIOError:
            return True
        except OSError:
            pass
        finally:
            with contextlib.suppress(OSError):
                self.socket.settimeout(15.0)
        return False

    def _read(self, found: bytes) -> None:
        """Note the room that the server has, and the trailers with which it ends calls."""
        self._unread += found
        while len(self._unread) >= 9:
            size = int.from_bytes(self._unread[:3], "big")
            if len(self._unread) < 9 + size:
                return
            kind, flags, stream = struct.unpack(">BBI", self._unread[3:9])
            content, self._unread = self._unread[9 : 9 + size], self._unread[9 + size :]
            if kind == WINDOW_UPDATE:
                self._windows[stream] += int.from_bytes(content, "big")
            elif kind == SETTINGS and not flags & ACK:
                self._set(content)
            elif kind == PING and not flags & ACK:
                self.send(frame(PING, ACK, 0, content))
            elif kind == RST_STREAM or (kind == HEADERS and flags & END_STREAM):
                self.ended.append(stream)

    def _set(self, content: bytes) -> None:
        """Note the size of the windows of new streams, by which those of open ones change too."""
        for position in range(0, len(content), 6):
            name, value = struct.unpack_from(">HI", content, position)
            if name == 4:
                for stream in self._windows:
                    self._windows[stream] += (value - self._window) * (stream > 0)
                self._window = value
        self.send(frame(SETTINGS, ACK, 0))

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> Http2:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
