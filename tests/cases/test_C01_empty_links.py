"""Case C01: a link without inertial weighs nothing."""

import numpy as np

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected


def test_empty_links_have_no_mass_and_keep_their_names() -> None:
    numbers = expected("C01")
    model = load_model(case_file("C01", "frames.urdf"))
    assert abs(model.body_mass.sum() - numbers["mass"]) < 1e-9
    assert {"cam", "imu", "far_tip"} < set(model.body_names)
    rollout = Engine(threads=1).rollout(model, [0.0], [0.0], np.zeros((1, model.nu)))
    acceleration = rollout.qvel[1, 0] / model.timestep
    assert abs(abs(acceleration) - numbers["acc_abs"]) < 1e-9


def test_a_link_with_a_shape_and_no_inertial_weighs_nothing_either() -> None:
    shape = '<link name="cam"><collision><geometry><box size="1 1 1"/></geometry></collision></link>'
    text = case_file("C01", "frames.urdf").read_text().replace('<link name="cam"/>', shape)
    model = load_model(text)
    assert model.ngeom == 1 and model.body_mass.sum() == expected("C01")["mass"]
