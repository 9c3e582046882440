"""Candidate pairs against MuJoCo's: with a margin larger than the world, all that it watches are contacts."""

import mujoco
import numpy as np
import pytest

from revolute_engine import load_model
from revolute_engine._pairs import BOTH, FIRST
from tests.robots import gymnasium_ant, laikago_urdf

WORLD = """<mujoco>
  <option><flag {flags}/></option>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" contype="2" conaffinity="3" friction="0.5 0.02 0.003"/>
    <geom name="post" type="sphere" size="0.1" pos="3 0 1" condim="1"/>
    <body name="base" pos="0 0 1">
      <freejoint/>
      <geom name="base" type="sphere" size="0.2" friction="0.9 0.01 0.004" condim="4"/>
      <body name="welded" pos="0.3 0 0">
        <geom name="welded" type="capsule" size="0.05 0.1" friction="0.2 0.1 0.2" priority="2" condim="1"/>
        <body name="child" pos="0.3 0 0">
          <joint axis="0 1 0"/>
          <geom name="child" type="capsule" size="0.04 0.1"/>
          <geom name="ghost" type="sphere" size="0.04" contype="0" conaffinity="0"/>
          <body name="grandchild" pos="0.3 0 0">
            <joint axis="0 1 0"/>
            <geom name="grandchild" type="sphere" size="0.04" friction="0.7 0.3 0.4" priority="2" condim="6"/>
          </body>
        </body>
      </body>
    </body>
    <body name="other" pos="0 1 1">
      <freejoint/>
      <geom name="other" type="sphere" size="0.1" contype="2" conaffinity="1" friction="0.3 0.05 0.0001"/>
    </body>
    <body name="rail" pos="0 2 1">
      <joint type="slide" axis="1 0 0"/>
      <geom name="rail" type="sphere" size="0.1"/>
    </body>
  </worldbody>
  <contact>
    <exclude body1="other" body2="child"/>
    <pair geom1="rail" geom2="base" friction="0.4 0.4 0.6 0.7 0.7" condim="6"/>
    <pair geom1="welded" geom2="child" friction="0.6 0.6"/>
  </contact>
</mujoco>"""


Friction = tuple[float, float, float]


def _mujoco_pairs(model: mujoco.MjModel) -> dict[tuple[int, int], tuple[Friction, int]]:
    """Return ((sliding, torsional, rolling friction), condim) of every pair MuJoCo collides, by its geoms."""
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)
    model.opt.o_margin = 1e3
    model.opt.o_friction[:] = 1
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    seen = {tuple(sorted(contact.geom.tolist())) for contact in data.contact}
    model.opt.enableflags = 0
    model.geom_margin[:] = model.pair_margin[:] = 1e3
    mujoco.mj_forward(model, data)
    found = {
        tuple(sorted(contact.geom.tolist())): (tuple(contact.friction[[0, 2, 3]].tolist()), int(contact.dim))
        for contact in data.contact
    }
    assert set(found) == seen
    return found


def _our_pairs(arrays: dict) -> dict[tuple[int, int], tuple[Friction, int]]:
    """Return the same from the engine's arrays, combining friction as the engine does."""
    found = {}
    names = ("pair_geom1", "pair_geom2", "pair_friction", "pair_mu_from", "pair_condim")
    for first, second, own, mu_from, condim in zip(*(arrays[name].tolist() for name in names), strict=True):
        assert arrays["geom_type"][first] <= arrays["geom_type"][second]
        mus = arrays["geom_friction"][[first, second], 0].tolist()
        combined = max(mus) if mu_from == BOTH else mus[0] if mu_from == FIRST else mus[1]
        mu = combined if np.isnan(own[0]) else own[0]
        found[tuple(sorted((first, second)))] = ((mu, own[1], own[2]), condim)
    return found


@pytest.mark.parametrize("flags", ["", 'filterparent="disable"'])
def test_pairs_of_a_world_with_every_filter_are_mujocos(flags: str) -> None:
    text = WORLD.format(flags=flags)
    ours = _our_pairs(load_model(text).arrays)
    theirs = _mujoco_pairs(mujoco.MjModel.from_xml_string(text))
    # the rail is a metre away from the post wherever it slides
    del theirs[1, 8]
    assert ours == theirs
    assert len(ours) > 10


def test_pairs_of_the_ant_are_mujocos() -> None:
    ours = _our_pairs(load_model(gymnasium_ant()).arrays)
    assert ours == _mujoco_pairs(mujoco.MjModel.from_xml_path(str(gymnasium_ant())))
    assert len(ours) == 13


def test_shapes_of_a_urdf_that_overlap_in_its_zero_pose_do_not_meet() -> None:
    with pytest.warns(
        UserWarning, match="4 pairs that overlap in the zero pose are not watched for contact: geom 1"
    ):
        model = load_model(laikago_urdf(), base="free", ground=True)
    ours = set(_our_pairs(model.arrays))
    theirs = _mujoco_pairs(model.mujoco_model)
    data = mujoco.MjData(model.mujoco_model)
    data.qpos[2] = 10  # far from the ground
    model.mujoco_model.geom_margin[:] = model.mujoco_model.pair_margin[:] = 0
    mujoco.mj_forward(model.mujoco_model, data)
    overlapping = {tuple(sorted(contact.geom.tolist())) for contact in data.contact}
    assert ours == set(theirs) - overlapping
    assert (len(ours), len(overlapping)) == (129, 4)
    assert any("4 pairs that overlap" in note for note in model.notes)


