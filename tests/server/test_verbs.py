"""Every verb over gRPC, JSON and npz, against the engine in this process: equal bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from revolute.contract.errors import NotFoundError
from revolute.contract.loss import Loss, Term
from revolute_engine import Engine, GradientReport, Model, check_gradient, load_model
from testbed.cart import CART
from testbed.wire import GrpcWire, numbers

from .conftest import Wire

BATCH, STEPS = 3, 7


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model(CART)


@pytest.fixture(scope="module")
def inputs() -> dict[str, np.ndarray]:
    random = np.random.default_rng(20240131)
    return {
        "qpos": random.normal(size=(BATCH, 1)),
        "qvel": random.normal(size=(BATCH, 1)),
        "ctrl": random.normal(size=(BATCH, STEPS, 1)),
    }


def same(found: object, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(numbers(found), expected, strict=False)
    assert numbers(found).shape == expected.shape


def test_register_model_gives_the_content_hash_and_the_same_id_again(wire: Wire, model: Model) -> None:
    first = wire.call("RegisterModel", {"text": CART})
    assert first["model_id"] == model.id
    assert wire.call("RegisterModel", {"text": CART})["model_id"] == model.id
    other = wire.call("RegisterModel", {"text": CART, "options": {"timestep": 0.002}})
    assert other["model_id"] != model.id
    assert other["timestep"] == 0.002


def test_get_model_describes_it(wire: Wire, cart: str, model: Model) -> None:
    info = wire.call("GetModel", {"model_id": cart})
    for name in ("nq", "nv", "nu", "nbody", "njnt", "ngeom", "timestep", "name"):
        assert info[name] == getattr(model, name), name
    assert list(info["actuator_names"]) == ["push"]
    same(info["body_mass"], model.body_mass)
    same(info["ctrlrange"], model.ctrlrange)


def test_list_models_names_built_in_and_registered_ones(wire: Wire, cart: str) -> None:
    found = wire.call("ListModels", {})
    assert "cartpole" in found["builtin"]
    assert cart in [entry["model_id"] for entry in found["models"]]


def test_rollout_and_backward_equal_the_engine(
    wire: Wire, cart: str, model: Model, inputs: dict[str, np.ndarray]
) -> None:
    engine = Engine()
    expected = engine.rollout(model, **inputs)
    found = wire.call("Rollout", {"model_id": cart, **inputs})
    for name in ("qpos", "qvel", "status", "diverged_step"):
        same(found[name], getattr(expected, name))
    assert found["report"]["checkpoint_bytes"] == expected.report.checkpoint_bytes

    random = np.random.default_rng(7)
    qpos_bar = random.normal(size=expected.qpos.shape)
    qvel_bar = random.normal(size=expected.qvel.shape)
    wrt = ["qpos", "qvel", "ctrl", "body_mass"]
    pulled = wire.call(
        "Backward",
        {"trajectory_id": found["trajectory_id"], "qpos_bar": qpos_bar, "qvel_bar": qvel_bar, "wrt": wrt},
    )
    gradient = engine.backward(model, expected, qpos_bar, qvel_bar, wrt=wrt)
    assert set(pulled["arrays"]) == set(wrt)
    for name in wrt:
        same(pulled["arrays"][name], gradient[name])
    wire.call("DeleteTrajectory", {"trajectory_id": found["trajectory_id"]})


def test_backward_takes_many_cotangents_and_leaves_out_what_is_zero(
    wire: Wire, cart: str, model: Model, inputs: dict[str, np.ndarray]
) -> None:
    engine = Engine()
    expected = engine.rollout(model, **inputs)
    found = wire.call("Rollout", {"model_id": cart, **inputs})
    qpos_bar = np.random.default_rng(8).normal(size=(4, *expected.qpos.shape))
    pulled = wire.call("Backward", {"trajectory_id": found["trajectory_id"], "qpos_bar": qpos_bar})
    gradient = engine.backward(model, expected, qpos_bar)
    assert set(pulled["arrays"]) == {"qpos", "qvel", "ctrl"}
    for name, array in pulled["arrays"].items():
        same(array, gradient[name])
        assert numbers(array).shape[0] == 4


def test_jvp_equals_the_engine(wire: Wire, cart: str, model: Model, inputs: dict[str, np.ndarray]) -> None:
    engine = Engine()
    expected = engine.rollout(model, **inputs)
    trajectory = {"trajectory_id": wire.call("Rollout", {"model_id": cart, **inputs})["trajectory_id"]}
    random = np.random.default_rng(9)
    tangents = {
        "qpos_tan": random.normal(size=1),
        "ctrl_tan": random.normal(size=(BATCH, STEPS, 1)),
        "params_tan": {"body_mass": random.normal(size=2), "dof_damping": np.array([1.0])},
    }
    found = wire.call("Jvp", {**trajectory, **tangents})
    pushed = engine.jvp(model, expected, **tangents)
    same(found["qpos"], pushed.qpos)
    same(found["qvel"], pushed.qvel)
    wire.call("DeleteTrajectory", trajectory)
    assert isinstance(wire.error("Jvp", {**trajectory, **tangents})[0], NotFoundError)


def test_jacobian_equals_the_engine(
    wire: Wire, cart: str, model: Model, inputs: dict[str, np.ndarray]
) -> None:
    engine, ctrl = Engine(), inputs["ctrl"][:, 0]
    start = {"qpos": inputs["qpos"], "qvel": inputs["qvel"]}
    params = {"dof_damping": np.array([[0.0], [0.5], [2.0]])}
    found = wire.call("Jacobian", {"model_id": cart, **start, "ctrl": ctrl, "params": params})
    expected = engine.jacobian(model, **start, ctrl=ctrl, params=params)
    same(found["A"], expected.A)
    same(found["B"], expected.B)
    alone = wire.call("Jacobian", {"model_id": cart, "qpos": np.ones(1), "qvel": np.ones(1), "ctrl": ctrl[0]})
    assert numbers(alone["A"]).shape == (2, 2)

    session = {"session_id": wire.call("CreateSession", {"model_id": cart, "batch": BATCH})["session_id"]}
    wire.call("Reset", {**session, **start})
    found = wire.call("SessionJacobian", {**session, "ctrl": ctrl})
    expected = engine.jacobian(model, **start, ctrl=ctrl)
    same(found["A"], expected.A)
    same(found["B"], expected.B)
    wire.call("DeleteSession", session)
    assert isinstance(wire.error("SessionJacobian", {**session, "ctrl": ctrl})[0], NotFoundError)


def test_check_gradient_equals_the_engine(wire: Wire, cart: str, model: Model) -> None:
    names = ["qpos", "ctrl", "body_mass", "jnt_stiffness"]
    found = wire.call("CheckGradient", {"model_id": cart, "wrt": names, "steps": 20, "seed": 3})
    report = check_gradient(Engine(), model, wrt=names, steps=20, seed=3)
    assert GradientReport.from_dict(found) == report
    assert found["passed"] is True and found["worst"] == report.worst
    # another start, with all that may be given
    start = {"qpos": np.array([0.5]), "qvel": np.array([1.0]), "ctrl": np.ones((4, 1))}
    params = {"dof_damping": np.array([0.5])}
    found = wire.call("CheckGradient", {"model_id": cart, **start, "params": params, "directions": 1})
    report = check_gradient(Engine(), model, **start, params=params, directions=1)
    assert GradientReport.from_dict(found) == report
    assert (found["steps"], found["tolerance"]) == (4, 1e-5)


def test_rollout_without_a_batch_axis_and_with_params(wire: Wire, cart: str, model: Model) -> None:
    ctrl = np.linspace(-1.0, 1.0, STEPS)[:, None]
    params = {"body_mass": np.array([0.0, 2.5])}
    expected = Engine().rollout(model, np.zeros(1), np.zeros(1), ctrl, params=params)
    found = wire.call(
        "Rollout",
        {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": ctrl, "params": params},
    )
    same(found["qpos"], expected.qpos)
    assert numbers(found["status"]).shape == ()


def test_get_trajectory_sends_it_again_with_its_controls(
    wire: Wire, cart: str, inputs: dict[str, np.ndarray]
) -> None:
    first = wire.call("Rollout", {"model_id": cart, **inputs})
    again = wire.call("GetTrajectory", {"trajectory_id": first["trajectory_id"]})
    for name in ("qpos", "qvel"):
        same(again[name], numbers(first[name]))
    same(again["ctrl"], inputs["ctrl"])


def test_value_and_gradient_equals_the_engine(
    wire: Wire, cart: str, model: Model, inputs: dict[str, np.ndarray]
) -> None:
    loss = Loss([Term("qpos", weight=2.0, target=[0.3]), Term("ctrl", weight=0.1, when="running", index=[0])])
    value, gradient = Engine().value_and_gradient(model, **inputs, loss=loss)
    found = wire.call(
        "ValueAndGradient",
        {"inputs": {"model_id": cart, **inputs}, "loss": loss.to_dict(), "wrt": ["ctrl", "qvel"]},
    )
    same(found["value"], np.asarray(value))
    for name in ("ctrl", "qvel"):
        same(found["gradient"]["arrays"][name], gradient[name])


def test_a_session_steps_as_a_rollout_does(wire: Wire, cart: str, model: Model) -> None:
    session = wire.call("CreateSession", {"model_id": cart, "batch": BATCH})
    handle = {"session_id": session["session_id"]}
    start = np.array([[0.5], [1.0], [-2.0]])
    wire.call("Reset", {**handle, "qpos": start})
    ctrl = np.array([[1.0], [0.25], [-3.0]])
    wire.call("Step", {**handle, "ctrl": ctrl, "steps": 4})
    state = wire.call("Step", {**handle, "ctrl": ctrl})
    expected = Engine().rollout(model, start, np.zeros(1), np.repeat(ctrl[:, None], 5, axis=1))
    same(state["qpos"], expected.qpos[:, -1])
    same(state["qvel"], expected.qvel[:, -1])
    assert (state["step_count"], state["time"]) == (5, 5 * 0.001)
    again = wire.call("GetState", handle)
    same(again["qpos"], expected.qpos[:, -1])
    wire.call("DeleteSession", handle)


def test_zero_steps_leave_the_state_as_it_is(wire: Wire, cart: str) -> None:
    handle = {"session_id": wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]}
    state = wire.call("Step", {**handle, "ctrl": np.ones(1), "steps": 0})
    assert state["step_count"] == 0
    same(state["qpos"], np.zeros((1, 1)))


def test_what_is_deleted_is_gone(wire: Wire, cart: str) -> None:
    session = {"session_id": wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]}
    rollout = {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.zeros((2, 1))}
    trajectory = {"trajectory_id": wire.call("Rollout", rollout)["trajectory_id"]}
    for verb, handle in (("DeleteSession", session), ("DeleteTrajectory", trajectory)):
        wire.call(verb, handle)
        error, _ = wire.error(verb, handle)
        assert isinstance(error, NotFoundError)
    assert isinstance(wire.error("GetState", session)[0], NotFoundError)
    assert isinstance(wire.error("Step", {**session, "ctrl": np.zeros(1)})[0], NotFoundError)
    assert isinstance(wire.error("Backward", trajectory)[0], NotFoundError)


def test_server_info(wire: Wire) -> None:
    info = wire.call("GetServerInfo", {})
    assert list(info["api_versions"]) == ["v1"]
    assert info["limits"]["queue"] == 256
    assert info["build"]["isa"]


def test_ids_cannot_be_guessed(grpc_wire: GrpcWire, cart: str) -> None:
    handles = [
        grpc_wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"] for _ in range(8)
    ]
    assert len(set(handles)) == 8
    assert all(len(handle) == 32 for handle in handles)
