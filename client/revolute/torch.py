"""Rollouts as nodes of torch's graph.

    qpos, qvel = revolute.torch.rollout(sim, model, qpos, qvel, ctrl)
    loss = (qpos[..., -1, 0] - 1.0).square().sum()
    loss.backward()

The engine keeps the states that the gradient needs until torch frees the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .loss_function import LossFunction, States
from .model import ModelHandle
from .simulator import Simulator
from .trajectory import STATE_AND_CONTROL, Trajectory

try:
    import torch
except ImportError as error:
    raise ImportError("revolute.torch needs torch; install it with: pip install 'revolute[torch]'") from error

__all__ = ["loss", "rollout"]


def rollout(
    sim: Simulator,
    model: ModelHandle,
    qpos: Any,
    qvel: Any,
    ctrl: Any,
    params: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Simulate as `Simulator.rollout` does, with a gradient for torch.

    Args:
        sim: a simulator, in process or on a server.
        model: the model.
        qpos: start configuration, [batch, nq] or [nq].
        qvel: start velocity, [batch, nv] or [nv].
        ctrl: controls, [batch, T, nu] or [T, nu].
        params: model parameters to replace, by name.
        options: further options of `Simulator.rollout`, e.g. checkpoints="slots=32". With states="final" only
            the last state is returned. Arrays of a feedback or policy get no gradient here;
            `Simulator.value_and_gradient` gives it.

    Returns:
        qpos [batch, T + 1, nq] and qvel [batch, T + 1, nv], or [batch, nq] and [batch, nv] with
        states="final"; without the batch axis if `ctrl` has none. Type and device are those of the tensors
        among `qpos`, `qvel` and `ctrl`; the engine computes in float64. Do not change these tensors in place.

    Raises:
        ArgumentError: a shape, value or name does not fit the model.
        DivergedError: in the backward pass, if every environment diverged.
        RuntimeError: in the backward pass, for a second derivative.
    """
    chosen = dict(params or {})
    return _Rollout.apply(sim, model, options, tuple(chosen), qpos, qvel, ctrl, *chosen.values())


def loss(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> LossFunction:
    """Make a loss for `Simulator.value_and_gradient` from a torch function.

    Args:
        function: gets qpos [batch, T + 1, nq] and qvel [batch, T + 1, nv] as float64 tensors, and returns the
            loss, a scalar or [batch]. Of a loss [batch], the gradient is that of the sum.

    Returns:
        The loss; its value is an array, or a float for a scalar.
    """

    def evaluate(states: States) -> tuple[Any, Any, Any]:
        qpos, qvel = (_shared(array).requires_grad_() for array in (states.qpos, states.qvel))
        with torch.enable_grad():
            value = function(qpos, qvel)
        bars = torch.autograd.grad(value.sum(), (qpos, qvel), allow_unused=True)
        found = value.detach().cpu().numpy()
        qpos_bar, qvel_bar = bars
        return (found if found.ndim else float(found)), qpos_bar, qvel_bar

    return evaluate


class _Rollout(torch.autograd.Function):
    """A rollout; its trajectory lives as long as its node of the graph."""

    @staticmethod
    def forward(
        ctx: Any,
        sim: Simulator,
        model: ModelHandle,
        options: Mapping[str, Any],
        names: tuple[str, ...],
        *inputs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        final = options.get("states") == "final"
        chosen = {"states": "all", **options}
        if not any(ctx.needs_input_grad):
            chosen["checkpoints"] = "none"
        params = dict(zip(names, inputs[3:], strict=True))
        trajectory = sim.rollout(model, *inputs[:3], params=params, **chosen)
        arrays = (
            (trajectory.final_qpos, trajectory.final_qvel) if final else (trajectory.qpos, trajectory.qvel)
        )
        results = tuple(_shared(array).to(*_kind(inputs[:3])) for array in arrays)
        ctx.set_materialize_grads(False)
        # torch refuses the backward pass if these, which may share memory with the engine, were changed
        ctx.save_for_backward(*results)
        ctx.trajectory, ctx.times = trajectory, [-1] if final else None
        ctx.names = (*STATE_AND_CONTROL, *names)
        ctx.inputs = [
            (value.shape, value.dtype, value.device) if torch.is_tensor(value) else None for value in inputs
        ]
        return results[0], results[1]

    @staticmethod
    def backward(ctx: Any, *bars: torch.Tensor | None) -> tuple[Any, ...]:
        _ = ctx.saved_tensors
        needed = ctx.needs_input_grad[4:]
        if all(bar is None for bar in bars):
            return (None,) * len(ctx.needs_input_grad)
        wrt = tuple(name for name, wanted in zip(ctx.names, needed, strict=True) if wanted)
        if ctx.times is not None:
            bars = tuple(None if bar is None else bar.unsqueeze(-2) for bar in bars)
        found = iter(_Pullback.apply(ctx.trajectory, ctx.times, wrt, *bars))
        gradients = [
            _like(next(found), kind) if wanted else None
            for kind, wanted in zip(ctx.inputs, needed, strict=True)
        ]
        return (None,) * 4 + tuple(gradients)


class _Pullback(torch.autograd.Function):
    """The backward pass of a rollout, whose own derivative is not available."""

    @staticmethod
    def forward(
        ctx: Any,
        trajectory: Trajectory,
        times: list[int] | None,
        wrt: tuple[str, ...],
        qpos_bar: torch.Tensor | None,
        qvel_bar: torch.Tensor | None,
    ) -> tuple[torch.Tensor, ...]:
        gradient = trajectory.backward(qpos_bar, qvel_bar, times=times, wrt=wrt)
        return tuple(torch.from_numpy(gradient[name]) for name in wrt)

    @staticmethod
    def backward(ctx: Any, *bars: torch.Tensor) -> Any:
        raise RuntimeError(
            "revolute.torch.rollout: expected a first derivative, got a second one, which the engine does "
            "not compute; differentiate without create_graph=True, or take differences of first derivatives"
        )


def _kind(inputs: tuple[Any, ...]) -> tuple[torch.device, torch.dtype]:
    """Return device and type of the results: those of the tensors given, the widest type of several."""
    tensors = [value for value in inputs if torch.is_tensor(value) and value.is_floating_point()]
    if not tensors:
        return torch.device("cpu"), torch.float64
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return tensors[0].device, dtype


def _like(gradient: torch.Tensor, kind: tuple[torch.Size, torch.dtype, torch.device]) -> torch.Tensor:
    """Return a gradient with shape, type and device of its input, summed over environments that share it."""
    shape, dtype, device = kind
    return gradient.sum_to_size(shape).to(device, dtype)


class _Owner:
    """Exports the memory of a read-only array as writable, for torch has no read-only tensors."""

    def __init__(self, array: np.ndarray) -> None:
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}
        self._array = array


def _shared(array: np.ndarray) -> torch.Tensor:
    """Return a tensor that shares an array's memory."""
    return torch.from_numpy(np.asarray(_Owner(array)))
