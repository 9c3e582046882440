"""revolute.jax against differences and against the plain API, under every transformation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import revolute
import revolute.jax as adapter
from revolute.contract.controllers import STEP_INPUTS

BATCH, STEPS, ROWS = 3, 5, 2


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


class Cartpole:
    """A rollout of cartpoles with their gravity as a parameter, and random inputs."""

    def __init__(self, sim: revolute.Simulator) -> None:
        self.sim, self.model = sim, sim.load_model("cartpole")
        random = np.random.default_rng(0)
        self.qpos = random.normal(size=(BATCH, self.model.nq))
        self.qvel = random.normal(size=(BATCH, self.model.nv))
        self.ctrl = random.normal(size=(BATCH, STEPS, self.model.nu))
        self.gravity = np.array(self.model.params["gravity"])
        self.rows = random.normal(size=(ROWS, BATCH, self.model.nq))

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self.qpos, self.qvel, self.ctrl, self.gravity

    def states(self, qpos: Any, qvel: Any, ctrl: Any, gravity: Any, **options: Any) -> Any:
        return adapter.rollout(self.sim, self.model, qpos, qvel, ctrl, {"gravity": gravity}, **options)

    def loss(self, *inputs: Any) -> Any:
        return sum(jnp.sum(array[..., -1, :] ** 2) for array in self.states(*inputs))


@pytest.fixture
def cart(in_process: revolute.Simulator) -> Cartpole:
    return Cartpole(in_process)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Return the shapes of the controls of all rollouts."""
    seen: list[tuple[int, ...]] = []
    rollout = revolute.Simulator.rollout

    def counted(self: Any, model: Any, qpos: Any, qvel: Any, ctrl: Any, **options: Any) -> Any:
        seen.append(np.shape(ctrl))
        return rollout(self, model, qpos, qvel, ctrl, **options)

    monkeypatch.setattr(revolute.Simulator, "rollout", counted)
    return seen


def test_gradients_against_differences(cart: Cartpole) -> None:
    check_grads(cart.states, cart.inputs, 1, modes=["rev"])


def test_parameters_by_names_of_elements_have_gradients(cart: Cartpole) -> None:
    pole = cart.model.body_names[-1]

    def states(masses: Any, centre: Any) -> Any:
        named = {"body_mass": {pole: masses}, "body_ipos": {pole: centre}}
        return adapter.rollout(cart.sim, cart.model, *cart.inputs[:3], named)

    check_grads(jax.jit(states), (np.linspace(0.5, 1.0, BATCH), np.array([0.0, 0.0, 0.4])), 1, modes=["rev"])


def test_the_final_state_of_one_environment(cart: Cartpole) -> None:
    def final(qpos: Any, ctrl: Any) -> Any:
        return cart.states(qpos, cart.qvel[0], ctrl, cart.gravity, states="final", checkpoints="slots=2")

    check_grads(final, (cart.qpos[0], cart.ctrl[0]), 1, modes=["rev"])


def test_jit_is_rollout_and_backward_on_every_transport(simulator: revolute.Simulator) -> None:
    cart = Cartpole(simulator)
    gradient = jax.jit(jax.grad(cart.loss, (0, 1, 2, 3)))(*cart.inputs)
    trajectory = simulator.rollout(cart.model, *cart.inputs[:3], params={"gravity": cart.gravity})
    bars = np.zeros(trajectory.qpos.shape), np.zeros(trajectory.qvel.shape)
    bars[0][:, -1], bars[1][:, -1] = 2 * trajectory.final_qpos, 2 * trajectory.final_qvel
    expected = trajectory.backward(*bars, wrt=("qpos", "qvel", "ctrl", "gravity"))
    for found, name in zip(gradient, expected, strict=True):
        np.testing.assert_array_equal(found, expected[name])


