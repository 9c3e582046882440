"""Case C03: an axis of length 5 is a direction, an axis of length 0 is an error."""

import numpy as np
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected

MJCF = """<mujoco><option gravity="0 0 0"/><worldbody>
  <body><joint name="r" axis="0 3 4"/><inertial pos="0 0 0" mass="2" diaginertia="0.1 0.2 0.3"/></body>
  <body><joint name="p" type="slide" axis="0 3 4"/>
    <inertial pos="0 0 0" mass="2" diaginertia="0.1 0.2 0.3"/></body>
</worldbody><actuator><motor joint="r"/><motor joint="p"/></actuator></mujoco>"""


@pytest.mark.parametrize("source", ["long_axis.urdf", MJCF], ids=["urdf", "mjcf"])
def test_the_length_of_an_axis_does_not_matter(source: str) -> None:
    text = source
    if source.endswith(".urdf"):
        # the case has no gravity
        text = case_file("C03", source).read_text()
        text = text.replace(
            '<link name="base"/>', '<mujoco><option gravity="0 0 0"/></mujoco><link name="base"/>'
        )
    numbers = expected("C03")
    model = load_model(text)
    assert np.abs(model.arrays["jnt_axis"] - [0, 0.6, 0.8]).max() < 1e-15
    rollout = Engine(threads=1).rollout(model, [0.0, 0.0], [0.0, 0.0], [[numbers["I_axis"], numbers["m"]]])
    assert np.abs(rollout.qvel[1] / model.timestep - 1).max() < 1e-12


def test_an_axis_without_direction_is_refused_by_name() -> None:
    with pytest.raises(
        ModelError, match=r"zero_axis\.urdf: joint 'bad': expected an axis of non-zero length"
    ):
        load_model(case_file("C03", "zero_axis.urdf"))
