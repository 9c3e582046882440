"""An error that has been sent keeps nothing of its call in memory."""

from __future__ import annotations

import asyncio
import weakref

import grpc
import numpy as np
import pytest

from revolute.contract.errors import LimitError
from revolute_server.access.call import Call
from revolute_server.grpc.interceptor import _abort


class KeptContext:
    """A call of gRPC, which keeps the error that ends it."""

    error: BaseException | None = None

    async def abort(self, *_: object) -> None:
        self.error = grpc.aio.AbortError("refused")
        raise self.error


def test_the_arrays_of_a_refused_call_are_free_at_once() -> None:
    context, call = KeptContext(), Call("id", "grpc", "SessionService.GetState")
    arrays: list[weakref.ref[np.ndarray]] = []

    def refuse() -> None:
        array = np.ones(1000)
        arrays.append(weakref.ref(array))
        raise LimitError.expected("memory", "room", "none")

    async def guarded() -> None:
        try:
            refuse()
        except LimitError as error:
            await _abort(context, error, call)  # type: ignore[arg-type]

    with pytest.raises(grpc.aio.AbortError):
        asyncio.run(guarded())
    assert context.error is not None and call.reason == "LIMIT_EXCEEDED"
    assert arrays[0]() is None
