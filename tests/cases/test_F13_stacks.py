"""Case F13: stacks of ten and twenty boxes, and 30 kg on thin plates, stand."""

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, Model, load_model
from testbed.case_files import case_file, expected

NUMBERS = expected("F13")


def _stand(name: str, steps: int, **options: object) -> tuple[float, float, float]:
    """Return the largest sink, sideways shift (m) and tilt (rad) of any box."""
    model = load_model(case_file("F13", f"{name}.xml").read_text(), **options)
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((steps, 0)))
    start, end = (rollout.qpos[t].reshape(-1, 7) for t in (0, -1))
    tilt = 2 * np.arccos(np.clip(np.abs(end[:, 3]), 0, 1))
    return (start - end)[:, 2].max(), np.hypot(*(end - start)[:, :2].T).max(), tilt.max()


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
@pytest.mark.parametrize("name", ["stack_10", "stack_20", "stack_10_offset", "plates"])
def test_after_a_second_it_stands_as_in_mujoco(name: str, cone: str) -> None:
    theirs = NUMBERS["mujoco"][name][cone]
    sink, shift, tilt = _stand(name, 500, contact_model="mujoco", cone=cone)
    assert sink == pytest.approx(theirs["sink"], rel=0.01)
    # a leaning stack amplifies the solver's tolerance: MuJoCo's own shift moves by 1.2 mm with tolerance 0
    assert shift == pytest.approx(theirs["shift"], abs=1.5e-3)
    assert tilt == pytest.approx(theirs["tilt"], abs=5e-3)


def test_ten_boxes_stand_for_ten_seconds() -> None:
    options = {"contact_model": "mujoco", "cone": "elliptic"}
    one, ten = (_stand("stack_10", steps, **options) for steps in (500, 5000))
    assert ten[0] == pytest.approx(one[0], abs=1e-5)
    # rounding decides which corners of equal faces touch: 1e-18 m shift MuJoCo's own stack by 0.2 mm
    assert ten[1] < 2e-3 and ten[2] < 5e-3


@pytest.mark.parametrize("name", ["stack_10", "stack_20", "stack_10_offset", "plates"])
def test_the_hard_model_stands_with_its_converged_solver(name: str) -> None:
    sink, shift, tilt = _stand(name, 500, contact_model="hard", solver="exact")
    assert abs(sink) < 1e-9 and shift < 1e-9 and tilt < 1e-6


def test_ten_hard_boxes_stand_for_ten_seconds() -> None:
    sink, shift, tilt = _stand("stack_10_offset", 5000, contact_model="hard", solver="exact")
    assert abs(sink) < 1e-9 and shift < 1e-9 and tilt < 1e-6


def _theirs(model: Model, qpos: np.ndarray, qvel: np.ndarray, steps: int) -> np.ndarray:
    """Return MuJoCo's states, solved to convergence from a cold start."""
    model.mujoco_model.opt.tolerance, model.mujoco_model.opt.iterations = 0, 200
    data, out = mujoco.MjData(model.mujoco_model), [qpos]
    data.qpos[:], data.qvel[:] = qpos, qvel
    for _ in range(steps):
        data.qacc_warmstart[:] = 0
        mujoco.mj_step(model.mujoco_model, data)
        out.append(data.qpos.copy())
    return np.array(out)


def test_faces_that_touch_exactly() -> None:
    # Rounding of 1e-18 m decides which of them touch in the first steps, in MuJoCo as well: from the same
    # state a step is the same, but two engines, or MuJoCo and itself 1e-18 m beside, part by 1e-4 m.
    model = load_model(case_file("F13", "stack_10.xml"), warn=False)
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((20, 0)))
    for step in range(20):
        one = _theirs(model, rollout.qpos[step], rollout.qvel[step], 1)
        assert np.abs(one[1] - rollout.qpos[step + 1]).max() < 1e-15
    beside = model.qpos0 + 1e-18 * np.random.default_rng(0).normal(size=model.nq)
    own, other = (_theirs(model, start, model.qvel0, 20) for start in (model.qpos0, beside))
    assert np.abs(own - other).max() > 1e-5


def test_faces_that_are_pressed_together_move_as_in_mujoco() -> None:
    model = load_model(case_file("F13", "stack_10.xml"), warn=False)
    qpos = model.qpos0.copy()
    qpos[2::7] -= 1e-4 * np.arange(1, 11)
    rollout = Engine(threads=1).rollout(model, qpos, model.qvel0, np.zeros((500, 0)))
    assert np.abs(rollout.qpos - _theirs(model, qpos, model.qvel0, 500)).max() < 1e-12
