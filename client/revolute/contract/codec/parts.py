"""A message with large arrays as a stream of small parts, and back (proto/revolute/v1/tensor.proto).

The first part, `start`, holds all fields. A Tensor or Blob that does not fit only declares its size there;
its bytes follow as chunks, in order. `to_parts` writes the parts. `Assembler` reads them one by one, so
blocking and asynchronous streams use the same checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from google.protobuf.message import Message

from ..errors import ArgumentError, LimitError
from ..v1 import tensor_pb2
from . import tensor as tensors
from .buffers import BUFFERS
from .documents import Kind, fields_of

CHUNK_BYTES = 1000 * 1024
"""Largest payload of a sent part in bytes. The part itself is at most 1 MiB."""

_FREE_CHUNKS, _CHUNK_LEAST = 1000, 1024
"""A message may have _FREE_CHUNKS chunks, plus one per _CHUNK_LEAST declared bytes."""

_NUMBERS_PER_ENTRY = 100
"""Reading this many numbers of a list takes about as long as reading one other entry."""

_COPIED_BYTES = 4096
"""Arrays up to this size are copied once more with their message, which is faster than to find them again."""

Value = np.ndarray | bytes


def to_parts(
    part_type: type[Message],
    start: Message,
    values: Mapping[str, Value],
    *,
    chunk_bytes: int = CHUNK_BYTES,
    first: str = "start",
) -> Iterator[Any]:
    """Yield the parts of one message.

    Args:
        part_type: message with a oneof of `start` and `chunk`, e.g. RolloutRequest.
        start: the message without its arrays; this function declares its Tensors and Blobs.
        values: arrays and bytes by field path, e.g. {"ctrl": array, "params.body_mass": array}.
        chunk_bytes: largest payload of one part.
        first: name of the field of `part_type` that holds `start`.

    Yields:
        Messages of `part_type`.
    """
    inline, later = _split(start, values, chunk_bytes)
    part: Any = part_type(**{first: start})
    for path, view in inline:
        # only now, so that making `part` copies small fields only
        locate(getattr(part, first), path).data = view.tobytes()
    yield part
    for path, offset, data in _pieces(later, chunk_bytes):
        part = part_type()
        # set the fields in place: assigning a Chunk would copy it
        part.chunk.field, part.chunk.offset, part.chunk.data = path, offset, data.tobytes()
        yield part


def count_entries(message: Any, most: int) -> int:
    """Count the entries of all lists and maps in a message. A hundred numbers count as one entry.

    Args:
        message: the message.
        most: counting stops above this number.
    """
    count = 0
    fields = fields_of(message.DESCRIPTOR)
    for descriptor, value in message.ListFields():
        field = fields[descriptor.name]
        if field.kind is Kind.PLAIN:
            if field.is_repeated:
                is_text = descriptor.type == descriptor.TYPE_STRING
                count += len(value) // (1 if is_text else _NUMBERS_PER_ENTRY)
            continue
        children: Iterable[Any] = (value,)
        if field.is_repeated:
            count += len(value)
            children = value.values() if field.kind is Kind.MAP else value
        if count > most:
            return count
        for child in children:
            count += count_entries(child, most - count)
            if count > most:
                return count
    return count


class ArrayMemory(Protocol):
    """Memory that holds arrays of a message, such as `shared_memory.SharedMemory`."""

    def read(self, place: int, into: np.ndarray) -> int:
        """Copy bytes from offset `place` into a contiguous array of bytes; return the number of bytes."""


class Assembler:
    """Assembles one message from its parts.

    Args:
        max_bytes: largest total size of arrays and blobs; None for no limit.
        limit_name: name of this limit in the error text.
        first: name of the field that begins the message.
    """

    def __init__(
        self, max_bytes: int | None = None, *, limit_name: str = "request_bytes", first: str = "start"
    ) -> None:
        self._max_bytes = max_bytes
        self._limit_name = limit_name
        self._first = first
        self._start: Any = None
        self._fields: dict[str, _Field] = {}
        self._chunks = 0
        self._received_bytes = 0
        self.declared_bytes = 0
        """Total size of all arrays and blobs that `start` declares; 0 before `start`."""
        self.shared_bytes = 0
        """Size of the arrays in shared memory that `load` has not copied yet."""

    def feed(self, part: Any) -> None:
        """Add the next part.

        Raises:
            ArgumentError: the part does not continue the message.
            LimitError: the message declares more bytes than `max_bytes`.
        """
        kind = part.WhichOneof("part")
        if kind == self._first and self._start is None:
            self._begin(getattr(part, self._first))
        elif kind == "chunk" and self._start is not None:
            self._append(part.chunk)
        else:
            expected = self._first if self._start is None else "chunk"
            raise ArgumentError.expected(
                "part", f"'{expected}'", f"'{kind or 'nothing'}'", at="the stream's next part"
            )

    def load(self, memory: ArrayMemory | None) -> None:
        """Copy the arrays in shared memory.

        Args:
            memory: the memory that was offered with the call; None if none was.

        Raises:
            ArgumentError: no memory was offered, or it is smaller than the message says.
        """
        for field in self._fields.values():
            field.load(memory)
        self._received_bytes += self.shared_bytes
        self.shared_bytes = 0

    @property
    def complete(self) -> bool:
        """Whether all declared bytes have arrived."""
        return self._start is not None and self._received_bytes == self.declared_bytes

    def finish(self) -> tuple[Any, dict[str, Any]]:
        """Return the message and its values.

        Returns:
            The `start` message, with emptied `data` fields, and the arrays and bytes of all set fields by
            field path. Arrays are native and writable.

        Raises:
            ArgumentError: the stream was empty, or bytes are missing.
        """
        if self._start is None:
            raise ArgumentError.expected("part", f"'{self._first}'", "an empty stream")
        return self._start, {path: field.value() for path, field in self._fields.items()}

    def _begin(self, start: Any) -> None:
        self._start = start
        declared = {path: _Field(path, message) for path, message in _walk(start)}
        total = sum(field.size for field in declared.values())
        if self._max_bytes is not None and total > self._max_bytes:
            raise LimitError(
                f"{self._limit_name}: expected at most {self._max_bytes} bytes in one request, got {total}; "
                "send fewer environments or steps, or raise the server's limit",
                argument=self._limit_name,
            )
        self.declared_bytes = total
        for field in declared.values():
            self._received_bytes += field.take_inline_data()
        self._fields = declared
        self.shared_bytes = sum(field.size for field in declared.values() if field.is_shared)

    def _append(self, chunk: tensor_pb2.Chunk) -> None:
        field = self._fields.get(chunk.field)
        if field is None:
            known = ", ".join(self._fields) or "none"
            raise ArgumentError.expected(
                "chunk.field", f"a field declared in start ({known})", repr(chunk.field)
            )
        self._chunks += 1
        most = _FREE_CHUNKS + self.declared_bytes // _CHUNK_LEAST
        if self._chunks > most:
            raise ArgumentError.expected(
                "chunk",
                f"at most {most} chunks for {self.declared_bytes} bytes",
                "one more",
                advice="send more bytes at once",
            )
        self._received_bytes += field.append(chunk.offset, chunk.data)


def assemble(
    parts: Iterable[Any], max_bytes: int | None = None, memory: ArrayMemory | None = None
) -> tuple[Any, dict[str, Any]]:
    """Assemble a message from a blocking stream of parts; see `Assembler.finish`."""
    assembler = Assembler(max_bytes)
    for part in parts:
        assembler.feed(part)
        if assembler.shared_bytes:
            assembler.load(memory)
    return assembler.finish()


def read_values(message: Any) -> dict[str, Any]:
    """Return the arrays and bytes of a complete message by field path.

    Raises:
        ArgumentError: a Tensor's bytes do not fit its shape.
    """
    fields = {path: _Field(path, inner) for path, inner in _walk(message)}
    for field in fields.values():
        field.take_inline_data()
    return {path: field.value() for path, field in fields.items()}


_NO_BYTES = np.empty(0, np.uint8)


class _Field:
    """A Tensor or Blob whose bytes are arriving."""

    def __init__(self, path: str, message: Any) -> None:
        self._path = path
        self._message = message
        self._is_tensor = isinstance(message, tensor_pb2.Tensor)
        self.size = tensors.declared_bytes(path, message) if self._is_tensor else message.size
        if self.size < 0:
            raise ArgumentError.expected(f"{path}.size", "at least 0", self.size)
        self.is_shared = self._is_tensor and message.HasField("shared")
        # bytes inside of the message are a bytearray
        self._buffer: Any = _NO_BYTES
        self._filled = 0

    @property
    def filled(self) -> bool:
        return self._filled == self.size

    def load(self, memory: ArrayMemory | None) -> None:
        if not self.is_shared or self.filled:
            return
        name, place = f"{self._path}.shared", self._message.shared
        if memory is None:
            raise ArgumentError.expected(
                name, "nothing without memory that is offered with the call", place, advice="send the bytes"
            )
        self._buffer = BUFFERS.empty(self.size)
        self._filled = memory.read(place, self._buffer)
        if not self.filled:
            raise ArgumentError.expected(
                name, f"a place with {self.size} bytes in the memory", f"{place}, which has {self._filled}"
            )

    def take_inline_data(self) -> int:
        """Take the bytes inside the message; return their number."""
        data = self._message.data
        if data and (self.is_shared or len(data) != self.size):
            raise self._wrong_count(len(data) + self.size * self.is_shared)
        if data:
            self._buffer, self._filled = bytearray(data), self.size
            self._message.ClearField("data")
        return len(data)

    def append(self, offset: int, data: bytes) -> int:
        """Add the next bytes; return their number."""
        if self.is_shared:
            raise self._wrong_count(self.size + len(data))
        if offset != self._filled:
            raise ArgumentError.expected(
                "chunk.offset", str(self._filled), offset, at=f"field '{self._path}'"
            )
        if offset + len(data) > self.size or not data:
            raise self._wrong_count(offset + len(data))
        if not offset:
            # allocate at the first chunk: a declared size alone must not take memory
            self._buffer = BUFFERS.empty(self.size)
        self._buffer.data[offset : offset + len(data)] = data
        self._filled += len(data)
        return len(data)

    def value(self) -> Any:
        if self.is_shared:
            self.load(None)
        if not self.filled:
            raise self._wrong_count(self._filled)
        return (
            tensors.array_from_bytes(self._message, self._buffer) if self._is_tensor else bytes(self._buffer)
        )

    def _wrong_count(self, got: int) -> ArgumentError:
        if self._is_tensor:
            return tensors.wrong_byte_count(self._path, self._message, got)
        return ArgumentError.expected(self._path, f"{self.size} bytes", f"{got} bytes")


def _split(
    start: Message, values: Mapping[str, Value], chunk_bytes: int
) -> tuple[list[tuple[str, memoryview]], list[tuple[str, memoryview]]]:
    """Declare the Tensors and Blobs of a message; return the bytes to send inside it and those to send
    later."""
    budget = chunk_bytes
    inline: list[tuple[str, memoryview]] = []
    later: list[tuple[str, memoryview]] = []
    for path, value in values.items():
        place = locate(start, path)
        size, view = declare(place, value)
        if size <= _COPIED_BYTES and size <= budget:
            place.data = view.tobytes()
            budget -= size
        elif size <= budget:
            inline.append((path, view))
            budget -= size
        else:
            later.append((path, view))
    return inline, later


def _pieces(later: list[tuple[str, memoryview]], size: int) -> Iterator[tuple[str, int, memoryview]]:
    """Yield path, offset and bytes of each chunk."""
    for path, view in later:
        for offset in range(0, len(view), size):
            yield path, offset, view[offset : offset + size]


def declare(message: Any, value: Value) -> tuple[int, memoryview]:
    """Set dtype and shape of a Tensor, or the size of a Blob; return the byte count and a view of the
    bytes."""
    if isinstance(message, tensor_pb2.Tensor):
        array = tensors.wire_array(np.asarray(value))
        message.dtype = array.dtype.str
        message.shape[:] = array.shape
        size = array.nbytes
        return size, memoryview(array.tobytes()) if size <= _COPIED_BYTES else _bytes_of(array)
    content = bytes(value)
    message.size = len(content)
    return len(content), memoryview(content)


def _bytes_of(array: np.ndarray) -> memoryview:
    """Return a view of an array's bytes in wire format."""
    return tensors.wire_array(array).reshape(-1).view(np.uint8).data