def test_vmap_of_grad_is_one_call(cart: Cartpole, calls: list[tuple[int, ...]]) -> None:
    rowwise = jax.vmap(jax.grad(cart.loss, (0, 1, 2, 3)), in_axes=(0, None, None, None))
    found = rowwise(cart.rows, *cart.inputs[1:])
    assert calls == [(ROWS * BATCH, STEPS, cart.model.nu)]
    each = [jax.grad(cart.loss, (0, 1, 2, 3))(row, *cart.inputs[1:]) for row in cart.rows]
    for number, array in enumerate(found):
        expected = np.stack([gradients[number] for gradients in each])
        np.testing.assert_allclose(array, expected, rtol=1e-12, atol=1e-14)


def test_grad_of_vmap_is_one_call(cart: Cartpole, calls: list[tuple[int, ...]]) -> None:
    def total(rows: Any, gravity: Any) -> Any:
        rowwise = jax.vmap(cart.loss, in_axes=(0, None, None, None))
        return rowwise(rows, cart.qvel, cart.ctrl, gravity).sum()

    found = jax.grad(total, (0, 1))(cart.rows, cart.gravity)
    assert calls == [(ROWS * BATCH, STEPS, cart.model.nu)]
    each = [jax.grad(cart.loss, (0, 3))(row, *cart.inputs[1:]) for row in cart.rows]
    np.testing.assert_allclose(found[0], np.stack([by_qpos for by_qpos, _ in each]), rtol=1e-12)
    np.testing.assert_allclose(found[1], sum(by_gravity for _, by_gravity in each), rtol=1e-12)


def test_vmap_of_one_environment_with_its_own_parameters(cart: Cartpole) -> None:
    gravities = cart.gravity * np.arange(1, BATCH + 1)[:, None]
    found = jax.vmap(jax.grad(cart.loss, 3))(cart.qpos, cart.qvel, cart.ctrl, gravities)
    trajectory = cart.sim.rollout(cart.model, *cart.inputs[:3], params={"gravity": gravities})
    bars = [2 * array[:, None] for array in (trajectory.final_qpos, trajectory.final_qvel)]
    expected = trajectory.backward(*bars, times=[-1], wrt=("gravity",)).gravity
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_jacrev_is_one_rollout_and_one_backward(cart: Cartpole, calls: list[tuple[int, ...]]) -> None:
    def last(ctrl: Any) -> Any:
        return cart.states(cart.qpos[0], cart.qvel[0], ctrl, cart.gravity)[0][-1]

    found = jax.jacrev(last)(cart.ctrl[0])
    assert len(calls) == 1
    step = 1e-6 * np.eye(STEPS)[:, :, None]
    expected = [(last(cart.ctrl[0] + each) - last(cart.ctrl[0] - each)) / 2e-6 for each in step]
    np.testing.assert_allclose(found[..., 0], np.stack(expected, -1), atol=1e-8)


