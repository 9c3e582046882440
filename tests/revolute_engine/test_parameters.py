"""Every model parameter: given, it replaces the model's; its gradient agrees with central differences, shared
and per environment.
"""

import math
from typing import Any

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, Model, load_model
from revolute_engine.parameters import PARAMETERS, default_parameter, parameters_of
from tests.robots import THREE_TREES

# rounding of the differences is all that is left
TOLERANCE = 1e-7

SLIDER = """<mujoco><option timestep="0.002"/><worldbody>
  <geom name="floor" type="plane" size="0 0 1" friction="0.5 0 0"/>
  <body name="puck" pos="0 0 0.05"><freejoint/><geom name="puck" type="box" size="0.1 0.1 0.05" mass="0.7"
    friction="0.3 0 0"/>
    <body name="arm" pos="0 0 0.1"><joint name="arm" axis="0 0 1" frictionloss="0.02" damping="0.01"
      armature="0.001" stiffness="0.2"/>
      <inertial pos="0.1 0 0" mass="0.2" diaginertia="0.001 0.002 0.002"/></body></body>
  <body name="ball" pos="1 0 0.25"><freejoint/><geom name="ball" size="0.1" mass="0.4" friction="0.2 0 0"/>
    <body name="ring"><joint name="ring" axis="0 0 1" frictionloss="0.01"/>
    <inertial pos="0 0 0" mass="0.1" diaginertia="0.001 0.001 0.001"/></body></body>
</worldbody><actuator><motor joint="arm" gear="0.8"/><motor joint="ring" gear="0.5"/></actuator></mujoco>"""
"""A box that slides with an arm that turns against dry friction, and a ball that falls and bounces."""

HARD = tuple(name for name, known in PARAMETERS.items() if known.contact_model in (None, "hard"))
"""Those of the contact model that is simulated here."""
SMOOTH = tuple(
    name
    for name in HARD
    if not name.startswith("geom_") and name not in ("dof_frictionloss", "restitution", "jnt_range")
)
SLIDING = tuple(name for name in HARD if name != "jnt_range")


def _slider() -> tuple[Model, dict[str, np.ndarray]]:
    model = load_model(SLIDER, contact_model="hard", restitution=0.5)
    qvel = np.array([1.0, 0.5, 0, 0, 0, 2, 1.5, 0.3, 0.2, -1, 4, -6, 5, 3])
    ctrl = np.random.default_rng(1).normal(size=(80, 2)) * 0.01
    return model, {"qpos": model.qpos0, "qvel": qvel, "ctrl": ctrl}


def _trees() -> tuple[Model, dict[str, np.ndarray]]:
    model, random = load_model(THREE_TREES, contact=False), np.random.default_rng(2)
    qpos = model.qpos0 + 0.2 * random.normal(size=model.nq)
    ctrl = 0.2 * random.normal(size=(40, model.nu))
    return model, {"qpos": qpos, "qvel": 0.5 * random.normal(size=model.nv), "ctrl": ctrl}


CASES = [("trees", name) for name in SMOOTH] + [("slider", name) for name in SLIDING]


def _start(scene: str) -> tuple[Model, dict[str, np.ndarray]]:
    return {"trees": _trees, "slider": _slider}[scene]()


def _value(model: Model, name: str, random: np.random.Generator) -> np.ndarray:
    """Return a value near the model's own, off its zeros and off the ties of equal friction."""
    own = default_parameter(model, name)
    value = own * (1 + 0.1 * random.uniform(-1, 1, size=own.shape))
    if name in ("dof_damping", "dof_armature", "geom_friction"):
        value = value + 0.01 * random.uniform(size=own.shape)
    if name == "jnt_stiffness":
        value = value + 0.1 * random.uniform(size=own.shape) * (model.arrays["jnt_type"] != 0)
    if name in ("body_ipos", "gravity", "actuator_gainprm", "actuator_biasprm", "qpos_spring"):
        value = value + 0.01 * random.normal(size=own.shape)
    return value


def _difference(loss: Any, value: np.ndarray, direction: np.ndarray, step: float = 1e-4) -> float:
    """Return the derivative along a direction to fourth order."""

    def central(by: float) -> float:
        return (loss(value + by * direction) - loss(value - by * direction)) / (2 * by)

    return (4 * central(step / 2) - central(step)) / 3


def _direction(model: Model, name: str, random: np.random.Generator) -> np.ndarray:
    """Return a direction that keeps zeros that must stay zero, scaled as the parameter is."""
    own = default_parameter(model, name)
    scale = np.abs(own) if name in ("body_mass", "body_inertia", "dof_frictionloss") else 0.02
    direction = random.normal(size=own.shape) * scale
    return direction * (model.arrays["jnt_type"] != 0) if name == "jnt_stiffness" else direction


