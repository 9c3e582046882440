"""What a type checker tells about a user's program: wrong words of options are errors, right ones are not."""

from __future__ import annotations

from pathlib import Path

import pytest

PROGRAM = """
import revolute

with revolute.connect() as sim:
    model = sim.load_model("ant", contact_model="mujoco", cone="elliptic", timestep=None)
    policy = revolute.MLP([], ["qpos", "site_pos:toe"], activation="elu")
    term = revolute.Term("qpos", when="running", form="linear")
    trajectory = sim.rollout(model, [], [], [], states="final", policy=policy, measure=["sensor"])
    sim.value_and_gradient(model, [], [], [], term, on_diverged="inf")
    trajectory.backward([], on_diverged="raise")
    index: list[int] = model.qpos_index("hip")

    sim.load_model("ant", contact_model="mujcoo")  # wrong
    sim.load_model("ant", cone="round")  # wrong
    sim.load_model("ant", solver="newton")  # wrong
    sim.load_model("ant", base="fix")  # wrong
    sim.load_model("ant", timestep="1 ms")  # wrong
    sim.load_model("ant", time_step=1e-3)  # wrong
    revolute.MLP([], ["qpos"], activation="gelu")  # wrong
    revolute.Term("qpos", when="always")  # wrong
    sim.rollout(model, [], [], [], states="last")  # wrong
    sim.value_and_gradient(model, [], [], [], term, on_diverged="nan")  # wrong
    trajectory.backward([], on_diverged="ignore")  # wrong
"""


def test_wrong_words_are_errors(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    text, problems, _ = api.run([str(program), "--config-file=", f"--cache-dir={tmp_path / 'cache'}"])
    assert not problems
    found = {
        int(line.split(":")[1]) for line in text.splitlines() if "program.py:" in line and "error:" in line
    }
    wrong = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# wrong")}
    assert found == wrong, text
