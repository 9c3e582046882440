"""Case C07: nested default classes and childclass."""

import pytest

from revolute_engine import load_model
from testbed.case_files import case_file, expected


@pytest.mark.parametrize("name", ["p", "q", "r", "s"])
def test_a_joint_has_the_values_of_its_classes(name: str) -> None:
    model = load_model(case_file("C07", "classes.xml"))
    joint, arrays = model.joint_names.index(name), model.arrays
    dof = arrays["jnt_dofadr"][joint]
    limits = arrays["jnt_range"][joint].tolist() if arrays["jnt_limited"][joint] else None
    values = [
        model.joint_types[joint],
        arrays["jnt_axis"][joint].tolist(),
        limits,
        arrays["dof_damping"][dof],
        arrays["dof_armature"][dof],
    ]
    assert values == expected("C07")[name]
