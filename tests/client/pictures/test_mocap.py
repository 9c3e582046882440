"""Pictures and the viewer show mocap bodies, and what they carry, where the inputs put them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import pytest

import revolute
from revolute.render import Camera, Motion, gradient_arrows, motion_of, pictures
from revolute.render.camera import sphere_around

if TYPE_CHECKING:
    from revolute.view.viewer import Viewer

HAND = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body name="post"><geom size="0.1 0.1 0.1" type="box" pos="0 0 -1"/></body>
    <body name="hand" mocap="true" pos="0 0 1" quat="0 0 0 2">
      <geom size="0.2" rgba="1 0 0 1"/>
      <body name="thumb" pos="0 0.3 0"><geom size="0.05"/></body>
      <body name="arm">
        <joint name="elbow" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .5 0 0" size=".05"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="elbow"/></actuator>
</mujoco>
"""
BATCH, ROWS, HOLD = 2, 3, 2
STEPS = ROWS * HOLD


@pytest.fixture(scope="module")
def hand(in_process: revolute.Simulator) -> revolute.ModelHandle:
    """Return a mocap body that carries one body at a joint and one without."""
    return in_process.load_model(HAND)


def _moved(
    simulator: revolute.Simulator, model: revolute.ModelHandle, *batch: int, **mocap: Any
) -> revolute.Trajectory:
    ctrl = np.ones((*batch, ROWS, model.nu))
    return simulator.rollout(model, model.qpos0, model.qvel0, ctrl, hold=HOLD, **mocap)


def _places(motion: Motion) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and quaternions of all bodies in all states, as MuJoCo places them."""
    data, found = mujoco.MjData(motion.model), []
    for step in range(len(motion.poses)):
        motion.poses[step].put_into(data)
        mujoco.mj_kinematics(motion.model, data)
        found.append((data.xpos.copy(), data.xquat.copy()))
    positions, quaternions = zip(*found, strict=True)
    return np.stack(positions), np.stack(quaternions)


def _same_turns(first: np.ndarray, second: np.ndarray) -> None:
    """Check that quaternions are the same rotations; q and -q are one."""
    np.testing.assert_allclose(np.abs((first * second).sum(axis=-1)), 1, atol=1e-12)


GIVEN = {
    "file's": (None, None),
    "constant": ((), ()),
    "positions": ((ROWS,), None),
    "quaternions": (None, (ROWS,)),
    "rows": ((ROWS,), (1,)),
}
GIVEN_TO_BATCHES = GIVEN | {"batch": ((BATCH, ROWS), (BATCH, 1)), "shared": ((1, ROWS), (1, ROWS))}


@pytest.mark.parametrize(
    ("batch", "name"), [*(((), name) for name in GIVEN), *(((BATCH,), name) for name in GIVEN_TO_BATCHES)]
)
def test_poses_are_those_of_kinematics(
    in_process: revolute.Simulator, hand: revolute.ModelHandle, batch: tuple[int, ...], name: str
) -> None:
    random = np.random.default_rng(0)
    axes = dict(zip(("mocap_pos", "mocap_quat"), GIVEN_TO_BATCHES[name], strict=True))
    # quaternions of any length: they are normalised when they are read
    mocap = {
        each: random.normal(size=(*shape, 1, 3 if each == "mocap_pos" else 4))
        for each, shape in axes.items()
        if shape is not None
    }
    trajectory = _moved(in_process, hand, *batch, **mocap)
    kinematics = trajectory.kinematics(quantities=["body_pos", "body_quat"])
    for env in range(*batch or (1,)):
        where = (env,) if batch else ()
        motion = motion_of(trajectory, env)
        assert motion.steps == STEPS
        positions, quaternions = _places(motion)
        np.testing.assert_allclose(positions, kinematics.body_pos[where], atol=1e-12)
        _same_turns(quaternions, kinematics.body_quat[where])


def test_without_steps_mocap_bodies_are_where_they_are_given(
    in_process: revolute.Simulator, hand: revolute.ModelHandle
) -> None:
    start = (hand.qpos0, hand.qvel0, np.zeros((0, hand.nu)))
    trajectory = in_process.rollout(hand, *start, mocap_pos=np.ones((1, 3)))
    positions, _ = _places(motion_of(trajectory))
    np.testing.assert_allclose(positions, trajectory.kinematics(quantities=["body_pos"]).body_pos)


def test_the_camera_and_the_arrows_follow_a_mocap_body(
    in_process: revolute.Simulator, hand: revolute.ModelHandle
) -> None:
    path = np.array([[[0.0, 0, 1]], [[0, 0, 1]], [[10, 0, 1]]])
    motion = motion_of(_moved(in_process, hand, mocap_pos=path))
    centre, radius = sphere_around(motion.model, motion.poses)
    assert abs(centre[0] - 5) < 1 and 5 < radius < 6
    for step, x in ((0, 0), (2 * HOLD, 10)):
        arrows = gradient_arrows(motion, {"ctrl": np.ones((STEPS, 1))}, step, 0.5)
        np.testing.assert_allclose(arrows.ends[:, 0], [[x, 0, 1]], atol=1e-12)


@pytest.mark.usefixtures("opengl")
def test_a_picture_shows_where_the_mocap_body_is(
    in_process: revolute.Simulator, hand: revolute.ModelHandle
) -> None:
    camera = Camera(azimuth=90, elevation=0, distance=5, lookat=(0, 0, 1))
    path = np.array([[[-1.0, 0, 1]], [[0, 0, 1]], [[1, 0, 1]]])
    motion = motion_of(_moved(in_process, hand, mocap_pos=path))
    columns = [_red_column(each) for each in pictures(motion, [0, HOLD, STEPS], camera=camera, size=(96, 96))]
    assert columns[0] + 10 < columns[1] < columns[2] - 10


def _red_column(picture: np.ndarray) -> float:
    """Return the middle column of what is red."""
    colours = np.asarray(picture, dtype=int)
    _, columns = np.nonzero(colours[..., 0] > 40 + 2 * colours[..., 1:].max(axis=-1))
    return float(columns.mean())


def test_the_viewer_of_a_trajectory(
    in_process: revolute.Simulator, hand: revolute.ModelHandle, port: int
) -> None:
    pytest.importorskip("viser")
    trajectory = _moved(in_process, hand, mocap_pos=np.array([[1.0, 2, 3]]))
    with trajectory.view(port=port) as viewer:
        _check_thumb(viewer)


def test_the_viewer_of_a_session(
    in_process: revolute.Simulator, hand: revolute.ModelHandle, port: int
) -> None:
    pytest.importorskip("viser")
    with in_process.session(hand, batch=BATCH) as session:
        session.reset(mocap_pos=np.array([[1.0, 2, 3]]))
        with session.view(port=port) as viewer:
            _check_thumb(viewer)


def _check_thumb(viewer: Viewer) -> None:
    """Check that the frame in the browser, of a body without a joint, is beside the hand at (1, 2, 3)."""
    scene = viewer.scene
    frame = scene._frames[scene._model.body("thumb").id]
    np.testing.assert_allclose(frame.position, [1, 1.7, 3], atol=1e-12)
