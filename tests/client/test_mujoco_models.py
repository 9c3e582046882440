"""A model as MJCF text and as MuJoCo's own model."""

from __future__ import annotations

import pickle

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


def _without_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("revolute.local_engine.entry_points", lambda **_: ())


@pytest.mark.parametrize("source", [POLE, "laikago", "ant"])
def test_the_files_compile_without_the_engine(
    simulator: revolute.Simulator, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"base": "free", "timestep": 0.004} if source == POLE else {"timestep": 0.004}
    model = simulator.load_model(source, assets={"m.obj": TETRAHEDRON} if source == POLE else None, **options)
    exact = model.mujoco()
    _without_engine(monkeypatch)
    opened = simulator.open_model(model.id)
    assert (opened.name, opened.source.text) == (model.name, "")
    for handle in (model, opened):
        found = handle.mujoco()
        assert found.opt.timestep == 0.004
        for name in ("body_mass", "geom_pos", "geom_size", "jnt_axis", "mesh_vert", "geom_bodyid"):
            np.testing.assert_allclose(getattr(found, name), getattr(exact, name), rtol=2e-5, atol=2e-6)
        names = [[each.geom(index).name for index in range(each.ngeom)] for each in (found, exact)]
        assert names[0] == names[1]


def test_meshes_of_one_name_in_two_folders(simulator: revolute.Simulator) -> None:
    small = TETRAHEDRON.replace(b"1", b"0.5", 3)
    text = """<mujoco><asset><mesh name="a" file="one/m.obj"/><mesh name="b" file="two/m.obj"/></asset>
      <worldbody>
      <body><joint/><geom type="mesh" mesh="a"/></body><body><joint/><geom type="mesh" mesh="b"/></body>
      </worldbody></mujoco>"""
    model = simulator.load_model(text, assets={"one/m.obj": TETRAHEDRON, "two/m.obj": small}, contact=False)
    mjcf, files = model.files()
    assert sorted(files.values()) == sorted((TETRAHEDRON, small))
    compiled = mujoco.MjModel.from_xml_string(mjcf, files)
    volumes = compiled.geom_aabb[:, 3:].prod(axis=1)
    np.testing.assert_allclose(volumes[1], volumes[0] / 8, rtol=1e-4)


def test_a_handle_without_a_connection_says_so(
    in_process: revolute.Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = pickle.loads(pickle.dumps(in_process.load_model("pendulum1")))
    assert model.mujoco().nq == 1
    _without_engine(monkeypatch)
    for call in (model.mujoco, model.to_mjcf, model.files):
        with pytest.raises(
            revolute.UnavailableError, match="model: expected a connection to ask for its files"
        ):
            call()


def test_files_of_a_model_that_is_not_there(simulator: revolute.Simulator) -> None:
    for call in (lambda: simulator.open_model("0" * 64), lambda: simulator.open_session(None, "0" * 32)):
        with pytest.raises(revolute.NotFoundError):
            call()
    model = simulator.load_model("pendulum3", timestep=0.0123)
    simulator.delete_model(model)
    with pytest.raises(revolute.NotFoundError):
        model.files()
