"""Case E01: messages far above gRPC's 4 MiB, both ways, with default settings of client and server."""

from __future__ import annotations

import numpy as np
import pytest

import revolute
from testbed.case_files import case_file, expected
from testbed.server_process import running_server

H = 1e-3
RTOL = 1e-9
"""Sums of up to 2 million terms, rounded once each."""


@pytest.mark.parametrize("steps", expected("E01")["N"])
def test_a_push_of_one_newton(simulator: revolute.Simulator, steps: int) -> None:
    model = simulator.load_model(case_file("E01", "cart.xml"))
    with simulator.rollout(model, [0.0], [0.0], np.ones((steps, 1))) as trajectory:
        np.testing.assert_allclose(trajectory.qvel[-1], [steps * H], rtol=RTOL)
        np.testing.assert_allclose(trajectory.qpos[-1], [H * H * steps * (steps + 1) / 2], rtol=RTOL)
        qpos_bar = np.zeros_like(trajectory.qpos)
        qpos_bar[-1] = 1.0
        gradient = trajectory.backward(qpos_bar, wrt=["ctrl"])
        np.testing.assert_allclose(gradient.ctrl[:, 0], H * H * (steps - np.arange(steps)), rtol=RTOL)


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_a_refused_message_leaves_the_session_usable(scheme: str) -> None:
    limit = expected("E01")["limit"]
    with (
        running_server("--max-request", str(limit)) as server,
        revolute.connect(getattr(server, scheme)) as simulator,
    ):
        model = simulator.load_model(case_file("E01", "cart.xml"))
        with simulator.session(model, batch=1) as session:
            session.step(np.ones(1), steps=2)
            with pytest.raises(
                revolute.LimitError, match=r"max.request.*(4MiB|4194304)|(4MiB|4194304).*max.request"
            ):
                simulator.rollout(model, [0.0], [0.0], np.ones((limit // 8 + 1, 1)))
            state = session.step(np.ones(1), steps=998)
    assert state.step_count == 1000
    np.testing.assert_allclose(state.qvel, [[1.0]], rtol=RTOL)
