"""Streams answers of many documents, each as soon as it is computed: as NPZ frames or as JSON lines.

A frame is the length of an NPZ file (8 bytes, little-endian), then the file. If the call fails after the
first document, the last document has the single field `error`, a problem document (RFC 9457).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from fastapi import Request, Response
from starlette.types import Receive, Scope, Send

from revolute.contract.codec.npz import pack_npz

from ..answers import Document, document_bytes
from ..compute.memory_budget import Reservation
from ..observe.incidents import public_error
from . import strict_json
from .bodies import SMALL, wants_npz
from .disconnect import disconnected, while_connected
from .problems import problem_fields, verb_name

NPZ_FRAMES = "application/x-npz-frames"
NDJSON = "application/x-ndjson"

Undo = Callable[[Document], None]


async def open_stream(
    request: Request, documents: AsyncGenerator[Document, None], reservation: Reservation, undo: Undo
) -> Response:
    """Wait for the first document, and return a response that streams all documents.

    Args:
        request: a request whose body has been read.
        documents: the answer; closed when it is sent or the client has disconnected.
        reservation: memory of the request; released at the end.
        undo: undoes the call if its last document cannot be sent.

    Raises:
        RevoluteError: the call failed before its first document.
    """
    try:
        first = await while_connected(request, anext(documents))
    except BaseException:
        await documents.aclose()
        raise
    return _Stream(request, first, documents, reservation.keep(), undo)


class _Stream(Response):
    """Sends documents as fast as the client reads; the next one is computed when the last one is sent."""

    def __init__(
        self,
        request: Request,
        first: Document,
        rest: AsyncGenerator[Document, None],
        reservation: Reservation,
        undo: Undo,
    ) -> None:
        self._npz = wants_npz(request)
        super().__init__(media_type=NPZ_FRAMES if self._npz else NDJSON)
        del self.headers["content-length"]
        self._request = request
        self._first = first
        self._rest = rest
        self._reservation = reservation
        self._undo = undo

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(disconnected(self._request))
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            document: Document | None = self._first
            while document is not None:
                body = await self._written(document)
                if gone.done():
                    self._forget(document)
                    return
                await send({"type": "http.response.body", "body": body, "more_body": True})
                document = await self._next(gone)
            if not gone.done():
                await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            await self._rest.aclose()
            self._reservation.release()

    async def _next(self, gone: asyncio.Future[None]) -> Document | None:
        """Return the next document, or an error document; None at the end or if the client disconnects."""
        coming = asyncio.ensure_future(anext(self._rest, None))
        await asyncio.wait((coming, gone), return_when=asyncio.FIRST_COMPLETED)
        if not coming.done():
            coming.cancel()
            await asyncio.wait((coming,))
            return None
        try:
            return coming.result()
        except Exception as error:
            return {"error": problem_fields(public_error(error, verb_name(self._request)))}

    def _forget(self, document: Document) -> None:
        if "trajectory_id" in document:
            self._undo(document)

    async def _written(self, document: Document) -> bytes:
        write = _frame if self._npz else _line
        try:
            if document_bytes(document) <= SMALL:
                return write(document)
            return await asyncio.to_thread(write, document)
        except BaseException:
            self._forget(document)
            raise


def _frame(document: Document) -> bytes:
    body = pack_npz(document)
    return len(body).to_bytes(8, "little") + body


def _line(document: Document) -> bytes:
    return strict_json.dumps(document) + b"\n"
