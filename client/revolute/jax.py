"""Rollouts as functions of JAX: under jit, grad, vmap and scan.

    qpos, qvel = revolute.jax.rollout(sim, model, qpos, qvel, ctrl)

The engine runs in a callback on the host. `vmap` becomes one call with a larger batch; with a policy, whose
weights a batch shares, it becomes one call per row. The gradient uses the states that the forward pass kept;
if they are gone by then, it simulates again.
"""

from __future__ import annotations

import functools
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .contract.controllers import MLP, STEP_INPUTS, Activation, Feedback, arguments_of, arrays_of
from .contract.errors import ArgumentError
from .model import ModelHandle, check_model, numbered_elements, whole_params
from .simulator import Simulator
from .trajectory import STATE_AND_CONTROL, Trajectory

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise ImportError("revolute.jax needs jax; install it with: pip install 'revolute[jax]'") from error

__all__ = ["Policy", "rollout"]

_KEPT_BYTES = 256 * 1024**2
"""States that wait for their backward pass; beyond it, the oldest are dropped and simulated again."""

_HANDLES = 2**31
"""Handles are int32, the widest integer of JAX's default configuration."""


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
) -> tuple[jax.Array, jax.Array]:
    """Simulate as `Simulator.rollout` does, as a differentiable function of JAX.

    Args:
        sim: a simulator, in process or on a server.
        model: the model.
        qpos: start configuration, [batch, nq] or [nq].
        qvel: start velocity, [batch, nv] or [nv].
        ctrl: controls, [batch, T, nu] or [T, nu].
        params: model parameters to replace, as for `Simulator.rollout`.
        feedback: the arguments of `revolute.Feedback` by name, which may be tracers; or a Feedback.
        policy: a `Policy`, whose weights may be tracers; or a `revolute.MLP`.
        qfrc_applied: generalized forces, as for `Simulator.rollout`.
        xfrc_applied: forces and torques on bodies, as for `Simulator.rollout`.
        mocap_pos: positions of the mocap bodies, as for `Simulator.rollout`.
        mocap_quat: their quaternions, as for `Simulator.rollout`.
        options: further options of `Simulator.rollout`, e.g. checkpoints="slots=32" or hold=2. With
            states="final" only the last state is returned.

    Returns:
        qpos [batch, T + 1, nq] and qvel [batch, T + 1, nv], or [batch, nq] and [batch, nv] with
        states="final"; without the batch axis if `ctrl` has none. The type is that of the inputs, float32
        unless jax_enable_x64 is set; the engine computes in float64.

    Raises:
        ArgumentError: a shape does not fit the model. Other errors of the engine arrive as JAX's errors of
            callbacks, with their text.
        NotImplementedError: for a second derivative.
    """
    check_model(model)
    arrays = [jnp.asarray(value) for value in (qpos, qvel, ctrl)]
    policy = Policy.of(policy) if isinstance(policy, MLP) else policy
    if policy is not None and not isinstance(policy, Policy):
        raise ArgumentError.expected(
            "policy",
            "a revolute.jax.Policy or a revolute.MLP",
            type(policy).__name__,
            advice="write revolute.jax.Policy(weights, observe)",
        )
    replaced = whole_params(model, params, _by_element)
    given = arrays_of(
        replaced,
        feedback,
        {} if policy is None else policy.arrays,
        *(qfrc_applied, xfrc_applied, mocap_pos, mocap_quat),
    )
    named = {name: jnp.asarray(value) for name, value in given.items()}
    dtype = jnp.result_type(float, *arrays)
    arrays = [value.astype(dtype) for value in arrays]
    named = {name: value.astype(dtype) for name, value in named.items()}
    if arrays[2].ndim not in (2, 3):
        raise ArgumentError.expected("ctrl", "shape [batch, T, nu] or [T, nu]", list(arrays[2].shape))
    for name in STEP_INPUTS:
        # vmap would take axes of its own that are missing for axes of length 1
        own = _CONTROLLER_AXES[name] - 2
        if name in named and named[name].ndim < own:
            raise ArgumentError.expected(name, f"{own} or more axes", f"shape {list(named[name].shape)}")
    lead = arrays[2].shape[:-2]
    # environments that share a start state: JAX sums the gradient of the broadcast
    start = [
        _broadcast(name, value, (*lead, size))
        for name, value, size in zip(("qpos", "qvel"), arrays, (model.nq, len(model.qvel0)), strict=False)
    ]
    shapes = _shapes([*start, arrays[2]], named)
    call = _Call(
        sim, model, tuple(sorted(options.items())), shapes, None if policy is None else policy.network
    )
    return _rollout(call, *start, arrays[2], named)


