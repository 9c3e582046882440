"""A large rollout as it grows: what its caller may be sent while it is computed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import numpy as np

from revolute.checkpoints import Checkpoints
from revolute_engine import Model, Rollout
from revolute_engine._growing import GrowingStates, grows

_PIECE_BYTES = 128 * 1024
"""States that are worth a message of their own."""

_SHORTEST, _LONGEST = 1e-3, 50e-3
"""Seconds between two looks at a rollout."""

_LOOKS = 4
"""Looks in the time that a piece takes."""

Report = Callable[[Rollout, Mapping[str, int]], None]


def growing_states(model: Model, ctrl: Any) -> GrowingStates | None:
    """Return memory for the states of a rollout with these controls; None if it is not worth the trouble."""
    shape = np.shape(ctrl)
    if len(shape) not in (2, 3):
        return None
    batch, steps = (shape[0] if len(shape) == 3 else 1), shape[-2]
    if not grows(batch) or batch * steps * _state_bytes(model) <= 2 * _PIECE_BYTES:
        return None
    try:
        return GrowingStates(model, batch, steps)
    except MemoryError:
        # the engine says what is too large
        return None


@contextlib.asynccontextmanager
async def reported(
    growing: GrowingStates, model: Model, ctrl: np.ndarray, checkpoints: Checkpoints, report: Report
) -> AsyncIterator[None]:
    """Report the states of a rollout that is computed in the block, as they come.

    Args:
        growing: the states.
        model: the model.
        ctrl: the controls.
        checkpoints: which states are kept.
        report: takes the rollout as far as it is known, and the bytes by name of its arrays that are there
            yet.
    """
    unfinished = _unfinished(growing, model, ctrl, checkpoints)
    watching = asyncio.ensure_future(_watch(growing, model, lambda known: report(unfinished, known)))
    try:
        yield
    finally:
        watching.cancel()


async def _watch(growing: GrowingStates, model: Model, report: Callable[[Mapping[str, int]], None]) -> None:
    loop = asyncio.get_running_loop()
    reported, since = 0, loop.time()
    while True:
        await asyncio.sleep(min(max((loop.time() - since) / _LOOKS, _SHORTEST), _LONGEST))
        count = growing.count
        if (count - reported) * _state_bytes(model) < _PIECE_BYTES:
            continue
        reported, since = count, loop.time()
        known = {"qpos": 8 * count * model.nq, "qvel": 8 * count * model.nv}
        report({**known, **dict.fromkeys(("final_qpos", "final_qvel", "status", "diverged_step"), 0)})


def _unfinished(growing: GrowingStates, model: Model, ctrl: np.ndarray, checkpoints: Checkpoints) -> Rollout:
    """Return a rollout that has its shapes, and of its numbers those that grow."""
    batched, batch = ctrl.ndim == 3, len(growing.qpos)

    def shaped(array: np.ndarray) -> np.ndarray:
        return array if batched else array[0, ...]

    states = shaped(growing.qpos), shaped(growing.qvel)
    kept = (
        states
        if checkpoints.policy == "every"
        else (shaped(growing.qpos[:, :0]), shaped(growing.qvel[:, :0]))
    )
    return Rollout(
        model_id=model.id,
        checkpoints=checkpoints,
        kept_qpos=kept[0],
        kept_qvel=kept[1],
        final_qpos=shaped(np.zeros((batch, model.nq))),
        final_qvel=shaped(np.zeros((batch, model.nv))),
        ctrl=ctrl,
        params={},
        status=shaped(np.zeros(batch, np.int32)),
        diverged_step=shaped(np.zeros(batch, np.int64)),
        batched=batched,
        all_states=states,
    )


def _state_bytes(model: Model) -> int:
    return 8 * (model.nq + model.nv)
