"""Controllers inside a rollout: held controls, linear feedback and networks, against a loop of single calls,
torch and central differences."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pytest

from revolute.contract.controllers import MLP, Control, Feedback
from revolute.contract.errors import ArgumentError
from revolute.contract.loss import Loss, Term
from revolute_engine import Engine, Gradient, Model, Rollout, load_model
from revolute_engine.tangents import difference, move, pull, rate

ENGINE = Engine(threads=1)
HOLD, PERIODS, BATCH = 3, 5, 3

SMOOTH = 1e-8
"""Relative difference of a gradient from differences of fourth order, without contacts."""
TOUCHING = 1e-6
"""The same with contacts."""

# a flying body with an arm on a ball joint and a hinge: quaternions of both kinds, a hinge and a slide
FLYER = """<mujoco><option timestep="0.01" gravity="0 0 -1"/><default><geom contype="0"/></default><worldbody>
  <body pos="0 0 3"><freejoint/><geom type="box" size="0.2 0.1 0.1" mass="1"/>
  <body pos="0.2 0 0"><joint type="ball" damping="0.1"/>
  <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="0.3"/>
  <body pos="0.3 0 0"><joint name="hinge" axis="0 1 0"/><joint name="slide" type="slide" axis="1 0 0"/>
  <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.03" mass="0.2"/></body></body></body></worldbody>
  <actuator><motor joint="hinge"/><motor joint="slide" gear="3"/></actuator></mujoco>"""
FLYING = load_model(FLYER.encode())
ANT = load_model("ant", contact_model="hard")


def start(model: Model, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return states near the default one, the ant's with its feet on the ground, and controls."""
    random = np.random.default_rng(seed)
    tangents = 0.2 * random.normal(size=(BATCH, model.nv))
    qpos = model.qpos0.copy()
    if model is ANT:
        qpos[2] = 0.5
        tangents[:, :6] *= 0.05
    ctrl = 0.5 * random.normal(size=(BATCH, PERIODS, model.nu))
    return move(model, qpos, tangents), 0.3 * random.normal(size=(BATCH, model.nv)), ctrl


def feedback_of(model: Model, seed: int = 1) -> Control:
    """Return gains for each period, references of each environment."""
    random = np.random.default_rng(seed)
    size = 0.03 if model is FLYING else 0.3  # larger gains throw the light arm about
    gain = size * random.normal(size=(PERIODS, model.nu, 2 * model.nv))
    tangents = 0.4 * random.normal(size=(BATCH, PERIODS, model.nv))
    qpos = move(model, model.qpos0, tangents)
    forces = 0.1 * random.normal(size=(PERIODS, model.nv))
    return Control(HOLD, Feedback(gain, qpos, random.normal(size=(1, model.nv))), qfrc_applied=forces)


def observed_size(model: Model) -> int:
    return model.nq + 2 * len(model.quaternions) + model.nv + model.nu + 2


def policy_of(model: Model, activation: str = "tanh", *, squash: bool = True, seed: int = 1) -> Control:
    random = np.random.default_rng(seed)
    sizes = [observed_size(model), 9, 4, model.nu]
    weights = []
    for inputs, outputs in itertools.pairwise(sizes):
        weights += [
            random.normal(size=(outputs, inputs)) / np.sqrt(inputs),
            0.3 * random.normal(size=outputs),
        ]
    goal = random.normal(size=(PERIODS, 2))
    names = ["goal", "qpos", "previous_ctrl", "qvel"]
    scale = random.uniform(0.5, 1.0, model.nu)
    return Control(
        HOLD, policy=MLP(weights, names, activation=activation, scale=scale, squash=squash, goal=goal)
    )


def controls_of(model: Model) -> list[Control]:
    return [
        feedback_of(model),
        policy_of(model),
        policy_of(model, "elu", squash=False),
        policy_of(model, "relu"),
    ]


def observed(model: Model, qpos: np.ndarray) -> np.ndarray:
    """Return the observation "qpos": quaternions as two columns of their matrices."""
    parts: list[np.ndarray] = []
    at = 0
    for _joint, place in model.quaternions:
        parts.append(qpos[at:place])
        w, x, y, z = qpos[place : place + 4] / np.linalg.norm(qpos[place : place + 4])
        first = [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)]
        second = [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)]
        parts += [np.array(first), np.array(second)]
        at = place + 4
    return np.concatenate([*parts, qpos[at:]])


