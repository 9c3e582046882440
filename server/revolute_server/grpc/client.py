"""The other end of a gRPC call: the parts of its request, and the answers that it takes, in bounded time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Any

import grpc
from google.protobuf.message import Message

from revolute.contract.errors import DeadlineError, LimitError

from ..compute.memory_budget import MemoryBudget
from ..settings import Settings
from .waits import Peers, Wait

_GAPS = 1.5
"""Bytes that gRPC may take for each byte of an unfinished message, which it holds in pieces with gaps."""

_COPIES = 3
"""Copies of a part of an answer while it is sent: its bytes, those that gRPC holds, and gaps between."""

_LARGE_ANSWER = 64 * 1024
"""Parts with more bytes count as memory in use from the start."""


class UnreadError(DeadlineError):
    """The client does not read its answer."""


class Client:
    """The other end of a call, with limits on the waits for it.

    Args:
        context: the call.
        budget: counts what gRPC may hold while the server waits.
        peers: the calls of each connection.
        settings: has the time limits.
        pause: name of the time limit between parts of the request.
        largest: most bytes of a part of the request.
    """

    def __init__(
        self,
        context: grpc.aio.ServicerContext,
        budget: MemoryBudget,
        peers: Peers,
        settings: Settings,
        pause: str,
        largest: int,
    ) -> None:
        self._context = context
        self._peers = peers
        self._peer = context.peer()
        self._wait = Wait(budget, peers, self._peer)
        self._settings = settings
        self._pause = pause
        # with little memory, one slow client must not take all of it
        self._half_part = min(int(_GAPS * largest), settings.memory // 16)

    def __aiter__(self) -> Client:
        return self

    async def __anext__(self) -> bytes:
        """Return the next part of the request.

        A client is its own iterator, because most requests have one part and are not read to their end: an
        async generator that is left half-way costs a task to close it.
        """
        seconds: float = getattr(self._settings, self._pause)
        content = await self._wait.for_client(
            self._context.read, self._half_part, seconds, self._late, "a part of a request"
        )
        if content is grpc.aio.EOF:
            raise StopAsyncIteration
        self._peers.received(self._peer, len(content))
        return content

    def _late(self) -> DeadlineError:
        return DeadlineError.expected(
            "request",
            f"another part of it within {self._settings.flag(self._pause)} s",
            "none",
            advice="send the request again without pauses",
        )

    async def take(self, answers: Any, is_stream: bool) -> None:
        """Send the answers of a behaviour of gRPC's: the values of an async generator, or of a coroutine."""
        if not hasattr(answers, "__aiter__"):
            answer = await answers
            if not is_stream:  # else the behaviour has written its answers
                await self.write(answer)
            return
        async with contextlib.aclosing(answers) as pieces:
            # not `yield`: a call that is cancelled while it sends would skip the handlers of errors
            async for answer in pieces:
                await self.write(answer)

    async def write(self, answer: Message | bytes) -> None:
        """Send a message, or its bytes, and wait until the client takes it.

        Raises:
            UnreadError: the client does not take it in time, or there is no memory for so many such clients.
            LimitError: there is no memory for the answer.
            CancelledError: the client has left.
        """
        seconds = self._settings.answer_timeout
        size = _COPIES * (len(answer) if isinstance(answer, bytes) else answer.ByteSize())
        what, is_large = "an answer under way", size > _LARGE_ANSWER
        is_begun = False

        def late() -> UnreadError:
            flag = self._settings.flag("answer_timeout")
            return UnreadError.expected("answer", f"a client that takes a part within {flag} s", "none")

        def begin() -> Awaitable[None]:
            nonlocal is_begun
            is_begun = True
            return self._context.write(answer)

        try:
            await self._wait.for_client(begin, size, seconds, late, what, at_once=is_large)
        except LimitError as error:
            if not is_begun:
                raise
            raise UnreadError(error.message, argument=error.argument) from None
        except grpc.aio.InternalError:
            # gRPC fails so between the end of the connection and the cancellation of its calls
            raise asyncio.CancelledError from None
