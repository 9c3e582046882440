"""docs/gradients.md and docs/algorithm.md: what they say of switching points and figures, on the engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gradients import horizon, impact, sliding, standing
from benchmarks.gradients.__main__ import FIGURES
from benchmarks.gradients.differences import STATE
from benchmarks.gradients.scenes import BLOCK, DROP
from revolute_engine import Engine, Gradient, Model, Rollout, load_model
from revolute_engine.parameters import default_parameter

STANDING = 1e-6  # beside what the differences themselves resolve
CLOSED_FORM = 1e-9
H = 1e-3

CART = """
<mujoco>
  <option timestep="0.001"/>
  <worldbody>
    <body>
      <joint name="x" type="slide" axis="1 0 0" range="-1 1" limited="{limited}"/>
      <inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
    </body>
  </worldbody>
  <actuator><motor joint="x" ctrlrange="-1 1" ctrllimited="true"/></actuator>
</mujoco>
"""


def one_step(
    model: Model,
    qpos: float | np.ndarray,
    qvel: float | np.ndarray,
    ctrl: float | None = None,
    wrt: tuple[str, ...] = STATE,
) -> tuple[Rollout, Gradient]:
    """Step once; return the trajectory and the gradient of the first entry of qvel."""
    engine = Engine(threads=1)
    control = np.zeros((1, model.nu)) if ctrl is None else np.full((1, model.nu), ctrl)
    rollout = engine.rollout(model, np.atleast_1d(qpos), np.atleast_1d(qvel), control)
    bar = np.zeros_like(rollout.qvel)
    bar[-1, 0] = 1.0
    return rollout, engine.backward(model, rollout, None, bar, wrt=wrt)


# --- figures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 10, 100])
def test_the_gradient_of_the_standing_robot_is_right(steps: int) -> None:
    assert all(found.error < STANDING + found.uncertainty for found in standing.errors(steps).values())


@pytest.mark.parametrize("sweeps", [1, 5])
def test_the_gradient_is_that_of_the_unconverged_solver(sweeps: int) -> None:
    assert all(found.error < STANDING for found in standing.errors(20, sweeps).values())


def test_feedback_keeps_the_gradient_small_and_the_open_loop_does_not() -> None:
    feedback = horizon.norms(*horizon.settled(500))
    tape = horizon.norms(*horizon.open_loop(500))
    assert feedback["ctrl"] < 0.1 and feedback["qvel"] < 0.01
    assert tape["qvel"] > 1e3 * feedback["qvel"]


def test_a_block_slides_as_in_the_closed_form() -> None:
    np.testing.assert_allclose(sliding.block(15.0), sliding.closed_form(15.0), rtol=CLOSED_FORM)


@pytest.mark.parametrize("force", [0.0, 5.0, 9.8])
def test_a_block_that_sticks_has_no_derivatives(force: float) -> None:
    assert np.abs(sliding.block(force)).max() < CLOSED_FORM


def test_without_friction_nothing_is_nan() -> None:
    speed, by_force, by_friction, by_mass = sliding.block(5.0, friction=0.0)
    assert (speed, by_force, by_mass) == pytest.approx((0.25, 0.05, -0.125), rel=CLOSED_FORM)
    assert np.isfinite(by_friction)


def test_an_inelastic_impact_has_the_gradient_of_the_closed_form() -> None:
    ours, closed, _ = impact.balls(0.0)
    np.testing.assert_allclose(ours, closed, rtol=CLOSED_FORM)


@pytest.mark.parametrize("restitution", [0.5, 1.0])
def test_a_bounce_has_the_gradient_of_the_closed_form(restitution: float) -> None:
    ours, closed, frozen = impact.balls(restitution)
    np.testing.assert_allclose(ours, closed, atol=CLOSED_FORM)
    assert np.abs(ours - frozen).max() > 0.2
    falling = impact.drop(restitution)
    assert falling["ours"] == pytest.approx(falling["1e-07 m"], rel=1e-6)
    assert falling["ours"] == pytest.approx(falling["closed form"], abs=5 * H)


# --- switching points -----------------------------------------------------------------------------------


def test_on_the_bound_of_its_range_a_control_counts() -> None:
    model = load_model(CART.format(limited="false"), contact_model="hard")
    derivatives = [one_step(model, 0.0, 0.0, ctrl)[1].ctrl[0, 0] for ctrl in (0.5, 1.0, -1.0, 1.0001)]
    assert derivatives == pytest.approx([H / 2, H / 2, H / 2, 0.0], rel=1e-12)


def test_a_row_that_touches_its_bound_exactly_counts_as_clamped() -> None:
    model = load_model(
        DROP.replace('timestep="0.001"', 'timestep="0.001" gravity="0 0 0"'), contact_model="hard"
    )
    at_rest = one_step(model, 0.0, 0.0)[1]
    assert at_rest.qvel[0] == 1.0 and at_rest.qpos[0] == 0.0  # as if it left
    assert one_step(model, 0.0, -1e-6)[1].qvel[0] == pytest.approx(0.0, abs=1e-12)
    assert one_step(model, 0.0, 1e-6)[1].qvel[0] == 1.0


def test_the_bias_is_smooth_at_zero_and_has_its_kink_one_fall_deeper() -> None:
    model, depth, rate, fastest = (
        load_model(DROP, erp=0.2, contact_model="hard"),
        10 * H * H,
        0.2 / 0.0025,
        0.45,
    )
    for gap, slope in (
        (0.0, 1 / H),
        (-0.5 * depth, 1 / H),
        (-1.5 * depth, rate),
        (-1e-3, rate),
        (-1e-2, 0.0),
    ):
        rollout, gradient = one_step(model, gap, -1.0)
        assert gradient.qpos[0] == pytest.approx(-slope, rel=CLOSED_FORM, abs=1e-12), gap
        back = -gap / H if gap > -depth else depth / H + min(-rate * (gap + depth), fastest)
        assert rollout.qvel[1, 0] == pytest.approx(back, rel=CLOSED_FORM, abs=1e-12), gap
    rollout, gradient = one_step(
        load_model(DROP.replace("timestep", 'gravity="0 0 0" timestep'), contact_model="hard"), 1e-5, -1e-3
    )
    assert gradient.qpos[0] == 0.0 and rollout.qvel[1, 0] == -1e-3  # not reached


def test_a_contact_that_the_step_does_not_reach_does_nothing() -> None:
    model = load_model(DROP, contact_model="hard")
    for gap in (5e-3, 2e-2):  # within the margin, and beyond
        rollout, gradient = one_step(model, gap, -1.0)
        assert rollout.qvel[1, 0] == pytest.approx(-1.0 - 9.81 * H, rel=1e-12)
        assert gradient.qvel[0] == 1.0 and gradient.qpos[0] == 0.0


def test_a_contact_that_is_reached_stays_closed() -> None:
    rollout, gradient = one_step(load_model(DROP, contact_model="hard"), 4e-4, -1.0)
    assert rollout.qvel[1, 0] == pytest.approx(0.0, abs=1e-12)
    assert rollout.qpos[1, 0] == pytest.approx(0.0, abs=1e-15)
    assert gradient.qpos[0] == pytest.approx(0.0, abs=1e-9)
    assert gradient.qvel[0] == pytest.approx(0.0, abs=1e-12)


def test_a_contact_that_is_reached_slowly_closes_its_gap() -> None:
    rollout, gradient = one_step(load_model(DROP, contact_model="hard"), 4e-6, -4e-3)
    assert rollout.qvel[1, 0] == pytest.approx(-4e-3, rel=1e-9)
    assert rollout.qpos[1, 0] == pytest.approx(0.0, abs=1e-15)
    assert gradient.qpos[0] == pytest.approx(-1 / H)


@pytest.mark.parametrize(
    ("gap", "speed"), [(0.0, 0.5), (-1e-9, -0.5), (-1e-9, 0.0), (0.0, 0.0), (1e-12, 0.0)]
)
def test_the_start_of_a_touch_has_a_finite_jacobian(gap: float, speed: float) -> None:
    matrix = Engine(threads=1).jacobian(load_model(DROP, contact_model="hard"), [gap], [speed], np.zeros(0)).A
    assert np.isfinite(matrix).all() and 0 <= matrix[1, 1] <= 1


def test_a_limit_stops_and_forgets() -> None:
    model = load_model(CART.format(limited="true"), contact_model="hard")
    engine = Engine(threads=1)
    rollout = engine.rollout(model, [0.9], [2.0], np.zeros((100, 1)))
    bar = np.zeros_like(rollout.qpos)
    bar[-1] = 1.0
    gradient = engine.backward(model, rollout, bar)
    assert rollout.qpos[-1, 0] == pytest.approx(1.0, abs=1e-12)
    assert abs(gradient.qpos[0]) < 1e-9 and abs(gradient.qvel[0]) < 1e-9


def test_equal_frictions_share_the_derivative() -> None:
    model, engine = load_model(BLOCK, contact_model="hard"), Engine(threads=1)
    shares = []
    for floor, block in ((0.3, 0.3), (0.3, 0.2)):
        params = {"geom_friction": np.array([[floor, 0, 0], [block, 0, 0]])}
        rollout = engine.rollout(model, [0.0, 0.0], [1.0, 0.0], np.zeros((10, 1)), params=params)
        bar = np.zeros_like(rollout.qvel)
        bar[-1, 0] = 1.0
        shares.append(engine.backward(model, rollout, None, bar, wrt=("geom_friction",)).geom_friction[:, 0])
    whole = -9.81 * 10 * H
    np.testing.assert_allclose(shares, [[whole / 2, whole / 2], [whole, 0.0]], rtol=CLOSED_FORM, atol=1e-12)


def test_restitution_zero_and_a_little_more_differ_by_a_small_jump() -> None:
    speeds = []
    for restitution in (0.0, 1e-9):
        rollout, gradient = one_step(
            load_model(DROP, restitution=restitution, contact_model="hard"), 4e-4, -1.0, wrt=("restitution",)
        )
        speeds.append(rollout.qvel[1, 0])
        # the ball meets the floor after 0.4 ms with 1 m/s and what gravity added
        assert gradient.restitution == pytest.approx(1.0 + 4e-4 * 9.81)
        assert rollout.qpos[1, 0] == pytest.approx(0.0, abs=1e-5)
    assert speeds == pytest.approx([0.0, 4e-4 * 9.81], abs=1e-8)


@pytest.mark.parametrize(("loss", "derivative"), [(0.0, 0.0), (1e-12, -H / 2), (0.1, -H / 2)])
def test_dry_friction_of_exactly_zero_has_no_derivative(loss: float, derivative: float) -> None:
    model, engine = load_model(CART.format(limited="false"), contact_model="hard"), Engine(threads=1)
    params = {"dof_frictionloss": np.array([loss])}
    rollout = engine.rollout(model, [0.0], [1.0], np.zeros((1, 1)), params=params)
    bar = np.zeros_like(rollout.qvel)
    bar[-1] = 1.0
    gradient = engine.backward(model, rollout, None, bar, wrt=("dof_frictionloss",))
    assert gradient.dof_frictionloss[0] == pytest.approx(derivative, rel=1e-12)


_WEDGED = """<mujoco><option timestep="0.001"/><worldbody>
    <geom type="plane" size="5 5 1" friction="3 0 0" quat="-0.036 0.901 1.201 -0.944"/>
    <geom type="plane" size="5 5 1" friction="3 0 0" quat="-1.654 -0.019 1.992 1.76"/>
    <geom type="plane" size="5 5 1" friction="3 0 0" quat="0.646 -0.588 0.448 0.151"/>
    <body><freejoint/><geom type="capsule" size="0.03 0.3" mass="1"/><body pos="0.03 0 0.3">
      <joint axis="1 0 0"/><geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" mass="0.1"/>
    </body></body></worldbody></mujoco>"""


@pytest.mark.filterwarnings("ignore:XML text")
def test_where_sweeps_have_not_settled_the_derivative_is_theirs_and_bounded() -> None:
    engine, speeds = Engine(threads=1), []
    for sweeps in (50, 100):
        model = load_model(_WEDGED, iterations=sweeps, contact_model="hard")
        start = model.qpos0, np.zeros(model.nv)
        rollout = engine.rollout(model, *start, np.zeros((1, 0)))
        speeds.append(np.abs(rollout.qvel).max())
        rows = engine.jacobian(model, *start, np.zeros(0)).A
        forward = engine.jvp(model, rollout, qvel_tan=np.eye(model.nv)[0])
        assert np.abs(forward.qvel[1] - rows[model.nv :, model.nv]).max() < 1e-12 * np.abs(rows).max()
        assert np.abs(rows).max() < 1 / H
    assert abs(speeds[1] - speeds[0]) > 0.1


@pytest.mark.parametrize("restitution", [0.0, 1.0])
def test_an_impact_does_not_move_what_falls_by_itself(restitution: float) -> None:
    text = """<mujoco><worldbody><geom type="plane" size="5 5 1"/>
        <body pos="0 0 0.3"><joint type="slide" axis="0 0 1"/><geom type="sphere" size="0.1" mass="1"/></body>
        <body pos="3 0 5"><joint type="slide" axis="0 0 1"/><geom type="sphere" size="0.1" mass="1"/></body>
        </worldbody></mujoco>"""
    engine, steps = Engine(threads=1), 300
    model = load_model(text, timestep=H, restitution=restitution, contact_model="hard")
    rollout = engine.rollout(model, np.zeros(2), np.zeros(2), np.zeros((steps, 0)))
    assert rollout.qpos[-1, 1] == pytest.approx(-9.81 * H * H * steps * (steps + 1) / 2, rel=1e-12)
    gradient = engine.backward(model, rollout, np.array([[0.0, 1.0]]), times=[-1])
    assert gradient.qpos[0] == 0.0


# --- algorithm.md ---------------------------------------------------------------------------------------


def test_softness_makes_a_contact_rest_deeper() -> None:
    model = load_model(DROP, cfm=0.5, contact_model="hard")
    rollout = Engine(threads=1).rollout(model, [0.0], [0.0], np.zeros((50, 0)))
    assert rollout.qpos[-1, 0] == pytest.approx(-H * H * 0.5 * 9.81, rel=1e-6)  # h^2 cfm F, F = 1 kg g


def test_friction_is_the_same_in_every_direction() -> None:
    text = BLOCK.replace(
        '<joint name="x" type="slide" axis="1 0 0"/>', '<joint name="x" type="slide" axis="{}"/>'
    )
    for axis in ("1 0 0", "1 1 0", "1 2 0"):
        model = load_model(text.format(axis), contact_model="hard")
        params = {"geom_friction": np.full(np.shape(default_parameter(model, "geom_friction")), 0.5)}
        rollout = Engine(threads=1).rollout(model, [0.0, 0.0], [1.0, 0.0], np.zeros((10, 1)), params=params)
        assert (1.0 - rollout.qvel[-1, 0]) / (10 * H) == pytest.approx(0.5 * 9.81, rel=1e-9)


# --- the tables -----------------------------------------------------------------------------------------


def test_the_command_refuses_an_unknown_figure() -> None:
    command = [sys.executable, "-m", "benchmarks.gradients", "moon"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert f"expected any of {', '.join(FIGURES)}, got 'moon'" in done.stderr
