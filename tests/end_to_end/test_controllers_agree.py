"""Held controls, feedback and policies give the same bits over every transport, and from a stored trajectory
after a restart of the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revolute
from testbed.server_process import running_server

BATCH, ROWS, HOLD = 3, 4, 2


def controllers(model: revolute.ModelHandle) -> dict[str, dict[str, Any]]:
    """Return arguments of a rollout for each kind of controller."""
    random = np.random.default_rng(1)
    gain = 0.1 * random.normal(size=(BATCH, 1, model.nu, 2 * model.nv))
    qvel = random.normal(size=(ROWS, model.nv))
    inputs = model.nq + 2 + model.nv + 1
    weights = [
        random.normal(size=(5, inputs)) / 5,
        random.normal(size=5),
        random.normal(size=(model.nu, 5)),
        np.zeros(model.nu),
    ]
    goal = random.normal(size=(BATCH, ROWS, 1))
    policy = revolute.MLP(
        weights,
        ["qpos", "qvel", "goal"],
        activation="elu",
        scale=np.full(model.nu, 0.3),
        squash=True,
        goal=goal,
    )
    observe = ["body_pos:torso", "body_mat:torso", "subtree_linvel:torso", "previous_ctrl"]
    inputs = 3 + 9 + 3 + model.nu
    weights = [0.2 * random.normal(size=(model.nu, inputs)), random.normal(size=model.nu)]
    return {
        "measuring": {"hold": HOLD, "policy": revolute.MLP(weights, observe, scale=0.3)},
        "held": {"hold": HOLD, "qfrc_applied": 0.1 * random.normal(size=(BATCH, 1, model.nv))},
        "feedback": {"hold": HOLD, "feedback": revolute.Feedback(gain, model.qpos0, qvel)},
        "policy": {"hold": HOLD, "policy": policy},
    }


NAMES = {
    "held": ["qfrc_applied"],
    "feedback": ["feedback.gain", "feedback.qpos", "feedback.qvel"],
    "policy": ["policy.weights", "policy.goal"],
    "measuring": ["policy.weights"],
}


def start(model: revolute.ModelHandle) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(2)
    qpos = np.repeat(model.qpos0[None], BATCH, axis=0)
    qpos[:, 2] = 0.5
    return qpos, 0.1 * random.normal(size=(BATCH, model.nv)), random.normal(size=(BATCH, ROWS, model.nu))


def height(states: revolute.States) -> tuple[Any, np.ndarray, None, np.ndarray]:
    """Return a loss of a user's own, and its derivatives."""
    bar = np.zeros(states.qpos.shape)
    bar[..., 2] = 2 * states.qpos[..., 2]
    value = (states.qpos[..., 2] ** 2).sum(axis=-1) + states.ctrl.sum(axis=(-1, -2))
    return value, bar, None, np.ones(states.ctrl.shape)


