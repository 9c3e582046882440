"""Case C12: an inertia that no body has is refused or warned of by the link's name, and never changed."""

import numpy as np
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected

LINK = expected("C12")["link"]


@pytest.mark.parametrize("name", ["neg", "zero"])
def test_tensors_that_are_not_positive_definite_are_refused(name: str) -> None:
    with pytest.raises(ModelError, match=f"link '{LINK}': expected positive moments of inertia"):
        load_model(case_file("C12", f"{name}.urdf"))


def test_a_broken_triangle_rule_is_a_warning_and_the_numbers_stay() -> None:
    with pytest.warns(UserWarning, match=f"moments of inertia that no body has.*links '{LINK}'"):
        model = load_model(case_file("C12", "tri.urdf"))
    assert np.sort(model.arrays["body_inertia"][-1]).tolist() == pytest.approx(
        [2e-7, 8e-7, 1.5e-6], rel=1e-12
    )
    rollout = Engine(threads=1).rollout(model, [0.0], [0.0], [[1e-6]])
    assert rollout.qvel[1, 0] / model.timestep == pytest.approx(1e-6 / 1.5e-6, rel=1e-12)


def test_a_rod_does_not_turn_about_itself() -> None:
    with pytest.raises(ModelError, match=f"link '{LINK}': expected inertia along joint 'j', got none"):
        load_model(case_file("C12", "edge.urdf"))
