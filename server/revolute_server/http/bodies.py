"""Reads and writes HTTP bodies: JSON for people, application/x-npz for arrays.

Both carry the same document. In an archive each array is a member named by its path (`ctrl`,
`params.body_mass`), and the member `header` holds the rest as JSON.
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
SMALL = 32 * 1024  # bytes that are written on the event loop, in less time than a change of thread takes

_PARSERS = ThreadPoolExecutor(2, thread_name_prefix="parse")
Result = TypeVar("Result")


class UnsupportedMediaTypeError(ArgumentError):
    """The body is of a type that this route does not read; status 415."""


async def read_document(request: Request, settings: Settings, reservation: Reservation) -> dict[str, Any]:
    """Read a request's body into one document, whichever type it has.

    Args:
        request: the request.
        settings: limits on its size.
        reservation: grows by the bytes that are held.

    Raises:
        ArgumentError: the body is malformed.
        LimitError: it is too large.
        CancelledError: the client has left.
    """
    # a body without a type is not read: a web page may send one to any host
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
    """Parse JSON that was found to be within the limits, a large one off the event loop."""
    if len(text) <= SMALL:
        if not json_bounds.is_flat(text, settings):
            json_bounds.check(json_bounds.measure(text), settings)
        return strict_json.loads(text)
    found = await _parsed(json_bounds.measure, text)
    json_bounds.check(found, settings)
    reservation.grow(found.kept_bytes())
    with reservation.beside("JSON") as passing:
        passing.grow(found.parsed_bytes())
        return await _parsed(strict_json.loads_large, text)


async def _read_npz(body: memoryview, settings: Settings, reservation: Reservation) -> dict[str, Any]:
    """Unpack an archive that was found to be within the limits, off the event loop."""
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
    """Parse on one of the threads for that, which are few: each of them takes turns with the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_PARSERS, parse, *arguments)


def read_query(request: Request) -> dict[str, Any]:
    """Read the query of a request without a body into a document; digits are whole numbers where they are
    meant."""
    document: dict[str, Any] = dict(request.query_params)
    size = document.get("page_size", "")
    if size.isascii() and size.removeprefix("-").isdigit() and len(size) < 19:
        document["page_size"] = int(size)
    return document


def check_answer(request: Request, size: int, settings: Settings) -> None:
    """Refuse an answer in JSON that is too large for it; as npz any answer is sent.

    Args:
        request: says what the client accepts.
        size: bytes of the answer's arrays.
        settings: has the limit.

    Raises:
        LimitError: it is too large.
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
        request: says what the client accepts.
        document: the answer.
        reservation: grows by the bytes of the answer, and is released when they are sent.
        telemetry: where the time it takes is reported.
        settings: limits the size of JSON.
        status: status of the answer.
        undo: called when the client leaves before it has been sent all of it.

    Raises:
        LimitError: the answer is too large for JSON.
    """
    held = document_bytes(document)
    check_answer(request, held, settings)
    npz_wanted = wants_npz(request)
    write = npz_pieces if npz_wanted else _json_pieces
    reservation.grow(held if npz_wanted else _JSON_PER_BYTE * held)
    with telemetry.measure("serialise", transport="http"):
        pieces = write(document) if held <= SMALL else await asyncio.to_thread(write, document)
    answer = _Answer(pieces, status, NPZ if npz_wanted else JSON, reservation.keep())
    return answer if undo is None else _Watched(request, answer, undo)


def _json_pieces(document: Document) -> list[bytes | memoryview]:
    return [strict_json.dumps(document)]


class _Answer(Response):
    """A body that is sent as fast as the client reads; its memory is counted until then."""

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
    """An answer whose client is watched until the last of it has been sent."""

    def __init__(self, request: Request, answer: _Answer, undo: Callable[[], None]) -> None:
        super().__init__(None, answer.status_code)
        # what the framework adds to the headers belongs to the answer
        self.raw_headers = answer.raw_headers
        self._request = request
        self._answer = answer
        self._undo = undo

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(disconnected(self._request))

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                # what is written reaches the socket a turn later; the next piece waits until it has taken
                # nearly all, or the client has left, of which `gone` hears another turn later
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
    """Tell whether the answer goes as npz: the client says so, or sent npz and says nothing else."""
    accept = request.headers.get("accept", "*/*").lower()
    if NPZ in accept:
        return True
    return "*/*" in accept and request.headers.get("content-type", "").lower().startswith(NPZ)


def asset_bytes(assets: Any) -> dict[str, bytes]:
    """Return assets as bytes; JSON has them in base64, an archive as uint8 arrays.

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