def network(policy: MLP, x: np.ndarray) -> np.ndarray:
    """Evaluate a policy with NumPy."""
    functions: dict[str, Any] = {
        "tanh": np.tanh,
        "elu": lambda a: np.where(a > 0, a, np.expm1(np.minimum(a, 0))),
        "relu": lambda a: np.maximum(a, 0),
    }
    arrays = policy.arrays(policy.weights)
    for matrix, bias in zip(arrays[:-2:2], arrays[1:-2:2], strict=True):
        x = functions[policy.activation](matrix @ x + bias)
    y = arrays[-2] @ x + arrays[-1]
    return policy.scale * (np.tanh(y) if policy.squash else y)


def in_a_loop(model: Model, control: Control) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simulate period by period, with controls from NumPy."""
    qpos, qvel, ctrl = start(model)
    applied = np.zeros_like(ctrl)
    for c in range(PERIODS):
        for b in range(BATCH):
            if control.feedback is not None:
                given = control.feedback
                error = difference(model, given.qpos[b, c], qpos[b]), qvel[b] - given.qvel[0]
                applied[b, c] = ctrl[b, c] + given.gain[c] @ np.concatenate(error)
            if control.policy is not None:
                previous = applied[b, c - 1] if c else np.zeros(model.nu)
                seen = [control.policy.goal[c], observed(model, qpos[b]), previous, qvel[b]]
                applied[b, c] = ctrl[b, c] + network(control.policy, np.concatenate(seen))
        forces = None if control.qfrc_applied is None else control.qfrc_applied[c]
        one = ENGINE.rollout(model, qpos, qvel, applied[:, [c]], control=Control(HOLD, qfrc_applied=forces))
        qpos, qvel = one.final_qpos, one.final_qvel
    return qpos, qvel, applied


@pytest.mark.parametrize("model", [FLYING, ANT], ids=["flyer", "ant"])
@pytest.mark.parametrize("which", range(4))
def test_a_rollout_equals_a_loop_of_calls(model: Model, which: int) -> None:
    control = controls_of(model)[which]
    found = ENGINE.rollout(model, *start(model), control=control)
    qpos, qvel, applied = in_a_loop(model, control)
    np.testing.assert_allclose(found.ctrl, applied, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.final_qpos, qpos, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.final_qvel, qvel, rtol=0, atol=1e-10)
    assert found.steps == HOLD * PERIODS and abs(applied - start(model)[2]).min() > 1e-4


def test_held_controls_equal_repeated_ones() -> None:
    qpos, qvel, ctrl = start(ANT)
    held = ENGINE.rollout(ANT, qpos, qvel, ctrl, control=Control(HOLD))
    repeated = ENGINE.rollout(ANT, qpos, qvel, np.repeat(ctrl, HOLD, axis=1))
    np.testing.assert_array_equal(held.qpos, repeated.qpos)
    np.testing.assert_array_equal(held.ctrl, ctrl)
    bar = np.random.default_rng(2).normal(size=held.qpos.shape)
    one, other = ENGINE.backward(ANT, held, bar), ENGINE.backward(ANT, repeated, bar)
    np.testing.assert_array_equal(one.qpos, other.qpos)
    summed = other.ctrl.reshape(BATCH, PERIODS, HOLD, -1).sum(axis=2)
    np.testing.assert_allclose(one.ctrl, summed, rtol=1e-12, atol=1e-12)
    tangents = np.random.default_rng(3).normal(size=ctrl.shape)
    pushed = ENGINE.jvp(ANT, held, ctrl_tan=tangents)
    same = ENGINE.jvp(ANT, repeated, ctrl_tan=np.repeat(tangents, HOLD, axis=1))
    np.testing.assert_array_equal(pushed.qpos, same.qpos)


def names_of(control: Control) -> list[str]:
    return ["qpos", "qvel", "ctrl", *control.arrays]


def with_array(control: Control, name: str, value: np.ndarray) -> Control:
    """Return a control with another array in place of one of its own."""
    group, _, field = name.partition(".")
    if not field:
        return replace(control, qfrc_applied=value)
    document = {**control.to_dict()[group], field: value}
    made = Feedback(**document) if group == "feedback" else MLP.from_dict(document)
    return replace(control, **{group: made})


def directional(model: Model, control: Control, name: str, direction: np.ndarray, bars: Any) -> float:
    """Return the derivative of the loss along a direction of one input, by differences of fourth order."""

    def loss(step: float) -> float:
        inputs = dict(zip(("qpos", "qvel", "ctrl"), start(model), strict=True))
        moved = control
        if name == "qpos":
            inputs["qpos"] = move(model, inputs["qpos"], step * direction)
        elif name in inputs:
            inputs[name] = inputs[name] + step * direction
        elif name == "feedback.qpos":
            moved = with_array(control, name, move(model, control.arrays[name], step * direction))
        else:
            moved = with_array(control, name, control.arrays[name] + step * direction)
        found = ENGINE.rollout(model, **inputs, control=moved)
        return float((found.qpos * bars[0]).sum() + (found.qvel * bars[1]).sum())

    step = 1e-4 if model is FLYING else 1e-6
    near, far = ((loss(k * step) - loss(-k * step)) / (2 * k * step) for k in (1, 2))
    return (4 * near - far) / 3


@pytest.mark.parametrize("model", [FLYING, ANT], ids=["flyer", "ant"])
@pytest.mark.parametrize("which", range(4))
def test_gradients_equal_differences(model: Model, which: int) -> None:
    control = controls_of(model)[which]
    random = np.random.default_rng(7)
    rollout = ENGINE.rollout(model, *start(model), control=control)
    bars = random.normal(size=rollout.qpos.shape), random.normal(size=rollout.qvel.shape)
    gradient = ENGINE.backward(model, rollout, *bars, wrt=names_of(control))
    for name in names_of(control):
        given = {"qpos": start(model)[0], "feedback.qpos": control.arrays.get(name)}
        found = gradient[name]
        if name in given:
            base = given[name]
            assert base is not None
            direction = random.normal(size=(*found.shape[:-1], model.nv))
            product = (pull(model, base, found) * direction).sum()
            scale = np.linalg.norm(pull(model, base, found)) * np.linalg.norm(direction)
        else:
            direction = random.normal(size=found.shape)
            product, scale = (found * direction).sum(), np.linalg.norm(found) * np.linalg.norm(direction)
        expected = directional(model, control, name, direction, bars)
        tolerance = SMOOTH if model is FLYING else TOUCHING
        assert abs(product - expected) <= tolerance * scale, (name, product, expected)
        assert scale > 0, name


@pytest.mark.parametrize("which", range(4))
def test_a_batch_equals_each_alone_and_checkpoints_change_no_bit(which: int) -> None:
    control = controls_of(ANT)[which]
    qpos, qvel, ctrl = start(ANT)
    loss = Loss([Term("qpos", index=[0, 1], when="running"), Term("ctrl", weight=0.1, when="running")])
    names = names_of(control)
    value, whole = ENGINE.value_and_gradient(ANT, qpos, qvel, ctrl, loss, control=control, wrt=names)
    for policy in ("interval=4", "slots=3"):
        other, again = ENGINE.value_and_gradient(
            ANT, qpos, qvel, ctrl, loss, control=control, wrt=names, checkpoints=policy
        )
        np.testing.assert_array_equal(other, value)
        kept = ENGINE.rollout(ANT, qpos, qvel, ctrl, control=control, checkpoints=policy)
        states = ENGINE.states(ANT, kept)
        evaluated = loss.evaluate(*states, kept.ctrl)
        np.testing.assert_array_equal(evaluated.value, value)
        for name in names:
            np.testing.assert_array_equal(again[name], whole[name], err_msg=f"{policy} {name}")
    summed: dict[str, np.ndarray] = {}
    for b in range(BATCH):
        mine = control
        if control.feedback is not None:
            mine = with_array(control, "feedback.qpos", control.feedback.qpos[b])
        one, alone = ENGINE.value_and_gradient(ANT, qpos[b], qvel[b], ctrl[b], loss, control=mine, wrt=names)
        assert one == value[b]
        for name in names:
            if whole[name].shape[:1] == (BATCH,) and name != "policy.weights":
                np.testing.assert_array_equal(alone[name], whole[name][b], err_msg=name)
            else:
                summed[name] = summed[name] + alone[name] if name in summed else alone[name]
    for name, total in summed.items():
        np.testing.assert_array_equal(total, whole[name], err_msg=name)


def test_many_cotangents_at_once() -> None:
    control = policy_of(FLYING)
    rollout = ENGINE.rollout(FLYING, *start(FLYING), control=control)
    bars = np.random.default_rng(5).normal(size=(3, *rollout.qpos.shape))
    names = names_of(control)
    together = ENGINE.backward(FLYING, rollout, bars, wrt=names)
    for k in range(3):
        alone = ENGINE.backward(FLYING, rollout, bars[k], wrt=names)
        for name in names:
            np.testing.assert_array_equal(together[name][k], alone[name], err_msg=name)


def test_shared_arrays_have_shared_gradients() -> None:
    model = FLYING
    qpos, qvel, ctrl = start(model)
    gain = 0.3 * np.random.default_rng(1).normal(size=(model.nu, 2 * model.nv))
    shapes = [(), (1,), (PERIODS,), (1, 1), (BATCH, 1), (1, PERIODS), (BATCH, PERIODS)]
    found: dict[tuple[int, ...], np.ndarray] = {}
    for shape in shapes:
        spread = np.broadcast_to(gain, (*shape, *gain.shape))
        control = Control(HOLD, Feedback(spread, model.qpos0, model.qvel0))
        rollout = ENGINE.rollout(model, qpos, qvel, ctrl, control=control)
        gradient = ENGINE.backward(model, rollout, np.ones_like(rollout.qpos), wrt=["feedback.gain"])
        found[shape] = gradient["feedback.gain"]
        assert found[shape].shape == spread.shape
    for shape, array in found.items():
        whole = array.reshape(-1, *gain.shape).sum(axis=0)
        np.testing.assert_allclose(whole, found[()], rtol=1e-12, atol=1e-12, err_msg=str(shape))
    np.testing.assert_allclose(found[BATCH, PERIODS].sum(axis=0), found[(PERIODS,)], rtol=1e-12, atol=1e-12)


def test_a_diverged_environment_is_left_out_of_shared_gradients() -> None:
    control = policy_of(FLYING)
    qpos, qvel, ctrl = start(FLYING)
    qvel[1] = 1e200
    rollout = ENGINE.rollout(FLYING, qpos, qvel, ctrl, control=control)
    assert rollout.status.tolist() == [0, 1, 0]
    found = ENGINE.backward(FLYING, rollout, np.ones_like(rollout.qpos), wrt=["policy.weights"])
    rows = [0, 2]
    others = ENGINE.rollout(FLYING, qpos[rows], qvel[rows], ctrl[rows], control=control)
    expected = ENGINE.backward(FLYING, others, np.ones_like(others.qpos), wrt=["policy.weights"])
    np.testing.assert_array_equal(found["policy.weights"], expected["policy.weights"])


def test_policy_gradients_equal_those_of_torch_with_one_call_per_step() -> None:
    torch = pytest.importorskip("torch")
    model, random = FLYING, np.random.default_rng(4)
    qpos, qvel, noise = start(model)
    activations = {"tanh": torch.nn.Tanh, "elu": torch.nn.ELU, "relu": torch.nn.ReLU}
    for name, function in activations.items():
        torch.manual_seed(0)
        inputs = model.nq + 2 * len(model.quaternions) + model.nv
        net = torch.nn.Sequential(
            torch.nn.Linear(inputs, 8), function(), torch.nn.Linear(8, model.nu)
        ).double()
        target = random.normal(size=model.nv)

        # one call per period, gradients by torch's graph
        states = [(qpos, qvel)]
        rollouts: list[Rollout] = []
        leaves: list[tuple[Any, Any, Any]] = []
        for c in range(PERIODS):
            seen = torch.tensor(np.stack([observed(model, row) for row in states[-1][0]]), requires_grad=True)
            speed = torch.tensor(states[-1][1], requires_grad=True)
            action = torch.tensor(noise[:, c]) + 0.7 * net(torch.cat([seen, speed], dim=1))
            one = ENGINE.rollout(model, *states[-1], action.detach().numpy()[:, None], control=Control(HOLD))
            states.append((one.final_qpos, one.final_qvel))
            rollouts.append(one)
            leaves.append((seen, speed, action))
        qpos_bar, qvel_bar = np.zeros_like(qpos), states[-1][1] - target
        for one, (seen, speed, action) in zip(rollouts[::-1], leaves[::-1], strict=True):
            back = ENGINE.backward(model, one, qpos_bar[:, None], qvel_bar[:, None], times=[-1])
            action.backward(torch.tensor(back.ctrl[:, 0]))
            qpos_bar = back.qpos + _by_qpos(model, one.qpos[:, 0], seen.grad.numpy())
            qvel_bar = back.qvel + speed.grad.numpy()
        by_torch = np.concatenate([parameter.grad.numpy().ravel() for parameter in net.parameters()])

        # one call
        policy = MLP(list(net.parameters()), ["qpos", "qvel"], activation=name, scale=0.7)
        control = Control(HOLD, policy=policy)
        rollout = ENGINE.rollout(model, qpos, qvel, noise, control=control)
        bar = (rollout.final_qvel - target)[:, None]
        gradient = ENGINE.backward(model, rollout, None, bar, times=[-1], wrt=["policy.weights"])
        error = np.linalg.norm(gradient["policy.weights"] - by_torch) / np.linalg.norm(by_torch)
        assert error <= 1e-10, (name, error)
        for part, parameter in zip(policy.arrays(by_torch), net.parameters(), strict=True):
            np.testing.assert_array_equal(part, parameter.grad.numpy())


def _by_qpos(model: Model, qpos: np.ndarray, bar: np.ndarray) -> np.ndarray:
    """Pull cotangents of the observation "qpos" back to qpos, by differences of the observation."""
    result = np.zeros_like(qpos)
    for b, row in enumerate(qpos):
        for tangent in np.eye(model.nv):
            slope = observed(model, move(model, row, 1e-4 * tangent)) - observed(
                model, move(model, row, -1e-4 * tangent)
            )
            far = observed(model, move(model, row, 2e-4 * tangent)) - observed(
                model, move(model, row, -2e-4 * tangent)
            )
            # four times the rate: a cotangent q_bar = 2 E t, a tangent dq = E d / 2
            along = rate(model, row, tangent)
            result[b] += along / (along @ along) * (bar[b] @ (8 * slope - far)) / 12e-4
    return result


def test_activations_are_fed_back_and_observed() -> None:
    """They stand behind the velocities in qvel."""
    text = """<mujoco><option timestep="0.01"/><worldbody><body><joint name="a" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="1"/><body pos="0.3 0 0">
      <joint name="b" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .2 0 0" size="0.03" mass=".5"/></body>
      </body></worldbody><actuator><general joint="a" dyntype="filter" dynprm="0.05" gainprm="2"/>
      <motor joint="b"/></actuator></mujoco>"""
    model, random = load_model(text.encode()), np.random.default_rng(11)
    assert (model.nv, model.nqvel) == (2, 3)
    qpos, qvel, ctrl = random.normal(size=2), random.normal(size=3), random.normal(size=(4, 2))
    gain, weights = random.normal(size=(2, 5)), [random.normal(size=(2, 3)), np.zeros(2)]
    bar = random.normal(size=(9, 3))

    def loss(gain: np.ndarray) -> float:
        control = Control(2, Feedback(gain, np.zeros(2), np.zeros(3)))
        return float((ENGINE.rollout(model, qpos, qvel, ctrl, control=control).qvel * bar).sum())

    fed = Control(2, Feedback(gain, np.zeros(2), np.zeros(3)))
    rollout = ENGINE.rollout(model, qpos, qvel, ctrl, control=fed)
    np.testing.assert_allclose(rollout.ctrl[0], ctrl[0] + gain @ np.concatenate([qpos, qvel]), rtol=1e-12)
    pulled = ENGINE.backward(model, rollout, None, bar, wrt=["feedback.gain", "feedback.qvel"])
    direction = random.normal(size=gain.shape)
    slope = (loss(gain + 1e-5 * direction) - loss(gain - 1e-5 * direction)) / 2e-5
    np.testing.assert_allclose((pulled["feedback.gain"] * direction).sum(), slope, rtol=1e-6)
    assert pulled["feedback.qvel"].shape == (3,) and pulled["feedback.qvel"].all()
    seen = ENGINE.rollout(model, qpos, qvel, ctrl, control=Control(2, policy=MLP(weights, ["qvel"])))
    np.testing.assert_allclose(seen.ctrl[0], ctrl[0] + weights[0] @ qvel, rtol=1e-12)


def test_applied_forces_are_those_of_mujoco() -> None:
    """In smooth motion a step equals mj_step, on a model without actuators too."""
    for text in (FLYER, FLYER[: FLYER.index("<actuator>")] + "</mujoco>"):
        model = load_model(text.encode())
        random = np.random.default_rng(9)
        qpos, qvel = (
            move(model, model.qpos0, 0.3 * random.normal(size=model.nv)),
            random.normal(size=model.nv),
        )
        forces, ctrl = random.normal(size=(4, model.nv)), random.normal(size=(4, model.nu))
        for contact_model in ("hard", "mujoco"):
            model = load_model(text.encode(), contact_model=contact_model)
            found = ENGINE.rollout(model, qpos, qvel, ctrl, control=Control(2, qfrc_applied=forces))
            data = mujoco.MjData(model.mujoco_model)
            data.qpos[:], data.qvel[:] = qpos, qvel
            for t in range(8):
                data.qfrc_applied[:], data.ctrl[:] = forces[t // 2], ctrl[t // 2]
                mujoco.mj_step(model.mujoco_model, data)
            np.testing.assert_allclose(found.final_qvel, data.qvel, rtol=0, atol=1e-10)


@pytest.mark.parametrize("model", [FLYING, ANT], ids=["flyer", "ant"])
@pytest.mark.parametrize("which", range(4))
def test_forward_and_backward_derivatives_are_transposes(model: Model, which: int) -> None:
    control, random = controls_of(model)[which], np.random.default_rng(10)
    qpos, qvel, ctrl = start(model)
    rollout = ENGINE.rollout(model, qpos, qvel, ctrl, control=control, checkpoints="slots=3")
    states = ENGINE.states(model, rollout)
    bars = random.normal(size=states[0].shape), random.normal(size=states[1].shape)
    tangents = random.normal(size=qvel.shape), random.normal(size=qvel.shape), random.normal(size=ctrl.shape)
    mass = random.normal(size=model.nbody)
    pushed = ENGINE.jvp(
        model,
        rollout,
        qpos_tan=tangents[0],
        qvel_tan=tangents[1],
        ctrl_tan=tangents[2],
        params_tan={"body_mass": mass},
    )
    pulled = ENGINE.backward(model, rollout, *bars, wrt=["qpos", "qvel", "ctrl", "body_mass"])
    forward = (pull(model, states[0], bars[0]) * pushed.qpos).sum() + (bars[1] * pushed.qvel).sum()
    backward = (pull(model, qpos, pulled.qpos) * tangents[0]).sum() + (pulled.qvel * tangents[1]).sum()
    backward += (pulled.ctrl * tangents[2]).sum() + (pulled.body_mass * mass).sum()
    np.testing.assert_allclose(forward, backward, rtol=1e-9)


@pytest.mark.parametrize("which", range(2))
def test_cotangents_of_controls_are_those_of_a_loss_of_controls(which: int) -> None:
    """Controls with feedback depend on the states, so their loss has a gradient by every input."""
    control, names = controls_of(FLYING)[which], names_of(controls_of(FLYING)[which])
    inputs = start(FLYING)
    loss = Term("ctrl", weight=0.3, target=0.1, when="running")
    _, expected = ENGINE.value_and_gradient(FLYING, *inputs, loss, control=control, wrt=names)
    rollout = ENGINE.rollout(FLYING, *inputs, control=control)
    bar = 0.6 * (rollout.ctrl - 0.1)
    found = ENGINE.backward(FLYING, rollout, ctrl_bar=bar, wrt=names)
    many = ENGINE.backward(FLYING, rollout, ctrl_bar=np.stack([bar, 2 * bar]), wrt=names)
    for name in names:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-12, err_msg=name)
        np.testing.assert_array_equal(many[name][0], found[name], err_msg=name)
        assert found[name].any(), name
    with pytest.raises(ArgumentError, match=r"^ctrl_bar: expected shape \[3, 5, 2\]"):
        ENGINE.backward(FLYING, rollout, ctrl_bar=bar[:, 1:])


def test_clipped_cotangents_are_those_of_the_recursion() -> None:
    """lambda_t = A' clip(lambda_{t+1}) + g_t, with the Jacobian A of each step."""
    model, bound = FLYING, 3.0
    qpos, qvel, ctrl = start(model)
    rollout = ENGINE.rollout(model, qpos, qvel, ctrl)
    random = np.random.default_rng(8)
    bars = random.normal(size=rollout.qpos.shape), random.normal(size=rollout.qvel.shape)
    bars[0][0] *= 1e-3
    bars[1][0] *= 1e-3
    found = ENGINE.backward(model, rollout, *bars, clip=bound)
    counts = np.zeros(BATCH, int)
    for b in range(BATCH):
        pulled = pull(model, rollout.qpos[b], bars[0][b])
        own = np.concatenate([pulled, bars[1][b]], axis=1)
        cotangent = own[-1]
        for t in reversed(range(PERIODS)):
            norm = np.linalg.norm(cotangent)
            if norm > bound:
                cotangent, counts[b] = cotangent * (bound / norm), counts[b] + 1
            step = ENGINE.jacobian(model, rollout.qpos[b, t], rollout.qvel[b, t], ctrl[b, t])
            np.testing.assert_allclose(found.ctrl[b, t], step.B.T @ cotangent, rtol=1e-9, atol=1e-10)
            cotangent = step.A.T @ cotangent + own[t]
        tangent = pull(model, qpos[b], found.qpos[b])
        np.testing.assert_allclose(np.concatenate([tangent, found.qvel[b]]), cotangent, rtol=1e-9, atol=1e-10)
    assert found.clipped is not None and found.clipped.tolist() == counts.tolist()
    assert counts[0] == 0 and counts[1] > 0
    free = ENGINE.backward(model, rollout, *bars)
    loose = ENGINE.backward(model, rollout, *bars, clip=1e9)
    assert free.clipped is None and loose.clipped is not None and not loose.clipped.any()
    np.testing.assert_array_equal(free.ctrl, loose.ctrl)


