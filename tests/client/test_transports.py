"""One API, three transports: the same bits, the same classes, the same texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import revolute
from tests.robots import LAIKAGO_HEIGHT, gymnasium_ant, laikago_urdf

Simulators = dict[str, revolute.Simulator]

CART = """<mujoco model="cart">
  <option timestep="0.001" gravity="0 0 0"/>
  <worldbody><body>
    <joint name="x" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
  </body></worldbody>
  <actuator><motor joint="x"/></actuator>
</mujoco>"""

UNSTABLE = CART.replace('timestep="0.001"', 'timestep="10"').replace("<joint", '<joint stiffness="1e6"')
"""A spring far too stiff for its step: the state grows by 1e8 a step until it is not finite."""

FINAL = revolute.Loss([revolute.Term("qpos", target=0.1, index=[0]), revolute.Term("ctrl", weight=0.01)])


def _results(
    simulator: revolute.Simulator, source: Any, steps: int, lift: float, **options: Any
) -> dict[str, np.ndarray]:
    """Return every array that a rollout, its gradients, a loss and a session give."""
    model = simulator.load_model(source, **options)
    random = np.random.default_rng(3)
    qpos = model.qpos0 + np.zeros((2, model.nq))
    qpos[:, 2] += lift
    qvel = 0.1 * random.normal(size=(2, model.nv))
    ctrl = 0.1 * random.normal(size=(2, steps, model.nu))
    friction = model.geom_friction * np.array([1.0, 0.5])[:, None, None]
    wrt = ("qpos", "qvel", "ctrl", *model.params)
    found: dict[str, np.ndarray] = {"body_mass": model.body_mass, "ctrlrange": model.ctrlrange}
    found |= {f"params.{name}": array for name, array in model.params.items()}
    found |= {f"keyframes.{name}": array for name, array in model.keyframes.items()}
    with simulator.rollout(model, qpos, qvel, ctrl, params={"geom_friction": friction}) as trajectory:
        for name in ("qpos", "qvel", "ctrl", "status", "diverged_step"):
            found[f"trajectory.{name}"] = getattr(trajectory, name)
        bars = (
            random.normal(size=(3, *trajectory.qpos.shape)),
            random.normal(size=(3, *trajectory.qvel.shape)),
        )
        gradient = trajectory.backward(*bars, wrt=wrt)
        found |= {f"gradient.{name}": array for name, array in gradient.items()}
        tangent = trajectory.jvp(
            qpos_tan=random.normal(size=model.nv),
            ctrl_tan=random.normal(size=ctrl.shape),
            params_tan={"geom_friction": friction, "gravity": random.normal(size=3)},
        )
        found |= {"jvp.qpos": tangent.qpos, "jvp.qvel": tangent.qvel}
    mass = model.body_mass * np.array([[1.0], [1.5]])
    jacobian = simulator.jacobian(model, qpos, qvel, ctrl[:, 0], params={"body_mass": mass})
    found |= {"jacobian.A": jacobian.A, "jacobian.B": jacobian.B}
    value, gradient = simulator.value_and_gradient(model, qpos[0], qvel[0], ctrl[0], FINAL, wrt=wrt)
    found |= {"value": np.asarray(value), **{f"loss.{name}": gradient[name] for name in wrt}}
    with simulator.session(model, 2) as session:
        session.reset(qpos=qpos, qvel=qvel)
        state = session.step(ctrl[:, 0], steps=3)
        found |= {"session.qpos": state.qpos, "session.qvel": session.state().qvel}
        jacobian = session.jacobian(ctrl[0, 0])
        found |= {"session.A": jacobian.A, "session.B": jacobian.B}
        assert (state.step_count, state.time) == (3, 3 * model.timestep)
    return found


ROBOTS: dict[str, tuple[Callable[[], Any], dict[str, Any], float]] = {
    "laikago": (laikago_urdf, {"base": "free", "ground": True, "timestep": 1e-3}, LAIKAGO_HEIGHT),
    "ant": (gymnasium_ant, {"contact": False}, 0.0),
    "built-in": (lambda: "laikago", {}, 0.0),
}
"""Robots with the options to load them, and how far to lift them to stand on the ground."""


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_results_are_bit_identical(robot: str, simulators: Simulators) -> None:
    source, options, lift = ROBOTS[robot]
    local, *others = (_results(simulator, source(), 20, lift, **options) for simulator in simulators.values())
    for other in others:
        assert list(other) == list(local)
        for name, array in local.items():
            assert (other[name].shape, other[name].dtype) == (array.shape, array.dtype), name
            assert other[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize("kind", ["grpc", "http"])
def test_handles_are_equal(kind: str, simulators: Simulators) -> None:
    first, second = (simulators[name].load_model(CART, name="cart.xml") for name in ("in-process", kind))
    for field in dataclasses.fields(first):
        one, two = getattr(first, field.name), getattr(second, field.name)
        if field.name in ("params", "keyframes"):
            assert list(one) == list(two)
            one, two = ([array.tobytes() for array in arrays.values()] for arrays in (one, two))
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, two)
        elif field.name not in ("source", "fetch"):
            assert one == two, field.name


def _closed_session(simulator: revolute.Simulator, model: revolute.ModelHandle) -> None:
    session = simulator.session(model)
    session.close()
    session.id = "0" * 32  # ids are random; one that is known makes the texts comparable
    session.step([1.0])


def _deleted_trajectory(
    simulator: revolute.Simulator, model: revolute.ModelHandle, use: str = "backward"
) -> None:
    trajectory = simulator.rollout(model, [0.0], [0.0], [[1.0]])
    trajectory.delete()
    trajectory.id = "0" * 32
    trajectory.backward([[1.0], [1.0]]) if use == "backward" else trajectory.jvp(qvel_tan=[1.0])


def _diverged_session(simulator: revolute.Simulator) -> revolute.Session:
    """Return a session whose environments have both diverged."""
    session = simulator.session(simulator.load_model(UNSTABLE), 2)
    session.reset(qpos=[1.0])
    assert session.step([0.0], steps=200).status.tolist() == [1, 1]
    return session


def _hard(sim: revolute.Simulator) -> revolute.ModelHandle:
    """Load a cart whose contacts have a coefficient of restitution."""
    return sim.load_model(CART, contact_model="hard")


def _backward(simulator: revolute.Simulator, model: revolute.ModelHandle, *bars: Any, **names: Any) -> None:
    simulator.rollout(model, [0.0], [0.0], np.ones((3, 4, 1))).backward(*bars, **names)


QPOS_BAR = np.ones((3, 5, 1))
MISTAKES: dict[str, tuple[type[revolute.RevoluteError], str, Callable[[Any, Any], Any]]] = {
    "wrong shape": (
        revolute.ArgumentError,
        "ctrl: expected shape [batch, time, nu=1], got [3, 4, 2]; model 'cart' has 1 actuators",
        lambda sim, m: sim.rollout(m, [0.0], [0.0], np.ones((3, 4, 2))),
    ),
    "complex": (
        revolute.ArgumentError,
        "ctrl: expected an array of real numbers, got dtype complex128",
        lambda sim, m: sim.rollout(m, [0.0], [0.0], [[1j]]),
    ),
    "nan": (
        revolute.ArgumentError,
        "ctrl: expected finite values, got nan at [1, 0]",
        lambda sim, m: sim.rollout(m, [0.0], [0.0], [[1.0], [np.nan]]),
    ),
    "infinite state": (
        revolute.ArgumentError,
        "qvel: expected finite values, got inf at [0]",
        lambda sim, m: sim.rollout(m, [0.0], [np.inf], [[1.0]]),
    ),
    "empty batch": (
        revolute.ArgumentError,
        "ctrl: expected a batch of at least one environment, got [0, 4, 1]",
        lambda sim, m: sim.rollout(m, [0.0], [0.0], np.ones((0, 4, 1))),
    ),
    "parameter name": (
        revolute.ArgumentError,
        "params: expected names among geom_friction, body_mass, body_ipos, ",
        lambda sim, m: sim.rollout(m, [0.0], [0.0], [[1.0]], params={"mass": [1.0]}),
    ),
    "parameter shape": (
        revolute.ArgumentError,
        "body_mass: expected shape [nbody=2], got [3]",
        lambda sim, m: sim.rollout(m, [0.0], [0.0], [[1.0]], params={"body_mass": [1.0, 1.0, 1.0]}),
    ),
    "gradient name": (
        revolute.ArgumentError,
        "wrt: expected names among qpos, qvel, ctrl, geom_friction, body_mass, body_ipos, ",
        lambda sim, m: _backward(sim, m, QPOS_BAR, wrt=["mass"]),
    ),
    "cotangent shape": (
        revolute.ArgumentError,
        "qpos_bar: expected shape [3, 5, 1] or [K, 3, 5, 1], got [3, 4, 1]",
        lambda sim, m: _backward(sim, m, QPOS_BAR[:, 1:]),
    ),
    "no cotangent": (
        revolute.ArgumentError,
        "qpos_bar, qvel_bar and ctrl_bar: expected an array in at least one of them, got None in all",
        lambda sim, m: _backward(sim, m),
    ),
    "parameter out of bounds": (
        revolute.ArgumentError,
        "restitution: expected coefficients from 0 to 1, got 1.5",
        lambda sim, _: sim.rollout(_hard(sim), [0.0], [0.0], [[1.0]], params={"restitution": 1.5}),
    ),
    "parameters without names": (
        revolute.ArgumentError,
        "params: expected a mapping from names to arrays, got list",
        lambda sim, m: sim.jacobian(m, [0.0], [0.0], [1.0], params=[1.0]),
    ),
    "no tangent": (
        revolute.ArgumentError,
        "qpos_tan, qvel_tan, ctrl_tan, params_tan, control_tan: expected a tangent in at least one",
        lambda sim, m: sim.rollout(m, [0.0], [0.0], [[1.0]]).jvp(),
    ),
    "tangent shape": (
        revolute.ArgumentError,
        "ctrl_tan: expected shape [1, 1], got [2, 1]",
        lambda sim, m: sim.rollout(m, [0.0], [0.0], [[1.0]]).jvp(ctrl_tan=np.ones((2, 1))),
    ),
    "tangent name": (
        revolute.ArgumentError,
        "params_tan: expected names among geom_friction, body_mass, ",
        lambda sim, m: sim.rollout(m, [0.0], [0.0], [[1.0]]).jvp(params_tan={"mass": [1.0]}),
    ),
    "tangent of a deleted trajectory": (
        revolute.NotFoundError,
        "trajectory_id: expected the id of a trajectory that is kept, got '00000000000000000000000000000000'",
        lambda sim, m: _deleted_trajectory(sim, m, "jvp"),
    ),
    "step of several times": (
        revolute.ArgumentError,
        "ctrl: expected shape [batch, nu=1] or [nu=1], got [1, 2, 1]",
        lambda sim, m: sim.jacobian(m, [0.0], [0.0], np.ones((1, 2, 1))),
    ),
    "step of an unknown model": (
        revolute.NotFoundError,
        "model_id: expected the id of a model that is kept, got 'ffff'",
        lambda sim, m: sim.jacobian(dataclasses.replace(m, id="ffff"), [0.0], [0.0], [1.0]),
    ),
    "session's step": (
        revolute.ArgumentError,
        "ctrl: expected shape [batch=2, nu=1] or [nu=1], got [3, 1]",
        lambda sim, m: sim.session(m, 2).jacobian(np.ones((3, 1))),
    ),
    "session that diverged": (
        revolute.DivergedError,
        "session: expected at least one environment that has not diverged, got none of 2; reset it",
        lambda sim, m: _diverged_session(sim).jacobian([0.0]),
    ),
    "check of no steps": (
        revolute.ArgumentError,
        "steps: expected a whole number of at least 1, got 0",
        lambda sim, m: sim.check_gradient(m, steps=0),
    ),
    "check in no direction": (
        revolute.ArgumentError,
        "directions: expected ",
        lambda sim, m: sim.check_gradient(m, directions=10**6),
    ),
    "check without tolerance": (
        revolute.ArgumentError,
        "tolerance: expected a number between 0 and 1, got nan",
        lambda sim, m: sim.check_gradient(m, tolerance=np.nan),
    ),
    "seed": (
        revolute.ArgumentError,
        "seed: expected a whole number of at least 0, got -1",
        lambda sim, m: sim.check_gradient(m, seed=-1),
    ),
    "check of an unknown input": (
        revolute.ArgumentError,
        "wrt: expected names among qpos, qvel, ctrl, geom_friction, ",
        lambda sim, m: sim.check_gradient(m, wrt=["mass"]),
    ),
    "check of a batch": (
        revolute.ArgumentError,
        "ctrl: expected shape [time, nu=1], got [2, 4, 1]",
        lambda sim, m: sim.check_gradient(m, ctrl=np.ones((2, 4, 1))),
    ),
    "check of what diverges": (
        revolute.DivergedError,
        "rollout: expected at least one environment with finite states, got none of 1",
        lambda sim, m: sim.check_gradient(sim.load_model(UNSTABLE), [1.0]),
    ),
    "loss index": (
        revolute.ArgumentError,
        "loss.terms.0.index: expected entries from 0 to 0, got 5; qpos has 1 entries",
        lambda sim, m: sim.value_and_gradient(m, [0.0], [0.0], [[1.0]], revolute.Term("qpos", index=[5])),
    ),
    "loss function": (
        revolute.ArgumentError,
        "loss: expected a function that returns (value, qpos_bar, qvel_bar), or ctrl_bar too, got States",
        lambda sim, m: sim.value_and_gradient(m, [0.0], [0.0], [[1.0]], lambda x: x),
    ),
    "negative timestep": (
        revolute.ArgumentError,
        "timestep: expected seconds > 0, got -1.0",
        lambda sim, m: sim.load_model(CART, timestep=-1.0),
    ),
    "not XML": (
        revolute.ModelError,
        "bad.xml: expected XML, got",
        lambda sim, m: sim.load_model("<mujoco", name="bad.xml"),
    ),
    "mesh not sent": (
        revolute.ModelError,
        "XML text: mesh 'foot.stl': expected a file, got none at foot.stl; give its folder in mesh_paths",
        lambda sim, m: sim.load_model('<mujoco><asset><mesh name="m" file="foot.stl"/></asset></mujoco>'),
    ),
    "built-in name": (
        revolute.NotFoundError,
        "source: expected XML text or the name of a built-in model, got 'laikagoo'",
        lambda sim, m: sim.load_model("laikagoo"),
    ),
    "unknown model": (
        revolute.NotFoundError,
        "model_id: expected the id of a model that is kept, got 'ffff'",
        lambda sim, m: sim.session(dataclasses.replace(m, id="ffff")),
    ),
    "empty session": (
        revolute.ArgumentError,
        "batch: expected a whole number of at least 1, got 0",
        lambda sim, m: sim.session(m, 0),
    ),
    "session control": (
        revolute.ArgumentError,
        "ctrl: expected shape [batch=2, nu=1] or [nu=1], or [batch=2, time=1, nu=1], got [3, 1]",
        lambda sim, m: sim.session(m, 2).step(np.ones((3, 1))),
    ),
    "closed session": (
        revolute.NotFoundError,
        "session_id: expected the id of a session that is kept, got '00000000000000000000000000000000'",
        _closed_session,
    ),
    "deleted trajectory": (
        revolute.NotFoundError,
        "trajectory_id: expected the id of a trajectory that is kept, got '00000000000000000000000000000000'",
        _deleted_trajectory,
    ),
    "zero quaternion": (
        revolute.ArgumentError,
        "qpos: expected a quaternion (w x y z) of non-zero length, got [0 0 0 0] at [3:7]",
        lambda sim, m: sim.rollout(sim.load_model("laikago"), np.zeros(19), np.zeros(18), np.zeros((1, 12))),
    ),
    "all diverged": (
        revolute.DivergedError,
        "rollout: expected at least one environment with finite states, got none of 1",
        lambda sim, m: sim.value_and_gradient(
            sim.load_model(UNSTABLE), [1.0], [0.0], np.zeros((200, 1)), revolute.Term("qpos")
        ),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_errors_are_the_same(mistake: str, simulators: Simulators) -> None:
    kind, text, make = MISTAKES[mistake]
    caught = []
    for simulator in simulators.values():
        model = simulator.load_model(CART)
        with pytest.raises(revolute.RevoluteError) as info:
            make(simulator, model)
        caught.append((type(info.value), str(info.value), info.value.argument))
        # nothing is lost: the simulator goes on
        assert simulator.rollout(model, [0.0], [0.0], [[1.0]]).qvel[-1, 0] == 1e-3
    assert caught[0] == caught[1] == caught[2]
    assert caught[0][0] is kind
    assert caught[0][1].startswith(text)


def test_diverged_environment_is_a_status(simulators: Simulators) -> None:
    for simulator in simulators.values():
        model = simulator.load_model(UNSTABLE)
        trajectory = simulator.rollout(model, [[0.0], [1.0]], [[0.0], [0.0]], np.zeros((2, 30, 1)))
        assert trajectory.status.tolist() == [0, 1]
        step = trajectory.diverged_step[1]
        assert trajectory.diverged_step[0] == -1 and 0 < step < 30
        assert np.isfinite(trajectory.qpos[0]).all() and np.isfinite(trajectory.qpos[1, : step + 1]).all()
        assert np.isnan(trajectory.qpos[1, step + 1 :]).all()
        gradient = trajectory.backward(np.ones((2, 31, 1)))
        assert np.isfinite(gradient.ctrl[0]).all() and np.isnan(gradient.ctrl[1]).all()
        assert gradient.status.tolist() == [0, 1]


def test_derivatives_of_a_diverged_environment_are_nan(simulators: Simulators) -> None:
    for simulator in simulators.values():
        model = simulator.load_model(UNSTABLE)
        trajectory = simulator.rollout(model, [[0.0], [1.0]], [[0.0], [0.0]], np.zeros((2, 30, 1)))
        tangent = trajectory.jvp(ctrl_tan=np.ones((30, 1)))
        assert np.isfinite(tangent.qpos[0]).all() and np.isnan(tangent.qpos[1]).all()
        session = simulator.session(model, 2)
        session.reset(qpos=[[0.0], [1.0]])
        assert session.step([0.0], steps=200).status.tolist() == [0, 1]
        jacobian = session.jacobian([0.0])
        assert np.isfinite(jacobian.A[0]).all() and np.isnan(jacobian.A[1]).all()
        assert np.isfinite(jacobian.B[0]).all() and np.isnan(jacobian.B[1]).all()


def test_derivatives_of_a_cart(simulator: revolute.Simulator) -> None:
    """A step is v+ = v + h u, x+ = x + h v+."""
    h = 1e-3
    model = simulator.load_model(CART)
    jacobian = simulator.jacobian(model, [0.3], [0.2], [0.5])
    np.testing.assert_allclose(jacobian.A, [[1.0, h], [0.0, 1.0]], rtol=1e-14)
    np.testing.assert_allclose(jacobian.B, [[h * h], [h]], rtol=1e-14)
    session = simulator.session(model, 2)
    before = session.step([1.0], steps=5)
    found = session.jacobian([0.5])
    assert found.A.tobytes() == np.stack([jacobian.A] * 2).tobytes()
    assert session.state().step_count == before.step_count == 5
    trajectory = simulator.rollout(model, [0.3], [0.2], np.full((4, 1), 0.5))
    tangent = trajectory.jvp(qvel_tan=[1.0])
    np.testing.assert_allclose(tangent.qpos[:, 0], h * np.arange(5), rtol=1e-14)
    assert tangent.qvel[:, 0].tolist() == [1.0] * 5
    by_mass = trajectory.jvp(params_tan={"body_mass": [0.0, 1.0]})
    np.testing.assert_allclose(by_mass.qvel[:, 0], -0.5 * h * np.arange(5), rtol=1e-14)


def test_every_parameter_is_taken_shared_and_per_environment(simulators: Simulators) -> None:
    """A parameter at the model's own value changes no bit; each has a gradient of its own shape."""
    for simulator in simulators.values():
        model = simulator.load_model("laikago")
        ctrl = np.tile(model.keyframes["home"][7:], (2, 3, 1))
        start = model.keyframes["home"], model.qvel0, ctrl
        plain = simulator.rollout(model, *start)
        each = {name: np.stack([value, value]) for name, value in model.params.items()}
        for params in (model.params, each):
            given = simulator.rollout(model, *start, params=params)
            assert given.qpos.tobytes() == plain.qpos.tobytes()
            gradient = given.backward(np.ones_like(given.qpos), wrt=list(params))
            for name, value in params.items():
                assert gradient[name].shape == value.shape, name
                assert np.isfinite(gradient[name]).all(), name


