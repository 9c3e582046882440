"""Applied forces and mocap bodies give the same bits over every transport: rollouts, streams, sessions,
Jacobians, losses, measurements, and what is opened or loaded again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revolute
from testbed.server_process import running_server
from testbed.wire import GrpcWire

BATCH, ROWS, HOLD = 3, 5, 2

# a gripper that follows a mocap body, and an object that it pushes; no actuators
PUSHER = b"""<mujoco model="pusher"><option timestep="0.004"/><worldbody>
  <geom type="plane" size="2 2 0.1"/>
  <body name="mocap" mocap="true" pos="0 0 0.1"/>
  <body name="gripper" pos="0 0 0.1"><freejoint/>
    <geom name="finger" type="box" size="0.03 0.05 0.05" mass="0.3"/></body>
  <body name="object" pos="0.09 0 0.05"><freejoint/><geom type="box" size="0.05 0.05 0.05" mass="0.2"/>
    <site name="centre"/></body></worldbody>
  <equality><weld body1="mocap" body2="gripper" solref="0.02 1"/></equality>
  <sensor><accelerometer site="centre"/><framepos objtype="body" objname="mocap"/></sensor></mujoco>"""

NAMES = ["qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat"]


def inputs_of(model: revolute.ModelHandle, rows: int = ROWS) -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    path = np.cumsum(np.full((rows, 1, 3), [0.01, 0.001, 0.0]), axis=0)
    turned = model.mocap_quat + 0.02 * random.normal(size=(BATCH, rows, 1, 4))
    return {
        "qfrc_applied": 0.1 * random.normal(size=(rows, model.nv)),
        "xfrc_applied": 0.3 * random.normal(size=(BATCH, 1, model.nbody, 6)),
        "mocap_pos": model.mocap_pos + path,
        "mocap_quat": 1.5 * turned,
    }


def start(model: revolute.ModelHandle) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    qvel = 0.1 * np.random.default_rng(2).normal(size=(BATCH, model.nv))
    return np.repeat(model.qpos0[None], BATCH, axis=0), qvel, np.zeros((BATCH, ROWS, 0))


def found_by(simulator: revolute.Simulator, path: Path) -> dict[str, Any]:
    """Return all results of one simulator."""
    model = simulator.load_model(PUSHER.decode())
    assert list(model.mocap_names) == ["mocap"] and model.mocap_pos.tolist() == [[0, 0, 0.1]]
    inputs, begin = inputs_of(model), start(model)
    results: dict[str, Any] = {}
    trajectory = simulator.rollout(model, *begin, hold=HOLD, **inputs, sensors=True)
    bars = np.random.default_rng(3).normal(size=trajectory.qpos.shape)
    gradient = trajectory.backward(bars, wrt=["qpos", *NAMES])
    results |= {
        "qpos": trajectory.qpos,
        "sensors": trajectory.sensordata,
        "contacts": trajectory.contacts().force,
    }
    results |= {f"backward {name}": gradient[name] for name in NAMES}

    again = simulator.trajectory(model, trajectory.id)
    assert set(again.inputs) == set(NAMES)
    trajectory.save(path)
    loaded = simulator.load_trajectory(path)
    for name in NAMES:
        assert np.array_equal(again.inputs[name], inputs[name]), name
    assert np.array_equal(loaded.qpos, trajectory.qpos)
    again.save(path)
    assert np.array_equal(simulator.load_trajectory(path).qpos, trajectory.qpos)

    with simulator.stream_rollout(model, *begin, hold=HOLD, segment_steps=4, **inputs) as stream:
        pieces = [segment.qpos for segment in stream]
    assert stream.trajectory is not None and len(pieces) == 3
    assert np.array_equal(np.concatenate(pieces, axis=1), trajectory.qpos)
    streamed = stream.trajectory.backward(bars, wrt=NAMES)
    assert all(np.array_equal(streamed[name], gradient[name]) for name in NAMES)

    loss = revolute.Loss([revolute.Term("site_pos", site="centre", target=[0.3, 0, 0.05])])
    value, by_loss = simulator.value_and_gradient(model, *begin, loss, hold=HOLD, wrt=NAMES, **inputs)
    results |= {"value": value, **{f"loss {name}": by_loss[name] for name in NAMES}}

    row = {
        name: np.broadcast_to(array, (BATCH, ROWS, *array.shape[-2:]))[:, 1]
        for name, array in inputs.items()
        if name != "qfrc_applied"
    }
    row["qfrc_applied"] = inputs["qfrc_applied"][1]
    results["A"] = simulator.jacobian(model, *begin[:2], np.zeros((BATCH, 0)), **row).A
    poses = simulator.kinematics(model, begin[0], **{name: row[name] for name in ("mocap_pos", "mocap_quat")})
    results["body_pos"] = poses.body_pos
    np.testing.assert_array_equal(poses.body_pos[:, 1], row["mocap_pos"][:, 0])

    with simulator.session(model, BATCH, durable=False) as session:
        session.reset(*begin[:2])
        for c in range(ROWS):
            given = {
                name: np.broadcast_to(array, (BATCH, ROWS, *array.shape[-2:]))[:, c]
                for name, array in inputs.items()
                if name != "qfrc_applied"
            }
            state = session.step([], HOLD, qfrc_applied=inputs["qfrc_applied"][c], sensors=True, **given)
        assert np.array_equal(state.qpos, trajectory.final_qpos)
        results["session sensors"] = state.sensordata
        # mocap bodies stay, forces do not
        assert state.mocap_pos is not None
        np.testing.assert_array_equal(state.mocap_pos[0], inputs["mocap_pos"][-1])
        np.testing.assert_array_equal(session.kinematics().body_pos[0, 1], inputs["mocap_pos"][-1, 0])
        results["session A"] = session.jacobian([]).A
        later = session.fork().step([])
        kept = {name: given[name] for name in ("mocap_pos", "mocap_quat")}
        alone = simulator.rollout(
            model,
            state.qpos,
            state.qvel,
            np.zeros((BATCH, 1, 0)),
            **{name: array[:, None] for name, array in kept.items()},
        )
        assert np.array_equal(later.qpos, alone.final_qpos)
        some = session.reset(where=[True, False, False])
        assert some.mocap_pos is not None
        np.testing.assert_array_equal(some.mocap_pos[0], model.mocap_pos)
        np.testing.assert_array_equal(some.mocap_pos[1], inputs["mocap_pos"][-1])
        put = session.set_state(mocap_pos=np.ones((1, 3)))
        assert put.mocap_pos is not None and (put.mocap_pos == 1).all()
        results["quaternions"] = put.mocap_quat
    return results


def test_inputs_are_bit_identical(simulators: dict[str, revolute.Simulator], tmp_path: Path) -> None:
    results = {name: found_by(simulator, tmp_path / name) for name, simulator in simulators.items()}
    expected = results.pop("in-process")
    for name in NAMES:
        assert expected[f"backward {name}"].any() and expected[f"loss {name}"].any(), name
    for transport, found in results.items():
        for name, array in found.items():
            np.testing.assert_array_equal(array, expected[name], err_msg=f"{transport} {name}")


def test_controllers_are_streamed(simulators: dict[str, revolute.Simulator]) -> None:
    """A policy that observes its previous control continues from segment to segment."""
    random = np.random.default_rng(4)
    for name, simulator in simulators.items():
        model = simulator.load_model("cartpole")
        qpos, qvel = 0.1 * random.normal(size=(2, model.nq)), np.zeros((2, model.nv))
        ctrl = random.normal(size=(2, 6, 1))
        weights = [random.normal(size=(1, 1 + model.nv + 1)), random.normal(size=1)]
        policy = revolute.MLP(
            weights, ["qvel", "previous_ctrl", "goal"], goal=random.normal(size=(2, 6, 1)), scale=0.5
        )
        gain = 0.1 * random.normal(size=(6, 1, 2 * model.nv))
        feedback = revolute.Feedback(gain, model.qpos0, random.normal(size=(2, 6, model.nv)))
        for controller in ({"policy": policy}, {"feedback": feedback}):
            whole = simulator.rollout(model, qpos, qvel, ctrl, hold=3, **controller)
            with simulator.stream_rollout(
                model, qpos, qvel, ctrl, hold=3, segment_steps=6, **controller
            ) as stream:
                pieces = [segment.qpos for segment in stream]
            assert stream.trajectory is not None
            np.testing.assert_array_equal(np.concatenate(pieces, axis=1), whole.qpos, err_msg=name)
            np.testing.assert_array_equal(stream.trajectory.ctrl, whole.ctrl, err_msg=name)
            wrt = (
                [f"{key}.{part}" for key in controller for part in ("weights", "goal")]
                if "policy" in controller
                else ["feedback.gain", "feedback.qvel"]
            )
            bars = np.ones(whole.qpos.shape)
            one, other = whole.backward(bars, wrt=wrt), stream.trajectory.backward(bars, wrt=wrt)
            for each in wrt:
                np.testing.assert_array_equal(one[each], other[each], err_msg=f"{name} {each}")
        with pytest.raises(revolute.ArgumentError, match="segment_steps: expected a multiple of hold=3"):
            list(simulator.stream_rollout(model, qpos, qvel, ctrl, hold=3, segment_steps=4))


def test_without_steps_bodies_are_where_they_were_put(simulator: revolute.Simulator) -> None:
    """Inputs without an axis of time act at the only state of T = 0; rows for no rows of ctrl are none."""
    model = simulator.load_model(PUSHER.decode())
    begin, place = (model.qpos0, np.zeros(model.nv), np.zeros((0, 0))), np.array([[0.3, 0.0, 0.2]])
    push = np.zeros((model.nbody, 6))
    push[list(model.body_names).index("object"), 0] = 10.0
    names = ["body_pos:mocap", "sensor:pushed"]
    model = simulator.load_model(PUSHER.decode().replace("<accelerometer ", '<accelerometer name="pushed" '))
    # as at the first state of a rollout with steps
    known = simulator.rollout(
        model, *begin[:2], np.zeros((1, 0)), mocap_pos=place, xfrc_applied=push, measure=names
    )
    found = simulator.rollout(model, *begin, mocap_pos=place, xfrc_applied=push, measure=names)
    assert found.measured["body_pos:mocap"].tolist() == [[0.3, 0.0, 0.2]]
    for name in names:
        np.testing.assert_array_equal(found.measured[name], known.measured[name][:1], err_msg=name)
    np.testing.assert_array_equal(found.kinematics(times=[0])["body_pos"][0, 1], [0.3, 0.0, 0.2])
    none = simulator.rollout(model, *begin, mocap_pos=place[None][:0], measure=names)
    assert none.measured["body_pos:mocap"].tolist() == model.mocap_pos.tolist()


def test_a_rollout_that_cannot_be_measured_keeps_nothing() -> None:
    """What it would keep is small, and what it would measure exceeds the server's memory. Its id is free."""
    with running_server("--memory", "64M") as server, revolute.connect(server.grpc) as simulator:
        model = simulator.load_model(PUSHER.decode())
        wire = GrpcWire(server.grpc_target)
        request = {
            "model_id": model.id,
            "qpos": model.qpos0,
            "qvel": np.zeros(model.nv),
            "ctrl": np.zeros((1, 0)),
            "hold": 100_000,
            "checkpoints": "slots=2",
            "request_id": "one",
        }
        error, _ = wire.error("Rollout", {**request, "measure": ["body_mat", "geom_mat", "body_com"]})
        assert isinstance(error, revolute.LimitError), error
        simulator.delete_model(model)  # which no trajectory uses
        model = simulator.load_model(PUSHER.decode())
        assert wire.call("Rollout", {**request, "hold": 2, "measure": ["body_pos"]})["trajectory_id"]
        with pytest.raises(revolute.ArgumentError, match="use"):
            simulator.delete_model(model)
        wire.close()


