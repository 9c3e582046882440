"""Rollouts as functions of JAX: under jit, grad, vmap and scan.

    qpos, qvel = revolute.jax.rollout(sim, model, qpos, qvel, ctrl)

The engine runs in a callback on the host. `vmap` becomes one call with a larger batch. The gradient uses the
states that the forward pass kept; if they are gone by then, it simulates again.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .contract.errors import ArgumentError
from .model import ModelHandle, check_model
from .simulator import Simulator
from .trajectory import STATE_AND_CONTROL, Trajectory

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise ImportError("revolute.jax needs jax; install it with: pip install 'revolute[jax]'") from error

__all__ = ["rollout"]

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
    **options: Any,
) -> tuple[jax.Array, jax.Array]:
    """Simulate as `Simulator.rollout` does, as a differentiable function of JAX.

    Args:
        sim: a simulator, in process or on a server.
        model: the model.
        qpos: start configuration, [batch, nq] or [nq].
        qvel: start velocity, [batch, nv] or [nv].
        ctrl: controls, [batch, T, nu] or [T, nu].
        params: model parameters to replace, by name; with a leading batch axis, one value per environment.
        options: further options of `Simulator.rollout`, e.g. checkpoints="slots=32". With states="final" only
            the last state is returned.

    Returns:
        qpos [batch, T + 1, nq] and qvel [batch, T + 1, nv], or [batch, nq] and [batch, nv] with
        states="final"; without the batch axis if `ctrl` has none. The type is that of the inputs, float32
        unless jax_enable_x64 is set; the engine computes in float64.

    Raises:
        ArgumentError: a shape does not fit the model. Other errors of the engine arrive as JAX's errors of
            callbacks, with their text.
    """
    check_model(model)
    arrays = [jnp.asarray(value) for value in (qpos, qvel, ctrl)]
    named = {name: jnp.asarray(value) for name, value in (params or {}).items()}
    dtype = jnp.result_type(float, *arrays)
    arrays = [value.astype(dtype) for value in arrays]
    named = {name: value.astype(dtype) for name, value in named.items()}
    if arrays[2].ndim not in (2, 3):
        raise ArgumentError.expected("ctrl", "shape [batch, T, nu] or [T, nu]", list(arrays[2].shape))
    lead = arrays[2].shape[:-2]
    # environments that share a start state: JAX sums the gradient of the broadcast
    start = [
        _broadcast(name, value, (*lead, size))
        for name, value, size in zip(("qpos", "qvel"), arrays, (model.nq, len(model.qvel0)), strict=False)
    ]
    call = _Call(sim, model, tuple(sorted(options.items())), _ranks([*start, arrays[2]], named))
    return _rollout(call, *start, arrays[2], named)


def _broadcast(name: str, value: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    if value.shape not in (shape, shape[-1:]):
        raise ArgumentError.expected(name, f"shape {list(shape)} or {list(shape[-1:])}", list(value.shape))
    return jnp.broadcast_to(value, shape)


def _ranks(arrays: list[jax.Array], named: Mapping[str, jax.Array]) -> tuple[tuple[str, int], ...]:
    """Return name and rank of each input as the user gave it, without axes that `vmap` adds."""
    ranks = {name: value.ndim for name, value in zip(STATE_AND_CONTROL, arrays, strict=True)}
    return tuple((ranks | {name: value.ndim for name, value in named.items()}).items())


@dataclass(frozen=True)
class _Call:
    """The static part of a rollout.

    Attributes:
        sim: the simulator.
        model: the model.
        options: options of `Simulator.rollout`.
        ranks: name and rank of each input without axes that `vmap` adds: qpos, qvel, ctrl, then parameters.
    """

    sim: Simulator
    model: ModelHandle
    options: tuple[tuple[str, Any], ...]
    ranks: tuple[tuple[str, int], ...]

    @property
    def final(self) -> bool:
        """Whether only the last state is returned."""
        return ("states", "final") in self.options

    @property
    def batched(self) -> bool:
        """Whether the user's inputs have a batch axis."""
        return dict(self.ranks)["ctrl"] == 3

    def results(self, ctrl: Any) -> tuple[jax.ShapeDtypeStruct, jax.ShapeDtypeStruct]:
        """Return shape and type of qpos and qvel for controls without further axes."""
        *lead, steps, _ = ctrl.shape
        times = () if self.final else (steps + 1,)
        return (
            jax.ShapeDtypeStruct((*lead, *times, self.model.nq), ctrl.dtype),
            jax.ShapeDtypeStruct((*lead, *times, len(self.model.qvel0)), ctrl.dtype),
        )

    def simulate(self, inputs: _Inputs, *, differentiable: bool) -> Trajectory:
        """Run the rollout of all rows of `vmap` as one batch."""
        chosen = {"states": "all", **dict(self.options)}
        if not differentiable:
            chosen["checkpoints"] = "none"
        qpos, qvel, ctrl, *params = inputs.merged
        names = list(dict(self.ranks))[3:]
        params_by_name = dict(zip(names, params, strict=True))
        return self.sim.rollout(self.model, qpos, qvel, ctrl, params=params_by_name, **chosen)

    def shaped(self, trajectory: Trajectory, inputs: _Inputs) -> list[np.ndarray]:
        """Return the states with the axes of `vmap` in front."""
        arrays = (
            (trajectory.final_qpos, trajectory.final_qvel)
            if self.final
            else (trajectory.qpos, trajectory.qvel)
        )
        return [inputs.split(array) for array in arrays]


