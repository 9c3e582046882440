"""The in-process transport: carries out the same verbs in the caller's process, without a network."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from revolute.contract.transport import IN_PROCESS
from revolute.contract.verbs import VERBS
from revolute_engine import load_model, to_mjcf

from .answers import Document
from .domain.derivatives import reporting_progress
from .domain.in_process import InProcessService, finished
from .verbs import Verbs

_STATE_VERBS = frozenset({"Reset", "Step", "SetState", "GetState"})
"""Verbs whose arrays a session keeps."""


class LocalTransport:
    """Carries out verbs in this process.

    Args:
        threads: number of engine threads; None for one per core.
    """

    address = IN_PROCESS

    def __init__(self, threads: int | None) -> None:
        self._service = InProcessService(threads)
        # answers include the controls: the engine has a copy of them, which the caller may use
        self._verbs = Verbs(self._service, with_ctrl=True)

    def call(self, verb: str, document: Mapping[str, Any], *, timeout: float | None = None) -> Document:
        """Carry out one verb; see `Transport.call`. `timeout` is ignored, because there is no network."""
        if verb in _STATE_VERBS:
            return _copied(finished(self._verbs.call(VERBS[verb], _copied(document))))
        request = _set_fields(document)
        if verb == "CheckGradient":
            with reporting_progress(request.pop("progress", None)):
                return finished(self._verbs.call(VERBS[verb], request))
        return finished(self._verbs.call(VERBS[verb], request))

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
            async with self._verbs.client_loss(document) as (trajectory, differentiate):
                return await differentiate(respond(trajectory))

        return finished(converse())

    @staticmethod
    def mjcf(source: str | bytes, assets: Mapping[str, bytes], options: Mapping[str, Any]) -> str:
        """Return MJCF text of a model; see `revolute_engine.to_mjcf`."""
        return to_mjcf(source, assets=assets, **options)

    @staticmethod
    def mujoco_model(source: str | bytes, assets: Mapping[str, bytes], options: Mapping[str, Any]) -> Any:
        """Return a model as MuJoCo compiles it."""
        model = load_model(source, assets=assets, allow_files=False, warn=False, **options).mujoco_model
        # a copy, which the caller may change
        compiled = copy.copy(model)
        compiled.opt.timestep = options.get("timestep") or compiled.opt.timestep
        return compiled

    def close(self) -> None:
        """Drop all models, sessions and trajectories."""
        self._service.forget_all()


def _set_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that are not None."""
    return {name: value for name, value in document.items() if value is not None}


def _copied(document: Mapping[str, Any]) -> Document:
    """Return the fields that are not None, with copies of arrays: caller and session share no memory."""
    return {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in document.items()
        if value is not None
    }
