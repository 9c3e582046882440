"""Reads and writes HTTP bodies as JSON or, for large arrays, as NPZ (application/x-npz).

Both carry the same document. In an NPZ archive each array is a member named by its path (`ctrl`,
`params.body_mass`), and the member `header` holds the other fields as JSON.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from fastapi import Request, Response
from starlette.types import Message, Receive, Scope, Send

from revolute.contract.codec.npz import blocks, npz_pieces
from revolute.contract.errors import ArgumentError, LimitError

from ..answers import Document, document_bytes
from ..compute.memory_budget import Reservation
from ..observe.telemetry import Telemetry
from ..settings import Settings, format_bytes
from . import json_bounds, npz_reader, strict_json
from .disconnect import disconnected
from .uploads import receive_body

JSON = "application/json"
NPZ = "application/x-npz"
_JSON_PER_BYTE = 3  # a double of 8 bytes is up to 24 characters
SMALL = 32 * 1024  # bytes that are written on the event loop, which is faster than a change of threads

_PARSERS = ThreadPoolExecutor(2, thread_name_prefix="parse")
Result = TypeVar("Result")


class UnsupportedMediaTypeError(ArgumentError):
    """The content type of the body is not supported; status 415."""


async def read_document(request: Request, settings: Settings, reservation: Reservation) -> dict[str, Any]:
    """Read the body of a request, JSON or NPZ, into a document.

    Args:
        request: the request.
        settings: has the limits on the body.
        reservation: grows by the bytes in memory.

    Raises:
        ArgumentError: the body is malformed.
        LimitError: the body is too large.
        CancelledError: the client has disconnected.
    """
    # require a content type: a web page may send a body without one to any host
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (JSON, NPZ):
        raise UnsupportedMediaTypeError.expected("content-type", f"{JSON} or {NPZ}", repr(kind[:80]))
    if kind == JSON:
        body = await receive_body(request, settings, "max_json", reservation)
        return await _read_json(bytes(body), settings, reservation)
    return await _read_npz(
        await receive_body(request, settings, "max_request", reservation), settings, reservation
    )


async def _read_json(text: bytes, settings: Settings, reservation: Reservation) -> dict[str, Any]:
    """Check the limits of a JSON text and parse it; a large text on a thread."""
    if len(text) <= SMALL:
        if not json_bounds.is_flat(text, settings):
            json_bounds.check(json_bounds.measure(text), settings)
        return strict_json.loads(text)
    found = await _parsed(json_bounds.measure, text)
    json_bounds.check(found, settings)
    reservation.grow(found.kept_bytes())
    with reservation.beside("JSON") as temporary:
        temporary.grow(found.parsed_bytes())
        return await _parsed(strict_json.loads_large, text)


async def _read_npz(body: memoryview, settings: Settings, reservation: Reservation) -> dict[str, Any]:
    """Check the limits of an archive and unpack it on a thread."""
    bounds = npz_reader.Bounds.of(settings)
    archive = await _parsed(npz_reader.Archive, body, bounds)
    reservation.grow(archive.size)
    arrays = await _parsed(archive.read)
    header = npz_reader.take_header(arrays)
    if len(header) > settings.max_json:
        raise LimitError.expected(
            "header",
            f"at most {format_bytes(settings.max_json)} of JSON",
            format_bytes(len(header)),
            advice=f"send less at once, or start the server with more than {settings.flag('max_json')}",
        )
    return await _parsed(npz_reader.join, await _read_json(header, settings, reservation), arrays, bounds)


async def _parsed(parse: Callable[..., Result], *arguments: Any) -> Result:
    """Parse on one of a few threads; few, because each competes with the event loop for the GIL."""
    return await asyncio.get_running_loop().run_in_executor(_PARSERS, parse, *arguments)


def read_query(request: Request) -> dict[str, Any]:
    """Read the query of a request into a document; `page_size` becomes an int."""
    document: dict[str, Any] = dict(request.query_params)
    size = document.get("page_size", "")
    if size.isascii() and size.removeprefix("-").isdigit() and len(size) < 19:
        document["page_size"] = int(size)
    return document


def check_answer(request: Request, size: int, settings: Settings) -> None:
    """Refuse an answer that is too large for JSON; NPZ answers have no limit.

    Args:
        request: has the types that the client accepts.
        size: bytes of the answer's arrays.
        settings: has the limit.

    Raises:
        LimitError: the answer is too large.
    """
    if size > settings.max_json and not wants_npz(request):
        raise LimitError.expected(
            "answer",
            f"at most {format_bytes(settings.max_json)} of arrays in JSON",
            format_bytes(size),
            advice=f"ask for npz with `Accept: {NPZ}`, or for less at once",
        )


async def write_document(
    request: Request,
    document: Document,
    reservation: Reservation,
    telemetry: Telemetry,
    settings: Settings,
    status: int = 200,
    undo: Callable[[], None] | None = None,
) -> Response:
    """Write an answer in the type that the client accepts.

    Args:
        request: has the types that the client accepts.
        document: the answer.
        reservation: grows by the bytes of the answer; released when they are sent.
        telemetry: receives the time spent.
        settings: has the limit on JSON.
        status: status of the answer.
        undo: called when the client disconnects before all of the answer is sent.

    Raises:
        LimitError: the answer is too large for JSON.
    """
    size = document_bytes(document)
    check_answer(request, size, settings)
    npz_wanted = wants_npz(request)
    write = npz_pieces if npz_wanted else _json_pieces
    reservation.grow(size if npz_wanted else _JSON_PER_BYTE * size)
    with telemetry.measure("serialise", transport="http"):
        pieces = write(document) if size <= SMALL else await asyncio.to_thread(write, document)
    answer = _Answer(pieces, status, NPZ if npz_wanted else JSON, reservation.keep())
    return answer if undo is None else _Watched(request, answer, undo)


def _json_pieces(document: Document) -> list[bytes | memoryview]:
    return [strict_json.dumps(document)]


class _Answer(Response):
    """A body that is sent as fast as the client reads; its memory is reserved until it is sent."""

    def __init__(
        self,
        pieces: Sequence[bytes | memoryview],
        status: int,
        media_type: str,
        reservation: Reservation,
    ) -> None:
        super().__init__(None, status, media_type=media_type)
        self._pieces = pieces
        self._reservation = reservation
        self.headers["content-length"] = str(sum(map(len, pieces)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            for block in blocks(self._pieces):
                await send({"type": "http.response.body", "body": block, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._reservation.release()


class _Watched(Response):
    """An answer that is undone if the client disconnects before all of it is sent."""

    def __init__(self, request: Request, answer: _Answer, undo: Callable[[], None]) -> None:
        super().__init__(None, answer.status_code)
        # share the headers, so that those which the framework adds reach the answer
        self.raw_headers = answer.raw_headers
        self._request = request
        self._answer = answer
        self._undo = undo

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(disconnected(self._request))

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                # bytes reach the socket one turn of the event loop later. The second `send` waits until the
                # socket has taken nearly all of them or the client has disconnected, and `gone` is set
                # another turn later.
                await asyncio.sleep(0)
                await send({**message, "more_body": True})
                await asyncio.sleep(0)
                message = {**message, "body": b""}
                if gone.done():
                    self._undo()
            await send(message)

        try:
            await self._answer(scope, receive, sending)
        finally:
            gone.cancel()


def wants_npz(request: Request) -> bool:
    """Tell whether to answer in NPZ: the client accepts it, or accepts any type and has sent NPZ."""
    accept = request.headers.get("accept", "*/*").lower()
    if NPZ in accept:
        return True
    return "*/*" in accept and request.headers.get("content-type", "").lower().startswith(NPZ)


def asset_bytes(assets: Any) -> dict[str, bytes]:
    """Return assets as bytes; they are base64 text in JSON and uint8 arrays in NPZ.

    Raises:
        ArgumentError: an asset is neither.
    """
    if not isinstance(assets, dict):
        raise ArgumentError.expected("assets", "an object from reference to content", type(assets).__name__)
    return {name: _bytes_of(f"assets.{name}", value) for name, value in assets.items()}


def _bytes_of(name: str, value: Any) -> bytes:
    if isinstance(value, np.ndarray) and value.dtype == np.uint8:
        return value.tobytes()
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ArgumentError.expected(name[:120], "base64", str(error).lower()) from None
    raise ArgumentError.expected(name[:120], "base64 text or a uint8 array", type(value).__name__)


def problem_body(fields: Mapping[str, Any]) -> bytes:
    """Write a problem document (RFC 9457)."""
    return json.dumps({key: value for key, value in fields.items() if value is not None}).encode()