def _by_element(model: ModelHandle, name: str, values: Mapping[str, Any]) -> jax.Array:
    """Return a parameter with the values of some elements replaced, with their gradients."""
    arrays = {element: jnp.asarray(value) for element, value in values.items()}
    given, batch = numbered_elements(model, name, arrays)
    own = model.params[name]
    whole = jnp.broadcast_to(jnp.asarray(own), (*batch, *own.shape))
    for index, value in given.items():
        place = (*(slice(None) for _ in batch), index)
        whole = whole.at[place].set(value)
    return whole


@dataclass(frozen=True)
class _Network:
    """The static part of a policy: the document of a `revolute.MLP` without its arrays."""

    sizes: tuple[int, ...]
    observe: tuple[str, ...]
    activation: str
    scale: float | tuple[float, ...]
    squash: bool


class Policy:
    """A network of JAX arrays as the policy of a rollout, evaluated in the engine; see `revolute.MLP`.

    Args:
        weights: W, b of each layer in order, W [outputs, inputs] and b [outputs]; may be tracers.
        observe: what the network sees, as for `revolute.MLP`.
        activation: "tanh", "elu" or "relu".
        scale: factor of the output, a number or [nu].
        squash: whether the output goes through tanh before it is scaled.
        goal: numbers that the network also sees; may be a tracer.

    Raises:
        ArgumentError: as `revolute.MLP`.
    """

    def __init__(
        self,
        weights: Sequence[Any],
        observe: Sequence[str],
        *,
        activation: Activation = "tanh",
        scale: Any = 1.0,
        squash: bool = False,
        goal: Any = None,
    ) -> None:
        layers = [jnp.asarray(array) for array in weights]
        # zeros of the same shapes, because tracers have no numbers to check
        zeros = [np.zeros(array.shape) for array in layers]
        shape = None if goal is None else np.zeros(jnp.shape(goal))
        checked = MLP(zeros, observe, activation=activation, scale=scale, squash=squash, goal=shape)
        self.network = _network(checked)
        self.arrays = {"policy.weights": jnp.concatenate([array.reshape(-1) for array in layers])}
        if goal is not None:
            self.arrays["policy.goal"] = jnp.asarray(goal)

    @classmethod
    def of(cls, policy: MLP) -> Policy:
        """Return a `revolute.MLP` as a Policy."""
        return cls(
            policy.arrays(policy.weights),
            policy.observe,
            activation=policy.activation,
            scale=policy.scale,
            squash=policy.squash,
            goal=policy.goal,
        )


def _network(policy: MLP) -> _Network:
    scale = policy.scale.tolist()
    scale = tuple(scale) if isinstance(scale, list) else scale
    return _Network(policy.sizes, policy.observe, policy.activation, scale, policy.squash)


