"""The same program in this process, over gRPC and over HTTP gives the same bits, on real robots."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import revolute
from testbed.server_process import ServerProcess
from tests.robots import gymnasium_ant, laikago_urdf

BATCH, STEPS = 3, 20


def laikago(simulator: revolute.Simulator) -> revolute.ModelHandle:
    return simulator.load_model(laikago_urdf(), base="free", ground=True, timestep=2e-3)


def ant(simulator: revolute.Simulator) -> revolute.ModelHandle:
    return simulator.load_model(gymnasium_ant())


def elliptic_ant(simulator: revolute.Simulator) -> revolute.ModelHandle:
    return simulator.load_model(gymnasium_ant(), cone="elliptic")


def hard_ant(simulator: revolute.Simulator) -> revolute.ModelHandle:
    return simulator.load_model(gymnasium_ant(), contact_model="hard", restitution=0.2)


MUSCLES = """<mujoco><option timestep="0.002"/><compiler autolimits="true"/><worldbody>
  <site name="anchor" pos="0 0 0.3"/>
  <body><joint axis="0 1 0" damping="0.1"/><geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03"/>
    <geom name="bend" size="0.05" pos="0.2 0 0.05"/>
    <body pos="0.4 0 0"><joint name="wrist" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/><site name="tip" pos="0.2 0 0"/>
      <body pos="0.3 0 0"><joint name="end" axis="0 0 1"/>
        <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.02"/>
      </body></body></body></worldbody>
  <tendon><spatial name="path"><site site="anchor"/><geom geom="bend"/><site site="tip"/></spatial></tendon>
  <actuator><muscle tendon="path" lengthrange="0.2 0.9" force="40"/><motor joint="end"/>
    <intvelocity joint="wrist" kp="2" actrange="-1 1"/></actuator></mujoco>"""


def muscles(simulator: revolute.Simulator) -> revolute.ModelHandle:
    return simulator.load_model(MUSCLES)


def standing(model: revolute.ModelHandle) -> dict[str, np.ndarray]:
    """Return states near the model's own and random controls, so that feet touch and slip."""
    random = np.random.default_rng(20210706)
    qpos = np.repeat(model.qpos0[None], BATCH, axis=0)
    qpos[:, 2] = 0.47 if "laikago" in model.name else 0.6
    qvel = 0.1 * random.normal(size=(BATCH, model.nv))
    ctrl = random.uniform(-0.5, 0.5, size=(BATCH, STEPS, model.nu))
    return {"qpos": qpos, "qvel": qvel, "ctrl": ctrl}


@pytest.mark.parametrize("load", [laikago, ant, elliptic_ant, hard_ant, muscles])
def test_rollouts_and_gradients_are_bit_identical(
    simulators: dict[str, revolute.Simulator], load: object
) -> None:
    results = {}
    for name, simulator in simulators.items():
        model = load(simulator)  # type: ignore[operator]
        inputs = standing(model)
        wrt = ["qpos", "qvel", "ctrl", *model.params]
        with simulator.rollout(model, **inputs) as trajectory:
            random = np.random.default_rng(3)
            qpos_bar = random.normal(size=(2, *trajectory.qpos.shape))
            qvel_bar = random.normal(size=(2, *trajectory.qvel.shape))
            gradient = trajectory.backward(qpos_bar, qvel_bar, wrt=wrt)
            arrays = {entry: gradient[entry] for entry in wrt}
            tangent = trajectory.jvp(
                qpos_tan=random.normal(size=model.nv), params_tan={"body_mass": model.body_mass}
            )
            results[name] = {"id": model.id, "states": trajectory.qpos, "speeds": trajectory.qvel, **arrays}
            results[name] |= {"tangent": tangent.qpos, "tangent of speeds": tangent.qvel}
            jacobian = simulator.jacobian(model, inputs["qpos"], inputs["qvel"], inputs["ctrl"][:, 0])
            results[name] |= {"A": jacobian.A, "B": jacobian.B}
            assert not trajectory.status.any()
    expected = results.pop("in-process")
    assert np.isfinite(expected["ctrl"]).all()
    # the ant's feet stick, so friction has no influence there
    for name in ("ctrl", "body_mass", "body_ipos", "gravity", "dof_damping", "tangent", "B"):
        assert expected[name].any(), name
    for name, found in results.items():
        assert found.pop("id") == expected["id"]
        for key, array in found.items():
            np.testing.assert_array_equal(array, expected[key], err_msg=f"{name} {key}")


