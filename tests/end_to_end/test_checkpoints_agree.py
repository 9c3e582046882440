"""Checkpoint policies in this process, over gRPC and over HTTP: the same bits, reports and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import revolute
from revolute.contract.errors import ArgumentError, NotFoundError

BATCH, STEPS = 2, 31
LOSS = revolute.Loss(
    [
        revolute.Term("qpos", weight=0.5, index=[0, 1, 2], when="running"),
        revolute.Term("ctrl", weight=0.1, when="running"),
    ]
)
Simulators = dict[str, revolute.Simulator]


def _standing(simulator: revolute.Simulator) -> tuple[revolute.ModelHandle, dict[str, np.ndarray]]:
    model, random = simulator.load_model("laikago"), np.random.default_rng(4)
    pose = np.tile([0.0, 0.1, -0.8], 4)
    qpos = np.concatenate([[0, 0, 0.458476, 1, 0, 0, 0], pose])
    ctrl = pose + 0.1 * random.normal(size=(BATCH, STEPS, model.nu))
    return model, {"qpos": qpos, "qvel": np.zeros(model.nv), "ctrl": ctrl}


def test_policies_agree_on_all_transports(simulators: Simulators) -> None:
    expected: dict[str, Any] = {}
    reports: dict[str, Any] = {}
    for simulator in simulators.values():
        model, inputs = _standing(simulator)
        bars = np.random.default_rng(5).normal(size=(3, BATCH, 2, model.nq))
        for policy in ("every", "interval=7", "slots=4"):
            value, gradient = simulator.value_and_gradient(model, **inputs, loss=LOSS, checkpoints=policy)
            with simulator.rollout(model, **inputs, checkpoints=policy) as trajectory:
                pulled = trajectory.backward(bars, times=[5, -1])
                pushed = trajectory.jvp(qvel_tan=np.ones(model.nv))
                found = {
                    "value": value,
                    **{f"of loss {name}": array for name, array in gradient.items()},
                    **{f"of bars {name}": array for name, array in pulled.items()},
                    "tangents": pushed.qpos,
                    "final": trajectory.final_qpos,
                    "qpos": trajectory.qpos,
                    "qvel": trajectory.qvel,
                }
                assert trajectory.report == gradient.report == pulled.report
            for name, array in found.items():
                assert array.tobytes() == expected.setdefault(name, array).tobytes(), (
                    simulator,
                    policy,
                    name,
                )
            assert reports.setdefault(policy, pulled.report) == pulled.report
    assert reports["every"].states_stored == BATCH * (STEPS + 1)
    assert reports["slots=4"].states_stored == BATCH * 4
    assert reports["interval=7"].replayed_steps == BATCH * (2 * STEPS - 5)


@pytest.mark.parametrize("policy", ["every", "slots=3"])
def test_a_trajectory_is_found_again_under_its_policy(simulators: Simulators, policy: str) -> None:
    for simulator in simulators.values():
        model, inputs = _standing(simulator)
        trajectory = simulator.rollout(model, **inputs, checkpoints=policy, states="final")
        again = simulator.trajectory(model, trajectory.id)
        assert again.checkpoints == trajectory.checkpoints and again.report == trajectory.report
        assert np.array_equal(again.final_qpos, trajectory.final_qpos)
        bars = np.ones((BATCH, 1, model.nq))
        gradients = [each.backward(bars, times=[-1]).ctrl for each in (trajectory, again)]
        assert np.array_equal(*gradients)
        trajectory.delete()
        with pytest.raises(NotFoundError):
            _ = again.qpos


def test_all_states_may_come_with_few_checkpoints(simulators: Simulators) -> None:
    for simulator in simulators.values():
        model, inputs = _standing(simulator)
        with simulator.rollout(model, **inputs) as every:
            states = every.qpos
        trajectory = simulator.rollout(model, **inputs, checkpoints="slots=3", states="all")
        trajectory.delete()
        assert np.array_equal(trajectory.qpos, states)  # they are here, whatever was kept
        assert trajectory.report.states_stored == 3 * BATCH


def test_without_checkpoints_there_is_the_final_state_and_no_gradient(simulators: Simulators) -> None:
    for simulator in simulators.values():
        model, inputs = _standing(simulator)
        trajectory = simulator.rollout(model, **inputs, checkpoints="none")
        assert trajectory.final_qpos.shape == (BATCH, model.nq) and trajectory.report.states_stored == 0
        for call in (lambda: trajectory.qpos, lambda: trajectory.backward(np.zeros(1))):  # noqa: B023
            with pytest.raises(ArgumentError, match=r"^trajectory: expected one with checkpoints"):
                call()
        trajectory.delete()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoints": "slots=0"}, "checkpoints: expected 'every', 'interval=k', 'slots=s' or 'none'"),
        ({"states": "some"}, "states: expected 'all' or 'final', got 'some'"),
    ],
)
def test_wrong_words_are_named(simulators: Simulators, options: dict[str, Any], message: str) -> None:
    for simulator in simulators.values():
        model, inputs = _standing(simulator)
        with pytest.raises(ArgumentError) as caught:
            simulator.rollout(model, **inputs, **options)
        assert str(caught.value).startswith(message)


def test_the_engine_refuses_the_same_words_and_times(simulators: Simulators) -> None:
    texts = set()
    for simulator in simulators.values():
        model, inputs = _standing(simulator)
        with simulator.rollout(model, **inputs, checkpoints="slots=3") as trajectory:
            with pytest.raises(ArgumentError) as caught:
                trajectory.backward(np.zeros((BATCH, 1, model.nq)), times=[STEPS + 1])
            texts.add(str(caught.value))
    assert len(texts) == 1 and texts.pop().startswith("times: expected indices of states from -32 to 31")
