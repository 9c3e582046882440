"""Case D07: spheres that lie apart do not affect each other, however many there are.

Times are measured by benchmarks/ours/contacts.py.
"""

import numpy as np
import pytest

from revolute_engine import Engine, Gradient, Rollout, load_model
from testbed.case_files import case_file

HEIGHT, STEPS = 0.1, 200
OPTIONS = {"mujoco": {}, "hard": {"contact_model": "hard"}}


def _rest(count: int, name: str) -> tuple[Rollout, Gradient]:
    """Return the spheres' rest, and the gradient of the sum of their heights at the end."""
    model, engine = load_model(case_file("D07", f"spheres_{count}.xml"), **OPTIONS[name]), Engine(threads=1)
    rollout = engine.rollout(model, model.qpos0, model.qvel0, np.zeros((STEPS, 0)))
    bar = np.zeros((1, model.nq))
    bar[0, 2::7] = 1.0
    return rollout, engine.backward(model, rollout, bar, times=[-1], wrt=["qpos", "qvel", "body_mass"])


@pytest.mark.parametrize("name", OPTIONS)
def test_each_sphere_rests_as_if_it_were_alone(name: str) -> None:
    few, few_gradient = _rest(8, name)
    many, many_gradient = _rest(64, name)
    for rollout in (few, many):
        assert rollout.unsettled_step == -1
        # a soft contact of the default stiffness sinks by 0.07 mm
        assert np.abs(rollout.qpos[-1, 2::7] - HEIGHT).max() < 1e-4
    heights = many.qpos[:, 2::7]
    assert (heights == heights[:, :1]).all()
    assert np.array_equal(heights[:, :8], few.qpos[:, 2::7])
    for mine, theirs in (
        (few_gradient.qpos[2::7], many_gradient.qpos[2::7]),
        (few_gradient.qvel[2::6], many_gradient.qvel[2::6]),
        (few_gradient.body_mass[1:], many_gradient.body_mass[1:]),
    ):
        assert (theirs == theirs[0]).all() and np.array_equal(theirs[:8], mine)
