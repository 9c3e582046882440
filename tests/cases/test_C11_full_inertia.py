"""Case C11: the order of the six numbers of a full inertia tensor."""

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected


@pytest.mark.parametrize(("name", "base"), [("full.xml", None), ("full.urdf", "free")])
def test_both_formats_give_the_tensor(name: str, base: str | None) -> None:
    numbers = expected("C11")
    tensor = np.array(numbers["I"])
    model = load_model(case_file("C11", name), base=base)
    assert model.nv == 6
    principal, axes = model.arrays["body_inertia"][1], np.zeros(9)
    mujoco.mju_quat2Mat(axes, model.arrays["body_iquat"][1])
    axes = axes.reshape(3, 3)
    assert np.abs(np.sort(principal) - numbers["eig"]).max() < 1e-9
    assert np.abs(axes @ np.diag(principal) @ axes.T - tensor).max() < 1e-9

    # and the motion knows it: torque-free change of the spin
    spin = np.array([0.7, -1.1, 0.4])
    rollout = Engine(threads=1).rollout(model, model.qpos0, [0, 0, 0, *spin], np.zeros((1, 0)))
    change = (rollout.qvel[1, 3:] - spin) / model.timestep
    assert np.abs(change - np.linalg.solve(tensor, -np.cross(spin, tensor @ spin))).max() < 1e-9
