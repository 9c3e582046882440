"""Case C09: the rotation of a URDF's inertia frame is kept."""

import numpy as np

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected

FREE = """<mujoco><option gravity="0 0 0"/></mujoco>"""


def test_inertia_about_a_hinge() -> None:
    model = load_model(case_file("C09", "turned_inertia.urdf"))
    inertia = expected("C09")["I_link"][0][0]
    rollout = Engine(threads=1).rollout(model, [0.0], [0.0], [[inertia]])
    assert abs(rollout.qvel[1, 0] / model.timestep - 1) < 1e-9


def test_inertia_of_a_floating_body() -> None:
    text = case_file("C09", "turned_inertia.urdf").read_text()
    # the floating body alone: the second link as the base
    link = text[text.index('<link name="b">') : text.index("</link>") + len("</link>")]
    model = load_model(f'<robot name="m">{FREE}{link}</robot>', base="free")
    tensor = np.array(expected("C09")["I_link"])

    # the momentum that a rotating body keeps is that of the tensor: torque-free change of the spin
    spin = np.array([0.7, -1.1, 0.4])
    rollout = Engine(threads=1).rollout(model, model.qpos0, [0, 0, 0, *spin], np.zeros((1, 0)))
    expected_change = np.linalg.solve(tensor, -np.cross(spin, tensor @ spin))
    change = (rollout.qvel[1, 3:] - spin) / model.timestep
    assert np.abs(change - expected_change).max() < 1e-9