def test_shapes_of_an_mjcf_that_overlap_still_meet() -> None:
    text = (
        '<mujoco><worldbody><body><freejoint/><geom size="1"/></body>'
        '<body pos="0 0 1"><freejoint/><geom type="box" size="1 1 1"/></body></worldbody></mujoco>'
    )
    assert len(load_model(text).arrays["pair_geom1"]) == 1


def test_shapes_that_cannot_move_apart_are_no_pair() -> None:
    text = (
        '<mujoco><worldbody><geom type="plane" size="0 0 1"/><geom name="wall" type="box" size="1 1 1"/>'
        '<body name="b"><joint type="slide"/><geom name="b1" size="1"/><geom name="b2" '
        'size="1"/></body></worldbody>'
        '<contact><pair geom1="b1" geom2="b2"/></contact></mujoco>'
    )
    ends = load_model(text).arrays
    assert sorted(zip(ends["pair_geom1"].tolist(), ends["pair_geom2"].tolist(), strict=True)) == [
        (0, 2),
        (0, 3),
        (2, 1),
        (3, 1),
    ]


def _garden(seed: int) -> str:
    """Return random trees of hinges, balls and slides on fixed bases that are a metre or so apart."""
    random = np.random.default_rng(seed)

    def body(depth: int, place: np.ndarray) -> str:
        numbers = " ".join(f"{value:.3f}" for value in random.normal(size=4))
        axis = " ".join(f"{value:.3f}" for value in random.normal(size=3))
        kind = random.choice(["hinge", "ball", "slide"], p=[0.5, 0.45, 0.05])
        joint = f'<joint type="{kind}" axis="{axis}" pos="0.05 0 0.02"/>'
        if random.random() < 0.2:
            joint = f'<joint type="slide" axis="0 0 1"/>{joint}'
        inner = "".join(
            body(depth - 1, 0.2 * random.normal(size=3)) for _ in range(random.integers(0, depth + 1))
        )
        position = " ".join(f"{value:.3f}" for value in place)
        return (
            f'<body pos="{position}" quat="{numbers}">{joint}<geom type="capsule" size="0.04 0.1" '
            f'pos="0.1 0.05 0"/>{inner}</body>'
        )

    trees = "".join(body(2, 1.2 * np.array([i % 3, i // 3, 0.0])) for i in range(6))
    return f"<mujoco><worldbody>{trees}</worldbody></mujoco>"


@pytest.mark.parametrize("seed", range(6))
def test_pairs_that_are_left_out_never_come_together(seed: int) -> None:
    text = _garden(seed)
    model = mujoco.MjModel.from_xml_string(text)
    apart = set(_mujoco_pairs(mujoco.MjModel.from_xml_string(text))) - set(
        _our_pairs(load_model(text).arrays)
    )
    assert apart
    ends = np.array(sorted(apart))
    data, random = mujoco.MjData(model), np.random.default_rng(seed)
    touching = model.geom_rbound[ends].sum(axis=1)
    for _ in range(200):
        data.qpos[:] = random.normal(size=model.nq) * random.choice([1.0, 10.0])
        mujoco.mj_kinematics(model, data)
        centres = data.geom_xpos[ends]
        assert (np.linalg.norm(centres[:, 0] - centres[:, 1], axis=1) > touching).all()


def test_a_row_of_rails_has_no_pairs() -> None:
    rails = "".join(
        f'<body pos="{place} 0 0"><joint type="slide"/><geom size="0.1"/></body>' for place in range(1500)
    )
    arrays = load_model(f"<mujoco><worldbody>{rails}</worldbody></mujoco>").arrays
    assert len(arrays["pair_geom1"]) == 0


def test_shapes_that_overlap_from_the_start_are_a_warning() -> None:
    text = """<mujoco><worldbody><geom name="floor" type="plane" size="0 0 1"/>
      <body pos="0 0 0.1"><freejoint/><geom name="resting" size="0.1"/></body>
      <body pos="5 0 0.07"><freejoint/><geom name="sunk" size="0.1"/></body>
      <body pos="9 0 0.1"><freejoint/><geom name="one" size="0.1"/></body>
      <body pos="9 0.15 0.1"><freejoint/><geom name="other" size="0.1"/></body></worldbody></mujoco>"""
    wanted = (
        "2 pairs of shapes overlap in the zero pose, and the first steps push them apart: "
        "geom 'one' and geom 'other' by 0.05 m; geom 'floor' and geom 'sunk' by 0.03 m"
    )
    with pytest.warns(UserWarning, match=wanted):
        model = load_model(text)
    assert model.warnings == [wanted]
    assert load_model(text, contact=False).warnings == []