def test_a_check_of_gradients_is_the_same(simulators: Simulators) -> None:
    reports = []
    for simulator in simulators.values():
        model = simulator.load_model("laikago", contact_model="hard")
        report = simulator.check_gradient(
            model, steps=20, params={"restitution": 0.2}, wrt=["ctrl", "body_mass", "restitution"], seed=5
        )
        assert isinstance(report, revolute.GradientReport) and report.passed
        assert [check.name for check in report.inputs] == ["ctrl", "body_mass", "restitution"]
        reports.append(report)
    local, *others = reports
    for other in others:
        assert other == local and repr(other) == repr(local)
        assert str(other) == str(local) and other.to_dict() == local.to_dict()
    assert local.worst in str(local)
    assert revolute.GradientReport.from_dict(local.to_dict()) == local


def test_a_check_takes_a_trajectory(simulators: Simulators) -> None:
    reports = []
    for simulator in simulators.values():
        model = simulator.load_model(CART)
        reports.append(
            simulator.check_gradient(
                model, [0.5], [1.0], np.ones((7, 1)), directions=2, tolerance=np.float32(1e-4)
            )
        )
        assert (reports[-1].steps, reports[-1].directions) == (7, 2)
        assert reports[-1]["body_inertia"].verdict == "zero"
    assert reports[0] == reports[1] == reports[2]


