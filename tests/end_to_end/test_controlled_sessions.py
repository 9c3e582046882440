"""Sessions whose steps have controllers: the bits of rollouts, over every transport, once per request, and
after a restart of the server."""

from __future__ import annotations

import signal
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revolute
from testbed.server_process import running_server
from testbed.wire import GrpcWire

BATCH, ROWS, HOLD = 3, 6, 2


def controllers(model: revolute.ModelHandle, rows: int = ROWS) -> dict[str, dict[str, Any]]:
    """Return arguments of a rollout for each kind of controller, with arrays over time and environments."""
    random = np.random.default_rng(1)
    gain = 0.1 * random.normal(size=(rows, model.nu, 2 * model.nv))
    qvel = random.normal(size=(BATCH, rows, model.nv))
    observe = ["qpos", "qvel", "previous_ctrl", "goal"]
    count = model.nq + 2 + model.nv + model.nu + 1
    weights = [
        random.normal(size=(5, count)) / 5,
        random.normal(size=5),
        random.normal(size=(model.nu, 5)),
        np.zeros(model.nu),
    ]
    policy = revolute.MLP(weights, observe, scale=0.3, goal=random.normal(size=(BATCH, rows, 1)))
    shared = revolute.MLP([weights[0][:, :-1], *weights[1:]], observe[:-1], activation="elu", squash=True)
    return {
        "feedback": {"feedback": revolute.Feedback(gain, model.qpos0, qvel)},
        "policy": {"policy": policy},
        "shared policy": {"policy": shared},
        "forces": {"policy": shared, "qfrc_applied": 0.1 * random.normal(size=(BATCH, rows, model.nv))},
        "held": {"xfrc_applied": 0.1 * random.normal(size=(BATCH, rows, model.nbody, 6))},
    }


def start(model: revolute.ModelHandle) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(2)
    qpos = np.repeat(model.qpos0[None], BATCH, axis=0)
    qpos[:, 2] = 0.5
    return (
        qpos,
        0.1 * random.normal(size=(BATCH, model.nv)),
        0.3 * random.normal(size=(BATCH, ROWS, model.nu)),
    )


def part_of(arguments: dict[str, Any], rows: slice) -> dict[str, Any]:
    """Return the arguments for some rows of ctrl."""
    found = dict(arguments)
    if "feedback" in found:
        given = found["feedback"]
        found["feedback"] = revolute.Feedback(given.gain[rows], given.qpos, given.qvel[:, rows])
    if "policy" in found and found["policy"].goal is not None:
        document = found["policy"].to_dict()
        found["policy"] = revolute.MLP.from_dict({**document, "goal": document["goal"][:, rows]})
    for name in ("qfrc_applied", "xfrc_applied"):
        if name in found:
            found[name] = found[name][:, rows]
    return found


@pytest.mark.parametrize("durable", [True, False])
def test_steps_equal_a_rollout(simulator: revolute.Simulator, durable: bool) -> None:
    """In one call, and divided among calls, which the policy's observation of its last action outlives."""
    model = simulator.load_model("ant", contact_model="hard")
    qpos, qvel, ctrl = start(model)
    for name, arguments in controllers(model).items():
        measure = ["body_pos:torso"]
        rollout = simulator.rollout(model, qpos, qvel, ctrl, hold=HOLD, measure=measure, **arguments)
        with simulator.session(model, BATCH, durable=durable) as session:
            session.reset(qpos, qvel)
            whole = session.step(ctrl, hold=HOLD, measure=measure, **arguments)
            assert whole.qpos.tobytes() == rollout.final_qpos.tobytes(), name
            assert whole.qvel.tobytes() == rollout.final_qvel.tobytes(), name
            assert whole.ctrl is not None and whole.ctrl.tobytes() == rollout.ctrl[:, -1].tobytes(), name
            expected = rollout.measured["body_pos:torso"][:, -1]
            assert whole.measured["body_pos:torso"].tobytes() == expected.tobytes(), name
            assert whole.step_counts.tolist() == [ROWS * HOLD] * BATCH
            session.reset(qpos, qvel)
            for rows in (slice(0, 1), slice(1, 4), slice(4, ROWS)):
                state = session.step(ctrl[:, rows], hold=HOLD, **part_of(arguments, rows))
            assert state.qpos.tobytes() == whole.qpos.tobytes(), name
            assert state.ctrl is not None and state.ctrl.tobytes() == whole.ctrl.tobytes(), name
            fork = session.fork()
            restored = simulator.session(model, BATCH, durable=durable)
            restored.set_state(state.qpos, state.qvel, step_count=state.step_counts, ctrl=state.ctrl)
            next_steps = [
                each.step(ctrl[:, 0], 4, hold=HOLD, **part_of(arguments, slice(0, 2)))
                for each in (session, fork, restored)
            ]
            assert (
                next_steps[0].qpos.tobytes() == next_steps[1].qpos.tobytes() == next_steps[2].qpos.tobytes()
            )
            fork.close()
            restored.close()


