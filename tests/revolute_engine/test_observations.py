"""What a policy observes besides the state: poses, velocities, centres of mass and sensors, against a loop of
single calls, central differences and torch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from revolute.contract.controllers import MLP, Control
from revolute.contract.errors import ArgumentError
from revolute.contract.loss import Loss, Term
from revolute.contract.tangents import move, pull
from revolute_engine import Engine, Model, load_model

from .measured_scenes import SENSORS, SHAPES, scene

ENGINE = Engine(threads=1)
HOLD, PERIODS, BATCH = 2, 4, 3

SMOOTH = 1e-8
"""Relative difference of a gradient from differences of fourth order, without contacts."""
TOUCHING = 1e-6
"""The same with contacts, and with sensors of forces."""

TOUCHED = load_model(scene())
SEEN = load_model(scene(SHAPES))
FREE = load_model(scene(), contact=False, limits=False, dry_friction=False)

POSES = [
    "site_pos:tip@body:b",
    "site_pos:tip",
    "body_mat:c",
    "geom_pos",
    "body_com:b",
    "subtree_com:a",
    "site_mat:sw",
]
MOTIONS = ["site_linvel:sc", "body_linvel@site:sa", "body_angvel:w", "subtree_linvel:b", "subtree_angmom:a"]
OF_CTRL = ["sensor:toe", "previous_ctrl", "sensor"]
OF_SHAPES = ["site_pos:tip", "sensor:beam", "sensor:nearest", "sensor:ground"]


def start(model: Model, batch: int = BATCH, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    qpos = np.array(model.qpos0)
    qpos[2] = 0.34
    qpos = move(model, qpos, 0.02 * random.normal(size=(batch, model.nv)))
    return qpos, 0.3 * random.normal(size=(batch, model.nv)), random.normal(size=(batch, PERIODS, model.nu))


def measured(model: Model, names: list[str], state: Any, params: Any, time: float) -> dict[str, np.ndarray]:
    """Measure at states with controls, by a call of its own."""
    qpos, qvel, ctrl = state
    states = ENGINE.states_to_measure(model, qpos, qvel, ctrl, time=time, params=params)
    found = ENGINE.measure(model, [name for name in names if name != "previous_ctrl"], states)
    return {name: array.reshape(len(qpos), -1) for name, array in found.items()} | {"previous_ctrl": ctrl}


def policy_of(model: Model, names: list[str], seed: int = 1) -> MLP:
    random = np.random.default_rng(seed)
    first = start(model)
    seen = measured(model, names, (first[0], first[1], np.zeros((BATCH, model.nu))), None, 0.0)
    # sensors of forces give large numbers
    inputs = np.concatenate([seen[name] for name in names], axis=1)
    size = 1 + np.abs(inputs).max(axis=0)
    weights = [random.normal(size=(7, len(size))) / size / 4, 0.3 * random.normal(size=7)]
    weights += [random.normal(size=(model.nu, 7)), 0.3 * random.normal(size=model.nu)]
    return MLP(weights, names, scale=0.5)


def answer(policy: MLP, seen: dict[str, np.ndarray]) -> np.ndarray:
    """Evaluate a policy of one hidden layer with NumPy."""
    hidden, b, out, c = policy.arrays(policy.weights)
    x = np.concatenate([seen[name] for name in policy.observe], axis=1)
    return policy.scale * (np.tanh(x @ hidden.T + b) @ out.T + c)


CASES = {
    "poses": (FREE, POSES, SMOOTH),
    "motions": (FREE, MOTIONS, SMOOTH),
    "sensors": (FREE, ["qpos", "sensor"], SMOOTH),
    "touching": (TOUCHED, [*POSES, *MOTIONS, *OF_CTRL], TOUCHING),
    "shapes": (SEEN, OF_SHAPES, TOUCHING),
}


def names_without_state(names: list[str]) -> list[str]:
    return [name for name in names if name not in ("qpos", "qvel")]


@pytest.mark.parametrize("case", ["poses", "motions", "touching", "shapes"])
def test_a_rollout_equals_a_loop_of_calls(case: str) -> None:
    model, names, _ = CASES[case]
    policy = policy_of(model, names)
    qpos, qvel, ctrl = start(model)
    mass = model.arrays["body_mass"] * np.random.default_rng(3).uniform(0.8, 1.2, (BATCH, model.nbody))
    params = {"body_mass": mass}
    found = ENGINE.rollout(model, qpos, qvel, ctrl, control=Control(HOLD, policy=policy), params=params)
    previous = np.zeros((BATCH, model.nu))
    for c in range(PERIODS):
        seen = measured(model, names, (qpos, qvel, previous), params, c * HOLD * model.timestep)
        previous = ctrl[:, c] + answer(policy, seen)
        np.testing.assert_allclose(found.ctrl[:, c], previous, rtol=0, atol=1e-10)
        one = ENGINE.rollout(model, qpos, qvel, previous[:, None], control=Control(HOLD), params=params)
        qpos, qvel = one.final_qpos, one.final_qvel
    np.testing.assert_allclose(found.final_qvel, qvel, rtol=0, atol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_gradients_equal_differences(case: str) -> None:
    model, names, tolerance = CASES[case]
    policy = policy_of(model, names_without_state(names))
    random = np.random.default_rng(7)
    inputs = dict(zip(("qpos", "qvel", "ctrl"), start(model), strict=True))
    params = {name: np.array(model.arrays[name]) for name in ("body_mass", "body_ipos", "body_inertia")}
    forces = 0.1 * random.normal(size=(PERIODS, model.nv))
    control = Control(HOLD, policy=policy, qfrc_applied=forces)
    rollout = ENGINE.rollout(model, **inputs, control=control, params=params)
    bars = random.normal(size=rollout.qpos.shape), random.normal(size=rollout.qvel.shape)
    wrt = [*inputs, *params, "policy.weights", "qfrc_applied"]
    gradient = ENGINE.backward(model, rollout, *bars, wrt=wrt)

    def loss(name: str, step: float, direction: np.ndarray) -> float:
        moved, others, acting = dict(inputs), dict(params), control
        if name == "qpos":
            moved[name] = move(model, inputs[name], step * direction)
        elif name in inputs:
            moved[name] = inputs[name] + step * direction
        elif name in params:
            others[name] = params[name] + step * direction
        elif name == "qfrc_applied":
            acting = replace(control, qfrc_applied=forces + step * direction)
        else:
            weights = policy.weights + step * direction
            acting = replace(control, policy=MLP.from_dict({**policy.to_dict(), "weights": weights}))
        found = ENGINE.rollout(model, **moved, control=acting, params=others)
        return float((found.qpos * bars[0]).sum() + (found.qvel * bars[1]).sum())

    for name in wrt:
        found, size = gradient[name], 1.0
        if name == "qpos":
            found = pull(model, inputs["qpos"], found)
        if name in params or name == "policy.weights":
            size = params.get(name, policy.weights)  # moved in proportion
        direction = random.normal(size=found.shape) * size
        step = 1e-4 if model is FREE else 1e-5
        near, far = (
            (loss(name, k * step, direction) - loss(name, -k * step, direction)) / (2 * k * step)
            for k in (1, 2)
        )
        expected = (4 * near - far) / 3
        scale = np.linalg.norm(found * size) * np.linalg.norm(direction / np.where(size == 0, 1, size))
        assert abs((found * direction).sum() - expected) <= tolerance * scale, name
        assert scale > 0, name


@pytest.mark.parametrize("case", CASES)
def test_forward_and_backward_derivatives_are_transposes(case: str) -> None:
    model, names, _ = CASES[case]
    policy, random = policy_of(model, names_without_state(names)), np.random.default_rng(10)
    qpos, qvel, ctrl = start(model)
    rollout = ENGINE.rollout(model, qpos, qvel, ctrl, control=Control(HOLD, policy=policy))
    bars = random.normal(size=rollout.qpos.shape), random.normal(size=rollout.qvel.shape)
    tangents = random.normal(size=qvel.shape), random.normal(size=qvel.shape), random.normal(size=ctrl.shape)
    moves = {
        name: model.arrays[name] * random.normal(size=model.arrays[name].shape)
        for name in ("body_mass", "body_ipos")
    }
    pushed = ENGINE.jvp(
        model, rollout, qpos_tan=tangents[0], qvel_tan=tangents[1], ctrl_tan=tangents[2], params_tan=moves
    )
    pulled = ENGINE.backward(model, rollout, *bars, wrt=["qpos", "qvel", "ctrl", *moves])
    forward = (pull(model, rollout.qpos, bars[0]) * pushed.qpos).sum() + (bars[1] * pushed.qvel).sum()
    backward = (pull(model, qpos, pulled.qpos) * tangents[0]).sum() + (pulled.qvel * tangents[1]).sum()
    backward += (pulled.ctrl * tangents[2]).sum()
    backward += sum((pulled[name] * tangent).sum() for name, tangent in moves.items())
    np.testing.assert_allclose(forward, backward, rtol=1e-8)


def test_packs_and_checkpoints_change_no_bit() -> None:
    model, names, _ = CASES["touching"]
    control = Control(HOLD, policy=policy_of(model, names))
    qpos, qvel, ctrl = start(model, batch=9)
    loss = Loss([Term("site_pos", site="tip", when="running"), Term("sensor", sensor="imu")])
    wrt = ["qpos", "qvel", "ctrl", "policy.weights", "body_mass"]
    rows = {"body_mass": np.repeat(model.arrays["body_mass"][None], 9, axis=0)}
    value, whole = ENGINE.value_and_gradient(
        model, qpos, qvel, ctrl, loss, control=control, wrt=wrt, params=rows
    )
    for policy in ("interval=3", "slots=2"):
        again, other = ENGINE.value_and_gradient(
            model, qpos, qvel, ctrl, loss, control=control, wrt=wrt, params=rows, checkpoints=policy
        )
        np.testing.assert_array_equal(again, value)
        for name in wrt:
            np.testing.assert_array_equal(other[name], whole[name], err_msg=name)
    weights = np.zeros_like(whole["policy.weights"])
    for b in range(9):
        one, alone = ENGINE.value_and_gradient(
            model,
            qpos[b],
            qvel[b],
            ctrl[b],
            loss,
            control=control,
            wrt=wrt,
            params={"body_mass": rows["body_mass"][b]},
        )
        assert one == value[b]
        for name in ("qpos", "qvel", "ctrl", "body_mass"):
            np.testing.assert_array_equal(alone[name], whole[name][b], err_msg=name)
        weights += alone["policy.weights"]
    np.testing.assert_array_equal(weights, whole["policy.weights"])


def test_a_reading_of_the_control_is_of_the_period_before() -> None:
    """The force of a motor is its control; the first period has none."""
    model = load_model(
        b"""<mujoco><worldbody><body><joint name="a"/><geom size=".1"/></body></worldbody><actuator>
        <motor name="m" joint="a"/></actuator><sensor><actuatorfrc actuator="m"/></sensor></mujoco>"""
    )
    policy = MLP([np.array([[2.0]]), np.array([1.0])], ["sensor:0"])
    found = ENGINE.rollout(model, model.qpos0, model.qvel0, np.zeros((4, 1)), control=Control(policy=policy))
    np.testing.assert_allclose(found.ctrl[:, 0], [1.0, 3.0, 7.0, 15.0], rtol=1e-14)


def test_what_cannot_be_observed_is_refused() -> None:
    def refused(name: str, text: str, model: Model = TOUCHED) -> None:
        with pytest.raises(ArgumentError, match=text):
            policy = MLP([np.zeros((model.nu, 3)), np.zeros(model.nu)], [name])
            ENGINE.rollout(model, *start(model), control=Control(HOLD, policy=policy))

    refused(
        "speed",
        r"^policy\.observe: expected names among qpos, qvel, previous_ctrl, goal and what is measured",
    )
    refused("body_quat:a", r"^policy\.observe: expected an orientation without a sign.*; observe body_mat$")
    refused("site_pos:nose", r"^policy\.observe: expected a site among world, sa, .*, got 'nose'")
    refused("site_pos:tip@body:nose", r"^policy\.observe: expected a body among world, a, .*, got 'nose'")
    refused("subtree_com:a@body:b", r"^policy\.observe: expected none for subtree_com, got 'body:b'")
    refused("site_distance", r"^policy\.observe: expected two sites for site_distance")
    refused("body_pos", r"^policy\.weights: expected a network of 18 inputs \(body_pos 18\) and nu=3 outputs")
    user = load_model(scene(SENSORS + '<user name="own" dim="1"/>'))
    refused("sensor:own", r"^policy\.observe: .*'own' of type user; leave it out", user)
