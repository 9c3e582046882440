"""A model as MJCF text and as MuJoCo's own model."""

from __future__ import annotations

import importlib.metadata

import mujoco
import numpy as np
import pytest

import revolute

POLE = """<robot name="pole"><link name="pole"><inertial><origin xyz="0 0 0.5"/><mass value="1"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry><mesh filename="m.obj"/></geometry></collision></link></robot>"""
TETRAHEDRON = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"


def test_a_urdf_becomes_mjcf_with_its_options(simulator: revolute.Simulator) -> None:
    assets = {"m.obj": TETRAHEDRON}
    model = simulator.load_model(POLE, assets=assets, base="free", ground=True, timestep=0.004)
    there = mujoco.MjModel.from_xml_string(model.to_mjcf(), assets)
    ours = model.mujoco()
    for compiled in (there, ours):
        assert (compiled.nq, compiled.nv, compiled.ngeom) == (model.nq, model.nv, model.ngeom) == (7, 6, 2)
        assert compiled.opt.timestep == model.timestep == 0.004
        assert np.array_equal(compiled.body_mass, model.body_mass)
    again = simulator.load_model(model.to_mjcf(), assets=assets)
    assert again.nq == 7 and again.timestep == 0.004


def test_mujoco_moves_as_we_do(in_process: revolute.Simulator) -> None:
    """A pendulum without contacts, for 50 steps."""
    model = in_process.load_model("pendulum2")
    theirs = model.mujoco()
    data = mujoco.MjData(theirs)
    data.qpos[:], data.qvel[:] = 0.3, 0.1
    ctrl = np.full((50, model.nu), 0.2)
    ours = in_process.rollout(model, data.qpos, data.qvel, ctrl)
    for row in ctrl:
        data.ctrl[:] = row
        mujoco.mj_step(theirs, data)
    np.testing.assert_allclose(ours.qpos[-1], data.qpos, rtol=1e-9)
    theirs.opt.gravity[:] = 0.0
    assert model.mujoco().opt.gravity[2] != 0.0


def test_without_the_engine_the_error_says_what_to_install(
    in_process: revolute.Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = in_process.load_model("pendulum1")
    monkeypatch.setattr("revolute.local_engine.entry_points", lambda **_: ())
    for call in (model.mujoco, model.to_mjcf):
        with pytest.raises(revolute.UnavailableError, match=r"pip install \"revolute\[server\]\""):
            call()
    assert importlib.metadata.entry_points(group="revolute.transports")
