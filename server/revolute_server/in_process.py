"""The transport to the engine in the caller's own process: the same verbs, without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from revolute.contract.transport import IN_PROCESS
from revolute.contract.verbs import VERBS

from .answers import Document
from .domain.derivatives import reporting_progress
from .domain.in_process import InProcessService, finished
from .verbs import Verbs


class LocalTransport:
    """Carries out verbs in this process.

    Args:
        threads: threads of the engine, None for one per core.
    """

    address = IN_PROCESS

    def __init__(self, threads: int | None) -> None:
        self._service = InProcessService(threads)
        # the controls of a rollout are the engine's own copy, which serves the caller as well
        self._verbs = Verbs(self._service, with_ctrl=True)

    def call(self, verb: str, document: Mapping[str, Any], *, timeout: float | None = None) -> Document:
        """Carry out one verb; see `Transport.call`. There is no network to wait for, so no limit of time."""
        request = _set_fields(document)
        if verb == "CheckGradient":
            with reporting_progress(request.pop("progress", None)):
                return finished(self._verbs.call(VERBS[verb], request))
        return _unshared(finished(self._verbs.call(VERBS[verb], request)))

    def stream(self, verb: str, document: Mapping[str, Any]) -> Iterator[Document]:
        """Carry out StreamRollout; see `Transport.stream`."""
        answers = self._verbs.stream(VERBS[verb], _set_fields(document))
        try:
            while True:
                yield finished(answers.__anext__())
        except StopAsyncIteration:
            return
        finally:
            finished(answers.aclose())

    def custom_loss(
        self, document: Mapping[str, Any], respond: Callable[[Document], Mapping[str, Any]]
    ) -> Document:
        """Differentiate a Python loss function; see `Transport.custom_loss`."""

        async def converse() -> Document:
            async with self._verbs.own_loss(document) as (trajectory, differentiate):
                return await differentiate(respond(trajectory))

        return _unshared(finished(converse()))

    def close(self) -> None:
        """Forget everything that is kept."""
        self._service.forget_all()


def _set_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that are set, as a network would carry them."""
    return {name: value for name, value in document.items() if value is not None}


def _unshared(answer: Document) -> Document:
    """Copy what an answer shares with a kept trajectory, so that the caller may change it."""
    gradient = answer.get("gradient", answer)
    if "arrays" in gradient:
        gradient["status"] = np.array(gradient["status"])
    if "diverged_step" in answer:
        answer["diverged_step"] = np.array(answer["diverged_step"])
    return answer