def test_without_steps(simulator: revolute.Simulator) -> None:
    model = simulator.load_model(CART)
    trajectory = simulator.rollout(model, [0.5], [0.25], np.zeros((2, 0, 1)))
    assert trajectory.qpos.tolist() == [[[0.5]], [[0.5]]]
    gradient = trajectory.backward(np.full((2, 1, 1), 3.0), np.full((2, 1, 1), 4.0))
    assert gradient.qpos.tolist() == [[3.0], [3.0]] and gradient.qvel.tolist() == [[4.0], [4.0]]
    assert gradient.ctrl.shape == (2, 0, 1)


def test_callers_memory_is_read_only_once(simulator: revolute.Simulator) -> None:
    model = simulator.load_model(CART)
    arrays = np.array([0.5]), np.array([0.25]), np.ones((2, 5, 1)), np.ones((2, 6, 1))
    copies = [array.copy() for array in arrays]
    trajectory = simulator.rollout(model, *arrays[:3])
    results = [trajectory.qpos, trajectory.qvel, trajectory.ctrl, *trajectory.backward(arrays[3]).values()]
    assert all(array.tobytes() == copy.tobytes() for array, copy in zip(arrays, copies, strict=True))
    assert not any(np.shares_memory(result, array) for result in results for array in arrays)

    # what the caller does to his arrays afterwards changes nothing
    expected = trajectory.backward(copies[3]).ctrl
    for array in arrays[:3]:
        array[...] = 7.0
    assert trajectory.ctrl.tolist() == copies[2].tolist()
    assert trajectory.backward(copies[3]).ctrl.tobytes() == expected.tobytes()


