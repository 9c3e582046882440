"""Laws of contact that the cases do not ask for: turning at every heading, how far a derivative holds."""

import mujoco
import numpy as np
import pytest

from benchmarks.gradients.contact_models import errors
from benchmarks.gradients.contact_scenes import SKID_STEER
from revolute_engine import Engine, Model, Rollout, load_model
from tests.robots import _package_folder

TORQUE = 1.5
COULOMB = -74.8
"""Degrees in 0.4 s by the plane equations of motion with Coulomb's law and equal loads on the wheels."""


def _turn(heading: float, **options: str) -> float:
    """Return by how many degrees the skid steer has turned after 0.4 s."""
    model = load_model(SKID_STEER, warn=False, **options)
    qpos = model.qpos0.copy()
    qpos[3:7] = np.cos(heading / 2), 0, 0, np.sin(heading / 2)
    ctrl = np.tile(TORQUE * np.array([-1, 1, -1, 1]), (200, 1))
    w, x, y, z = Engine(threads=1).rollout(model, qpos, model.qvel0, ctrl).qpos[:, 3:7].T
    yaw = np.unwrap(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
    return float(np.degrees(yaw[-1] - yaw[0]))


@pytest.mark.parametrize(
    ("options", "spread"),
    [
        ({"cone": "elliptic"}, 1e-10),
        ({"contact_model": "hard"}, 1e-9),
        (
            {"contact_model": "hard", "solver": "exact"},
            1e-3,
        ),  # steps in which a wheel changes from slip to stick
    ],
    ids=str,
)
def test_a_skid_steer_turns_alike_at_every_heading(options: dict[str, str], spread: float) -> None:
    turns = [_turn(np.radians(heading), **options) for heading in (0, 20, 45)]
    assert np.ptp(turns) < spread
    if "contact_model" in options:
        assert turns[0] == pytest.approx(COULOMB, rel=0.02)
    else:
        assert turns[0] < -30  # MuJoCo's friction points against the slip that comes, not that which is


def _energy(model: Model, rollout: Rollout) -> float:
    """Return the largest kinetic energy."""
    data, largest = mujoco.MjData(model.mujoco_model), 0.0
    matrix = np.zeros((model.nv, model.nv))
    for qpos, qvel in zip(rollout.qpos, rollout.qvel, strict=True):
        data.qpos[:] = qpos
        mujoco.mj_forward(model.mujoco_model, data)
        mujoco.mj_fullM(model.mujoco_model, data, matrix)
        largest = max(largest, 0.5 * qvel @ matrix @ qvel)
    return largest


def test_a_zero_pose_beyond_the_limits_is_not_thrown_out() -> None:
    # A1's knees are 0.9 rad beyond their limits
    file, still = _package_folder("pybullet_data") / "a1" / "a1.urdf", {"gravity": np.zeros(3)}
    energies = {}
    for contact_model in ("mujoco", "hard"):
        model = load_model(file, base="free", contact=False, contact_model=contact_model, warn=False)
        assert (np.abs(model.mujoco_model.jnt_range[1:].mean(axis=1)) > 0.9).any()
        steps = round(0.5 / model.timestep)
        rollout = Engine(threads=1).rollout(
            model, model.qpos0, model.qvel0, np.zeros((steps, model.nu)), params=still
        )
        energies[contact_model] = _energy(model, rollout)
        if contact_model == "hard":
            continue
        theirs = model.mujoco_model
        theirs.opt.timestep, theirs.opt.gravity[:] = model.timestep, 0
        theirs.opt.tolerance, theirs.opt.iterations = 0, 200
        data = mujoco.MjData(theirs)
        data.qpos[:] = model.qpos0
        mujoco.mj_step(theirs, data, steps)
        assert np.abs(rollout.qpos[-1] - data.qpos).max() < 1e-9
    assert 0 < energies["hard"] < energies["mujoco"] < 5.0


def test_the_derivative_of_a_standing_robot_holds_over_a_millimetre() -> None:
    by_width = dict(zip((1e-6, 1e-5, 1e-4, 1e-3, 1e-2), errors("laikago", 1, "mujoco"), strict=True))
    assert by_width[1e-5] < 1e-7 and by_width[1e-4] < 1e-6 and by_width[1e-3] < 1e-4
    assert dict(zip(by_width, errors("laikago", 1, "hard"), strict=True))[1e-5] < 1e-7