def test_clipping_is_the_same_for_every_kind_of_call() -> None:
    control = feedback_of(ANT)
    loss = Term("qpos", index=[0, 1, 2], weight=10.0)
    names = names_of(control)
    inputs = start(ANT)
    _, whole = ENGINE.value_and_gradient(ANT, *inputs, loss, control=control, wrt=names, clip=2.0)
    rollout = ENGINE.rollout(ANT, *inputs, control=control, checkpoints="slots=3")
    bar = loss_bars(rollout)
    pulled = ENGINE.backward(ANT, rollout, bar, times=[-1], wrt=names, clip=2.0)
    assert whole.clipped is not None and whole.clipped.any()
    assert pulled.clipped is not None and pulled.clipped.tolist() == whole.clipped.tolist()
    for name in names:
        np.testing.assert_array_equal(pulled[name], whole[name], err_msg=name)


def loss_bars(rollout: Rollout) -> np.ndarray:
    bar = np.zeros((BATCH, 1, ANT.nq))
    bar[:, 0, :3] = 20.0 * rollout.final_qpos[:, :3]
    return bar


def test_line_searches_get_infinity_where_a_rollout_diverges() -> None:
    qpos, qvel, ctrl = start(FLYING)
    loss = Term("qvel", when="running")
    qvel[1] = 1e200
    value, gradient = ENGINE.value_and_gradient(FLYING, qpos, qvel, ctrl, loss, on_diverged="inf")
    assert np.isposinf(value[1]) and np.isfinite(value[[0, 2]]).all()
    assert np.isnan(gradient.ctrl[1]).all() and np.isfinite(gradient.ctrl[[0, 2]]).all()
    qvel[:] = 1e200
    value, gradient = ENGINE.value_and_gradient(
        FLYING, qpos, qvel, ctrl, loss, wrt=["ctrl", "body_mass"], on_diverged="inf"
    )
    assert np.isposinf(value).all() and gradient.status.tolist() == [1, 1, 1]
    assert np.isnan(gradient.ctrl).all() and np.isnan(gradient.body_mass).all()
    with pytest.raises(ArgumentError, match=r"^on_diverged: expected 'raise' or 'inf'"):
        ENGINE.value_and_gradient(FLYING, qpos, qvel, ctrl, loss, on_diverged="nan")


