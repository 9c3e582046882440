"""Solvers that do not settle: the same report over every transport, and a warning for each call."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import revolute
from testbed.case_files import case_file

STACK = case_file("B13", "stack.xml").read_text().replace('mass="100"', 'mass="1000"')
STILL = revolute.Loss([revolute.Term("qvel")])


def _stack(simulator: revolute.Simulator) -> tuple[revolute.ModelHandle, np.ndarray]:
    model = simulator.load_model(STACK, contact_model="hard")
    qpos = np.array(model.qpos0)
    # the heavy box falls onto the light one, which rests
    qpos[9] += 2e-3
    return model, qpos


def test_every_answer_says_when_and_by_how_much(simulators: dict[str, revolute.Simulator]) -> None:
    found = {}
    for name, simulator in simulators.items():
        model, qpos = _stack(simulator)
        start = qpos, model.qvel0, np.zeros((40, 0))
        with pytest.warns(revolute.UnsettledWarning, match="^rollout: .* does not settle") as caught:
            trajectory = simulator.rollout(model, *start)
        assert len(caught) == 1 and caught[0].filename == __file__
        assert "first at step" in str(caught[0].message) and 'solver="exact"' in str(caught[0].message)
        with (
            pytest.warns(revolute.UnsettledWarning, match="^stream_rollout: ") as caught,
            simulator.stream_rollout(model, *start, segment_steps=9) as stream,
        ):
            list(stream)
        assert len(caught) == 1
        with pytest.warns(revolute.UnsettledWarning, match="^value_and_gradient: ") as caught:
            simulator.value_and_gradient(model, *start, STILL, wrt="qpos")
        assert len(caught) == 1 and caught[0].filename == __file__
        with pytest.warns(revolute.UnsettledWarning, match="^value_and_gradient: "):
            simulator.value_and_gradient(model, *start, lambda at: (0.0, None, at.qvel), wrt="qpos")
        with simulator.session(model) as session, pytest.warns(revolute.UnsettledWarning, match="^step: "):
            session.reset(qpos)
            state = session.step([], steps=40)
        opened = simulator.trajectory(model, trajectory.id)
        ends = [(each.unsettled_step, each.residual) for each in (trajectory, stream.trajectory, opened)]
        ends.append((state.unsettled_step[0], state.residual[0]))
        assert len({(int(step), float(residual)) for step, residual in ends}) == 1
        found[name] = ends[0]
    assert len({(int(step), float(residual)) for step, residual in found.values()}) == 1
    step, residual = found["grpc"]
    assert step > 5 and residual > 1e-3


def test_a_session_warns_once_and_forgets_at_a_reset(simulator: revolute.Simulator) -> None:
    model, qpos = _stack(simulator)
    with simulator.session(model) as session:
        session.reset(qpos)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            states = [session.step([], steps=20) for _ in range(3)]
        assert [each.category for each in caught] == [revolute.UnsettledWarning]
        assert states[2].unsettled_step.tolist() == states[0].unsettled_step.tolist() != [-1]
        fork = session.fork().state()
        assert fork.unsettled_step.tolist() == states[2].unsettled_step.tolist()
        assert session.reset(qpos).unsettled_step.tolist() == [-1]
        assert session.state().residual.tolist() == [0.0]


def test_what_settles_warns_of_nothing(simulator: revolute.Simulator) -> None:
    model = simulator.load_model("laikago")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trajectory = simulator.rollout(model, model.keyframes["home"], model.qvel0, np.zeros((3, 20, 12)))
    assert trajectory.unsettled_step.tolist() == [-1] * 3 and trajectory.residual.tolist() == [0.0] * 3