def found_by(simulator: revolute.Simulator, kind: str) -> dict[str, Any]:
    """Return all results for one controller."""
    model = simulator.load_model("ant", contact_model="hard")
    arguments = controllers(model)[kind]
    inputs = start(model)
    names = ["qpos", "qvel", "ctrl", "body_mass", *NAMES[kind]]
    with simulator.rollout(model, *inputs, checkpoints="slots=3", states="all", **arguments) as trajectory:
        bar = np.random.default_rng(3).normal(size=(2, *trajectory.qpos.shape))
        gradient = trajectory.backward(bar, wrt=names, clip=2.0)
        again = simulator.trajectory(model, trajectory.detach())
        assert again.hold == trajectory.hold == HOLD and trajectory.qpos.shape[1] == ROWS * HOLD + 1
        assert np.array_equal(again.ctrl, trajectory.ctrl)
        results = {"qpos": trajectory.qpos, "applied": trajectory.ctrl, "clipped": gradient.clipped}
        results |= {f"backward {name}": gradient[name] for name in names}
        results["tangent"] = trajectory.jvp(qvel_tan=np.ones(model.nv)).qvel
        along = {name: np.ones_like(gradient[name][0]) for name in NAMES[kind] if name != "feedback.qpos"}
        results["tangent of arrays"] = trajectory.jvp(control_tan=along).qvel
        by_ctrl = trajectory.backward(ctrl_bar=np.ones((1, ROWS, model.nu)), wrt=names)
        results |= {f"by ctrl {name}": by_ctrl[name] for name in names}
    loss = revolute.Loss(
        [revolute.Term("qpos", index=[2], when="running"), revolute.Term("ctrl", when="running")]
    )
    for way, given in {"terms": loss, "own": height}.items():
        value, gradient = simulator.value_and_gradient(
            model, *inputs, given, wrt=names, clip=5.0, on_diverged="inf", **arguments
        )
        results |= {
            f"value {way}": value,
            f"status {way}": gradient.status,
            f"clipped {way}": gradient.clipped,
        }
        results |= {f"{way} {name}": gradient[name] for name in names}
    shared = simulator.rollout(model, inputs[0], inputs[1][:1], inputs[2][:1], **arguments)
    results |= {"shared": shared.qpos, "shared ctrl": shared.ctrl}
    inputs[1][1] = 1e200
    for way, given in {"terms": loss, "own": height}.items():
        value, gradient = simulator.value_and_gradient(model, *inputs, given, on_diverged="inf", **arguments)
        assert np.isposinf(value[1]) and np.isfinite(value[[0, 2]]).all(), way
        results[f"diverged {way}"] = gradient.ctrl
    return results


@pytest.mark.parametrize("kind", NAMES)
def test_controllers_are_bit_identical(simulators: dict[str, revolute.Simulator], kind: str) -> None:
    results = {name: found_by(simulator, kind) for name, simulator in simulators.items()}
    expected = results.pop("in-process")
    for name in NAMES[kind]:
        assert expected[f"backward {name}"].any() and expected[f"terms {name}"].any(), name
    assert expected["clipped"].shape == (2, BATCH) and expected["clipped"].any()
    for transport, found in results.items():
        for name, array in found.items():
            np.testing.assert_array_equal(array, expected[name], err_msg=f"{transport} {name}")


def test_checks_of_gradients_know_controllers(simulators: dict[str, revolute.Simulator]) -> None:
    reports = []
    for simulator in simulators.values():
        model = simulator.load_model("ant", contact_model="hard")
        policy = controllers(model)["measuring"]["policy"]
        options: dict[str, Any] = {"hold": HOLD, "policy": policy, "qfrc_applied": np.full(model.nv, 0.1)}
        reports.append(
            simulator.check_gradient(
                model, steps=3, directions=2, wrt=["qpos", "policy.weights", "qfrc_applied"], **options
            )
        )
    assert reports[0].passed and reports[0].steps == 3 * HOLD
    assert [check.name for check in reports[0].inputs] == ["qpos", "policy.weights", "qfrc_applied"]
    assert all(str(report) == str(reports[0]) for report in reports)


def test_a_stored_trajectory_keeps_its_controller_across_a_restart(tmp_path: Path) -> None:
    store = ("--store", f"sqlite:///{tmp_path}/store.db")
    kept: dict[str, tuple[str, revolute.Gradient]] = {}
    for begin in (True, False):
        with running_server(*store) as server, revolute.connect(server.grpc) as simulator:
            model = simulator.load_model("ant", contact_model="hard")
            for kind, arguments in controllers(model).items():
                names = ["qpos", "ctrl", *NAMES[kind]]
                if begin:
                    trajectory = simulator.rollout(
                        model, *start(model), checkpoints="interval=3", **arguments
                    )
                    trajectory.detach()
                else:
                    trajectory = simulator.trajectory(model, kept[kind][0])
                gradient = trajectory.backward(np.ones((BATCH, 1, model.nq)), times=[-1], wrt=names)
                if begin:
                    kept[kind] = trajectory.id, gradient
                for name in names:
                    np.testing.assert_array_equal(
                        gradient[name], kept[kind][1][name], err_msg=f"{kind} {name}"
                    )