def test_trajectory_ends_with_its_block(simulator: revolute.Simulator) -> None:
    model = simulator.load_model(CART)
    with simulator.rollout(model, [0.0], [0.0], [[1.0]]) as trajectory:
        assert trajectory.backward([[0.0], [1.0]]).ctrl.tolist() == [[1e-6]]
    with pytest.raises(revolute.NotFoundError):
        trajectory.backward([[0.0], [1.0]])
    with pytest.raises(revolute.NotFoundError):
        trajectory.delete()
    assert trajectory.qpos.tolist() == [[0.0], [1e-6]]


def test_forgotten_trajectory_is_deleted_with_the_next_rollout(simulator: revolute.Simulator) -> None:
    model = simulator.load_model(CART)
    forgotten = simulator.rollout(model, [0.0], [0.0], [[1.0]]).id
    kept = simulator.rollout(model, [0.0], [0.0], [[1.0]]).detach()
    simulator.rollout(model, [0.0], [0.0], [[1.0]])
    with pytest.raises(revolute.NotFoundError):
        simulator.trajectory(model, forgotten)
    with simulator.trajectory(model, kept) as trajectory:
        assert trajectory.ctrl.tolist() == [[1.0]]
        assert trajectory.backward([[0.0], [1.0]]).ctrl.tolist() == [[1e-6]]


