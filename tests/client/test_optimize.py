"""Problems for SciPy, and iLQR against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

import revolute
from revolute import Loss, Term
from revolute.optimize import ilqr, problem, tangent_basis
from testbed.cart import CART

SWING_UP = Loss(
    [
        Term("qpos", weight=[1.0, 10.0]),
        Term("qvel"),
        Term("ctrl", weight=1e-4, when="running"),
    ]
)
HANGING = ([0.0, np.pi], [0.0, 0.0])


BODY = """
<mujoco><option timestep="1e-7" gravity="0 0 0"/>
<worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>
"""


def pushes(steps: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(steps, 1))


def test_a_problem_has_parameters_by_names_of_elements(simulator: revolute.Simulator) -> None:
    model = simulator.load_model("cartpole")
    masses = {"body_mass": {model.body_names[-1]: 0.7}}
    found = problem(simulator, model, *HANGING, pushes(2), SWING_UP, wrt=("body_mass",), params=masses)
    np.testing.assert_array_equal(found.x0, [*model.body_mass[:-1], 0.7])


def test_the_gradient_of_a_problem_against_differences(simulator: revolute.Simulator) -> None:
    model = simulator.load_model("cartpole", timestep=0.02)
    found = problem(
        simulator, model, *HANGING, pushes(8), SWING_UP, wrt=("ctrl", "qvel", "body_mass"), hold=2
    )
    assert found.x0.shape == (8 + 2 + model.nbody,)
    np.testing.assert_array_equal(found.unpack(found.x0)["body_mass"], model.body_mass)
    np.testing.assert_array_equal(found.bounds[[0, 8]], [[-20, 20], [-np.inf, np.inf]])
    value, gradient = found(found.x0)
    for entry in (0, 7, 8, 11):
        step = np.zeros(len(found.x0))
        step[entry] = 1e-5
        difference = (found(found.x0 + step)[0] - found(found.x0 - step)[0]) / 2e-5
        np.testing.assert_allclose(gradient[entry], difference, rtol=1e-6, atol=1e-8 * value)
    assert found.evaluations == 9 and found.steps == 9 * 16


def test_scipy_swings_a_pole_up_within_bounds(in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole", timestep=0.02)
    swing = problem(in_process, model, *HANGING, pushes(60), SWING_UP)
    found = scipy.optimize.minimize(swing, swing.x0, jac=True, bounds=swing.bounds, method="L-BFGS-B")
    assert found.fun < 2.0 and np.abs(found.x).max() <= 20.0


def test_a_batch_that_shares_its_start(in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole")
    start = np.array([0.1, 0.2])
    ctrl = np.random.default_rng(0).normal(size=(3, 5, 1))
    shared = problem(in_process, model, start, np.zeros(2), ctrl, SWING_UP, wrt=("qpos",))
    value, gradient = shared(shared.x0)
    each = [problem(in_process, model, start, np.zeros(2), row, SWING_UP, wrt=("qpos",)) for row in ctrl]
    parts = [one(one.x0) for one in each]
    np.testing.assert_allclose(value, sum(part[0] for part in parts), rtol=1e-14)
    np.testing.assert_allclose(gradient, sum(part[1] for part in parts), rtol=1e-12)


def test_a_start_velocity_of_a_body_without_actuators(in_process: revolute.Simulator) -> None:
    model = in_process.load_model(BODY)
    thrown = problem(
        in_process, model, model.qpos0, np.ones(6), np.zeros((4, 0)), Term("qpos"), wrt=("qvel",)
    )
    _, gradient = thrown(thrown.x0)
    assert gradient.shape == (6,) and np.abs(gradient).max() > 0 and thrown.steps == 4


def test_where_it_diverges_a_line_search_turns_back(in_process: revolute.Simulator) -> None:
    model = in_process.load_model(CART)
    far = problem(in_process, model, [0.0], [0.0], np.ones((5, 1)), Term("qpos", target=1.0))
    value, _ = far(far.x0)
    worse, back = far(np.full(5, 1e305))
    assert np.isfinite(worse) and worse > 100 * value and np.isfinite(back).all() and (back > 0).all()
    with pytest.raises(revolute.DivergedError, match="x0: expected a start whose simulation stays finite"):
        problem(in_process, model, [0.0], [0.0], np.full((5, 1), 1e305), Term("qpos"))(np.full(5, 1e305))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wrt": ("mass",)}, "wrt: expected names among"),
        ({"wrt": ()}, "wrt: expected at least one name"),
        ({"bounds": {"qpos": (0, 1)}}, "bounds: expected names among ctrl"),
        ({"bounds": {"ctrl": (np.zeros(7), 1)}}, r"bounds.ctrl: expected a lower and an upper bound"),
    ],
)
def test_names_and_bounds_are_checked(in_process: revolute.Simulator, options: dict, message: str) -> None:
    model = in_process.load_model("cartpole")
    with pytest.raises(revolute.ArgumentError, match=message):
        problem(in_process, model, *HANGING, pushes(5), SWING_UP, **options)


@pytest.mark.parametrize("hold", [1, 3])
def test_ilqr_solves_a_linear_problem_in_one_iteration(simulator: revolute.Simulator, hold: int) -> None:
    """The loss is quadratic in the controls: the least-squares solution is the truth."""
    model = simulator.load_model(CART)
    rows = 6
    loss = Loss(
        [
            Term("qpos", target=0.5, weight=3.0),
            Term("qpos", target=0.2, when="running"),
            Term("qvel", weight=0.1, when="running"),
            Term("ctrl", weight=1e-6, when="running"),
        ]
    )
    found = ilqr(simulator, model, [0.0], [0.3], np.zeros((rows, 1)), loss, hold=hold, tolerance=1e-12)
    convex = problem(simulator, model, [0.0], [0.3], np.zeros((rows, 1)), loss, hold=hold)
    _, gradient = convex(np.zeros(rows))
    hessian = np.stack([convex(row)[1] - gradient for row in np.eye(rows)])
    expected = -np.linalg.solve(hessian, gradient)
    np.testing.assert_allclose(found.ctrl[:, 0], expected, rtol=1e-6)
    np.testing.assert_allclose(found.cost, convex(expected)[0], rtol=1e-12)
    assert found.converged and len(found.costs) <= 3


def test_ilqr_swings_a_pole_up_and_its_feedback_holds_the_plan(simulator: revolute.Simulator) -> None:
    model = simulator.load_model("cartpole", timestep=0.02)
    plan = ilqr(simulator, model, *HANGING, pushes(60), SWING_UP)
    assert plan.converged and plan.cost < 1.5
    np.testing.assert_allclose(plan.qpos[-1], 0.0, atol=0.2)
    assert np.abs(plan.ctrl).max() <= 20.0 and (np.diff(plan.costs) < 0).all()
    start = np.add(HANGING[0], [0.0, 0.05])
    ends = [
        simulator.rollout(model, start, HANGING[1], plan.ctrl, feedback=feedback).final_qpos
        for feedback in (None, plan.feedback)
    ]
    open_loop, closed = (np.abs(end - plan.qpos[-1]).max() for end in ends)
    assert closed < 0.3 * open_loop


def test_ilqr_of_a_robot_with_a_free_joint(in_process: revolute.Simulator) -> None:
    """A running loss in tangent coordinates of a quaternion; ten controls of an ant in the air."""
    model = in_process.load_model("ant", contact=False)
    qpos = np.array(model.qpos0)
    qpos[3:7] = [0.8, 0.0, 0.6, 0.0]
    loss = Loss(
        [Term("qpos", target=[1, 0, 0, 0], index=[3, 4, 5, 6], when="running"), Term("ctrl", weight=1e-4)]
    )
    plan = ilqr(in_process, model, qpos, model.qvel0, np.zeros((10, model.nu)), loss, iterations=5)
    assert plan.costs[-1] < plan.costs[0]


def test_the_tangent_basis_against_differences_of_integration(in_process: revolute.Simulator) -> None:
    """One step of a tumbling body with velocity v changes qpos by h basis v + O(h^2)."""
    model = in_process.load_model(BODY)
    random = np.random.default_rng(1)
    qpos, qvel = random.normal(size=7), random.normal(size=6)
    qpos[3:] /= np.linalg.norm(qpos[3:])
    moved = in_process.rollout(model, qpos, qvel, np.zeros((1, 0))).final_qpos
    expected = tangent_basis(model, qpos[None])[0] @ qvel
    np.testing.assert_allclose((moved - qpos) / 1e-7, expected, atol=1e-6)


def test_ilqr_says_what_it_cannot_do(in_process: revolute.Simulator) -> None:
    model = in_process.load_model(CART)
    with pytest.raises(revolute.ArgumentError, match=r"ctrl: expected shape \[T, nu=1\]"):
        ilqr(in_process, model, [0.0], [0.0], np.zeros(3), Term("qpos"))
    with pytest.raises(revolute.ArgumentError, match="expected qpos, qvel or ctrl"):
        ilqr(in_process, model, [0.0], [0.0], np.zeros((3, 1)), Term("body_com", body="cart"))
    with pytest.raises(revolute.ArgumentError, match=r"loss: expected a revolute\.Term or .*, got function"):
        ilqr(in_process, model, [0.0], [0.0], np.zeros((3, 1)), lambda states: 0.0)  # type: ignore[arg-type]
    with pytest.raises(revolute.DivergedError, match="ctrl: expected controls whose simulation stays finite"):
        ilqr(in_process, model, [0.0], [0.0], np.full((9, 1), 1e308), Term("qpos"), hold=1000)


LIFTED = """<mujoco><option timestep="0.01"/><worldbody><body name="hook" mocap="true"/>
  <body name="load"><joint name="x" type="slide" axis="1 0 0" stiffness="3"/>
    <geom size="0.1" mass="0.5"/></body></worldbody><actuator><motor joint="x"/></actuator>
  <equality><connect body1="hook" body2="load" anchor="0 0 0" solref="0.1 1"/></equality></mujoco>"""


def test_problems_know_controllers_and_inputs(simulator: revolute.Simulator) -> None:
    """Gradients by weights, forces and poses against differences."""
    model = simulator.load_model(LIFTED)
    random = np.random.default_rng(1)
    policy = revolute.MLP([random.normal(size=(1, 2)), [0.1]], ["qpos", "qvel"])
    forces = random.normal(size=(6, 1))
    names = ("policy.weights", "qfrc_applied", "mocap_pos", "ctrl")
    loss = Loss([Term("qpos", target=0.3, when="running"), Term("ctrl", when="running", weight=0.1)])
    found = problem(
        simulator,
        model,
        [0.1],
        [0.0],
        random.normal(size=(6, 1)),
        loss,
        wrt=names,
        hold=2,
        policy=policy,
        qfrc_applied=forces,
    )
    parts = found.unpack(found.x0)
    np.testing.assert_array_equal(parts["policy.weights"], policy.weights)
    np.testing.assert_array_equal(parts["mocap_pos"], model.mocap_pos)
    value, gradient = found(found.x0)
    assert found.steps == 12
    for entry in range(len(found.x0)):
        step = np.zeros(len(found.x0))
        step[entry] = 1e-5
        difference = (found(found.x0 + step)[0] - found(found.x0 - step)[0]) / 2e-5
        np.testing.assert_allclose(gradient[entry], difference, rtol=1e-6, atol=1e-8 * value)
    with pytest.raises(revolute.ArgumentError, match=r"wrt: expected names among .*policy.weights"):
        problem(simulator, model, [0], [0], np.zeros((6, 1)), loss, wrt=("weights",), policy=policy)


@pytest.mark.parametrize("rows", [False, True])
def test_ilqr_under_forces_and_with_mocap_bodies(simulator: revolute.Simulator, rows: bool) -> None:
    """The loss is quadratic in the controls: the least-squares solution is the truth."""
    model = simulator.load_model(LIFTED)
    force, place = np.array([1.5]), np.array([[0.2, 0.0, 0.0]])
    if rows:
        force, place = np.linspace(-1, 1, 6)[:, None], np.linspace(0, 1, 6)[:, None, None] * place
    given = {"qfrc_applied": force, "mocap_pos": place}
    loss = Loss([Term("qpos", target=0.5, weight=3.0), Term("ctrl", weight=1e-3, when="running")])
    start = [0.0], [0.3], np.zeros((6, 1))
    found = ilqr(simulator, model, *start, loss, hold=3, tolerance=1e-12, **given)
    convex = problem(simulator, model, *start, loss, hold=3, **given)
    _, gradient = convex(np.zeros(6))
    hessian = np.stack([convex(row)[1] - gradient for row in np.eye(6)])
    expected = -np.linalg.solve(hessian, gradient)
    np.testing.assert_allclose(found.ctrl[:, 0], expected, rtol=1e-6)
    without = ilqr(simulator, model, *start, loss, hold=3, tolerance=1e-12)
    assert np.abs(without.ctrl - found.ctrl).max() > 0.01
