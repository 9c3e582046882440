"""Task space, sensors, contacts and names through the client, the same on every transport."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import revolute
from tests.revolute_engine.measured_scenes import SENSORS, SHAPES, scene

STEPS = 5


def load(simulator: revolute.Simulator) -> revolute.ModelHandle:
    return simulator.load_model(scene(SHAPES + SENSORS), contact_model="mujoco")


def start(model: revolute.ModelHandle, batch: int = 2) -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    qpos = np.repeat(model.qpos0[None], batch, axis=0)
    return {
        "qpos": qpos,
        "qvel": 0.3 * random.normal(size=(batch, model.nv)),
        "ctrl": random.normal(size=(batch, STEPS, model.nu)),
    }


def results(simulator: revolute.Simulator) -> dict[str, Any]:
    """Return what every transport must agree on."""
    model, found = load(simulator), {}
    inputs = start(model)
    bar = np.random.default_rng(6).normal(size=(2, 3))
    poses = simulator.kinematics(model, inputs["qpos"], inputs["qvel"])
    found |= {f"poses {name}": array for name, array in poses.items()}
    found |= {f"bar {name}": array for name, array in poses.backward({"site_pos:tip": bar}).items()}
    found["jacobian"] = poses.jacobian("site_pos:tip")
    with simulator.rollout(
        model, **inputs, sensors=["imu", "toe", "beam", "ground", "nearest"]
    ) as trajectory:
        found["sensors"] = trajectory.sensordata
        states = trajectory.kinematics(times=[0, -1], quantities=["site_pos", "body_linvel:c"])
        found |= {f"states {name}": array for name, array in states.items()}
        gradient = trajectory.backward(
            sensordata_bar=np.ones_like(trajectory.sensordata), wrt=["ctrl", "body_mass"]
        )
        found |= {"by ctrl": gradient.ctrl, "by mass": gradient.body_mass}
        contacts = trajectory.contacts(times=[-1])
        found |= {"pairs": contacts.geoms, "force": contacts.force, "environment": contacts.environment}
        found["time"] = contacts.time
    loss = revolute.Loss(
        [
            revolute.Term("site_pos", site="tip", target=[0.4, 0, 0.3]),
            revolute.Term("body_quat", body="a", relative_to="body:arm", target=[1, 0, 0, 0], times=[1, -1]),
            revolute.Term("sensor", sensor="imu", when="running"),
            revolute.Term("qpos", joint="h", target=0.1),
        ]
    )
    masses = {"body_mass": {"c": [1.5, 2.0]}}
    found["value"], gradient = simulator.value_and_gradient(model, **inputs, loss=loss, params=masses)
    found["value by ctrl"] = gradient.ctrl
    with simulator.session(model, batch=2) as session:
        state = session.step(inputs["ctrl"][:, 0], sensors=True)
        found |= {"session": state.sensordata, "imu": session.sensors(["imu"])}
        found["session force"] = session.contacts(inputs["ctrl"][:, 0]).force
        found["session pose"] = session.kinematics(quantities=["geom_pos"]).geom_pos
    return found


def test_transports_agree(simulators: dict[str, revolute.Simulator]) -> None:
    every = {name: results(simulator) for name, simulator in simulators.items()}
    expected = every.pop("in-process")
    assert expected["sensors"].shape == (2, STEPS + 1, 27)
    assert expected["jacobian"].shape == (2, 3, 12)
    assert expected["session"].shape[0] == 2 and len(expected["pairs"]) > 0
    assert all(np.isfinite(array).all() for name, array in expected.items() if name != "pairs")
    for name, found in every.items():
        assert found.keys() == expected.keys()
        for key, array in found.items():
            assert np.array_equal(array, expected[key]), f"{name} {key}"


def test_sensors_come_with_the_call(simulator: revolute.Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollout and a step measure in the same call, what calls of their own measure afterwards."""
    model = load(simulator)
    inputs, names = start(model), ["site_pos:tip", "subtree_com:a"]
    calls: list[str] = []
    call = simulator._link.transport.call

    def counted(verb: str, document: Any) -> Any:
        calls.append(verb)
        return call(verb, document)

    monkeypatch.setattr(simulator._link.transport, "call", counted)
    with simulator.session(model, batch=2, params={"body_mass": {"c": [1.5, 2.0]}}) as session:
        calls.clear()
        trajectory = simulator.rollout(model, **inputs, sensors=True, measure=names, checkpoints="slots=2")
        state = session.step(inputs["ctrl"][:, 0], 3, sensors=["toe"], measure=names)
        assert calls == ["Rollout", "Step"]
        assert trajectory.sensordata.shape == (2, STEPS + 1, sum(model.sensor_dims))
        np.testing.assert_array_equal(state.sensordata, session.sensors(["toe"], ctrl=inputs["ctrl"][:, 0]))
        afterwards = session.kinematics(quantities=names), trajectory.kinematics(quantities=names)
        for name in names:
            np.testing.assert_array_equal(state.measured[name], afterwards[0][name])
            np.testing.assert_array_equal(trajectory.measured[name], afterwards[1][name])
        with pytest.raises(revolute.ArgumentError, match=r"^measure: expected a site among world"):
            session.step(inputs["ctrl"][:, 0], measure=["site_pos:nose"])
        assert session.state().step_count == 3
        with pytest.raises(
            revolute.ArgumentError, match=r"^checkpoints: expected a policy that keeps states"
        ):
            simulator.rollout(model, **inputs, sensors=True, checkpoints="none")