def test_a_session_keeps_mocap_poses_across_a_restart(tmp_path: Path) -> None:
    store = ("--store", f"sqlite:///{tmp_path}/store.db")
    with running_server(*store) as server, revolute.connect(server.grpc) as simulator:
        model = simulator.load_model(PUSHER.decode())
        session = simulator.session(model, 2)
        session.step([], mocap_pos=[[0.05, 0, 0.1]])
        expected = session.fork().step([], 3)
    with running_server(*store) as server, revolute.connect(server.grpc) as simulator:
        model = simulator.load_model(PUSHER.decode())
        found = simulator.open_session(model, session.id).step([], 3)
        assert np.array_equal(found.qpos, expected.qpos)
        assert found.mocap_pos is not None and found.mocap_pos[:, 0, 0].tolist() == [0.05, 0.05]


def test_a_push_is_found_by_its_gradient(simulators: dict[str, revolute.Simulator]) -> None:
    """A file without actuators is pushed over the ground; the push follows from where the object ends."""
    for name, simulator in simulators.items():
        model = simulator.load_model(PUSHER.decode())
        push = np.zeros((30, model.nbody, 6))
        place = list(model.body_names).index("object")
        begin = model.qpos0, np.zeros(model.nv), np.zeros((30, 0))
        push[:, place, :3] = [1.5, 0.4, 0.0]
        known = simulator.rollout(model, *begin, xfrc_applied=push).final_qpos
        loss = revolute.Loss([revolute.Term("qpos", target=known[7:9], index=[7, 8], weight=1e4)])
        guess = np.array([1.2, 0.1])
        for _ in range(12):
            # Gauss-Newton on a push that is the same in all steps
            push[:, place, :2] = guess
            trajectory = simulator.rollout(model, *begin, xfrc_applied=push)
            bars = np.zeros((2, 1, model.nq))
            bars[0, 0, 7] = bars[1, 0, 8] = 1
            rows = trajectory.backward(bars, times=[-1], wrt=["xfrc_applied"]).xfrc_applied
            guess = guess - np.linalg.solve(
                rows[:, :, place, :2].sum(axis=1), trajectory.final_qpos[7:9] - known[7:9]
            )
        np.testing.assert_allclose(guess, [1.5, 0.4], atol=1e-6, err_msg=name)
        push[:, place, :2] = guess
        assert simulator.value_and_gradient(model, *begin, loss, xfrc_applied=push)[0] < 1e-12