def test_trajectory_is_shared_between_transports(over_grpc: Any, over_http: Any) -> None:
    model = over_grpc.load_model(CART)
    trajectory = over_grpc.rollout(model, [0.0], [0.0], np.ones((3, 1)))
    seen = over_http.trajectory(over_http.load_model(CART), trajectory.id)
    assert seen.qpos.tobytes() == trajectory.qpos.tobytes() and seen.report == trajectory.report


def test_session_closes_with_its_block(simulator: revolute.Simulator) -> None:
    model = simulator.load_model(CART)
    with simulator.session(model, 3) as session:
        state = session.step([1.0], steps=1000)
        np.testing.assert_allclose(state.qpos[:, 0], 0.5005, rtol=1e-12)
        assert session.step([1.0], steps=0).step_count == 1000
        state.qpos[...] = 9.0
        assert session.state().qpos.max() < 1.0
        assert session.reset(qpos=[2.0]).qpos.tolist() == [[2.0], [2.0], [2.0]]
        assert session.state().time == 0.0
    with pytest.raises(revolute.NotFoundError):
        session.state()


LIMIT = 4 * 1024**2


@pytest.mark.parametrize("steps", [100_000, LIMIT // 8 - 8, LIMIT // 8, 2_000_000])
def test_any_length(steps: int, simulator: revolute.Simulator) -> None:
    """Case E01: with u = 1, v_N = N h, x_N = h^2 N (N + 1) / 2 and d x_N / d u_k = h^2 (N - k)."""
    model = simulator.load_model(CART)
    ctrl = np.ones((steps, 1))
    with simulator.rollout(model, [0.0], [0.0], ctrl) as trajectory:
        np.testing.assert_allclose(trajectory.qvel[-1, 0], steps * 1e-3, rtol=1e-9)
        np.testing.assert_allclose(trajectory.qpos[-1, 0], 1e-6 * steps * (steps + 1) / 2, rtol=1e-9)
        qpos_bar = np.zeros_like(trajectory.qpos)
        qpos_bar[-1] = 1.0
        gradient = trajectory.backward(qpos_bar, wrt=["ctrl"])
    np.testing.assert_allclose(gradient.ctrl[:, 0], 1e-6 * np.arange(steps, 0, -1), rtol=1e-9)


def test_a_session_shares_no_memory_with_its_caller(simulator: revolute.Simulator) -> None:
    model = simulator.load_model(CART)
    qpos, qvel, ctrl = np.array([[0.5]]), np.array([[0.25]]), np.array([[2.0]])
    with simulator.session(model) as session:
        for change, names in (
            (lambda: session.reset(qpos, qvel), ("qpos", "qvel")),
            (lambda: session.step(ctrl), ("qpos", "qvel", "ctrl")),
            (lambda: session.set_state(qpos, qvel, ctrl=ctrl), ("qpos", "qvel", "ctrl")),
        ):
            answer = change()
            expected = {name: np.array(getattr(answer, name)) for name in names}
            arrays = (qpos, qvel, ctrl, *(getattr(answer, name) for name in names), answer.step_counts)
            given = [np.array(array) for array in arrays]
            for array in arrays:
                array[...] = 7
            state = session.state()
            for name in names:
                np.testing.assert_array_equal(getattr(state, name), expected[name])
            assert state.step_counts.tolist() == given[-1].tolist()
            for array, value in zip(arrays, given, strict=True):
                array[...] = value


def test_callers_share_a_session(simulator: revolute.Simulator) -> None:
    """Eight threads step one session, a ninth reads it: no step is lost, no state is torn."""
    session = simulator.session(simulator.load_model(CART))
    with ThreadPoolExecutor(9) as pool:
        steppers = [pool.submit(lambda: [session.step([1.0]) for _ in range(25)]) for _ in range(8)]
        reader = pool.submit(lambda: [session.state() for _ in range(100)])
        for stepper in steppers:
            stepper.result()
        states = [*reader.result(), session.state()]
    assert states[-1].step_count == 200
    for state in states:
        k = state.step_count
        np.testing.assert_allclose(state.qvel[0, 0], k * 1e-3, rtol=1e-12)
        np.testing.assert_allclose(state.qpos[0, 0], 1e-6 * k * (k + 1) / 2, rtol=1e-12)