def locate(message: Any, path: str) -> Any:
    """Return the Tensor or Blob at a field path, and set it if it is unset.

    Args:
        message: the message at the start of the path; its lists already have their entries.
        path: names of fields, positions in lists and keys of maps, joined by dots.
    """
    name, _, rest = path.partition(".")
    field = fields_of(message.DESCRIPTOR)[name]
    value = getattr(message, name)
    if field.kind is Kind.MAP:
        value = value[rest]
        value.SetInParent()
        return value
    if field.kind is Kind.LIST:
        position, _, rest = rest.partition(".")
        value = value[int(position)]
    else:
        value.SetInParent()
    return locate(value, rest) if rest else value


def _walk(message: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and message of every set Tensor and Blob."""
    fields = fields_of(message.DESCRIPTOR)
    for descriptor, value in message.ListFields():
        name, kind = descriptor.name, fields[descriptor.name].kind
        path = f"{prefix}{name}"
        if kind is Kind.ARRAY:
            yield path, value
        elif kind is Kind.MAP:
            for key in sorted(value):
                yield f"{path}.{key}", value[key]
        elif kind is Kind.LIST:
            for position, child in enumerate(value):
                yield from _walk(child, f"{path}.{position}.")
        elif kind is Kind.DOCUMENT:
            yield from _walk(value, f"{path}.")