def test_a_gripper_moves_an_object_and_its_end_is_differentiated(
    simulators: dict[str, revolute.Simulator],
) -> None:
    for name, simulator in simulators.items():
        model = simulator.load_model(PUSHER.decode())
        begin = model.qpos0, np.zeros(model.nv), np.zeros((60, 0))
        path = model.mocap_pos + np.linspace(0, 1, 60)[:, None, None] * np.array([0.1, 0.01, 0.0])
        loss = revolute.Loss([revolute.Term("body_pos", body="object", target=[0.25, 0.0, 0.05])])
        _, gradient = simulator.value_and_gradient(model, *begin, loss, mocap_pos=path, wrt=["mocap_pos"])
        direction = np.random.default_rng(5).normal(size=path.shape)
        values = [
            simulator.value_and_gradient(model, *begin, loss, mocap_pos=path + s * 1e-6 * direction)[0]
            for s in (1, -1)
        ]
        slope = (values[0] - values[1]) / 2e-6
        assert abs(slope) > 1e-6
        assert (gradient.mocap_pos * direction).sum() == pytest.approx(slope, rel=1e-4), name
        # pushing the target farther pushes the object farther
        assert gradient.mocap_pos[..., 0].sum() < 0


def difference_of(value: Any, arrays: dict[str, np.ndarray], name: str, direction: np.ndarray) -> float:
    """Return the central difference of a function of arrays by name."""
    ends = [value({**arrays, name: arrays[name] + s * 1e-6 * direction}) for s in (1, -1)]
    return (ends[0] - ends[1]) / 2e-6