def test_a_gradient_that_is_exactly_zero_is_said() -> None:
    """A box that sticks to the floor does not feel a small change of its friction."""
    text = """<mujoco><worldbody><geom type="plane" size="5 5 1"/><body pos="0 0 0.1"><freejoint/>
      <geom type="box" size="0.1 0.1 0.1"/></body></worldbody></mujoco>"""
    model = load_model(text.encode(), contact_model="hard")
    rollout = ENGINE.rollout(model, model.qpos0, model.qvel0, np.zeros((5, 0)))
    bar = np.ones_like(rollout.qpos)
    found: Gradient = ENGINE.backward(model, rollout, bar, wrt=["qpos", "geom_friction"])
    assert not found.geom_friction.any() and found.qpos.any()
    (note,) = found.notes
    assert note.startswith("geom_friction: the gradient is exactly zero")


REFUSED = {
    "gain": (
        {"gain": np.zeros((4, 2, 22))},
        r"^feedback\.gain: expected shape \[2, 22\] or \[batch=3, time=5, 2, 22\]",
    ),
    "reference": ({"qpos": np.zeros(FLYING.nv)}, r"^feedback\.qpos: expected shape \[13\] or"),
    "no orientation": ({"qpos": np.zeros(FLYING.nq)}, r"^feedback\.qpos: expected quaternions"),
    "not finite": (
        {"qvel": np.full(FLYING.nv, np.nan)},
        r"^feedback\.qvel: expected finite values, got nan at \[0\]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_feedback_is_refused(case: str) -> None:
    changed, text = REFUSED[case]
    given = {"gain": np.zeros((2, 22)), "qpos": FLYING.qpos0, "qvel": FLYING.qvel0, **changed}
    with pytest.raises(ArgumentError, match=text):
        ENGINE.rollout(FLYING, *start(FLYING), control=Control(HOLD, Feedback(**given)))


def test_wrong_policies_are_refused() -> None:
    def refused(text: str, *arguments: Any, **options: Any) -> None:
        with pytest.raises(ArgumentError, match=text):
            ENGINE.rollout(FLYING, *start(FLYING), control=Control(HOLD, policy=MLP(*arguments, **options)))

    matrix, bias = np.zeros((2, FLYING.nv)), np.zeros(2)
    refused(r"^policy\.weights: expected W, b of each layer, got 1 arrays", [matrix], ["qvel"])
    refused(r"^policy\.weights\.1: expected shape \[2\], got \[3\]", [matrix, np.zeros(3)], ["qvel"])
    refused(
        r"^policy\.weights: expected a network of 17 inputs \(qpos 17\) and nu=2 outputs, got one of 11",
        [matrix, bias],
        ["qpos"],
    )
    refused(
        r"^policy\.observe: expected names among qpos, qvel, .* and what is measured, got 'speed'",
        [matrix, bias],
        ["speed"],
    )
    refused(
        r"^policy\.activation: expected one of tanh, elu, relu", [matrix, bias], ["qvel"], activation="gelu"
    )
    refused(
        r"^policy\.goal: expected an array exactly if observe has 'goal', got none", [matrix, bias], ["goal"]
    )
    refused(
        r"^policy\.scale: expected a number or shape \[nu=2\]",
        [matrix, bias],
        ["qvel"],
        scale=[1.0, 1.0, 1.0],
    )
    for hold in (0, 1.5, True):
        with pytest.raises(ArgumentError, match=r"^hold: expected a number of steps, at least 1"):
            Control(hold)  # type: ignore[arg-type]
    rollout = ENGINE.rollout(FLYING, *start(FLYING), control=policy_of(FLYING))
    with pytest.raises(
        ArgumentError, match=r"^wrt: expected names among qpos, qvel, ctrl, policy\.weights, policy\.goal"
    ):
        ENGINE.backward(FLYING, rollout, np.ones_like(rollout.qpos), wrt=["feedback.gain"])


@pytest.mark.parametrize("model", [FLYING, ANT], ids=["flyer", "ant"])
@pytest.mark.parametrize("which", range(4))
def test_tangents_of_a_controller_are_the_transpose_of_its_gradients(model: Model, which: int) -> None:
    control, random = controls_of(model)[which], np.random.default_rng(12)
    rollout = ENGINE.rollout(model, *start(model), control=control)
    bars = random.normal(size=rollout.qpos.shape), random.normal(size=rollout.qvel.shape)
    gradient = ENGINE.backward(model, rollout, *bars, wrt=list(control.arrays))
    for name, array in control.arrays.items():
        found = gradient[name]
        if name == "feedback.qpos":
            found = pull(model, array, found)
        tangent = random.normal(size=found.shape)
        pushed = ENGINE.jvp(model, rollout, control_tan={name: tangent})
        forward = (pull(model, rollout.qpos, bars[0]) * pushed.qpos).sum() + (bars[1] * pushed.qvel).sum()
        np.testing.assert_allclose(forward, (found * tangent).sum(), rtol=1e-9, err_msg=name)
        # and those of the controls as they acted
        by_ctrl = ENGINE.backward(model, rollout, ctrl_bar=np.ones_like(rollout.ctrl), wrt=[name])[name]
        if name == "feedback.qpos":
            by_ctrl = pull(model, array, by_ctrl)
        np.testing.assert_allclose(pushed.ctrl.sum(), (by_ctrl * tangent).sum(), rtol=1e-9, atol=1e-12)


def test_wrong_tangents_of_a_controller_are_refused() -> None:
    rollout = ENGINE.rollout(FLYING, *start(FLYING), control=policy_of(FLYING))
    with pytest.raises(
        ArgumentError, match=r"^control_tan: expected names among policy\.weights, policy\.goal"
    ):
        ENGINE.jvp(FLYING, rollout, control_tan={"feedback.gain": np.zeros(3)})
    with pytest.raises(ArgumentError, match=r"^control_tan\.policy\.weights: expected shape \["):
        ENGINE.jvp(FLYING, rollout, control_tan={"policy.weights": np.zeros(3)})
    with pytest.raises(ArgumentError, match=r"^control_tan\.policy\.goal: expected shape \[2\] or \[batch=3"):
        ENGINE.jvp(FLYING, rollout, control_tan={"policy.goal": np.zeros((3, 2))})
