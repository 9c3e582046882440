"""Sensors and contact forces against MuJoCo; their derivatives against differences."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
import pytest

from revolute.contract.errors import ArgumentError
from revolute_engine import Engine, Model, load_model
from revolute_engine.parameters import default_parameter

from .measured_scenes import SENSORS, SHAPES, scene

ENGINE = Engine(threads=1)
TIME = 0.37
ALL = SHAPES + SENSORS
STATE = ("qpos", "qvel", "ctrl")
TOUCH = int(mujoco.mjtSensor.mjSENS_TOUCH)
STATE_STAGES = (int(mujoco.mjtStage.mjSTAGE_POS), int(mujoco.mjtStage.mjSTAGE_VEL))
EQUAL, SOLVED = 1e-12, 1e-9
"""Sensors of positions and velocities; of forces and accelerations, where MuJoCo's solver stops a little
early. Its elliptic cones are solved less closely."""


def reference(model: mujoco.MjModel) -> mujoco.MjModel:
    """Have MuJoCo solve to convergence from a cold start."""
    model.opt.tolerance, model.opt.iterations = 1e-16, 300
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_WARMSTART)
    return model


def data_at(model: mujoco.MjModel, seed: int, spread: float = 0.15) -> mujoco.MjData:
    random, data = np.random.default_rng(seed), mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, random.normal(size=model.nv) * spread, 1.0)
    data.qpos[model.joint("h").qposadr] = 0.5  # beyond its range
    data.qvel[:] = 0.5 * random.normal(size=model.nv)
    data.ctrl[:] = random.normal(size=model.nu)
    data.time = TIME
    mujoco.mj_forward(model, data)
    return data


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_sensors_are_mujocos(cone: str) -> None:
    model = load_model(scene(ALL, cone=cone), contact_model="mujoco")
    theirs = reference(mujoco.MjModel.from_xml_string(scene(ALL, cone=cone)))
    touched = 0.0
    for seed in range(4):
        data = data_at(theirs, seed)
        states = ENGINE.states_to_measure(model, data.qpos, data.qvel, data.ctrl, time=TIME)
        found = ENGINE.measure(model, ["sensor"], states)["sensor"]
        scale = np.maximum(1.0, np.abs(data.sensordata))
        for sensor in range(theirs.nsensor):
            of_state = theirs.sensor_needstage[sensor] in STATE_STAGES
            tolerance = EQUAL if of_state else SOLVED if cone == "pyramidal" else 1e-5
            rows = slice(theirs.sensor_adr[sensor], theirs.sensor_adr[sensor] + theirs.sensor_dim[sensor])
            error = np.abs(found[rows] - data.sensordata[rows]) / scale[rows]
            assert error.max() < tolerance, (model.sensor_names[sensor], seed)
        touched += data.sensordata[theirs.sensor_adr[theirs.sensor_type == TOUCH][:2]].min()
    assert touched > 0


def central(function: Callable[[float], float], step: float) -> float:
    return (8 * (function(step) - function(-step)) - (function(2 * step) - function(-2 * step))) / (12 * step)


@pytest.mark.parametrize(
    ("floor", "tolerance", "step"),
    [("", 1e-6, 1e-5), (' pos="0 0 -9"', 1e-8, 2e-4)],
    ids=["contacts", "no contacts"],
)
def test_cotangents_are_the_derivative(floor: str, tolerance: float, step: float) -> None:
    text = scene(ALL, cone="elliptic").replace(
        'name="floor" type="plane"', f'name="floor" type="plane"{floor}'
    )
    model = load_model(text, contact_model="mujoco")
    data, random = data_at(model.mujoco_model, 2), np.random.default_rng(4)
    names = (
        "body_mass",
        "body_inertia",
        "gravity",
        "geom_friction",
        "actuator_gear",
        "dof_damping",
        "geom_solref",
    )
    start = {"qpos": data.qpos.copy(), "qvel": data.qvel.copy(), "ctrl": data.ctrl.copy()}
    start |= {name: default_parameter(model, name) for name in names}
    bar = random.normal(size=model.mujoco_model.nsensordata)

    def readings(inputs: dict[str, np.ndarray]) -> np.ndarray:
        state = (inputs[name] for name in STATE)
        params = {name: inputs[name] for name in names}
        return ENGINE.measure(model, ["sensor"], ENGINE.states_to_measure(model, *state, params=params))[
            "sensor"
        ]

    # forces of ten to a thousand newtons would drown the rest
    bar /= np.maximum(1.0, np.abs(readings(start)))
    states = ENGINE.states_to_measure(model, data.qpos, data.qvel, data.ctrl)
    gradient = ENGINE.measure_backward(model, {"sensor": bar}, states, wrt=list(start))
    for name, array in start.items():
        direction = random.normal(size=array.shape) * (1.0 if name in STATE else np.abs(array))

        def along(distance: float, name: str = name, direction: np.ndarray = direction) -> float:
            return float(readings({**start, name: start[name] + distance * direction}) @ bar)

        difference = central(along, step if array.min() >= 0.1 or name in STATE else 0.1 * step)
        expected = float((gradient[name] * direction).sum())
        assert difference == pytest.approx(expected, rel=tolerance, abs=10 * tolerance), name


def test_a_batch_gives_the_bits_of_each_state_alone() -> None:
    model = load_model(scene(ALL), contact_model="mujoco")
    rows = [data_at(model.mujoco_model, seed) for seed in range(5)]
    qpos, qvel, ctrl = (np.array([getattr(row, name) for row in rows]) for name in STATE)
    bar = np.random.default_rng(1).normal(size=(5, model.mujoco_model.nsensordata))
    wrt = ["qpos", "qvel", "ctrl"]
    states = ENGINE.states_to_measure(model, qpos, qvel, ctrl)
    together = ENGINE.measure(model, ["sensor"], states)["sensor"]
    pulled = ENGINE.measure_backward(model, {"sensor": bar}, states, wrt=wrt)
    for row in (0, 3):
        own = ENGINE.states_to_measure(model, qpos[row], qvel[row], ctrl[row])
        np.testing.assert_array_equal(ENGINE.measure(model, ["sensor"], own)["sensor"], together[row])
        alone = ENGINE.measure_backward(model, {"sensor": bar[row]}, own, wrt=wrt)
        for name in wrt:
            np.testing.assert_array_equal(alone[name], pulled[name][row], err_msg=name)


REFUSED = {
    "a kind": ('<user name="own" dim="2"/>', "mujoco", "'own' of type user"),
    "the same with hard contact": ('<user name="own" dim="2"/>', "hard", "'own' of type user"),
    "a fixed body": ('<force name="base" site="world"/>', "mujoco", "on a body that does not move"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_sensors_that_are_not_computed_are_refused_when_asked_for(case: str) -> None:
    sensor, contact_model, text = REFUSED[case]
    model = load_model(scene(f"<clock/>{sensor}"), contact_model=contact_model)
    states = ENGINE.states_to_measure(model, model.qpos0, ctrl=np.zeros(model.nu))
    assert ENGINE.measure(model, ["sensor:sensor_0"], states)["sensor:sensor_0"].tolist() == [0.0]
    with pytest.raises(ArgumentError) as caught:
        ENGINE.measure(model, ["sensor"], states)
    assert text in str(caught.value)


def contact_rows(model: Model, theirs: mujoco.MjModel, data: mujoco.MjData) -> list[tuple[int, ...]]:
    rows = []
    for index, contact in enumerate(data.contact):
        force = np.zeros(6)
        mujoco.mj_contactForce(theirs, data, index, force)
        rows.append((*contact.geom, contact.dist, *contact.pos, *contact.frame, *force))
    return sorted(rows)


def test_contact_forces_are_mujocos() -> None:
    text = scene("")
    model = load_model(text, contact_model="mujoco")
    theirs = reference(mujoco.MjModel.from_xml_string(text))
    data = data_at(theirs, 2)
    found = ENGINE.contacts(model, ENGINE.states_to_measure(model, data.qpos, data.qvel, data.ctrl))
    names = ("geom", "distance", "position", "frame", "force")
    rows = [tuple(np.concatenate([np.ravel(found[name][i]) for name in names])) for i in range(data.ncon)]
    assert len(found["geom"]) == data.ncon > 1
    np.testing.assert_allclose(sorted(rows), contact_rows(model, theirs, data), rtol=SOLVED, atol=1e-7)


def test_the_mean_force_of_a_hard_contact_carries_the_weight() -> None:
    text = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.1"><freejoint/>
      <geom size="0.1" mass="2"/></body></worldbody></mujoco>"""
    model = load_model(text, contact_model="hard")
    found = ENGINE.contacts(model, ENGINE.states_to_measure(model, model.qpos0, ctrl=np.zeros(0)))
    np.testing.assert_allclose(found["force"], [[2 * 9.81, 0, 0, 0, 0, 0]], rtol=1e-9, atol=1e-9)
