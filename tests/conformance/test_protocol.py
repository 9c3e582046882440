"""What any server of the v1 protocol does: verbs, shapes, values of a cart on a rail, errors.

The cart weighs 1 kg and is pushed by its control; with step h, v_N = h sum u, x_N = h sum v, so every answer
is known without an engine of ours.
"""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import numpy as np
import pytest

from revolute.contract.v1 import tensor_pb2, trajectory_pb2
from testbed.stubs import Stub
from testbed.wire import GrpcWire, HttpWire, numbers
from tests.conformance.conftest import Wire

H = 1e-3
CART = """<mujoco model="cart">
  <option timestep="0.001" gravity="0 0 0"/>
  <worldbody><body>
    <joint name="x" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
  </body></worldbody>
  <actuator><motor name="push" joint="x"/></actuator>
</mujoco>"""
TOLERANCE = 1e-12  # sums of a thousand doubles


@pytest.fixture(scope="module")
def cart(wire: Wire) -> str:
    return wire.call("RegisterModel", {"text": CART})["model_id"]


def _inputs(cart: str, ctrl: np.ndarray) -> dict[str, Any]:
    return {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": ctrl}


def _close(value: Any, expected: Any) -> None:
    np.testing.assert_allclose(numbers(value), expected, rtol=TOLERANCE, atol=TOLERANCE * H * H)


def test_server_says_what_it_is(wire: Wire) -> None:
    info = wire.call("GetServerInfo", {})
    assert "v1" in info["api_versions"] and info["version"]


def test_models_are_named_by_content(wire: Wire, cart: str) -> None:
    assert wire.call("RegisterModel", {"text": CART})["model_id"] == cart
    other = wire.call("RegisterModel", {"text": CART, "options": {"timestep": 0.002}})
    assert other["model_id"] != cart and other["timestep"] == 0.002
    model = wire.call("GetModel", {"model_id": cart})
    assert [model[name] for name in ("name", "nq", "nv", "nu", "timestep")] == ["cart", 1, 1, 1, H]
    assert list(model["joint_names"]) == ["x"] and list(model["actuator_names"]) == ["push"]
    _close(model["body_mass"], [0.0, 1.0])
    files = wire.call("GetModelFiles", {"model_id": cart})
    text = files["mjcf"] if isinstance(files["mjcf"], str) else bytes(files["mjcf"]).decode()
    assert '<mujoco model="cart">' in text and not files.get("assets")
    listed = wire.call("ListModels", {})
    assert cart in [entry["model_id"] for entry in listed["models"]]


def test_rollout(wire: Wire, cart: str) -> None:
    ctrl = np.random.default_rng(1).normal(size=(2, 50, 1))
    answer = wire.call("Rollout", _inputs(cart, ctrl))
    velocity = H * np.concatenate([np.zeros((2, 1, 1)), np.cumsum(ctrl, axis=1)], axis=1)
    _close(answer["qvel"], velocity)
    _close(answer["qpos"], H * np.cumsum(velocity, axis=1))
    assert numbers(answer["status"]).tolist() == [0, 0] and numbers(answer["diverged_step"]).tolist() == [
        -1,
        -1,
    ]
    kept = wire.call("GetTrajectory", {"trajectory_id": answer["trajectory_id"]})
    assert numbers(kept["qpos"]).tobytes() == numbers(answer["qpos"]).tobytes()
    assert numbers(kept["ctrl"]).tobytes() == ctrl.tobytes()


def test_no_batch_axis(wire: Wire, cart: str) -> None:
    answer = wire.call("Rollout", _inputs(cart, np.ones((3, 1))))
    _close(answer["qvel"], H * np.array([[0.0], [1.0], [2.0], [3.0]]))
    assert numbers(answer["status"]).shape == ()


def test_backward(wire: Wire, cart: str) -> None:
    steps = 20
    trajectory = wire.call("Rollout", _inputs(cart, np.ones((1, steps, 1))))["trajectory_id"]
    bars = np.zeros((2, 1, steps + 1, 1))
    bars[0, 0, -1] = 1.0
    found = wire.call(
        "Backward", {"trajectory_id": trajectory, "qpos_bar": bars, "qvel_bar": bars[::-1].copy()}
    )
    arrays = found["arrays"]
    _close(numbers(arrays["ctrl"])[0], _ramp(steps))
    _close(numbers(arrays["ctrl"])[1], np.full((1, steps, 1), H))
    _close(arrays["qpos"], [[[1.0]], [[0.0]]])
    _close(arrays["qvel"], [[[steps * H]], [[1.0]]])


def test_jvp(wire: Wire, cart: str) -> None:
    steps = 20
    trajectory = wire.call("Rollout", _inputs(cart, np.ones((2, steps, 1))))["trajectory_id"]
    found = wire.call("Jvp", {"trajectory_id": trajectory, "qvel_tan": np.array([[1.0], [-2.0]])})
    time = H * np.arange(steps + 1)[None, :, None]
    _close(found["qpos"], np.array([1.0, -2.0])[:, None, None] * time)
    _close(found["qvel"], np.broadcast_to([[[1.0]], [[-2.0]]], (2, steps + 1, 1)))
    # v = t u / m, so d v / d m = -t at u = m = 1
    found = wire.call("Jvp", {"trajectory_id": trajectory, "params_tan": {"body_mass": np.array([0.0, 1.0])}})
    _close(found["qvel"], np.concatenate([-time] * 2))


def test_jacobian(wire: Wire, cart: str) -> None:
    """The state is (x, v): x+ = x + h v+, v+ = v + h u / m."""
    params = {"body_mass": np.array([[0.0, 1.0], [0.0, 4.0]])}
    step = {"qpos": np.zeros(1), "qvel": np.ones((2, 1)), "ctrl": np.ones((2, 1))}
    found = wire.call("Jacobian", {"model_id": cart, **step, "params": params})
    _close(found["A"], [[[1.0, H], [0.0, 1.0]]] * 2)
    _close(found["B"], [[[H * H], [H]], [[H * H / 4], [H / 4]]])
    session = {"session_id": wire.call("CreateSession", {"model_id": cart, "batch": 2})["session_id"]}
    found = wire.call("SessionJacobian", {**session, "ctrl": np.ones(1)})
    _close(found["A"], [[[1.0, H], [0.0, 1.0]]] * 2)
    _close(found["B"], [[[H * H], [H]]] * 2)
    assert wire.call("GetState", session)["step_count"] == 0
    wire.call("DeleteSession", session)


def test_measure(wire: Wire, cart: str) -> None:
    """The cart, body 1, is at (x, 0, 0)."""
    states = {"model_id": cart, "qpos": np.array([[1.5], [-2.0]]), "qvel": np.array([[3.0], [4.0]])}
    bars = np.array([[0.0, 0.0, 0.0], [7.0, 1.0, 0.0]]) * np.ones((2, 1, 1))
    found = wire.call(
        "Measure",
        {
            "states": states,
            "quantities": ["body_pos", "body_linvel:1"],
            "jacobians": ["body_pos:1"],
            "cotangents": {"body_pos": bars},
            "wrt": ["qpos"],
        },
    )
    _close(found["arrays"]["body_pos"], [[[0.0] * 3, [x, 0.0, 0.0]] for x in (1.5, -2.0)])
    _close(found["arrays"]["body_linvel:1"], [[3.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
    _close(found["jacobians"]["body_pos:1"], [[[1.0], [0.0], [0.0]]] * 2)
    _close(found["gradient"]["qpos"], [[7.0], [7.0]])
    session = {"session_id": wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]}
    wire.call("SetState", {**session, "qpos": np.array([[0.25]])})
    found = wire.call("Measure", {"states": session, "quantities": ["body_pos:1"]})
    _close(found["arrays"]["body_pos:1"], [[0.25, 0.0, 0.0]])
    wire.call("DeleteSession", session)
    error, _ = wire.error("Measure", {"states": states, "quantities": ["body_colour"]})
    assert error.reason == "INVALID_ARGUMENT"


def test_find_contacts(wire: Wire) -> None:
    """A ball 1 cm deep in the ground, and the same ball above it."""
    ball = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.09">
        <joint name="z" type="slide" axis="0 0 1"/><geom size="0.1" mass="1"/></body></worldbody>
        <actuator><motor joint="z"/></actuator></mujoco>"""
    model = {"model_id": wire.call("RegisterModel", {"text": ball})["model_id"], "ctrl": np.zeros(1)}
    found = wire.call("FindContacts", {**model, "qpos": np.array([[0.5], [0.0]])})
    assert numbers(found["state"]).tolist() == [1] and numbers(found["geom"]).tolist() == [[0, 1]]
    np.testing.assert_allclose(numbers(found["distance"]), [-0.01], rtol=1e-12)
    np.testing.assert_allclose(numbers(found["frame"])[0, 0], [0.0, 0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(numbers(found["position"])[0, :2], [0.0, 0.0], atol=1e-12)
    assert numbers(found["force"])[0, 0] > 0.0
    error, _ = wire.error("FindContacts", {**model, "qpos": np.zeros((1, 2))})
    assert error.reason == "INVALID_ARGUMENT"


def test_check_gradient(wire: Wire, cart: str) -> None:
    found = wire.call("CheckGradient", {"model_id": cart, "steps": 10, "wrt": ["ctrl", "body_inertia"]})
    assert found["passed"] is True and (found["steps"], found["directions"], found["seed"]) == (10, 3, 0)
    by_ctrl, by_inertia = found["inputs"]
    assert (by_ctrl["name"], by_ctrl["verdict"]) == ("ctrl", "right")
    assert by_ctrl["error"] < 1e-5 and by_ctrl["dot_error"] < 1e-8 and len(by_ctrl["gradients"]) == 3
    # a cart does not turn
    assert (by_inertia["name"], by_inertia["verdict"]) == ("body_inertia", "zero")
    assert found["worst"].startswith("ctrl[") and found["worst"].endswith("push]")


def test_parameters_and_keyframes_of_a_model(wire: Wire) -> None:
    text = CART.replace("</mujoco>", '<keyframe><key name="b" qpos="1"/><key qpos="2"/></keyframe></mujoco>')
    model = wire.call("RegisterModel", {"text": text, "options": {"contact_model": "hard"}})
    for name, value in (
        ("body_inertia", [[0.0] * 3, [0.01] * 3]),
        ("gravity", [0.0] * 3),
        ("dof_damping", [0.0]),
    ):
        _close(model["params"][name], value)
    assert numbers(model["params"]["restitution"]).shape == ()
    assert [frame["name"] for frame in model["keyframes"]] == ["b", "1"]
    for frame, qpos in zip(model["keyframes"], (1.0, 2.0), strict=True):
        _close(frame["qpos"], [qpos])


def _ramp(steps: int) -> np.ndarray:
    """Return d x_N / d u_k = h^2 (N - k), [1, N, 1]."""
    return H * H * np.arange(steps, 0, -1.0)[None, :, None]


def test_value_and_gradient_equals_rollout_and_backward(wire: Wire, cart: str) -> None:
    ctrl = np.random.default_rng(2).normal(size=(3, 10, 1))
    loss = {"terms": [{"quantity": "qpos", "target": np.array([0.5]), "index": [0], "when": "final"}]}
    found = wire.call(
        "ValueAndGradient", {"inputs": _inputs(cart, ctrl), "loss": loss, "wrt": ["ctrl", "qvel"]}
    )
    trajectory = wire.call("Rollout", _inputs(cart, ctrl))
    error = numbers(trajectory["qpos"])[:, -1] - 0.5
    _close(found["value"], error[:, 0] ** 2)
    bar = np.zeros((3, 11, 1))
    bar[:, -1] = 2.0 * error
    request = {"trajectory_id": trajectory["trajectory_id"], "qpos_bar": bar, "wrt": ["ctrl", "qvel"]}
    expected = wire.call("Backward", request)["arrays"]
    for name in ("ctrl", "qvel"):
        assert numbers(found["gradient"]["arrays"][name]).tobytes() == numbers(expected[name]).tobytes()


def test_parameters_per_environment(wire: Wire, cart: str) -> None:
    inputs = _inputs(cart, np.ones((2, 1, 1)))
    answer = wire.call("Rollout", {**inputs, "params": {"body_mass": np.array([[0.0, 1.0], [0.0, 4.0]])}})
    _close(np.asarray(numbers(answer["qvel"]))[:, 1, 0], [H, H / 4])


def test_session(wire: Wire, cart: str) -> None:
    session = wire.call("CreateSession", {"model_id": cart, "batch": 2})["session_id"]
    named = {"session_id": session}
    state = wire.call("Step", {**named, "ctrl": np.array([[1.0], [2.0]]), "steps": 1000})
    assert state["step_count"] == 1000
    _close(state["qvel"], [[1.0], [2.0]])
    _close(state["qpos"], [[0.5005], [1.001]])
    assert wire.call("Step", {**named, "ctrl": np.ones(1), "steps": 0})["step_count"] == 1000
    assert numbers(wire.call("GetState", named)["qpos"]).tobytes() == numbers(state["qpos"]).tobytes()
    state = wire.call("Reset", {**named, "qpos": np.array([3.0])})
    assert (state["step_count"], state["time"]) == (0, 0.0)
    _close(state["qpos"], [[3.0], [3.0]])
    wire.call("DeleteSession", named)
    error, _ = wire.error("GetState", named)
    assert error.reason == "NOT_FOUND"


def test_long_trajectory(wire: Wire, cart: str) -> None:
    steps = 600_000 if not (isinstance(wire, HttpWire) and not wire.npz) else 60_000
    answer = wire.call("Rollout", _inputs(cart, np.ones((steps, 1))))
    np.testing.assert_allclose(numbers(answer["qvel"])[-1, 0], steps * H, rtol=1e-9)
    wire.call("DeleteTrajectory", {"trajectory_id": answer["trajectory_id"]})
    error, _ = wire.error(
        "Backward", {"trajectory_id": answer["trajectory_id"], "qpos_bar": np.zeros((1, 1))}
    )
    assert error.reason == "NOT_FOUND"


GRPC_CODES = {
    "INVALID_ARGUMENT": "INVALID_ARGUMENT",
    "NOT_FOUND": "NOT_FOUND",
    "INVALID_MODEL": "INVALID_ARGUMENT",
}
HTTP_CODES = {"INVALID_ARGUMENT": "400", "NOT_FOUND": "404", "INVALID_MODEL": "422"}


def _mistakes(cart: str) -> list[tuple[str, dict[str, Any], str, str]]:
    """Return verb, request, reason and named argument of requests that are refused."""
    good = _inputs(cart, np.ones((2, 4, 1)))
    loss = {"terms": [{"quantity": "qpos"}]}
    return [
        ("Rollout", {**good, "model_id": "none"}, "NOT_FOUND", "model_id"),
        ("Rollout", {**good, "ctrl": np.ones((2, 4, 3))}, "INVALID_ARGUMENT", "ctrl"),
        ("Rollout", {**good, "ctrl": np.ones((0, 4, 1))}, "INVALID_ARGUMENT", "ctrl"),
        ("Rollout", {**good, "qpos": np.zeros(2)}, "INVALID_ARGUMENT", "qpos"),
        ("Rollout", {**good, "params": {"mass": np.ones(2)}}, "INVALID_ARGUMENT", "params"),
        ("ValueAndGradient", {"inputs": good, "loss": loss, "wrt": ["mass"]}, "INVALID_ARGUMENT", "wrt"),
        ("Rollout", {**good, "params": {"gravity": np.ones(2)}}, "INVALID_ARGUMENT", "gravity"),
        ("Rollout", {**good, "params": {"dof_damping": np.array([-1.0])}}, "INVALID_ARGUMENT", "dof_damping"),
        ("Jvp", {"trajectory_id": "none", "qpos_tan": np.ones(1)}, "NOT_FOUND", "trajectory_id"),
        ("Jacobian", {**good, "model_id": "none"}, "NOT_FOUND", "model_id"),
        ("Jacobian", good, "INVALID_ARGUMENT", "ctrl"),
        ("SessionJacobian", {"session_id": "none", "ctrl": np.ones(1)}, "NOT_FOUND", "session_id"),
        ("CheckGradient", {"model_id": "none"}, "NOT_FOUND", "model_id"),
        ("CheckGradient", {"model_id": cart, "steps": 0}, "INVALID_ARGUMENT", "steps"),
        ("CheckGradient", {"model_id": cart, "directions": -1}, "INVALID_ARGUMENT", "directions"),
        ("CheckGradient", {"model_id": cart, "seed": -1}, "INVALID_ARGUMENT", "seed"),
        ("CheckGradient", {"model_id": cart, "tolerance": 2.0}, "INVALID_ARGUMENT", "tolerance"),
        ("CheckGradient", {"model_id": cart, "wrt": ["mass"]}, "INVALID_ARGUMENT", "wrt"),
        ("CheckGradient", {"model_id": cart, "ctrl": np.ones((2, 4, 1))}, "INVALID_ARGUMENT", "ctrl"),
        ("RegisterModel", {"text": "<mujoco>"}, "INVALID_MODEL", "model"),
        ("RegisterModel", {"text": CART, "options": {"timestep": -1.0}}, "INVALID_ARGUMENT", "timestep"),
        ("CreateSession", {"model_id": cart, "batch": 0}, "INVALID_ARGUMENT", "batch"),
        ("DeleteSession", {"session_id": "none"}, "NOT_FOUND", "session_id"),
        ("CreateSession", {"model_id": cart, "batch": 1, "lease": -1.0}, "INVALID_ARGUMENT", "lease"),
        ("GetSession", {"session_id": "none"}, "NOT_FOUND", "session_id"),
        ("KeepAlive", {"session_id": "none"}, "NOT_FOUND", "session_id"),
        ("ForkSession", {"session_id": "none"}, "NOT_FOUND", "session_id"),
        ("SetState", {"session_id": "none", "qpos": np.zeros(1)}, "NOT_FOUND", "session_id"),
        ("ListSessions", {"page_size": 0}, "INVALID_ARGUMENT", "page_size"),
        ("ListModels", {"page_token": "x"}, "INVALID_ARGUMENT", "page_token"),
        ("DeleteModel", {"model_id": "none"}, "NOT_FOUND", "model_id"),
        ("DeleteTrajectory", {"trajectory_id": "none"}, "NOT_FOUND", "trajectory_id"),
        ("GetModel", {"model_id": "none"}, "NOT_FOUND", "model_id"),
    ]


@pytest.mark.parametrize("number", range(len(_mistakes(""))))
def test_errors(number: int, wire: Wire, cart: str) -> None:
    verb, request, reason, argument = _mistakes(cart)[number]
    if isinstance(wire, HttpWire) and not wire.npz and 0 in getattr(request.get("ctrl"), "shape", ()):
        pytest.skip("lists cannot say how long the inner axes of an empty array are")
    error, code = wire.error(verb, request)
    assert (error.reason, error.argument or "") == (reason, argument)
    assert code == (GRPC_CODES if isinstance(wire, GrpcWire) else HTTP_CODES)[reason]
    assert "expected" in str(error) and "\n" not in str(error)


def test_tensors_that_do_not_fit_their_bytes(wire: Wire, cart: str) -> None:
    if not isinstance(wire, GrpcWire):
        pytest.skip("a matter of gRPC")
    stub = Stub(trajectory_pb2, wire.channel)
    eight = bytes(8)

    def rollout(**ctrl: Any) -> Any:
        state = tensor_pb2.Tensor(dtype="<f8", shape=[1], data=eight)
        inputs = {"model_id": cart, "qpos": state, "qvel": state, "ctrl": tensor_pb2.Tensor(**ctrl)}
        start = trajectory_pb2.RolloutRequest(start=trajectory_pb2.RolloutInputs(**inputs))
        return list(stub.Rollout(iter([start]), timeout=30))

    assert rollout(dtype="<f8", shape=[1, 1], data=eight)
    assert rollout(dtype="<f4", shape=[2, 1], data=eight)
    for wrong in (
        {"dtype": "<f8", "shape": [2, 1], "data": eight},
        {"dtype": ">f8", "shape": [1, 1], "data": eight},
        {"dtype": "<f8", "shape": [-1, -1], "data": eight},
        {"dtype": "<f8", "shape": [2**40, 2**20]},
    ):
        with pytest.raises(Exception) as caught:
            rollout(**wrong)
        assert caught.value.code().name in ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED")  # type: ignore[attr-defined]


def test_session_life(wire: Wire, cart: str) -> None:
    created = wire.call("CreateSession", {"model_id": cart, "batch": 2, "lease": 60.0})
    assert created["lease"] == 60.0
    named = {"session_id": created["session_id"]}
    wire.call("Step", {**named, "ctrl": np.ones(1), "steps": 3})
    info = wire.call("GetSession", named)
    assert (info["session_id"], info["model_id"], info["batch"], info["step_count"], info["lease"]) == (
        *(created["session_id"], cart, 2, 3, 60.0),
    )
    assert 0 < info["expires_in"] <= 70 and 0 <= info["age"] < 60
    assert wire.call("KeepAlive", named) == {"lease": 60.0}
    copy = {"session_id": wire.call("ForkSession", named)["session_id"]}
    here, there = wire.call("GetState", named), wire.call("GetState", copy)
    assert numbers(here["qpos"]).tobytes() == numbers(there["qpos"]).tobytes()
    assert wire.call("Step", {**copy, "ctrl": np.ones(1)})["step_count"] == 4
    assert wire.call("GetState", named)["step_count"] == 3
    # page by page, both are listed once
    listed: list[str] = []
    token = ""
    while True:
        page = wire.call("ListSessions", {"page_size": 1, "page_token": token})
        assert len(page["sessions"]) <= 1
        listed += [entry["session_id"] for entry in page["sessions"]]
        token = page["next_page_token"]
        if not token:
            break
    assert listed.count(named["session_id"]) == listed.count(copy["session_id"]) == 1
    for session in (named, copy):
        wire.call("DeleteSession", session)
        assert wire.error("GetSession", session)[0].reason == "NOT_FOUND"


def test_set_state(wire: Wire, cart: str) -> None:
    named = {"session_id": wire.call("CreateSession", {"model_id": cart, "batch": 2})["session_id"]}
    wire.call("Step", {**named, "ctrl": np.ones(1), "steps": 10})
    state = wire.call("SetState", {**named, "qvel": np.array([[1.0], [2.0]])})
    _close(state["qvel"], [[1.0], [2.0]])
    _close(state["qpos"], [[H * H * 55]] * 2)
    assert state["step_count"] == 10
    state = wire.call("SetState", {**named, "qpos": np.zeros(1), "step_count": 100})
    assert state["step_count"] == 100
    _close(state["time"], 100 * H)
    state = wire.call("Step", {**named, "ctrl": np.zeros(1)})
    _close(state["qpos"], [[H], [2 * H]])
    assert state["step_count"] == 101
    wire.call("DeleteSession", named)


def test_models_are_deleted_when_nothing_uses_them(wire: Wire) -> None:
    text = CART.replace('model="cart"', f'model="cart {uuid.uuid4().hex}"')
    model = {"model_id": wire.call("RegisterModel", {"text": text})["model_id"]}
    trajectory = wire.call("Rollout", _inputs(model["model_id"], np.ones((1, 2, 1))))["trajectory_id"]
    error, _ = wire.error("DeleteModel", model)
    assert (error.reason, error.argument) == ("INVALID_ARGUMENT", "model_id")
    wire.call("DeleteTrajectory", {"trajectory_id": trajectory})
    assert wire.call("DeleteModel", model) == {}
    assert wire.error("GetModel", model)[0].reason == "NOT_FOUND"
    assert wire.error("DeleteModel", model)[0].reason == "NOT_FOUND"


def test_a_request_id_makes_a_repeat_harmless(wire: Wire, cart: str) -> None:
    named = {"session_id": wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]}
    step = {**named, "ctrl": np.ones(1), "request_id": str(uuid.uuid4())}
    assert [wire.call("Step", step)["step_count"] for _ in range(3)] == [1, 1, 1]
    error, _ = wire.error("Step", {**step, "steps": 2})
    assert (error.reason, error.argument) == ("INVALID_ARGUMENT", "request_id")
    wire.call("DeleteSession", named)


def test_health(wire: Wire) -> None:
    if isinstance(wire, HttpWire):
        for path in ("/livez", "/readyz"):
            assert wire.client.get(path).status_code == httpx.codes.OK
        return
    health_pb2 = pytest.importorskip("grpc_health.v1.health_pb2")
    check = wire.channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    assert check(health_pb2.HealthCheckRequest(), timeout=10).status == health_pb2.HealthCheckResponse.SERVING


def test_unknown_ids_are_not_taken_for_others(wire: Wire, cart: str) -> None:
    request = {**_inputs(cart, np.ones((1, 1))), "model_id": f"{cart[:-4]}{uuid.uuid4().hex[:4]}"}
    assert wire.error("Rollout", request)[0].reason == "NOT_FOUND"
