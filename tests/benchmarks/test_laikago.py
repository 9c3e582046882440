"""The scenes of the benchmarks: both engines simulate the same robots; figures are not judged."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

import revolute_engine
from benchmarks.laikago import Scene, places
from benchmarks.measure import Timing, interleaved
from benchmarks.memory import with_peak
from benchmarks.ours.chain import chain_xml
from benchmarks.peers.scene import write_scene

WRITTEN_DIGITS = 1e-6  # of a pose: MuJoCo writes a model with seven digits or so
HEIGHT_TOLERANCE = 5e-3  # metres; MuJoCo's contacts are soft, so it stands a few millimetres lower


def test_both_engines_stand_at_the_same_height() -> None:
    scene = Scene(steps=200)
    ours = scene.forward(1)().qpos[0, -1, 2]
    states, _ = scene.mujoco_forward()()
    theirs = states[0, -1, 3]  # after time and the base's x and y
    assert abs(ours - theirs) < HEIGHT_TOLERANCE


def test_without_contacts_both_engines_follow_one_path() -> None:
    scene = Scene(steps=20, contact=False)
    ours = scene.forward(1)().qpos[0, 1:]
    states, _ = scene.mujoco_forward()()
    np.testing.assert_allclose(ours, states[0, :, 1 : 1 + scene.model.nq], rtol=0, atol=1e-9)


def test_each_of_three_robots_moves_as_one_alone() -> None:
    one = Scene(steps=30).forward(1)().qpos[0]
    three = Scene(steps=30, robots=3).forward(1)().qpos[0]
    for i, place in enumerate(places(3)):
        robot = three[:, 19 * i : 19 * (i + 1)].copy()
        robot[:, :2] -= place
        np.testing.assert_allclose(robot, one, rtol=0, atol=WRITTEN_DIGITS)


def test_a_chain_has_its_links() -> None:
    model = revolute_engine.load_model(chain_xml(7))
    assert (model.nv, model.nu) == (7, 7)


def test_peers_get_the_same_robot_in_every_format(tmp_path: Path) -> None:
    write_scene(tmp_path, steps=5)
    start, ctrl = np.load(tmp_path / "start.npy"), np.load(tmp_path / "controls.npy")
    engine = revolute_engine.Engine(threads=1)
    built_in = Scene(steps=5).forward(1)().qpos[0]
    for name in ("laikago.xml", "laikago_fused.xml"):
        model = revolute_engine.load_model(tmp_path / name, contact_model="hard", iterations=50)
        rollout = engine.rollout(model, start, np.zeros(model.nv), ctrl)
        np.testing.assert_allclose(rollout.qpos, built_in, rtol=0, atol=WRITTEN_DIGITS, err_msg=name)
    # a motor without torque for each joint of the URDF, no actuators in the MJCF: both fall and swing freely
    spec = mujoco.MjSpec.from_file(str(tmp_path / "laikago_free.xml"))
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    urdf = revolute_engine.load_model(tmp_path / "laikago.urdf", base="free", contact=False)
    mjcf = revolute_engine.load_model(spec.to_xml(), timestep=urdf.options["timestep"])
    qvel = np.linspace(-1, 1, urdf.nv)
    fall = [engine.rollout(model, start, qvel, np.zeros((5, model.nu))).qpos for model in (urdf, mjcf)]
    np.testing.assert_allclose(fall[0], fall[1], rtol=0, atol=WRITTEN_DIGITS)


def test_timing_is_the_median_of_interleaved_calls() -> None:
    order: list[str] = []
    calls = {"a": lambda: order.append("a"), "b": lambda: order.append("b")}
    timings = interleaved(calls, repeats=3)
    assert order == ["a", "b"] * 4
    assert timings["a"].repeats == 3
    assert Timing(2e-3, 1e-3, 3e-3, 5).per(1000)["median_us"] == 2.0


def test_the_peak_counts_what_a_call_gives_back() -> None:
    length, peak = with_peak(lambda: len(np.ones(4_000_000)))
    assert length == 4_000_000 and 30 < peak < 40  # 32 MB that are gone again
    assert with_peak(lambda: None)[1] < 1
