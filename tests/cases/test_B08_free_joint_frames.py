"""Case B08: which frames a free joint's velocities are in, and a mass centre away from the body frame."""

import numpy as np

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    """Return the rotation matrix of a unit quaternion (w x y z)."""
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def test_linear_velocity_is_in_the_world_and_angular_velocity_in_the_body() -> None:
    numbers = expected("B08")
    model = load_model(case_file("B08", "free_turned.xml"))
    rollout = Engine(threads=1).rollout(model, model.qpos0, [1, 0, 0, 1, 0, 0], np.zeros((1000, 0)))
    assert np.abs(rollout.qpos[-1, :3] - numbers["pos1"]).max() < 1e-9
    c, s = np.cos(1.0), np.sin(1.0)
    about_y, about_z = (
        np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]),
        np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]]),
    )
    turned = _rotation(rollout.qpos[-1, 3:])
    assert np.abs(turned - about_y @ about_z).max() < 1e-9
    assert np.abs(turned @ rollout.qvel[-1, 3:] - numbers["world_w1"]).max() < 1e-9


def test_the_mass_centre_of_a_spinning_body_stays() -> None:
    drift = []
    for h in (1e-3, 1e-4):
        model = load_model(case_file("B08", "free_offset.xml"), timestep=h)
        rollout = Engine(threads=1).rollout(
            model, model.qpos0, [0, -0.2, 0, 0, 0, 2], np.zeros((round(np.pi / h), 0))
        )
        offset = np.array([0.1, 0, 0])
        centre = rollout.qpos[:, :3] + np.array([_rotation(qpos[3:]) @ offset for qpos in rollout.qpos])
        drift.append(float(np.linalg.norm(centre - expected("B08")["com2"], axis=1).max()))
    print(drift)
    assert drift[0] < 1e-3 and drift[1] < 1e-4
