"""Merged calls: steps, rollouts and gradients of several clients, computed as one batch.

Calls may be merged if they use the same model, take the same number of steps and are small. Long trajectories
are computed alone, because merging copies them. Trajectories that do not keep every state, that hold controls
or have a controller, and gradients that are not exact are computed alone, too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from revolute.contract.controllers import PLAIN
from revolute_engine import Engine, Model
from revolute_engine.merged_calls import (
    BackwardCall,
    RolloutCall,
    ValueAndGradientCall,
    backward_together,
    rollout_together,
    value_and_gradient_together,
)

from .batching import Work
from .stepping import StepCall, advance, advance_together

MOST_ENVIRONMENTS = 16
"""Largest number of environments of a merged call; larger calls fill packs by themselves."""

MOST_BYTES = 16 * 1024**2
"""Largest trajectory of a merged call, in bytes."""


def step_work(engine: Engine, model: Model, call: StepCall) -> Work:
    """Return a session's steps as work."""

    def one(only: StepCall, token: Any) -> Any:
        return advance(engine, model, only.state, only.ctrl, only.steps, token, only.inputs, only.control)

    size = len(call.state.status)
    alike = size <= MOST_ENVIRONMENTS and call.steps > 0 and not call.state.params
    alike = alike and not call.inputs and call.control is PLAIN and np.ndim(call.ctrl) < 3
    key = ("step", model.id, call.steps, *call.state.mocap) if alike else None
    return _work(one, partial(advance_together, engine, model), call, key, size, size * call.steps)


def rollout_work(engine: Engine, model: Model, call: RolloutCall) -> Work:
    """Return a rollout as work."""

    def one(only: RolloutCall, token: Any) -> Any:
        return engine.rollout(
            model,
            only.qpos,
            only.qvel,
            only.ctrl,
            control=only.control,
            params=only.params,
            checkpoints=only.checkpoints,
            states=only.states,
            cancel=token,
        )

    key, size, steps = _rollout_key("rollout", model, call)
    return _work(one, partial(rollout_together, engine, model), call, key, size, steps)


def backward_work(engine: Engine, model: Model, call: BackwardCall) -> Work:
    """Return a backward pass as work."""

    def one(only: BackwardCall, token: Any) -> Any:
        return engine.backward(
            model,
            only.rollout,
            only.qpos_bar,
            only.qvel_bar,
            times=only.times,
            wrt=only.wrt,
            gradient=only.gradient,
            ctrl_bar=only.ctrl_bar,
            clip=only.clip,
            on_diverged=only.on_diverged,
            cancel=token,
        )

    rollout = call.rollout
    size = len(rollout.ctrl) if rollout.batched else 1
    bar = call.qpos_bar if call.qpos_bar is not None else call.qvel_bar
    bar = call.ctrl_bar if bar is None else bar
    cotangents = len(bar) if np.ndim(bar) == np.ndim(rollout.kept_qpos) + 1 else 1
    states = rollout.kept_qpos.nbytes + rollout.kept_qvel.nbytes
    small = size <= MOST_ENVIRONMENTS and states * cotangents <= MOST_BYTES
    plain = rollout.checkpoints.policy == "every" and call.times is None and rollout.control.is_plain
    plain = plain and call.ctrl_bar is None and call.clip is None and call.on_diverged == "raise"
    plain = plain and call.gradient.is_exact
    key = ("backward", model.id, rollout.steps, cotangents) if small and plain else None
    return _work(one, partial(backward_together, engine, model), call, key, size, size * rollout.steps)


def value_and_gradient_work(engine: Engine, model: Model, call: ValueAndGradientCall) -> Work:
    """Return a call of `value_and_gradient` as work."""

    def one(only: ValueAndGradientCall, token: Any) -> Any:
        inputs = only.inputs
        return engine.value_and_gradient(
            model,
            inputs.qpos,
            inputs.qvel,
            inputs.ctrl,
            only.loss,
            control=inputs.control,
            params=inputs.params,
            wrt=only.wrt,
            checkpoints=inputs.checkpoints,
            gradient=only.gradient,
            clip=only.clip,
            on_diverged=only.on_diverged,
            cancel=token,
        )

    key, size, steps = _rollout_key("value_and_gradient", model, call.inputs)
    if call.clip is not None or call.on_diverged != "raise" or not call.gradient.is_exact:
        key = None
    return _work(one, partial(value_and_gradient_together, engine, model), call, key, size, steps)


def _rollout_key(verb: str, model: Model, call: RolloutCall) -> tuple[Hashable, int, int]:
    """Return key, environments and steps of a rollout; the key is None if it cannot be merged."""
    shape = np.shape(call.ctrl)
    if len(shape) not in (2, 3):
        return None, 1, 0
    size = shape[0] if len(shape) == 3 else 1
    steps = shape[-2] * call.control.hold
    small = size <= MOST_ENVIRONMENTS and 8 * size * (steps + 1) * (model.nq + model.nqvel) <= MOST_BYTES
    plain = call.checkpoints.policy == "every" and call.control.is_plain
    key = (verb, model.id, steps) if small and plain and size and steps else None
    return key, size, size * steps


def _work(
    one: Callable[[Any, Any], Any],
    together: Callable[[Sequence[Any], Any], Sequence[Any]],
    call: Any,
    key: Hashable,
    size: int,
    steps: int,
) -> Work:
    """Return work that calls `one` for a single call and `together` for several."""

    def run(calls: Sequence[Any], token: Any) -> Sequence[Any]:
        return [one(calls[0], token)] if len(calls) == 1 else together(calls, token)

    return Work(run, call, key, size, steps)
