"""Case B21: massless links inside a chain, and at its end."""

import numpy as np
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected


@pytest.mark.parametrize("angle", [0.0, 1.0, -2.5])
def test_a_planar_base_through_massless_links(angle: float) -> None:
    exact = np.array(expected("B21")["acc"])
    model, engine = load_model(case_file("B21", "planar_base.urdf")), Engine(threads=1)
    assert model.body_mass.tolist() == [0, 0, 0, 0, 4]
    rollout = engine.rollout(model, [0.0, 0.0, angle], [0.0, 0.0, 0.0], [[2.0, 1.0, 0.25]])
    assert np.abs(rollout.qvel[1] / model.timestep / exact - 1).max() < 1e-12
    # columns of the inverse mass matrix
    bars = np.zeros((3, 2, 3))
    bars[:, 1] = np.eye(3)
    response = engine.backward(model, rollout, None, bars).ctrl[:, 0] / model.timestep
    assert np.abs(np.linalg.inv(response) - np.diag([4, 4, 0.5])).max() < 1e-12


def test_a_loose_end_without_mass_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match=r"loose_end\.urdf: .*'tip'.*'j'"):
        load_model(case_file("B21", "loose_end.urdf"))