def test_constant_controls_are_those_of_every_period(simulator: revolute.Simulator) -> None:
    model = simulator.load_model("ant", contact_model="hard")
    qpos, qvel, ctrl = start(model)
    policy = controllers(model)["shared policy"]["policy"]
    params = {"body_mass": np.random.default_rng(3).uniform(0.9, 1.1, (BATCH, 1)) * model.body_mass}
    rows = np.repeat(ctrl[:, :1], ROWS, axis=1)
    rollout = simulator.rollout(model, qpos, qvel, rows, hold=HOLD, policy=policy, params=params)
    with simulator.session(model, BATCH, params=params) as session:
        session.reset(qpos, qvel)
        state = session.step(ctrl[:, 0], ROWS * HOLD, hold=HOLD, policy=policy)
        assert state.qpos.tobytes() == rollout.final_qpos.tobytes()
        session.reset(qpos, qvel)
        assert session.step(ctrl[:, 0], hold=HOLD, policy=policy).step_count == HOLD
        reset = session.reset(where=[True, False, False])
        assert reset.ctrl is not None and not reset.ctrl[0].any() and reset.ctrl[1].any()


def test_diverged_environments_stay_alone(simulator: revolute.Simulator) -> None:
    model = simulator.load_model("ant", contact_model="hard")
    qpos, qvel, ctrl = start(model)
    policy = controllers(model)["shared policy"]["policy"]
    rollout = simulator.rollout(model, qpos, qvel, ctrl, policy=policy)
    qvel[1] = 1e200
    with simulator.session(model, BATCH) as session:
        session.reset(qpos, qvel)
        state = session.step(ctrl, policy=policy)
        assert state.status.tolist() == [0, 1, 0] and np.isnan(state.qpos[1]).all()
        assert state.qpos[[0, 2]].tobytes() == rollout.final_qpos[[0, 2]].tobytes()
        assert state.ctrl is not None and not state.ctrl[1].any()
        later = session.step(ctrl, policy=policy)
        assert later.status.tolist() == [0, 1, 0] and np.isnan(later.qpos[1]).all()