@pytest.mark.parametrize(("scene", "name"), CASES)
def test_gradients_agree_with_differences(scene: str, name: str) -> None:
    model, start = _start(scene)
    engine, random = Engine(threads=1), np.random.default_rng(3)
    value, direction = _value(model, name, random), _direction(model, name, random)
    rollout = engine.rollout(model, **start, params={name: value})
    bars = random.normal(size=rollout.qpos.shape), random.normal(size=rollout.qvel.shape)
    gradient = engine.backward(model, rollout, *bars, wrt=name)[name]
    assert gradient.shape == value.shape == PARAMETERS[name].shape(model)

    def loss(at: np.ndarray) -> float:
        moved = engine.rollout(model, **start, params={name: at})
        return float((bars[0] * moved.qpos).sum() + (bars[1] * moved.qvel).sum())

    # a loss of 100 with a derivative of 0.007: smaller steps leave rounding
    difference = _difference(loss, value, direction, 1e-3 if name == "actuator_gainprm" else 1e-4)
    exact = float((gradient * direction).sum())
    print(f"{scene} {name}: {exact:.12g} {difference:.12g}")
    assert exact != 0
    assert exact == pytest.approx(difference, rel=TOLERANCE)


@pytest.mark.parametrize(("scene", "name"), CASES)
def test_each_environment_has_its_own_value_and_gradient(scene: str, name: str) -> None:
    model, start = _start(scene)
    engine, random = Engine(threads=2), np.random.default_rng(4)
    values = np.stack([_value(model, name, random) for _ in range(9)])
    batch = {"qpos": start["qpos"], "qvel": start["qvel"], "ctrl": np.repeat(start["ctrl"][None], 9, axis=0)}
    rollout = engine.rollout(model, **batch, params={name: values})
    bar = random.normal(size=rollout.qvel.shape)
    gradient = engine.backward(model, rollout, qvel_bar=bar, wrt=[name, "ctrl"])
    assert gradient[name].shape == values.shape
    for index in (0, 4, 8):
        alone = engine.rollout(model, **start, params={name: values[index]})
        assert np.array_equal(alone.qpos, rollout.qpos[index])
        own = engine.backward(model, alone, qvel_bar=bar[index], wrt=[name, "ctrl"])
        assert np.array_equal(own[name], gradient[name][index])
        assert np.array_equal(own.ctrl, gradient.ctrl[index])
    assert not np.array_equal(gradient[name][0], gradient[name][4])


@pytest.mark.parametrize("name", HARD)
def test_the_models_own_value_changes_no_bit_and_shared_gradients_are_sums(name: str) -> None:
    model, start = _slider()
    engine = Engine(threads=1)
    ctrl = np.stack([start["ctrl"], -start["ctrl"]])
    plain = engine.rollout(model, start["qpos"], start["qvel"], ctrl)
    own = default_parameter(model, name)
    given = engine.rollout(model, start["qpos"], start["qvel"], ctrl, params={name: own})
    assert np.array_equal(plain.qpos, given.qpos)
    per_environment = engine.rollout(
        model, start["qpos"], start["qvel"], ctrl, params={name: np.stack([own, own])}
    )
    assert np.array_equal(plain.qpos, per_environment.qpos)
    bars = np.random.default_rng(5).normal(size=(3, *plain.qvel.shape))
    gradients = [
        engine.backward(model, rollout, qvel_bar=bars, wrt=name)[name]
        for rollout in (plain, given, per_environment)
    ]
    assert np.array_equal(gradients[0], gradients[1])
    assert gradients[0].shape == (3, *own.shape) and gradients[2].shape == (3, 2, *own.shape)
    assert np.array_equal(gradients[0], gradients[2].sum(axis=1))


_IN_MUJOCO = {
    "body_mass": lambda m, value: m.body_mass.__setitem__(slice(None), value),
    "body_ipos": lambda m, value: m.body_ipos.__setitem__(slice(None), value),
    "body_inertia": lambda m, value: m.body_inertia.__setitem__(slice(None), value),
    "dof_damping": lambda m, value: m.dof_damping.__setitem__(slice(None), value),
    "dof_armature": lambda m, value: m.dof_armature.__setitem__(slice(None), value),
    "jnt_stiffness": lambda m, value: m.jnt_stiffness.__setitem__(slice(None), value),
    "gravity": lambda m, value: m.opt.gravity.__setitem__(slice(None), value),
    "actuator_gear": lambda m, value: m.actuator_gear.__setitem__((slice(None), 0), value),
}