def test_an_axis_of_length_one_repeats(simulator: revolute.Simulator) -> None:
    model = load(simulator)
    inputs = start(model)
    ctrl = inputs["ctrl"][:1]
    one = simulator.rollout(
        model, inputs["qpos"], inputs["qvel"][:1], ctrl, params={"gravity": [[0, 0, -5.0]]}
    )
    same = simulator.rollout(
        model, inputs["qpos"], inputs["qvel"][0], np.repeat(ctrl, 2, axis=0), params={"gravity": [0, 0, -5.0]}
    )
    np.testing.assert_array_equal(one.qpos, same.qpos)
    poses = [
        simulator.kinematics(model, inputs["qpos"], rows) for rows in (inputs["qvel"][:1], inputs["qvel"][0])
    ]
    np.testing.assert_array_equal(poses[0].site_linvel, poses[1].site_linvel)
    with simulator.session(model, batch=2) as session, simulator.session(model, batch=2) as other:
        session.reset(inputs["qpos"][:1], inputs["qvel"][:1])
        other.reset(inputs["qpos"][0], inputs["qvel"][0])
        np.testing.assert_array_equal(session.step(ctrl[:, 0]).qvel, other.step(ctrl[0, 0]).qvel)
        np.testing.assert_array_equal(session.jacobian(ctrl[:, 0]).A, other.jacobian(ctrl[0, 0]).A)


def test_sensors_of_a_rollout_are_differentiable(in_process: revolute.Simulator) -> None:
    model = load(in_process)
    inputs = start(model, 1)
    bar = np.random.default_rng(1).normal(size=(1, STEPS + 1, 3))
    trajectory = in_process.rollout(model, **inputs, sensors=["imu"])
    gradient = trajectory.backward(sensordata_bar=bar, wrt=["ctrl", "qvel"])
    for name in ("ctrl", "qvel"):
        direction = np.random.default_rng(2).normal(size=inputs[name].shape)

        def along(distance: float, name: str = name, direction: np.ndarray = direction) -> float:
            moved = {**inputs, name: inputs[name] + distance * direction}
            return float((in_process.rollout(model, **moved, sensors=["imu"]).sensordata * bar).sum())

        difference = (along(1e-5) - along(-1e-5)) / 2e-5
        assert difference == pytest.approx(float((gradient[name] * direction).sum()), rel=1e-6, abs=1e-9), (
            name
        )


def test_names_and_indices(in_process: revolute.Simulator) -> None:
    model = load(in_process)
    assert model.joint_types == ("free", "hinge", "slide", "ball", "hinge")
    assert model.qpos_index("h") == [7] and model.qpos_index("ball") == [9, 10, 11, 12]
    assert model.qvel_index("ball") == [8, 9, 10] and model.qvel_index("t") == [11]
    assert model.site_names[-1] == "tip" and "imu" in model.sensor_names
    assert model.sensor_types[model.sensor_names.index("imu")] == "gyro"
    assert model.sensor_dims[model.sensor_names.index("imu")] == 3
    np.testing.assert_allclose(model.jnt_range[1], np.radians([-20, 20]))
    assert np.isinf(model.jnt_range[0]).all()
    with pytest.raises(revolute.ArgumentError, match="joint: expected a joint among float, h, s, ball, t"):
        model.qpos_index("knee")


def test_parameters_by_name_of_element(in_process: revolute.Simulator) -> None:
    model = load(in_process)
    inputs = start(model)
    masses = np.repeat(model.params["body_mass"][None], 2, axis=0)
    masses[:, model.body_names.index("c")] = [1.5, 2.5]
    by_name = in_process.rollout(model, **inputs, params={"body_mass": {"c": [1.5, 2.5]}})
    whole = in_process.rollout(model, **inputs, params={"body_mass": masses})
    np.testing.assert_array_equal(by_name.qpos, whole.qpos)
    with pytest.raises(
        revolute.ArgumentError, match=r"params\.body_mass\.leg: expected a body among world, a"
    ):
        in_process.rollout(model, **inputs, params={"body_mass": {"leg": 1.0}})
    with pytest.raises(revolute.ArgumentError, match="params: expected a parameter of elements among"):
        in_process.rollout(model, **inputs, params={"gravity": {"z": 1.0}})


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: revolute.Term("site_pos", body="a"),
            "body: expected the site that site_pos is of, got a body",
        ),
        (lambda: revolute.Term("site_distance", site="a"), "site: expected 2 elements, got 'a'"),
        (
            lambda: revolute.Term("qpos", times=[0], when="running"),
            "when: expected 'final' beside chosen times",
        ),
        (lambda: revolute.Term("qpos", relative_to="body:a"), "relative_to: expected none for qpos"),
        (
            lambda: revolute.Term("site_quat", site="a", form="linear"),
            "form: expected 'squared' for site_quat",
        ),
    ],
)
def test_wrong_terms_are_named(make: Any, text: str) -> None:
    with pytest.raises(revolute.ArgumentError) as caught:
        make()
    assert text in str(caught.value)