def test_measured_quantities_pull_back_to_inputs(simulator: revolute.Simulator) -> None:
    """Poses and sensors of forces, by inputs with the axes of the states or without."""
    model = simulator.load_model(PUSHER.decode())
    random = np.random.default_rng(6)
    qpos = np.repeat(model.qpos0[None], 2, axis=0)
    qpos[:, 2] += 0.3  # without contact
    qvel = 0.1 * random.normal(size=(2, model.nv))
    shared = {
        "qfrc_applied": 0.1 * random.normal(size=(2, model.nv)),
        "xfrc_applied": random.normal(size=(model.nbody, 6)),
        "mocap_pos": model.mocap_pos + np.array([0.0, 0.0, 0.31]),
        "mocap_quat": 1.2 * model.mocap_quat + 0.05 * random.normal(size=(2, 1, 4)),
    }
    quantities = ["sensor", "site_pos:centre@body:mocap", "body_mat:mocap"]
    found = simulator.kinematics(model, qpos, qvel, ctrl=[], quantities=quantities, **shared)
    bars = {name: random.normal(size=found[name].shape) for name in quantities}
    gradient = found.backward(bars, wrt=["qpos", *NAMES])

    def value(arrays: dict[str, np.ndarray]) -> float:
        there = simulator.kinematics(model, qpos, qvel, ctrl=[], quantities=quantities, **arrays)
        return float(sum((there[name] * bars[name]).sum() for name in quantities))

    for name in NAMES:
        own = shared[name].shape[-(1 if name == "qfrc_applied" else 2) :]
        assert gradient[name].shape == (2, *own), name
        direction = random.normal(size=shared[name].shape)
        slope = difference_of(value, shared, name, direction)
        assert abs(slope) > 1e-3, name
        assert float((gradient[name] * direction).sum()) == pytest.approx(slope, rel=1e-6), name
    # of poses that are the model's, and of forces that are zero
    pose = simulator.kinematics(model, model.qpos0, quantities=["body_pos:mocap"])
    back = pose.backward({"body_pos:mocap": np.ones(3)}, wrt=["mocap_pos", "xfrc_applied"])
    assert back["mocap_pos"].tolist() == [[1.0, 1.0, 1.0]] and not back["xfrc_applied"].any()