def test_value_and_gradient_is_bit_identical(simulators: dict[str, revolute.Simulator]) -> None:
    loss = revolute.Loss(
        [
            revolute.Term("qpos", target=[0.05, 0.0], index=[0, 1]),
            revolute.Term("ctrl", weight=1e-3, when="running"),
        ]
    )
    results = []
    for simulator in simulators.values():
        model = ant(simulator)
        inputs = standing(model)
        value, gradient = simulator.value_and_gradient(model, **inputs, loss=loss, wrt=["ctrl", "qvel"])
        trajectory = simulator.rollout(model, **inputs)
        bars = loss.evaluate(trajectory.qpos, trajectory.qvel, trajectory.ctrl)
        by_hand = trajectory.backward(bars.qpos_bar, bars.qvel_bar, wrt=["ctrl", "qvel"])
        np.testing.assert_array_equal(gradient.ctrl, by_hand.ctrl + bars.ctrl_bar)
        np.testing.assert_array_equal(gradient.qvel, by_hand.qvel)
        results.append((value, gradient.ctrl, gradient.qvel))
    for found in results[1:]:
        for array, expected in zip(found, results[0], strict=True):
            np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("load", [ant, muscles])
def test_sessions_are_bit_identical(simulators: dict[str, revolute.Simulator], load: object) -> None:
    results = []
    for simulator in simulators.values():
        model = load(simulator)  # type: ignore[operator]
        inputs = standing(model)
        with simulator.session(model, batch=BATCH) as session:
            session.reset(inputs["qpos"], inputs["qvel"])
            for step in range(5):
                session.step(inputs["ctrl"][:, step], steps=3)
            results.append(session.state())
    for found in results[1:]:
        np.testing.assert_array_equal(found.qpos, results[0].qpos)
        np.testing.assert_array_equal(found.qvel, results[0].qvel)
        assert (found.step_count, found.time) == (results[0].step_count, results[0].time)
    assert results[0].qvel.shape == (BATCH, len(model.qvel0)) and np.any(results[0].qvel[:, model.nv :]) == (
        model.na > 0
    )


LIGHT_CLIENT = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("revolute_engine", "revolute_server", "mujoco", "fastapi", "scipy"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Refuse())
import numpy as np
import revolute

for address in sys.argv[2:]:
    with revolute.connect(address) as simulator:
        model = simulator.load_model(sys.argv[1], base="free", ground=True)
        trajectory = simulator.rollout(model, model.qpos0, model.qvel0, np.zeros((10, model.nu)))
        gradient = trajectory.backward(np.ones_like(trajectory.qpos))
        print(model.nq, model.nv, trajectory.qpos.tobytes().hex(), gradient.ctrl.tobytes().hex())
        print(simulator.check_gradient(model, steps=3, directions=1, wrt=["ctrl", "gravity"]).to_dict())
try:
    revolute.connect()
except revolute.UnavailableError as error:
    print(error)
"""


def test_the_light_client_needs_no_engine(
    server: ServerProcess, in_process: revolute.Simulator, tmp_path: Path
) -> None:
    script = tmp_path / "client.py"
    script.write_text(LIGHT_CLIENT)
    command = [sys.executable, str(script), str(laikago_urdf()), server.grpc, server.http]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    over_grpc, *checks, without = ended.stdout.splitlines()
    over_http = checks.pop(1)
    model = in_process.load_model(laikago_urdf(), base="free", ground=True)
    trajectory = in_process.rollout(model, model.qpos0, model.qvel0, np.zeros((10, model.nu)))
    gradient = trajectory.backward(np.ones_like(trajectory.qpos))
    expected = f"19 18 {trajectory.qpos.tobytes().hex()} {gradient.ctrl.tobytes().hex()}"
    assert over_grpc == expected
    assert over_http == expected
    report = in_process.check_gradient(model, steps=3, directions=1, wrt=["ctrl", "gravity"])
    assert checks == [str(report.to_dict())] * 2
    assert "revolute[server]" in without and "pip install ./client ." in without