class _Inputs:
    """Inputs of a call as a callback gets them: with the axes of `vmap` in front.

    Args:
        call: the call.
        arrays: qpos, qvel, ctrl and the parameters, each with the same further axes in front.

    Attributes:
        rows: the further axes' shape.
        dtype: the arrays' type.
    """

    def __init__(self, call: _Call, arrays: list[Any]) -> None:
        self._arrays = [np.asarray(array) for array in arrays]
        self._ranks = [rank for _, rank in call.ranks]
        ctrl = self._arrays[2]
        self.dtype = ctrl.dtype
        self.rows = ctrl.shape[: ctrl.ndim - self._ranks[2]]
        self._batch = ctrl.shape[len(self.rows) : -2]
        self._names = [name for name, _ in call.ranks]
        self._model = call.model

    @property
    def merged(self) -> list[np.ndarray]:
        """The inputs with all rows as one batch; without rows, as the user gave them."""
        if not self.rows:
            return self._arrays
        return [self._merge(number) for number in range(len(self._arrays))]

    def _merge(self, number: int) -> np.ndarray:
        array = self._arrays[number]
        if self._shared(number) and self._batch:
            # a parameter that the environments of a row share: one value per environment of the batch
            shape = array.shape[len(self.rows) :]
            array = np.broadcast_to(array.reshape(*self.rows, 1, *shape), (*self.rows, *self._batch, *shape))
        lead = len(self.rows) + len(self._batch)
        return array.reshape(-1, *array.shape[lead:])

    def _shared(self, number: int) -> bool:
        """Tell whether an input is a parameter without a batch axis."""
        if number < len(STATE_AND_CONTROL):
            return False
        return self._ranks[number] == np.ndim(self._model.params[self._names[number]])

    def split(self, array: np.ndarray) -> np.ndarray:
        """Give a result of the merged batch the axes of `vmap` again."""
        if self.rows:
            array = array.reshape(*self.rows, *self._batch, *array.shape[1:])
        return array.astype(self.dtype, copy=False)

    def with_rows(self, array: np.ndarray) -> np.ndarray:
        """Replace the first axis, all rows, by the axes of `vmap`."""
        return array.reshape(*self.rows, *array.shape[1:]).astype(self.dtype, copy=False)

    def split_gradient(self, gradient: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Give a gradient of the merged batch the shapes of the inputs."""
        found = []
        for number, name in enumerate(self._names):
            array = gradient[name]
            if self.rows:
                array = array.reshape(*self.rows, *self._batch, *array.shape[1:])
                if self._shared(number) and self._batch:
                    array = array.sum(axis=len(self.rows))
            found.append(array.astype(self.dtype, copy=False))
        return found


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _rollout(call: _Call, qpos: Any, qvel: Any, ctrl: Any, params: dict[str, Any]) -> Any:
    def simulate(*arrays: Any) -> Any:
        inputs = _Inputs(call, list(arrays))
        return tuple(call.shaped(call.simulate(inputs, differentiable=False), inputs))

    return jax.pure_callback(
        simulate,
        call.results(ctrl),
        qpos,
        qvel,
        ctrl,
        *(params[name] for name, _ in call.ranks[3:]),
        vmap_method="broadcast_all",
    )


def _forward(call: _Call, qpos: Any, qvel: Any, ctrl: Any, params: dict[str, Any]) -> Any:
    """Simulate and keep the trajectory; its handle is a residual."""
    arrays = (qpos, qvel, ctrl, *(params[name] for name, _ in call.ranks[3:]))

    def simulate(*given: Any) -> Any:
        inputs = _Inputs(call, list(given))
        trajectory = call.simulate(inputs, differentiable=True)
        return *call.shaped(trajectory, inputs), _KEPT.keep(trajectory, inputs.rows)

    shapes = (*call.results(ctrl), jax.ShapeDtypeStruct((), jnp.int32))
    *states, handle = jax.pure_callback(simulate, shapes, *arrays, vmap_method="broadcast_all")
    return tuple(states), (handle, arrays)


def _backward(call: _Call, residuals: Any, bars: Any) -> Any:
    handle, arrays = residuals

    def pull(handle: Any, qpos_bar: Any, qvel_bar: Any, *given: Any) -> Any:
        inputs = _Inputs(call, list(given))
        # a cotangent of the last state gets a time axis
        bars = [np.asarray(bar) for bar in (qpos_bar, qvel_bar)]
        bars = [bar[..., None, :] for bar in bars] if call.final else bars
        return tuple(_pull(call, inputs, np.asarray(handle), bars))

    shapes = tuple(jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays)
    gradients = jax.pure_callback(pull, shapes, handle, *bars, *arrays, vmap_method="broadcast_all")
    names = [name for name, _ in call.ranks[3:]]
    return (*gradients[:3], dict(zip(names, gradients[3:], strict=True)))


_rollout.defvjp(_forward, _backward)


def _pull(call: _Call, inputs: _Inputs, handles: np.ndarray, bars: list[np.ndarray]) -> list[np.ndarray]:
    """Return the gradients by the inputs, in their shapes."""
    kept = _KEPT.find(int(handles.flat[0])) if handles.size else None
    wrt = [name for name, _ in call.ranks]
    times = [-1] if call.final else None
    if kept is not None and inputs.rows and not kept.rows and np.ptp(handles) == 0:
        # one rollout with many cotangents, as of jacrev
        bars = [bar.reshape(-1, *bar.shape[len(inputs.rows) :]) for bar in bars]
        gradient = kept.trajectory.backward(*bars, times=times, wrt=wrt)
        return [inputs.with_rows(gradient[name]) for name in wrt]
    if kept is not None and np.array_equal(handles, kept.handles):
        trajectory = kept.trajectory
    else:
        # dropped, or the rows are not those of one forward pass
        trajectory = call.simulate(inputs, differentiable=True)
    if inputs.rows:
        bars = [bar.reshape(-1, *bar.shape[-2:]) for bar in bars]
    return inputs.split_gradient(trajectory.backward(*bars, times=times, wrt=wrt))


@dataclass(frozen=True)
class _Rows:
    """A trajectory that waits for its backward pass.

    Attributes:
        trajectory: the trajectory of all rows of `vmap`.
        first: handle of the first row; further rows count on.
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