def test_a_closed_loop_by_scan(cart: Cartpole) -> None:
    def closed(ctrl: Any) -> Any:
        def step(state: Any, each: Any) -> Any:
            qpos, qvel = adapter.rollout(cart.sim, cart.model, *state, each[None], states="final")
            return (qpos, qvel), qpos

        return jax.lax.scan(step, (jnp.asarray(cart.qpos[0]), jnp.asarray(cart.qvel[0])), ctrl)[1]

    def opened(ctrl: Any) -> Any:
        return cart.states(cart.qpos[0], cart.qvel[0], ctrl, cart.gravity)[0][1:]

    np.testing.assert_array_equal(jax.jit(closed)(cart.ctrl[0]), opened(cart.ctrl[0]))
    found, expected = (
        jax.jit(jax.grad(lambda ctrl, states=states: jnp.sum(states(ctrl) ** 2)))(cart.ctrl[0])
        for states in (closed, opened)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_states_that_were_dropped_are_simulated_again(
    cart: Cartpole, calls: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = jax.grad(cart.loss, 2)(*cart.inputs)
    monkeypatch.setattr(adapter, "_KEPT_BYTES", 0)
    value, pull = jax.vjp(lambda ctrl: cart.loss(*cart.inputs[:2], ctrl, cart.gravity), cart.ctrl)
    cart.loss(*cart.inputs)
    jax.grad(cart.loss)(*cart.inputs)
    calls.clear()
    np.testing.assert_array_equal(pull(jnp.ones_like(value))[0], expected)
    assert len(calls) == 1


def test_float32_in_float32_out(in_process: revolute.Simulator) -> None:
    with jax.enable_x64(False):
        cart = Cartpole(in_process)
        found = jax.grad(cart.loss, 2)(*cart.inputs)
        assert found.dtype == jnp.float32 and cart.states(*cart.inputs)[0].dtype == jnp.float32


def test_a_tracer_in_the_plain_call_is_told_of_the_adapter(cart: Cartpole) -> None:
    with pytest.raises(revolute.ArgumentError, match=r"qpos: .*tracer.*revolute\.jax: rollout"):
        jax.jit(lambda qpos: cart.sim.rollout(cart.model, qpos, cart.qvel, cart.ctrl).qpos)(cart.qpos)


def test_shapes_are_checked_before_the_call(cart: Cartpole) -> None:
    with pytest.raises(revolute.ArgumentError, match=r"qpos: expected shape \[3, 2\] or \[2\], got \[3, 1\]"):
        cart.states(cart.qpos[:, :1], cart.qvel, cart.ctrl, cart.gravity)
    with pytest.raises(revolute.ArgumentError, match="ctrl: expected shape"):
        cart.states(cart.qpos, cart.qvel, cart.ctrl[0, 0], cart.gravity)


NV, LAYERS = 2, ((4, 5), (4,), (1, 4), (1,))
"""Of cartpole; W and b of a network that sees qpos, qvel and a goal of one number."""


def feedback_of(gain: Any, qpos_ref: Any, qvel_ref: Any) -> dict[str, Any]:
    return {"feedback": {"gain": gain, "qpos": qpos_ref, "qvel": qvel_ref}}


def policy_of(*weights: Any, goal: Any) -> dict[str, Any]:
    chosen = {"activation": "elu", "scale": [0.7], "squash": True}
    return {"policy": adapter.Policy(weights, ("qpos", "qvel", "goal"), goal=goal, **chosen)}


def controllers(kind: str) -> tuple[Any, tuple[np.ndarray, ...]]:
    """Return a function from arrays to options of a rollout, and the arrays."""
    random = np.random.default_rng(3)
    if kind == "feedback":
        shapes: tuple[tuple[int, ...], ...] = ((1, 2 * NV), (STEPS, NV), (BATCH, STEPS, NV))
        return feedback_of, tuple(random.normal(size=shape) for shape in shapes)
    if kind == "policy":
        weights = [random.normal(size=shape) for shape in LAYERS]
        return lambda *arrays: policy_of(*arrays[:4], goal=arrays[4]), (
            *weights,
            random.normal(size=(STEPS, 1)),
        )
    return lambda forces: {"qfrc_applied": forces}, (random.normal(size=(BATCH, 1, NV)),)


KINDS = ("feedback", "policy", "qfrc_applied")


def closed_loss(cart: Cartpole, kind: str, **options: Any) -> Any:
    """Return a loss by the start, controls and arrays of a controller."""
    make, _ = controllers(kind)

    def loss(qpos: Any, ctrl: Any, *arrays: Any) -> Any:
        found = adapter.rollout(cart.sim, cart.model, qpos, cart.qvel, ctrl, **make(*arrays), **options)
        return sum(jnp.sum(jnp.sin(array)) for array in found)

    return loss


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_by_controllers_against_differences(cart: Cartpole, kind: str) -> None:
    arrays = controllers(kind)[1]
    check_grads(closed_loss(cart, kind, hold=2), (cart.qpos, cart.ctrl, *arrays), 1, modes=["rev"])


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_by_controllers_are_those_of_backward(simulator: revolute.Simulator, kind: str) -> None:
    cart = Cartpole(simulator)
    make, arrays = controllers(kind)
    wrt = tuple(range(2, 2 + len(arrays)))
    found = jax.jit(jax.grad(closed_loss(cart, kind), wrt))(cart.qpos, cart.ctrl, *arrays)
    plain = {
        "feedback": lambda: {"feedback": revolute.Feedback(*arrays)},
        "policy": lambda: {
            "policy": revolute.MLP(
                arrays[:4],
                ("qpos", "qvel", "goal"),
                goal=arrays[-1],
                activation="elu",
                scale=[0.7],
                squash=True,
            )
        },
        "qfrc_applied": lambda: make(*arrays),
    }[kind]()
    trajectory = simulator.rollout(cart.model, cart.qpos, cart.qvel, cart.ctrl, **plain)
    names = {
        "feedback": ("feedback.gain", "feedback.qpos", "feedback.qvel"),
        "policy": ("policy.weights", "policy.goal"),
        "qfrc_applied": ("qfrc_applied",),
    }[kind]
    gradient = trajectory.backward(np.cos(trajectory.qpos), np.cos(trajectory.qvel), wrt=names)
    expected = [gradient[name] for name in names]
    if kind == "policy":
        expected = [*plain["policy"].arrays(expected[0]), expected[1]]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_vmap_with_controllers_is_a_loop(cart: Cartpole, kind: str, calls: list[tuple[int, ...]]) -> None:
    """Over start states with one controller, and over controllers."""
    arrays = controllers(kind)[1]
    random = np.random.default_rng(4)
    several = tuple(random.normal(size=(ROWS, *array.shape)) for array in arrays)
    slopes = jax.grad(closed_loss(cart, kind), tuple(range(2 + len(arrays))))
    for qpos, chosen, axes in (
        (cart.rows, arrays, (0, None, *(None for _ in arrays))),
        (cart.qpos, several, (None, None, *(0 for _ in arrays))),
    ):
        calls.clear()
        found = jax.vmap(slopes, in_axes=axes)(qpos, cart.ctrl, *chosen)
        assert len(calls) == (ROWS if kind == "policy" else 1)
        for row in range(ROWS):
            inputs = (qpos, cart.ctrl, *chosen)
            own = [value if axis is None else value[row] for value, axis in zip(inputs, axes, strict=True)]
            for one, other in zip(found, slopes(*own), strict=True):
                np.testing.assert_allclose(one[row], other, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_vmap_of_single_environments_with_controllers(cart: Cartpole, kind: str) -> None:
    make, arrays = controllers(kind)
    arrays = tuple(array[0] if len(array) == BATCH and array.ndim == 3 else array for array in arrays)

    def last(qpos: Any, qvel: Any, ctrl: Any, *given: Any) -> Any:
        return adapter.rollout(cart.sim, cart.model, qpos, qvel, ctrl, **make(*given), states="final")[0]

    jacobian = jax.jacrev(last, tuple(range(3, 3 + len(arrays))))
    found = jax.vmap(jacobian, in_axes=(0, 0, 0, *(None for _ in arrays)))(*cart.inputs[:3], *arrays)
    for row in range(BATCH):
        expected = jacobian(cart.qpos[row], cart.qvel[row], cart.ctrl[row], *arrays)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one[row], other, rtol=1e-11, atol=1e-13)


# a box that flies, towed by a mocap body; no actuators
TOWED = """<mujoco><option timestep="0.01"/><worldbody>
  <body name="hand" mocap="true" pos="0 0 0.3" quat="0.9 0.1 0.3 -0.2"/>
  <body name="box" pos="0 0 0.3" quat="0.9 0.1 0.3 -0.2"><freejoint/>
    <geom type="box" size="0.05 0.06 0.04" pos="0.01 0 0" mass="0.5"/></body></worldbody>
  <equality><weld body1="hand" body2="box" solref="0.05 1" torquescale="0.6"/></equality></mujoco>"""

LEADS: tuple[tuple[int, ...], ...] = ((), (STEPS,), (1, STEPS), (BATCH, 1), (BATCH, STEPS))
"""Axes in front of an input of a step: none, time, and environments and time."""


class Towed:
    """Rollouts of towed boxes by random inputs of their steps."""

    def __init__(self, sim: revolute.Simulator) -> None:
        self.sim, self.model = sim, sim.load_model(TOWED)
        self.random = np.random.default_rng(5)
        self.qpos = self.model.qpos0 + 0.02 * self.random.normal(size=(BATCH, self.model.nq))
        self.qvel = 0.1 * self.random.normal(size=(BATCH, self.model.nv))
        self.ctrl = np.zeros((BATCH, STEPS, 0))
        self.rows = self.qpos + 0.02 * self.random.normal(size=(ROWS, *self.qpos.shape))

    def inputs(self, *lead: int) -> dict[str, np.ndarray]:
        """Return all inputs with these axes in front."""
        means: dict[str, tuple[np.ndarray, float]] = {
            "qfrc_applied": (np.zeros(self.model.nv), 0.3),
            "xfrc_applied": (np.zeros((self.model.nbody, 6)), 0.3),
            "mocap_pos": (self.model.mocap_pos, 0.05),
            "mocap_quat": (1.5 * self.model.mocap_quat, 0.2),
        }
        assert tuple(means) == STEP_INPUTS
        return {
            name: mean + size * self.random.normal(size=(*lead, *mean.shape))
            for name, (mean, size) in means.items()
        }

    def states(self, qpos: Any, qvel: Any, inputs: Any, **options: Any) -> Any:
        """Simulate as many environments as there are start states; one without a batch axis."""
        ctrl = self.ctrl if np.ndim(qpos) == 2 else self.ctrl[0]
        return adapter.rollout(self.sim, self.model, qpos, qvel, ctrl, hold=2, **inputs, **options)

    def loss(self, qpos: Any, qvel: Any, inputs: Any) -> Any:
        return sum(jnp.sum(jnp.sin(array)) for array in self.states(qpos, qvel, inputs))


@pytest.fixture
def towed(in_process: revolute.Simulator) -> Towed:
    return Towed(in_process)


def assert_close(found: Any, expected: Any) -> None:
    """Compare trees of arrays."""
    jax.tree.map(lambda *pair: np.testing.assert_allclose(*pair, rtol=1e-11, atol=1e-12), found, expected)


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("name", STEP_INPUTS)
def test_gradients_by_step_inputs_against_differences(towed: Towed, name: str, lead: tuple[int, ...]) -> None:
    inputs = towed.inputs(*lead)

    def states(value: Any) -> Any:
        return towed.states(towed.qpos, towed.qvel, inputs | {name: value})

    check_grads(states, (inputs[name],), 1, modes=["rev"])


@pytest.mark.parametrize("lead", LEADS)
def test_jit_by_step_inputs_is_backward_on_every_transport(
    simulator: revolute.Simulator, lead: tuple[int, ...]
) -> None:
    towed = Towed(simulator)
    inputs = towed.inputs(*lead)
    found = jax.jit(jax.grad(towed.loss, 2))(towed.qpos, towed.qvel, inputs)
    trajectory = simulator.rollout(towed.model, towed.qpos, towed.qvel, towed.ctrl, hold=2, **inputs)
    bars = np.cos(trajectory.qpos), np.cos(trajectory.qvel)
    gradient = trajectory.backward(*bars, wrt=STEP_INPUTS)
    for name, array in inputs.items():
        assert found[name].shape == array.shape and np.abs(found[name]).max() > 0
        np.testing.assert_allclose(found[name], gradient[name], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("lead", LEADS)
def test_vmap_with_step_inputs_is_one_call_and_a_loop(
    towed: Towed, calls: list[tuple[int, ...]], lead: tuple[int, ...]
) -> None:
    """Over start states with the same inputs, over inputs, and over some of them."""
    slopes = jax.grad(towed.loss, (0, 2))
    same, several = towed.inputs(*lead), towed.inputs(ROWS, *lead)
    some = same | {name: several[name] for name in ("xfrc_applied", "mocap_quat")}
    for qpos, inputs, axis, axes in (
        (towed.rows, same, 0, dict.fromkeys(STEP_INPUTS)),
        (towed.qpos, several, None, dict.fromkeys(STEP_INPUTS, 0)),
        (towed.rows, some, 0, {name: None if some[name] is same[name] else 0 for name in STEP_INPUTS}),
    ):
        calls.clear()
        found = jax.jit(jax.vmap(slopes, in_axes=(axis, None, axes)))(qpos, towed.qvel, inputs)
        assert calls == [(ROWS * BATCH, STEPS, 0)]
        for row in range(ROWS):
            own = {name: array if axes[name] is None else array[row] for name, array in inputs.items()}
            expected = slopes(qpos if axis is None else qpos[row], towed.qvel, own)
            assert_close(jax.tree.map(lambda array, row=row: array[row], found), expected)


@pytest.mark.parametrize("lead", [(), (1,), (STEPS,)])
def test_vmap_of_single_environments_is_a_batch(
    towed: Towed, calls: list[tuple[int, ...]], lead: tuple[int, ...]
) -> None:
    """The gradient by inputs that a batch shares is the sum over what each environment would have."""
    slopes, own = jax.grad(towed.loss, (0, 2)), towed.inputs(BATCH, *(lead or (1,)))
    for inputs, axis in ((towed.inputs(*lead), None), (own, 0)):
        calls.clear()
        by_qpos, by_inputs = jax.vmap(slopes, in_axes=(0, 0, axis))(towed.qpos, towed.qvel, inputs)
        assert calls == [(BATCH, STEPS, 0)]
        if axis is None:
            by_inputs = jax.tree.map(lambda array: array.sum(axis=0), by_inputs)
        assert_close((by_qpos, by_inputs), slopes(towed.qpos, towed.qvel, inputs))


@pytest.mark.parametrize("lead", [(), (1,), (STEPS,)])
def test_jacrev_by_step_inputs(towed: Towed, calls: list[tuple[int, ...]], lead: tuple[int, ...]) -> None:
    """It is one rollout; of each environment under vmap, too; and has the columns of differences."""
    inputs = towed.inputs(*lead)

    def last(qpos: Any, qvel: Any, given: Any) -> Any:
        return towed.states(qpos, qvel, given, states="final")[0]

    jacobian = jax.jacrev(last, 2)
    each = []
    for row in range(BATCH):
        calls.clear()
        each.append(jacobian(towed.qpos[row], towed.qvel[row], inputs))
        assert calls == [(STEPS, 0)]
    found = jax.vmap(jacobian, in_axes=(0, 0, None))(towed.qpos, towed.qvel, inputs)
    assert_close(found, jax.tree.map(lambda *arrays: np.stack(arrays), *each))
    for name, array in inputs.items():
        step = 1e-6 * np.eye(array.size).reshape(-1, *array.shape)
        moved = [inputs | {name: array + sign * step} for sign in (1, -1)]
        axes = {other: 0 if other == name else None for other in STEP_INPUTS}
        columns = jax.vmap(last, in_axes=(None, None, axes))
        ahead, behind = (columns(towed.qpos[0], towed.qvel[0], given) for given in moved)
        expected = np.moveaxis((ahead - behind) / 2e-6, 0, -1).reshape(each[0][name].shape)
        np.testing.assert_allclose(each[0][name], expected, rtol=1e-5, atol=1e-7)


def test_jacrev_of_a_batch_sums_over_what_it_shares(towed: Towed) -> None:
    def last(inputs: Any) -> Any:
        return towed.states(towed.qpos, towed.qvel, inputs, states="final")[0]

    shared = towed.inputs()
    repeated = {name: np.broadcast_to(array, (BATCH, 1, *array.shape)) for name, array in shared.items()}
    found, each = jax.jacrev(last)(shared), jax.jacrev(last)(repeated)
    assert_close(found, jax.tree.map(lambda array: array.sum(axis=(2, 3)), each))


def test_step_inputs_beside_a_policy(cart: Cartpole) -> None:
    """With a policy, vmap is one call per row."""
    arrays = controllers("policy")[1]
    policy = policy_of(*arrays[:4], goal=arrays[4])

    def loss(qpos: Any, forces: Any) -> Any:
        given = {"xfrc_applied": forces, **policy}
        found = adapter.rollout(cart.sim, cart.model, qpos, cart.qvel, cart.ctrl, **given)
        return sum(jnp.sum(jnp.sin(array)) for array in found)

    forces = np.random.default_rng(6).normal(size=(STEPS, cart.model.nbody, 6))
    slopes = jax.grad(loss, (0, 1))
    found = jax.vmap(slopes, in_axes=(0, None))(cart.rows, forces)
    for row, qpos in enumerate(cart.rows):
        assert_close(tuple(array[row] for array in found), slopes(qpos, forces))


@pytest.mark.parametrize("name", STEP_INPUTS)
def test_step_inputs_without_their_own_axes_are_refused(towed: Towed, name: str) -> None:
    """Also under vmap, where they would be taken for axes of length 1, which that of mocap bodies is here."""
    value = towed.inputs(ROWS)[name][..., 0] if name == "qfrc_applied" else towed.inputs(ROWS)[name][:, 0]
    with pytest.raises(revolute.ArgumentError, match=f"{name}: expected . or more axes, got shape"):
        jax.vmap(lambda each: towed.loss(towed.qpos, towed.qvel, {name: each}))(value)


def test_a_policy_and_feedback_of_the_plain_api(cart: Cartpole) -> None:
    arrays = controllers("policy")[1]
    given = {"observe": ("qpos", "qvel", "goal"), "goal": arrays[-1], "scale": 0.5}
    for name, theirs in (
        ("policy", revolute.MLP(arrays[:4], **given)),
        ("feedback", revolute.Feedback(*controllers("feedback")[1])),
    ):
        found = adapter.rollout(cart.sim, cart.model, *cart.inputs[:3], **{name: theirs})
        expected = cart.sim.rollout(cart.model, *cart.inputs[:3], **{name: theirs})
        np.testing.assert_array_equal(found[0], expected.qpos)


def test_a_network_that_is_none() -> None:
    with pytest.raises(revolute.ArgumentError, match=r"policy\.weights\.1: expected shape \[4\], got \[3\]"):
        adapter.Policy([np.zeros((4, 2)), np.zeros(3)], ["qpos"])
    with pytest.raises(
        revolute.ArgumentError, match=r"policy\.weights\.0: .*tracer.*revolute\.jax: .*Policy"
    ):
        jax.jit(lambda w: revolute.MLP([w, np.zeros(1)], ["qpos"]).weights)(np.zeros((1, 2)))


def test_a_second_derivative_is_refused(cart: Cartpole) -> None:
    for outer in (jax.jacrev, jax.jacfwd):
        with pytest.raises(NotImplementedError, match="expected a first derivative, got a second one"):
            outer(jax.grad(cart.loss, 2), 2)(*cart.inputs)


def test_arguments_of_another_kind(
    in_process: revolute.Simulator, of_another_kind: tuple[dict[str, Any], str]
) -> None:
    model, (arguments, message) = in_process.load_model("cartpole"), of_another_kind
    with pytest.raises(revolute.ArgumentError, match=message):
        adapter.rollout(in_process, model, model.qpos0, model.qvel0, np.zeros((3, 1)), **arguments)


def test_a_policy_of_another_kind(in_process: revolute.Simulator) -> None:
    model, policy = in_process.load_model("cartpole"), [np.zeros((1, 4))]
    message = r"policy: expected a revolute\.jax\.Policy .*, got list; write .*Policy\(weights"
    with pytest.raises(revolute.ArgumentError, match=message):
        adapter.rollout(in_process, model, model.qpos0, model.qvel0, np.zeros((3, 1)), policy=policy)
