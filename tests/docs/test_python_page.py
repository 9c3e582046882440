"""docs/python.md: its blocks run, in process and on a server, and its tables have what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revolute
from testbed.server_process import ServerProcess

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("way", ["in process", "grpc", "http"])
def test_the_blocks_run_one_after_the_other(
    way: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "".join(BLOCKS)
    if way != "in process":
        address = getattr(request.getfixturevalue("server"), way)
        assert code.count("revolute.connect()") == 1
        code = code.replace("revolute.connect()", f"revolute.connect({address!r})")
    names: dict[str, Any] = {}
    exec(compile(code, "docs/python.md", "exec"), names)
    with names["sim"] as simulator:
        model, first, second = capsys.readouterr().out.splitlines()
        assert "nq=7, nv=6, nu=0" in model and names["masses"]["body_mass"]["pole"] == [1.0, 2.0]
        assert names["jacobian"].shape == (3, 2) and names["pulled"]["qpos"].shape == (2,)
        assert names["end"].body_linvel.shape == (1, 3, 3)
        assert names["controls"].shape == (100, 1) and names["plan"].costs[-1] < names["plan"].costs[0]
        assert first.endswith("(2,) (100, 1) ['qpos', 'qvel', 'ctrl']")
        assert second == "(2, 100, 1)"
        # the derivative that the page's own loss returns is that of its value
        states = simulator.rollout(names["model"], [0.0, 0.4], [0.0, 0.0], np.ones((5, 1)))
        value, bar, _ = names["height"](states)
        moved = simulator.rollout(names["model"], [0.0, 0.4], [0.0, 1e-5], np.ones((5, 1)))
        predicted = float((bar * (moved.qpos - states.qpos)).sum())
        assert names["height"](moved)[0] - value == pytest.approx(predicted, rel=1e-4)
        assert names["state"].qpos.shape == (8, 2) and np.isfinite(names["state"].qpos).all()


def test_rows_of_a_session_that_diverged_begin_anew(server: ServerProcess) -> None:
    for address in (None, server.grpc):
        with revolute.connect(address) as simulator, simulator.session(simulator.load_model("ant"), 3) as one:
            qpos = one.reset().qpos
            state = one.set_state(qvel=np.outer([0, 1, 0], np.full(14, 1e200)))
            state = one.step(np.zeros(8), steps=5)
            assert state.status.tolist() == [0, 1, 0]
            state.qpos[1], state.qvel[1] = qpos[1], 0.0
            assert one.set_state(state.qpos, state.qvel).status.tolist() == [0, 0, 0]
            assert np.isfinite(one.step(np.zeros(8)).qpos).all()
