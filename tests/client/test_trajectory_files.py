"""Trajectories in files, and handles of models in another simulator of this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revolute

MESHED = """<mujoco><asset><mesh name="m" file="m.obj"/></asset><worldbody><body><freejoint/>
<geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
TETRAHEDRON = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
CTRL = np.linspace(-1, 1, 2 * 6).reshape(2, 6, 1)
PARAMS = {"gravity": [[0.0, 0.0, -9.0], [0.0, 0.0, -3.0]], "dof_damping": [0.1, 0.2]}


def simulated(sim: revolute.Simulator, how: str) -> revolute.Trajectory:
    model = sim.load_model("cartpole", timestep=0.004)
    start = [0.0, 0.2], [0.0, -0.1]
    if how == "held":
        return sim.rollout(model, *start, CTRL[:, :3], params=PARAMS, hold=2)
    if how == "streamed":
        with sim.stream_rollout(model, *start, CTRL, params=PARAMS) as stream:
            list(stream)
        assert stream.trajectory is not None
        return stream.trajectory
    checkpoints = "slots=3" if how == "few checkpoints" else "every"
    trajectory = sim.rollout(model, *start, CTRL, params=PARAMS, checkpoints=checkpoints)
    return sim.trajectory(model, trajectory.detach()) if how == "by its id" else trajectory


@pytest.mark.parametrize("how", ["simulated", "held", "streamed", "few checkpoints", "by its id"])
def test_a_trajectory_is_the_same_from_its_file(
    simulator: revolute.Simulator, tmp_path: Path, how: str
) -> None:
    trajectory = simulated(simulator, how)
    bar = np.random.default_rng(0).normal(size=trajectory.qpos.shape)
    wrt = ["qpos", "ctrl", "dof_damping"]
    expected = trajectory.backward(bar, wrt=wrt)
    trajectory.save(tmp_path / "x.npz")
    with revolute.connect() as other:
        found = other.load_trajectory(tmp_path / "x.npz")
        assert found.qpos.tobytes() == trajectory.qpos.tobytes()
        assert found.checkpoints == trajectory.checkpoints and found.model.id == trajectory.model.id
        gradient = found.backward(bar, wrt=wrt)
        assert all(gradient[name].tobytes() == expected[name].tobytes() for name in wrt)
    with np.load(tmp_path / "x.npz", allow_pickle=False) as file:
        assert np.array_equal(file["inputs.ctrl"], trajectory.ctrl)


def test_a_file_has_the_meshes_of_its_model(in_process: revolute.Simulator, tmp_path: Path) -> None:
    model = in_process.load_model(MESHED, assets={"m.obj": TETRAHEDRON})
    trajectory = in_process.rollout(model, model.qpos0, model.qvel0, np.zeros((3, 0)))
    trajectory.save(str(tmp_path / "mesh.npz"))
    with revolute.connect() as other:
        found = other.load_trajectory(tmp_path / "mesh.npz")
        assert found.qpos.shape == (4, 7) and found.qpos.tobytes() == trajectory.qpos.tobytes()


def test_a_file_of_another_build_is_a_warning(in_process: revolute.Simulator, tmp_path: Path) -> None:
    trajectory = simulated(in_process, "simulated")
    trajectory.final_qpos = trajectory.final_qpos + 1e-9
    trajectory.save(tmp_path / "x.npz")
    with pytest.warns(UserWarning, match="another build"):
        in_process.load_trajectory(tmp_path / "x.npz")


def test_mistakes(in_process: revolute.Simulator, tmp_path: Path) -> None:
    with pytest.raises(revolute.NotFoundError, match="path"):
        in_process.load_trajectory(tmp_path / "none.npz")
    np.savez(tmp_path / "other.npz", qpos=np.zeros(3))
    (tmp_path / "text.npz").write_text("hello")
    for name in ("other.npz", "text.npz"):
        with pytest.raises(revolute.ArgumentError, match=r"Trajectory\.save"):
            in_process.load_trajectory(tmp_path / name)
    with pytest.raises(revolute.ArgumentError, match="written"):
        simulated(in_process, "simulated").save(tmp_path / "no folder" / "x.npz")


def test_a_handle_works_in_another_simulator_of_the_process() -> None:
    with revolute.connect() as here:
        model = here.load_model("cartpole", timestep=0.003)
        expected = here.rollout(model, [0.0, 0.2], [0.0, 0.0], CTRL).qpos
    with revolute.connect() as there:
        assert np.array_equal(there.rollout(model, [0.0, 0.2], [0.0, 0.0], CTRL).qpos, expected)
        calls: tuple[Any, ...] = (
            lambda sim: sim.session(model).step([1.0]),
            lambda sim: sim.jacobian(model, [0.0, 0.2], [0.0, 0.0], [1.0]),
        )
        for call in calls:
            with revolute.connect() as fresh:
                call(fresh)
        there.delete_model(there.load_model("pendulum1"))
        deleted = there.load_model("pendulum2")
        there.delete_model(deleted)
        with pytest.raises(revolute.NotFoundError):
            there.session(deleted)