MISTAKES: dict[str, tuple[str, dict[str, Any]]] = {
    "steps": ("steps: expected a multiple of hold=2, got 3", {"steps": 3, "hold": 2}),
    "rows": (
        "steps: expected 12, the rows of ctrl times hold=2, got 4",
        {"rows": ROWS, "steps": 4, "hold": 2},
    ),
    "hold": ("hold: expected a number of steps", {"hold": 0}),
    "layer": ("policy.weights: expected a network of", {"policy": revolute.MLP([[[1.0]], [0.0]], ["qvel"])}),
    "layer at rest": (
        "policy.weights: expected a network of",
        {"policy": revolute.MLP([[[1.0]], [0.0]], ["qvel"]), "steps": 0},
    ),
    "gain": (
        "feedback.gain: expected shape",
        {"feedback": revolute.Feedback(np.zeros((5, 8, 28)), np.zeros(15), np.zeros(14)), "rows": ROWS},
    ),
    "force": ("xfrc_applied: expected shape", {"xfrc_applied": np.zeros((2, 6)), "steps": 0}),
    "force over time": (
        "qfrc_applied: expected shape",
        {"qfrc_applied": np.zeros((BATCH, 5, 14)), "rows": ROWS},
    ),
    "no rows": ("xfrc_applied: expected shape", {"xfrc_applied": np.zeros(6), "rows": 0}),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_name_the_argument(simulator: revolute.Simulator, mistake: str) -> None:
    model = simulator.load_model("ant", contact_model="hard")
    text, arguments = MISTAKES[mistake]
    rows = arguments.get("rows")
    ctrl = np.zeros(model.nu) if rows is None else np.zeros((BATCH, rows, model.nu))
    given = {name: value for name, value in arguments.items() if name != "rows"}
    with simulator.session(model, BATCH) as session:
        before = session.state()
        with pytest.raises(revolute.ArgumentError, match=text):
            session.step(ctrl, **given)
        assert session.state().step_count == before.step_count == 0


CLOCK = """<mujoco><worldbody><body><joint type="slide"/><geom size="0.1"/></body></worldbody>
  <actuator><motor joint="" gear="1"/></actuator><sensor><clock name="time"/></sensor></mujoco>""".replace(
    '<joint type="slide"/>', '<joint name="x" type="slide"/>'
).replace('joint=""', 'joint="x"')


def test_a_clock_is_not_observed(simulator: revolute.Simulator) -> None:
    model = simulator.load_model(CLOCK)
    policy = revolute.MLP([[[1.0]], [0.0]], ["sensor:time"])
    with simulator.session(model) as session:
        for steps in (0, 1):
            with pytest.raises(revolute.ArgumentError, match=r"policy\.observe: expected no clock"):
                session.step([0.0], steps, policy=policy)


@pytest.mark.parametrize("durable", [True, False])
def test_a_request_with_a_controller_acts_once(tmp_path: Path, durable: bool) -> None:
    """A repeat gets the first answer; after a kill too, if the session is kept in the store. The id of
    another controller is refused."""
    store = ("--store", f"sqlite:///{tmp_path}/store.db")
    with running_server(*store) as server, revolute.connect(server.grpc) as simulator:
        model = simulator.load_model("ant", contact_model="hard")
        _, _, ctrl = start(model)
        policy = controllers(model)["policy"]["policy"].to_dict()
        session = simulator.session(model, BATCH, durable=durable)
        wire = GrpcWire(server.grpc_target)
        named = {"session_id": session.id, "ctrl": ctrl, "hold": HOLD, "request_id": str(uuid.uuid4())}
        request = {**named, "policy": policy, "measure": ["body_pos:torso"]}
        first = wire.call("Step", request)
        later = wire.call("Step", {**request, "request_id": str(uuid.uuid4())})
        assert later["step_count"] == 2 * ROWS * HOLD
        repeat = wire.call("Step", request)
        for name in ("qpos", "ctrl", "step_counts"):
            np.testing.assert_array_equal(repeat[name], first[name], err_msg=name)
        np.testing.assert_array_equal(
            repeat["measured"]["body_pos:torso"], first["measured"]["body_pos:torso"]
        )
        other = {**policy, "weights": policy["weights"] + 1.0}
        for changed in ({**named, "policy": other}, {**named, "policy": policy, "hold": 1}, named):
            error, _ = wire.error("Step", changed)
            assert error.argument == "request_id", error
        wire.close()
        server.stop(signal.SIGKILL)
    if not durable:
        return
    with running_server(*store) as server, revolute.connect(server.grpc) as simulator:
        wire = GrpcWire(server.grpc_target)
        repeat = wire.call("Step", request)
        for name in ("qpos", "ctrl", "step_counts"):
            np.testing.assert_array_equal(repeat[name], first[name], err_msg=name)
        state = wire.call("GetState", {"session_id": session.id})
        for name in ("qpos", "qvel", "ctrl", "step_counts"):
            np.testing.assert_array_equal(state[name], later[name], err_msg=name)
        wire.close()
        # it goes on as if nothing had happened
        model = simulator.load_model("ant", contact_model="hard")
        both = np.concatenate([ctrl, ctrl, ctrl], axis=1)
        goal = np.concatenate([policy["goal"]] * 3, axis=1)
        whole = revolute.MLP.from_dict({**policy, "goal": goal})
        begin = np.repeat(model.qpos0[None], BATCH, axis=0), np.zeros((BATCH, model.nv))
        rollout = simulator.rollout(model, *begin, both, hold=HOLD, policy=whole)
        last = simulator.open_session(model, session.id).step(
            ctrl, hold=HOLD, policy=revolute.MLP.from_dict(policy)
        )
        assert last.qpos.tobytes() == rollout.final_qpos.tobytes()
