"""Case T05: a cube of loose spheres falls, and they touch one another.

Times are measured by benchmarks/ours/contacts.py.
"""

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, Model, load_model
from testbed.case_files import case_file, expected

RADIUS, STEPS = 0.05, expected("T05")["steps"]
FILES = ("spheres_27", "spheres_64", "spheres_27_nopairs")


def _fallen(name: str, **options: str) -> tuple[Model, np.ndarray]:
    model = load_model(case_file("T05", f"{name}.xml"), warn=False, **options)
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((STEPS, 0)))
    assert rollout.unsettled_step == -1
    return model, rollout.qpos


@pytest.mark.parametrize("name", FILES)
def test_by_default_they_fall_as_in_mujoco(name: str) -> None:
    model, qpos = _fallen(name)
    theirs = model.mujoco_model
    theirs.opt.tolerance = 0
    data = mujoco.MjData(theirs)
    data.qpos[:] = model.qpos0
    contacts = 0
    for _ in range(STEPS):
        mujoco.mj_step(theirs, data)
        contacts += data.ncon
    assert np.abs(qpos[-1] - data.qpos).max() < 1e-12
    if name in FILES[:2]:
        assert contacts / STEPS == pytest.approx(expected("T05")["contacts_mean"][FILES.index(name)], abs=0.2)


@pytest.mark.parametrize("name", ["spheres_27", "spheres_27_nopairs"])
def test_hard_spheres_do_not_sink(name: str) -> None:
    _, qpos = _fallen(name, contact_model="hard")
    assert qpos[:, 2::7].min() > RADIUS - 1e-3
