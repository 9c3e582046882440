"""Rollouts as nodes of torch's graph.

    qpos, qvel = revolute.torch.rollout(sim, model, qpos, qvel, ctrl)
    loss = (qpos[..., -1, 0] - 1.0).square().sum()
    loss.backward()

The engine keeps the states that the gradient needs until torch frees the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .contract.controllers import MLP, Feedback, arguments_of, arrays_of
from .contract.errors import ArgumentError
from .loss_function import LossFunction, States
from .model import ModelHandle, check_model, numbered_elements, whole_params
from .simulator import Simulator
from .trajectory import STATE_AND_CONTROL, Trajectory

try:
    import torch
except ImportError as error:
    raise ImportError("revolute.torch needs torch; install it with: pip install 'revolute[torch]'") from error

__all__ = ["Policy", "loss", "rollout"]


def rollout(
    sim: Simulator,
    model: ModelHandle,
    qpos: Any,
    qvel: Any,
    ctrl: Any,
    params: Mapping[str, Any] | None = None,
    *,
    feedback: Feedback | Mapping[str, Any] | None = None,
    policy: MLP | Policy | None = None,
    qfrc_applied: Any = None,
    xfrc_applied: Any = None,
    mocap_pos: Any = None,
    mocap_quat: Any = None,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Simulate as `Simulator.rollout` does, with a gradient for torch.

    Args:
        sim: a simulator, in process or on a server.
        model: the model.
        qpos: start configuration, [batch, nq] or [nq].
        qvel: start velocity, [batch, nv] or [nv].
        ctrl: controls, [batch, T, nu] or [T, nu].
        params: model parameters to replace, as for `Simulator.rollout`.
        feedback: the arguments of `revolute.Feedback` by name, which may be tensors; or a Feedback.
        policy: a `Policy` of a torch network, whose parameters get gradients; or a `revolute.MLP`.
        qfrc_applied: generalized forces, as for `Simulator.rollout`.
        xfrc_applied: forces and torques on bodies, as for `Simulator.rollout`.
        mocap_pos: positions of the mocap bodies, as for `Simulator.rollout`.
        mocap_quat: their quaternions, as for `Simulator.rollout`.
        options: further options of `Simulator.rollout`, e.g. checkpoints="slots=32" or hold=2. With
            states="final" only the last state is returned.

    Returns:
        qpos [batch, T + 1, nq] and qvel [batch, T + 1, nv], or [batch, nq] and [batch, nv] with
        states="final"; without the batch axis if `ctrl` has none. Type and device are those of the tensors
        among `qpos`, `qvel` and `ctrl`; the engine computes in float64. Do not change these tensors in place.

    Raises:
        ArgumentError: a shape, value or name does not fit the model.
        DivergedError: in the backward pass, if every environment diverged.
        RuntimeError: in the backward pass, for a second derivative.
    """
    check_model(model)
    replaced = whole_params(model, params, _by_element)
    weights: dict[str, Any] = {}
    if isinstance(policy, Policy):
        weights = policy.tensors()
        options["policy"] = policy.document()
    elif isinstance(policy, MLP):
        options["policy"] = policy.to_dict()
    elif policy is not None:
        raise ArgumentError.expected(
            "policy",
            "a revolute.torch.Policy or a revolute.MLP",
            type(policy).__name__,
            advice="write revolute.torch.Policy(net, observe)",
        )
    chosen = arrays_of(replaced, feedback, weights, qfrc_applied, xfrc_applied, mocap_pos, mocap_quat)
    return _Rollout.apply(sim, model, options, tuple(chosen), qpos, qvel, ctrl, *chosen.values())


def _by_element(model: ModelHandle, name: str, values: Mapping[str, Any]) -> torch.Tensor:
    """Return a parameter with the values of some elements replaced, with their gradients."""
    tensors = {element: torch.as_tensor(value) for element, value in values.items()}
    given, batch = numbered_elements(model, name, tensors)
    own = torch.tensor(model.params[name])
    whole = own.expand(*batch, *own.shape).clone()
    for index, value in given.items():
        whole.select(len(batch), index).copy_(value)
    return whole


class Policy:
    """A torch network as the policy of a rollout, evaluated in the engine; see `revolute.MLP`.

    Args:
        net: a Sequential of Linear layers with the same activation (Tanh, ELU or ReLU) between them.
        observe: what the network sees, as for `revolute.MLP`.
        scale: factor of the output, a number or [nu].
        squash: whether the output goes through tanh before it is scaled.
        goal: numbers that the network also sees; may be a tensor that needs a gradient.

    Raises:
        ArgumentError: the network has other layers.
    """

    def __init__(
        self,
        net: torch.nn.Sequential,
        observe: Sequence[str],
        *,
        scale: Any = 1.0,
        squash: bool = False,
        goal: Any = None,
    ) -> None:
        self._net, self._goal = net, goal
        self._options = {"observe": observe, "scale": scale, "squash": squash}
        layers = list(net)
        names = {_ACTIVATIONS.get(type(layer)) for layer in layers[1::2]}
        alternate = len(layers) % 2 == 1 and all(type(layer) is torch.nn.Linear for layer in layers[::2])
        if not alternate or len(names) > 1 or None in names:
            raise ArgumentError.expected(
                "net",
                "Linear layers with one kind of activation among Tanh, ELU and ReLU between them",
                " ".join(type(layer).__name__ for layer in layers),
            )
        self._options["activation"] = names.pop() if names else "tanh"

    def document(self) -> dict[str, Any]:
        """Return the policy with its present weights as a document."""
        return MLP(list(self._net.parameters()), goal=self._goal, **self._options).to_dict()

    def tensors(self) -> dict[str, Any]:
        """Return the weights as one vector, and the goal, by the names of the engine."""
        found = {"policy.weights": torch.cat([each.reshape(-1) for each in self._net.parameters()])}
        return found if self._goal is None else found | {"policy.goal": self._goal}


_ACTIVATIONS = {torch.nn.Tanh: "tanh", torch.nn.ELU: "elu", torch.nn.ReLU: "relu"}


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
        arrays = dict(zip(names, inputs[3:], strict=True))
        chosen |= arguments_of(arrays, options.get("policy"))
        trajectory = sim.rollout(model, *inputs[:3], **chosen)
        states = (
            (trajectory.final_qpos, trajectory.final_qvel) if final else (trajectory.qpos, trajectory.qvel)
        )
        results = tuple(_shared(array).to(*_kind(inputs[:3])) for array in states)
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
