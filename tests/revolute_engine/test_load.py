"""Sources: paths, text, built-in names; names, hashes and descriptions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revolute.contract.errors import ArgumentError, ModelError, NotFoundError
from revolute_engine import load_model, models
from tests.robots import gymnasium_ant, laikago_urdf

CART = (
    '<mujoco model="cart"><worldbody><body><joint name="x" type="slide"/><geom '
    'size="1"/></body></worldbody></mujoco>'
)


def test_text_bytes_and_paths_give_the_same_model(tmp_path: Path) -> None:
    path = tmp_path / "my.cart.xml"
    path.write_text(CART)
    loaded = [load_model(source) for source in (CART, CART.encode(), path, str(path))]
    assert len({model.id for model in loaded}) == 1
    assert [model.name for model in loaded] == ["cart", "cart", "my.cart", "my.cart"]
    assert load_model(CART, name="robot.xml").name == "robot"


def test_the_id_depends_on_text_assets_and_options() -> None:
    mesh = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
    text = (
        '<mujoco><asset><mesh name="m" file="m.obj"/></asset><worldbody><body><joint/><geom type="mesh" '
        'mesh="m"/>'
        "</body></worldbody></mujoco>"
    )
    base = load_model(text, assets={"m.obj": mesh.encode()})
    others = [
        load_model(text, assets={"m.obj": mesh.replace("1 0 0", "2 0 0").encode()}),
        load_model(text.replace("<joint/>", '<joint damping="1"/>'), assets={"m.obj": mesh.encode()}),
        load_model(text, assets={"m.obj": mesh.encode()}, timestep=0.001),
    ]
    assert len({base.id, *(model.id for model in others)}) == 4
    assert len(base.id) == 64
    assert load_model(text, assets={"m.obj": mesh.encode()}).id == base.id


def test_a_sent_model_equals_the_one_on_disk() -> None:
    disk = load_model(laikago_urdf(), base="free", ground=True)
    sent = load_model(
        laikago_urdf().read_text(),
        assets=disk.assets,
        base="free",
        ground=True,
        name="laikago_toes_zup.urdf",
        allow_files=False,
    )
    assert sent.id == disk.id and sent.name == disk.name
    assert sent.info() == disk.info()


def test_pybullets_laikago_loads_whole() -> None:
    model = load_model(laikago_urdf(), base="free", ground=True)
    assert (model.nq, model.nv, model.nu) == (19, 18, 12)
    assert model.body_mass.sum() == pytest.approx(25.567, abs=1e-12)
    assert model.body_names[1] == "chassis" and "toeFL" in model.body_names
    assert model.joint_types == ["free", *["hinge"] * 12]
    assert not model.arrays["jnt_limited"].any()
    assert (model.arrays["act_forcerange"] == [-100, 100]).all()
    assert model.arrays["hull_num"].max() > 100


def test_gymnasiums_ant_loads_as_it_is() -> None:
    model = load_model(gymnasium_ant())
    assert (model.nq, model.nv, model.nu, model.timestep) == (15, 14, 8, 0.01)
    assert not any("RK4" in note for note in model.notes)
    hard = load_model(gymnasium_ant(), contact_model="hard")
    assert any(note.startswith("integrator RK4") for note in hard.notes)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("robot.urdf", NotFoundError, "source: expected a file, got 'robot.urdf', which does not exist"),
        (
            "laikago2",
            NotFoundError,
            "source: expected XML text or the name of a built-in model, got 'laikago2', which does not "
            "exist; "
            f"built-in models are {', '.join(models())}",
        ),
        (7, ArgumentError, "source: expected a path, XML text or the name of a model, got int"),
        (None, ArgumentError, "source: expected a path, XML text or the name of a model, got NoneType"),
    ],
)
def test_an_unknown_source_is_refused(source: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        load_model(source)
    assert str(caught.value) == message


@pytest.mark.parametrize("assets", [["a.stl"], {"a.stl": "text"}, {1: b""}])
def test_assets_are_bytes_by_name(assets: Any) -> None:
    with pytest.raises(ArgumentError, match="assets: expected a mapping of file names to bytes"):
        load_model(CART, assets=assets)


def test_messages_hold_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "bad.xml"
    path.write_text("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>")
    with pytest.raises(ValueError, match="larger than mjMINVAL") as caught:
        load_model(path)
    assert str(caught.value).startswith("bad.xml: body")
    assert str(tmp_path) not in str(caught.value)


def test_keyframes_are_named_configurations() -> None:
    text = CART.replace(
        "</mujoco>", '<keyframe><key name="far" qpos="3"/><key qpos="4"/></keyframe></mujoco>'
    )
    frames = load_model(text).keyframes
    assert {name: qpos.tolist() for name, qpos in frames.items()} == {"far": [3.0], "1": [4.0]}


def test_info_is_plain_json_and_tells_the_names() -> None:
    info = load_model("laikago").info()
    assert json.loads(json.dumps(info, allow_nan=False)) == info
    assert info["nq"] == 19 and info["body_names"][1] == "chassis"
    assert info["ctrlrange"][0] == ["-inf", "inf"]
    assert info["dof_names"][:7] == [
        *(f"root.{axis}" for axis in ("x", "y", "z", "rx", "ry", "rz")),
        "FL_hip_motor_2_chassis_joint",
    ]
    assert load_model("ant").info()["ctrlrange"][0] == [-1.0, 1.0]


def test_arrays_of_a_model_are_read_only() -> None:
    model = load_model("laikago")
    for array in (model.qpos0, model.body_mass, model.geom_friction, model.keyframes["home"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert np.array_equal(model.qvel0, np.zeros(18))


def test_a_chain_of_three_hundred_bodies_loads() -> None:
    body = '<body pos="0 0 -0.1"><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    text = "<mujoco><worldbody>" + 300 * body + 300 * "</body>" + "</worldbody></mujoco>"
    assert load_model(text).nv == 300


def test_velocities_of_joints_without_a_name_are_called_by_their_body() -> None:
    model = load_model(
        """<mujoco><worldbody><body name="arm"><joint name="lift" type="slide"/><joint type="ball"/>
        <geom size="0.1"/></body></worldbody></mujoco>"""
    )
    assert model.dof_names == ["lift", "arm/1.rx", "arm/1.ry", "arm/1.rz"]


def test_the_longest_chains_load() -> None:
    """As MJCF as many bodies as MuJoCo's reader nests, as URDF more."""
    body = '<body pos="0 0 -0.1"><joint axis="0 1 0"/><geom size="0.01" mass="0.1"/>'
    count = 496
    chain = f"<mujoco><worldbody>{body * count}{'</body>' * count}</worldbody></mujoco>"
    assert load_model(chain).nv == count
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    inertial = f'<inertial><mass value="0.1"/>{inertia}</inertial>'
    links = "".join(f'<link name="{n}">{inertial}</link>' for n in range(1001))
    joints = "".join(
        f'<joint name="j{n}" type="continuous"><parent link="{n}"/><child link="{n + 1}"/></joint>'
        for n in range(1000)
    )
    assert load_model(f'<robot name="chain">{links}{joints}</robot>').nv == 1000


@pytest.mark.parametrize(
    ("joint", "message"),
    [
        ('axis="0 0 0"', "joint 1 of body 'arm': expected an axis of non-zero length"),
        ('range="2 1"', "joint 1 of body 'arm': expected a range that ascends"),
        ('damping="-1"', "joint 1 of body 'arm'"),
    ],
)
def test_a_joint_without_a_name_is_called_by_its_place(joint: str, message: str) -> None:
    text = f"""<mujoco><worldbody><body><joint/><geom size="1"/>
      <body name="arm"><joint {joint}/><geom size="1"/></body></body></worldbody></mujoco>"""
    with pytest.raises(ModelError, match=message):
        load_model(text)
    with pytest.raises(ModelError, match=message.replace("body 'arm'", "(body 2|a body without a name)")):
        load_model(text.replace('name="arm"', ""))