def _broadcast(name: str, value: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    if value.shape not in (shape, shape[-1:]):
        raise ArgumentError.expected(name, f"shape {list(shape)} or {list(shape[-1:])}", list(value.shape))
    return jnp.broadcast_to(value, shape)


def _shapes(
    arrays: list[jax.Array], named: Mapping[str, jax.Array]
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return name and shape of each input as the user gave it, without axes that `vmap` adds."""
    shapes = {name: value.shape for name, value in zip(STATE_AND_CONTROL, arrays, strict=True)}
    return tuple((shapes | {name: value.shape for name, value in named.items()}).items())


@dataclass(frozen=True)
class _Call:
    """The static part of a rollout.

    Attributes:
        sim: the simulator.
        model: the model.
        options: options of `Simulator.rollout`.
        shapes: name and shape of each input without axes that `vmap` adds: qpos, qvel, ctrl, then parameters
            and arrays of the controller.
        network: the static part of the policy; None without one.
    """

    sim: Simulator
    model: ModelHandle
    options: tuple[tuple[str, Any], ...]
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    network: _Network | None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(name for name, _ in self.shapes)

    @property
    def final(self) -> bool:
        """Whether only the last state is returned."""
        return ("states", "final") in self.options

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch of the user's inputs; () without a batch axis."""
        return dict(self.shapes)["ctrl"][:-2]

    def results(self, ctrl: Any) -> tuple[jax.ShapeDtypeStruct, jax.ShapeDtypeStruct]:
        """Return shape and type of qpos and qvel for controls without further axes."""
        *lead, rows, _ = ctrl.shape
        times = () if self.final else (rows * dict(self.options).get("hold", 1) + 1,)
        return (
            jax.ShapeDtypeStruct((*lead, *times, self.model.nq), ctrl.dtype),
            jax.ShapeDtypeStruct((*lead, *times, len(self.model.qvel0)), ctrl.dtype),
        )

    def axes(self, name: str) -> int:
        """Return the number of axes of an input that has a batch axis."""
        if name in _CONTROLLER_AXES:
            return _CONTROLLER_AXES[name]
        if name in STATE_AND_CONTROL:
            return 3 if name == "ctrl" else 2
        if name not in self.model.params:
            raise ArgumentError.expected("params", f"names among {', '.join(self.model.params)}", repr(name))
        return int(np.ndim(self.model.params[name])) + 1

    def simulate(self, inputs: _Inputs, *, differentiable: bool) -> Trajectory:
        """Run the rollout of all rows of `vmap` as one batch."""
        chosen = {"states": "all", **dict(self.options)}
        if not differentiable:
            chosen["checkpoints"] = "none"
        qpos, qvel, ctrl, *arrays = inputs.merged
        network = None if self.network is None else vars(self.network)
        chosen |= arguments_of(dict(zip(self.names[3:], arrays, strict=True)), network)
        return self.sim.rollout(self.model, qpos, qvel, ctrl, **chosen)

    def shaped(self, trajectory: Trajectory, inputs: _Inputs) -> list[np.ndarray]:
        """Return the states with the axes of `vmap` in front."""
        arrays = (
            (trajectory.final_qpos, trajectory.final_qvel)
            if self.final
            else (trajectory.qpos, trajectory.qvel)
        )
        return [inputs.split(array) for array in arrays]


_CONTROLLER_AXES = dict.fromkeys(("feedback.qpos", "feedback.qvel", "policy.goal", "qfrc_applied"), 3) | (
    dict.fromkeys(("feedback.gain", "xfrc_applied", "mocap_pos", "mocap_quat"), 4)
)
"""Axes of a controller's array with one value per environment and time; those in front may be left out."""


class _Inputs:
    """Inputs of a call as a callback gets them: with the axes of `vmap` in front.

    Args:
        call: the call.
        arrays: qpos, qvel, ctrl, the parameters and arrays of the controller, each with the same further
            axes in front.

    Attributes:
        rows: the further axes' shape.
        dtype: the arrays' type.
    """

    def __init__(self, call: _Call, arrays: Sequence[Any]) -> None:
        self._arrays = [np.asarray(array) for array in arrays]
        self._call = call
        ctrl = self._arrays[2]
        self.dtype = ctrl.dtype
        self.rows = ctrl.shape[: ctrl.ndim - len(call.shapes[2][1])]

    def each_row(self) -> Iterator[_Inputs]:
        """Yield the inputs of each row."""
        flat = [
            array.reshape(math.prod(self.rows), *shape)
            for array, (_, shape) in zip(self._arrays, self._call.shapes, strict=True)
        ]
        return (_Inputs(self._call, row) for row in zip(*flat, strict=True))

    @property
    def merged(self) -> list[np.ndarray]:
        """The inputs with all rows as one batch; without rows, as the user gave them."""
        if not self.rows:
            return self._arrays
        return [self._merge(name, array) for name, array in zip(self._call.names, self._arrays, strict=True)]

    def _merge(self, name: str, array: np.ndarray) -> np.ndarray:
        """Give every environment of the merged batch its own value."""
        whole = array.reshape(*self.rows, *self._batch_first(name, array.shape[len(self.rows) :]))
        lead, rest = len(self.rows), whole.shape[len(self.rows) :]
        if self._call.batch:
            if rest[0] not in (1, *self._call.batch):
                raise ArgumentError.expected(name, f"a batch of {self._call.batch[0]}, as of ctrl", rest[0])
            whole = np.broadcast_to(whole, (*self.rows, *self._call.batch, *rest[1:]))
            lead += 1
        # no -1: an axis may have length 0, as that of controls of a model without actuators
        return whole.reshape(math.prod(whole.shape[:lead]), *whole.shape[lead:])

    def _batch_first(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape with axes of length 1 for those left out; only of time if there is no batch."""
        wanted = self._call.axes(name) - (0 if self._call.batch else 1)
        return (*(1 for _ in range(wanted - len(shape))), *shape)

    def split(self, array: np.ndarray) -> np.ndarray:
        """Give a result of the merged batch the axes of `vmap` again."""
        if self.rows:
            array = array.reshape(*self.rows, *self._call.batch, *array.shape[1:])
        return array.astype(self.dtype, copy=False)

    def with_rows(self, array: np.ndarray) -> np.ndarray:
        """Replace the first axis, all rows, by the axes of `vmap`."""
        return array.reshape(*self.rows, *array.shape[1:]).astype(self.dtype, copy=False)

    def split_gradient(self, gradient: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Give a gradient of the merged batch the shapes of the inputs."""
        found = []
        for name, shape in self._call.shapes:
            array = gradient[name]
            if self.rows:
                array = array.reshape(*self.rows, *self._call.batch, *array.shape[1:])
                first = len(self.rows)
                if self._call.batch and self._batch_first(name, shape)[0] == 1:
                    # one value for all environments of a row
                    array = array.sum(axis=first)
                array = array.reshape(*self.rows, *shape)
            found.append(array.astype(self.dtype, copy=False))
        return found


def _by_row(
    call: _Call, inputs: _Inputs, function: Callable[[_Inputs, int], tuple[Any, ...]]
) -> tuple[Any, ...]:
    """Return the results of a function of inputs and the number of a row.

    With a policy, whose weights all environments of a call share, it is called for each row of `vmap`.
    """
    if call.network is None or not inputs.rows:
        return function(inputs, 0)
    results = [function(row, number) for number, row in enumerate(inputs.each_row())]
    return tuple(
        np.stack(parts).reshape(*inputs.rows, *np.shape(parts[0])) for parts in zip(*results, strict=True)
    )


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _rollout(call: _Call, qpos: Any, qvel: Any, ctrl: Any, params: dict[str, Any]) -> Any:
    def run(inputs: _Inputs, _row: int) -> Any:
        return tuple(call.shaped(call.simulate(inputs, differentiable=False), inputs))

    def simulate(*arrays: Any) -> Any:
        return _by_row(call, _Inputs(call, arrays), run)

    return jax.pure_callback(
        simulate,
        call.results(ctrl),
        qpos,
        qvel,
        ctrl,
        *(params[name] for name in call.names[3:]),
        vmap_method="broadcast_all",
    )


def _forward(call: _Call, qpos: Any, qvel: Any, ctrl: Any, params: dict[str, Any]) -> Any:
    """Simulate and keep the trajectory; its handle is a residual."""
    arrays = (qpos, qvel, ctrl, *(params[name] for name in call.names[3:]))

    def run(inputs: _Inputs, _row: int) -> Any:
        trajectory = call.simulate(inputs, differentiable=True)
        return *call.shaped(trajectory, inputs), _KEPT.keep(trajectory, inputs.rows)

    def simulate(*given: Any) -> Any:
        return _by_row(call, _Inputs(call, given), run)

    shapes = (*call.results(ctrl), jax.ShapeDtypeStruct((), jnp.int32))
    *states, handle = _first_order(simulate, shapes, *arrays)
    return tuple(states), (handle, arrays)


def _backward(call: _Call, residuals: Any, bars: Any) -> Any:
    handle, arrays = residuals

    def pull(handle: Any, qpos_bar: Any, qvel_bar: Any, *given: Any) -> Any:
        inputs = _Inputs(call, given)
        # a cotangent of the last state gets a time axis
        bars = [np.asarray(bar) for bar in (qpos_bar, qvel_bar)]
        bars = [bar[..., None, :] for bar in bars] if call.final else bars
        return tuple(_pull(call, inputs, np.asarray(handle), bars))

    shapes = tuple(jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays)
    gradients = _first_order(pull, shapes, handle, *bars, *arrays)
    return (*gradients[:3], dict(zip(call.names[3:], gradients[3:], strict=True)))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _first_order(function: Callable[..., Any], shapes: Any, *arrays: Any) -> Any:
    """Call a function on the host whose derivative would be a second one."""
    return jax.pure_callback(function, shapes, *arrays, vmap_method="broadcast_all")


@_first_order.defjvp
def _refuse_second_order(_function: Any, _shapes: Any, _arrays: Any, _tangents: Any) -> Any:
    raise NotImplementedError(
        "revolute.jax.rollout: expected a first derivative, got a second one, which the engine does not "
        "compute; take differences of first derivatives"
    )


_rollout.defvjp(_forward, _backward)


def _pull(call: _Call, inputs: _Inputs, handles: np.ndarray, bars: list[np.ndarray]) -> Sequence[np.ndarray]:
    """Return the gradients by the inputs, in their shapes."""
    kept = _KEPT.find(int(handles.flat[0])) if handles.size else None
    if kept is not None and inputs.rows and not kept.rows and np.ptp(handles) == 0:
        # one rollout with many cotangents, as of jacrev
        bars = [bar.reshape(-1, *bar.shape[len(inputs.rows) :]) for bar in bars]
        times = [-1] if call.final else None
        gradient = kept.trajectory.backward(*bars, times=times, wrt=call.names)
        return [inputs.with_rows(gradient[name]) for name in call.names]

    def pull(row: _Inputs, number: int) -> tuple[np.ndarray, ...]:
        if row is inputs:
            return tuple(_pull_together(call, inputs, handles, bars))
        own = [bar.reshape(-1, *bar.shape[len(inputs.rows) :])[number] for bar in bars]
        return tuple(_pull_together(call, row, handles.reshape(-1)[number], own))

    return _by_row(call, inputs, pull)


def _pull_together(
    call: _Call, inputs: _Inputs, handles: np.ndarray, bars: list[np.ndarray]
) -> list[np.ndarray]:
    """Return the gradients of rows that were simulated together."""
    kept = _KEPT.find(int(handles.flat[0])) if handles.size else None
    if kept is not None and np.array_equal(handles, kept.handles):
        trajectory = kept.trajectory
    else:
        # dropped, or the rows are not those of one forward pass
        trajectory = call.simulate(inputs, differentiable=True)
    if inputs.rows:
        bars = [bar.reshape(-1, *bar.shape[-2:]) for bar in bars]
    times = [-1] if call.final else None
    return inputs.split_gradient(trajectory.backward(*bars, times=times, wrt=call.names))


@dataclass(frozen=True)
class _Rows:
    """A trajectory that waits for its backward pass.

    Attributes:
        trajectory: the trajectory of all rows of `vmap`.
        first: handle of the first row; the other rows have the following numbers.
        rows: shape of the rows; () without `vmap`.
    """

    trajectory: Trajectory
    first: int
    rows: tuple[int, ...]

    @property
    def handles(self) -> np.ndarray:
        """The handles of all rows, in their shape."""
        count = int(np.prod(self.rows, dtype=int))
        return ((self.first + np.arange(count)) % _HANDLES).astype(np.int32).reshape(self.rows)


class _Kept:
    """Trajectories that wait for their backward pass, by the handle of their first row.

    A second backward pass may use a handle again, so a trajectory stays until others need the room.
    """

    def __init__(self) -> None:
        self._next = 0
        self._bytes = 0
        self._mutex = threading.Lock()
        self._entries: OrderedDict[int, _Rows] = OrderedDict()

    def keep(self, trajectory: Trajectory, rows: tuple[int, ...]) -> np.ndarray:
        """Keep a trajectory and return a handle for each of its rows."""
        dropped = []
        with self._mutex:
            entry = _Rows(trajectory, self._next, rows)
            self._next = (self._next + entry.handles.size) % _HANDLES
            self._entries[entry.first] = entry
            self._bytes += trajectory.report.checkpoint_bytes
            while self._bytes > _KEPT_BYTES and len(self._entries) > 1:
                dropped.append(self._entries.popitem(last=False)[1])
                self._bytes -= dropped[-1].trajectory.report.checkpoint_bytes
        return entry.handles

    def find(self, handle: int) -> _Rows | None:
        """Return the trajectory whose first row has this handle; None if it is gone."""
        with self._mutex:
            entry = self._entries.get(handle)
            if entry is not None:
                self._entries.move_to_end(handle)
            return entry


_KEPT = _Kept()
