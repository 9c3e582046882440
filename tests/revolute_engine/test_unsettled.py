"""Constraints that a solver does not settle are reported, and by how much they are missed."""

from __future__ import annotations

import numpy as np
import pytest

from revolute_engine import Engine, Model, Rollout, load_model
from revolute_engine.merged_calls import RolloutCall, rollout_together
from revolute_engine.segments import SegmentedRollout
from testbed.case_files import case_file

STACK = case_file("B13", "stack.xml").read_text()
SETTLED = 1e-3
"""Speed in m/s that sweeps may leave."""


def _stack(ratio: int, **options: object) -> Model:
    return load_model(STACK.replace('mass="100"', f'mass="{ratio}"'), contact_model="hard", **options)


def _rest(model: Model, steps: int = 20, batch: int | None = None) -> Rollout:
    ctrl = np.zeros((steps, 0) if batch is None else (batch, steps, 0))
    return Engine(threads=1).rollout(model, model.qpos0, model.qvel0, ctrl)


def test_too_few_sweeps_for_a_heavy_box_on_a_light_one_are_reported() -> None:
    found = _rest(_stack(1000))
    assert found.unsettled_step == 0 and found.residual is not None
    # what is left is the speed at which the boxes would run into each other
    assert SETTLED < found.residual < 1
    more = _rest(_stack(1000, iterations=5000))
    assert more.unsettled_step == -1 and more.residual < SETTLED
    exact = _rest(_stack(1000, solver="exact"))
    assert exact.unsettled_step == -1 and exact.residual < 1e-9


RAIL = '<body pos="0 0 {}"><joint type="slide" axis="0 0 1"/><geom size="0.125" mass="{}"/></body>'
BALLS = (
    '<mujoco><option timestep="0.001"/><worldbody><geom type="plane" size="0 0 1"/>'
    f"{RAIL.format(0.125, 1)}{RAIL.format(0.375, 3)}{RAIL.format(0.625, 9)}</worldbody></mujoco>"
)
"""Three balls on each other, on vertical rails."""


@pytest.mark.parametrize("iterations", [1, 2, 5])
def test_the_residual_is_the_speed_at_which_a_contact_still_closes(iterations: int) -> None:
    model = load_model(BALLS, contact_model="hard", iterations=iterations)
    found = _rest(model, steps=1)
    speed = found.qvel[1]
    closing = max(-speed[0], speed[0] - speed[1], speed[1] - speed[2])
    assert closing > SETTLED and found.unsettled_step == 0
    assert found.residual == pytest.approx(closing, rel=1e-9)


CONTRADICTION = """<mujoco><option timestep="0.005" gravity="0 0 0"/><worldbody>
  <body><joint name="rail" type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body></worldbody>
  <equality><joint joint1="rail" polycoef="0.1"/><joint joint1="rail" polycoef="-0.1"/></equality></mujoco>"""
"""A joint that should be at 0.1 m and at -0.1 m."""


@pytest.mark.parametrize("solver", ["pgs", "exact"])
def test_equalities_that_contradict_each_other_are_reported(solver: str) -> None:
    found = _rest(load_model(CONTRADICTION, contact_model="hard", solver=solver), steps=1)
    # each asks for 0.2 * 0.1 m / 0.005 s
    assert found.unsettled_step == 0 and found.residual >= 4 - 1e-5


def test_a_step_without_constraints_and_newtons_method_leave_nothing() -> None:
    for model in (_stack(1000, contact=False), load_model(STACK)):
        found = _rest(model)
        assert found.unsettled_step == -1 and found.residual == 0


def test_each_environment_is_judged_alone() -> None:
    model = _stack(1000)
    lifted = np.stack([model.qpos0, model.qpos0])
    lifted[1, [2, 9]] += [1.0, 2.0]
    found = Engine(threads=1).rollout(model, lifted, model.qvel0, np.zeros((2, 20, 0)))
    assert found.unsettled_step.tolist() == [0, -1]
    alone = _rest(model)
    assert found.residual[0] == alone.residual and found.residual[1] == 0
    together = rollout_together(
        Engine(threads=1), model, [RolloutCall(q, model.qvel0, np.zeros((20, 0))) for q in lifted]
    )
    for one, index in zip(together, (0, 1), strict=True):
        assert isinstance(one, Rollout)
        assert one.unsettled_step == found.unsettled_step[index] and one.residual == found.residual[index]


def test_segments_advance_and_losses_report_the_same() -> None:
    model, engine = _stack(1000), Engine(threads=1)
    # the upper box falls onto the lower one, which rests
    qpos = np.array(model.qpos0)
    qpos[9] += 2e-3
    whole = engine.rollout(model, qpos, model.qvel0, np.zeros((1, 40, 0)))
    assert whole.unsettled_step[0] > 5
    pieces = SegmentedRollout(model, qpos, model.qvel0, np.zeros((1, 40, 0)))
    while not pieces.over:
        pieces.compute(engine, steps=7)
    end = engine.advance(model, qpos, model.qvel0, np.zeros((1, 0)), 40)
    for other in (pieces.result(), end):
        assert other.unsettled_step.tolist() == whole.unsettled_step.tolist()
        assert other.residual.tolist() == whole.residual.tolist()


def test_an_environment_that_diverges_is_not_judged() -> None:
    model = load_model(STACK, contact_model="hard", solver="exact")
    qvel = np.array(model.qvel0)
    qvel[3:6] = 1e200
    found = Engine(threads=1).rollout(model, model.qpos0, qvel, np.zeros((5, 0)))
    assert found.status == 1 and found.diverged_step >= 0
    assert found.unsettled_step < found.diverged_step
    assert np.isfinite(found.residual)