@pytest.mark.parametrize("kind", ["batch", "shared", "alone"])
def test_cotangents_of_sensors_reach_inputs(simulator: revolute.Simulator, kind: str) -> None:
    model = simulator.load_model(PUSHER.decode())
    inputs, begin = inputs_of(model), start(model)
    begin[0][:, 2] += 0.5  # without contact
    inputs["mocap_pos"] = inputs["mocap_pos"] + [0.0, 0.0, 0.5]
    if kind == "shared":
        inputs = {
            "qfrc_applied": inputs["qfrc_applied"][:1],
            "xfrc_applied": inputs["xfrc_applied"][0, 0],
            "mocap_pos": inputs["mocap_pos"],
            "mocap_quat": inputs["mocap_quat"][:1],
        }
    if kind == "alone":
        begin = begin[0][0], begin[1][0], begin[2][0]
        inputs = {name: array[0] if array.ndim == 4 else array for name, array in inputs.items()}
    known = simulator.rollout(model, *begin, hold=HOLD, sensors=True, **inputs)
    random = np.random.default_rng(7)
    bar, qpos_bar = random.normal(size=known.sensordata.shape), random.normal(size=known.qpos.shape)
    gradient = known.backward(qpos_bar, sensordata_bar=bar, wrt=["qpos", *NAMES])

    def value(arrays: dict[str, np.ndarray]) -> float:
        there = simulator.rollout(model, *begin, hold=HOLD, sensors=True, **arrays)
        return float((there.sensordata * bar).sum() + (there.qpos * qpos_bar).sum())

    for name in NAMES:
        assert gradient[name].shape == inputs[name].shape, name
        direction = random.normal(size=inputs[name].shape)
        slope = difference_of(value, inputs, name, direction)
        assert abs(slope) > 1e-3, name
        assert float((gradient[name] * direction).sum()) == pytest.approx(slope, rel=2e-6), name


def test_cotangents_of_sensors_without_steps(in_process: revolute.Simulator) -> None:
    model = in_process.load_model(PUSHER.decode())
    begin, place = (model.qpos0, np.zeros(model.nv), np.zeros((0, 0))), model.mocap_pos + 0.1
    known = in_process.rollout(model, *begin, sensors=True, mocap_pos=place)
    bar = np.zeros(known.sensordata.shape)
    bar[..., -3:] = [1.0, 2.0, 3.0]  # of the mocap body's place
    found = known.backward(np.zeros(known.qpos.shape), sensordata_bar=bar, wrt=["mocap_pos"])
    np.testing.assert_array_equal(found.mocap_pos, [[1.0, 2.0, 3.0]])
    loss = revolute.Term("body_pos", body="mocap", target=0.0)
    with pytest.raises(
        revolute.ArgumentError, match="ctrl: expected at least one row for a loss that measures"
    ):
        in_process.value_and_gradient(model, *begin, loss, mocap_pos=place)


def test_checks_of_gradients_know_inputs(simulators: dict[str, revolute.Simulator]) -> None:
    reports = []
    for simulator in simulators.values():
        model = simulator.load_model(PUSHER.decode())
        inputs = inputs_of(model, 4)
        given = {name: inputs[name][0] if inputs[name].ndim == 4 else inputs[name] for name in NAMES}
        qpos = model.qpos0 + np.eye(model.nq)[2] * 0.5 + np.eye(model.nq)[9] * 0.5
        given["mocap_pos"] = given["mocap_pos"] + [0.0, 0.0, 0.5]
        ctrl = np.zeros((4, 0))
        reports.append(
            simulator.check_gradient(model, qpos, ctrl=ctrl, hold=2, wrt=["qpos", *NAMES], **given)
        )
    assert [check.verdict for check in reports[0].inputs] == ["right"] * 5, str(reports[0])
    assert all(str(report) == str(reports[0]) for report in reports)