@pytest.mark.parametrize("name", _IN_MUJOCO)
def test_a_parameter_means_what_it_means_in_mujoco(name: str) -> None:
    model, start = _trees()
    theirs = mujoco.MjModel.from_xml_string(THREE_TREES)
    value = _value(model, name, np.random.default_rng(6))
    _IN_MUJOCO[name](theirs, value)
    theirs.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    mujoco.mj_setConst(theirs, mujoco.MjData(theirs))
    data = mujoco.MjData(theirs)
    data.qpos[:], data.qvel[:], data.ctrl[:] = start["qpos"], start["qvel"], start["ctrl"][0]
    mujoco.mj_normalizeQuat(theirs, data.qpos)
    mujoco.mj_step(theirs, data)
    engine = Engine(threads=1)
    ours = engine.rollout(model, start["qpos"], start["qvel"], start["ctrl"][:1], params={name: value})
    assert np.abs(ours.qvel[1] - data.qvel).max() < 1e-10 * np.abs(data.qvel).max()
    own = engine.rollout(model, start["qpos"], start["qvel"], start["ctrl"][:1])
    assert np.abs(own.qvel[1] - data.qvel).max() > 1e-6


def test_dry_friction_given_where_the_model_has_none_acts() -> None:
    text = (
        '<mujoco><option timestep="0.001" gravity="0 0 0"/><worldbody><body><joint axis="0 0 1"/>'
        '<inertial pos="0 0 0" mass="1" diaginertia="1 1 0.5"/></body></worldbody></mujoco>'
    )
    model = load_model(text)
    ctrl = np.zeros((2, 100, 0))
    losses = np.array([[0.0], [2.0]])
    rollout = Engine(threads=1).rollout(model, [0.0], [1.0], ctrl, params={"dof_frictionloss": losses})
    assert rollout.qvel[:, -1, 0] == pytest.approx([1, 1 - 2 / 0.5 * 0.1], abs=1e-12)
    gradient = Engine(threads=1).backward(
        model, rollout, qvel_bar=np.eye(1, 101, 100).reshape(1, 101, 1).repeat(2, 0), wrt="dof_frictionloss"
    )
    assert gradient.dof_frictionloss[1, 0] == pytest.approx(-0.1 / 0.5)


ROLLING = """<mujoco><option timestep="0.002"/><worldbody>
  <geom type="plane" size="0 0 1" friction="0.9 0.01 0.002" condim="6"/>
  <body pos="0 0 0.1"><freejoint/><geom size="0.1" mass="0.4" friction="0.5 0.004 0.001"/></body>
  <body pos="1 0 1"><joint axis="0 1 0" range="-3 10"/>
    <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.3" contype="0"/>
    <body pos="0.3 0 0"><joint type="ball" range="0 10"/>
      <geom type="capsule" fromto="0 0 0 0.3 0.1 0" size="0.02" mass="0.3" contype="0"/></body></body>
</worldbody></mujoco>"""
"""A ball that spins and rolls to rest, and an arm that falls against its limits."""


@pytest.mark.parametrize("contact_model", ["hard", "mujoco"])
@pytest.mark.parametrize("name", ["geom_friction", "jnt_range"])
def test_rotational_friction_and_ranges(contact_model: str, name: str) -> None:
    model = load_model(ROLLING, contact_model=contact_model)
    engine, random, steps = Engine(threads=1), np.random.default_rng(3), 60
    qvel = np.array([0.3, 0, 0, 0.1, 3, 5, 0.5, 0.2, 1, 2.0])
    own = default_parameter(model, name)
    direction = np.abs(own) * random.uniform(0.5, 1, size=own.shape)
    bar = np.zeros((steps + 1, model.nv))
    bar[-1] = random.normal(size=model.nv)
    ctrl = np.zeros((steps, 0))
    rollout = engine.rollout(model, model.qpos0, qvel, ctrl)
    gradient = engine.backward(model, rollout, qvel_bar=bar, wrt=name)[name]

    def loss(at: np.ndarray) -> float:
        end = engine.rollout(model, model.qpos0, qvel, ctrl, params={name: at}).qvel[-1]
        return float(bar[-1] @ end)

    exact, step = float((gradient * direction).sum()), 1e-6
    difference = (loss(own + step * direction) - loss(own - step * direction)) / (2 * step)
    assert exact != 0
    assert exact == pytest.approx(difference, rel=1e-4, abs=1e-6)


def test_the_compiled_engine_has_each_parameter_with_its_size() -> None:
    for contact_model in ("hard", "mujoco"):
        model = load_model("cartpole", contact_model=contact_model)
        for name in parameters_of(model):
            assert model.native.parameter_size(name) == math.prod(PARAMETERS[name].shape(model)), name
