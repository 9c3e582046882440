"""Readings of all sensors of a file beside MuJoCo's, and their derivatives beside differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, Model, load_model
from revolute_engine.parameters import default_parameter

ENGINE = Engine(threads=1)
STATE = ("qpos", "qvel", "ctrl")
Place = Callable[[mujoco.MjModel, mujoco.MjData, np.random.Generator], None]


def reference(text: str) -> mujoco.MjModel:
    """Return MuJoCo's model, solved to convergence from a cold start."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations = 1e-16, 300, 200
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_WARMSTART)
    return model


def anywhere(model: mujoco.MjModel, data: mujoco.MjData, random: np.random.Generator) -> None:
    """Move everything a little."""
    mujoco.mj_integratePos(model, data.qpos, 0.2 * random.normal(size=model.nv), 1.0)
    data.qvel[:] = 0.5 * random.normal(size=model.nv)


def data_at(model: mujoco.MjModel, seed: int, place: Place = anywhere) -> mujoco.MjData:
    """Return MuJoCo's data at a random state."""
    random, data = np.random.default_rng(seed), mujoco.MjData(model)
    place(model, data, random)
    data.ctrl[:] = random.normal(size=model.nu)
    data.act[:] = 0.3 * random.uniform(size=model.na)
    mujoco.mj_forward(model, data)
    return data


def state_of(data: mujoco.MjData) -> dict[str, np.ndarray]:
    """Return the state and control as the engine takes them."""
    return {
        "qpos": data.qpos.copy(),
        "qvel": np.concatenate([data.qvel, data.act]),
        "ctrl": data.ctrl.copy(),
    }


def readings(model: Model, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """Return all readings at a state; other names than those of the state are parameters."""
    params = {name: value for name, value in inputs.items() if name not in STATE}
    states = ENGINE.states_to_measure(model, *(inputs[name] for name in STATE), params=params)
    return np.asarray(ENGINE.measure(model, ["sensor"], states)["sensor"])


def compare_with_mujoco(
    text: str, tolerance: float, *, seeds: Sequence[int], place: Place = anywhere
) -> None:
    """Compare every reading, relative to the sensor's largest number if that is above 1."""
    model, theirs = load_model(text, contact_model="mujoco"), reference(text)
    assert not [note for note in model.notes if "sensor" in note]
    for seed in seeds:
        data = data_at(theirs, seed, place)
        found = readings(model, state_of(data))
        for sensor in range(theirs.nsensor):
            rows = slice(theirs.sensor_adr[sensor], theirs.sensor_adr[sensor] + theirs.sensor_dim[sensor])
            scale = max(1.0, float(np.abs(data.sensordata[rows]).max()))
            np.testing.assert_allclose(
                found[rows] / scale,
                data.sensordata[rows] / scale,
                rtol=0,
                atol=tolerance,
                err_msg=f"{model.sensor_names[sensor]}, {theirs.sensor_type[sensor]}, seed {seed}",
            )


def compare_with_differences(
    model: Model,
    start: dict[str, np.ndarray],
    tolerance: float,
    *,
    step: float,
    parameters: Sequence[str] = (),
    seed: int = 0,
) -> None:
    """Compare the pulled-back cotangents by state, control and parameters with central differences."""
    random = np.random.default_rng(seed)
    start = start | {name: default_parameter(model, name) for name in parameters}
    now = readings(model, start)
    bar = random.normal(size=now.shape) / np.maximum(1.0, np.abs(now))
    params = {name: start[name] for name in parameters}
    states = ENGINE.states_to_measure(model, *(start[name] for name in STATE), params=params)
    gradient = ENGINE.measure_backward(model, {"sensor": bar}, states, wrt=list(start))
    for name, array in start.items():
        if not array.size:
            continue
        direction = random.normal(size=array.shape) * (1.0 if name in STATE else np.abs(array))

        def along(distance: float, name: str = name, direction: np.ndarray = direction) -> float:
            return float(readings(model, {**start, name: start[name] + distance * direction}) @ bar)

        near, far = along(step) - along(-step), along(2 * step) - along(-2 * step)
        expected = float((gradient[name] * direction).sum())
        assert (8 * near - far) / (12 * step) == pytest.approx(expected, rel=tolerance, abs=tolerance), name
