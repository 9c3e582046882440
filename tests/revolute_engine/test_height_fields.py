"""Height fields: contacts and steps are MuJoCo's, gradients those of the steps."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import Engine, Model, load_model

from .mujoco_scenes import reference
from .mujoco_steps import check_jacobian, check_packs, mujoco_step, tangent

MESH = '<mesh name="rock" vertex="-.1 -.1 -.1  .2 0 -.05  -.05 .2 -.1  0 0 .2  .1 .1 .12" maxhullvert="-1"/>'
SHAPES = {
    "sphere": '<geom type="sphere" size=".12" mass="1"/>',
    "capsule": '<geom type="capsule" size=".06 .15" mass="1"/>',
    "ellipsoid": '<geom type="ellipsoid" size=".1 .2 .15" mass="1"/>',
    "cylinder": '<geom type="cylinder" size=".12 .1" mass="1"/>',
    "box": '<geom type="box" size=".15 .1 .08" mass="1"/>',
    "mesh": '<geom type="mesh" mesh="rock" mass="1"/>',
}
FINE = 1e-8
"""Distances and places of sharp shapes that overlap a little."""
SEARCHED = 1e-6
"""Tolerance of MuJoCo's search for contacts: of distances; places and normals of round shapes are worse."""
POINTS = {"sphere": 4e-4, "capsule": 1e-3, "ellipsoid": 1e-2, "cylinder": 5e-3, "box": FINE, "mesh": FINE}
FORWARD = 1e-8
"""Forward against backward derivatives."""
DISTANCES = {"ellipsoid": 2e-4, "box": FINE, "mesh": FINE}


def scene(shape: str, margin: float = 0.0, rough: float = 1.0, free: str = "<freejoint/>") -> str:
    """Return a body over a random field. Without a margin, MuJoCo 4.0 does not find the smallest overlap of
    a box or mesh and a field."""
    heights = " ".join(f"{x:.6f}" for x in rough * np.random.default_rng(0).uniform(size=81))
    return f"""<mujoco><option timestep=".002"/><asset>{MESH}
<hfield name="hills" nrow="9" ncol="9" size="1 1.2 .3 .1" elevation="{heights}"/></asset><worldbody>
<geom type="hfield" hfield="hills" margin="{margin}" pos=".1 -.05 .02" euler="3 5 20" friction=".7"/>
<body pos="0 0 .3">{free}{SHAPES[shape]}</body></worldbody></mujoco>"""


def loaded(text: str, **options: Any) -> Model:
    return load_model(text, contact_model="mujoco", warn=False, **options)


def pose(random: np.random.Generator) -> np.ndarray:
    turn = random.normal(size=4)
    place = [*random.uniform(-0.7, 0.7, 2), random.uniform(0.2, 0.45)]
    return np.concatenate([place, turn / np.linalg.norm(turn)])


def contacts(model: Model, qpos: np.ndarray) -> np.ndarray:
    """Return distance, normal and place of each contact."""
    engine = Engine(threads=1)
    found = engine.contacts(model, engine.states_to_measure(model, qpos, np.zeros(6), np.zeros(0)))
    return np.column_stack([found["distance"], found["frame"].reshape(-1, 9)[:, :3], found["position"]])


@pytest.mark.parametrize("margin", [1e-9, 0.02])
@pytest.mark.parametrize("shape", SHAPES)
def test_contacts_are_mujocos(shape: str, margin: float) -> None:
    text = scene(shape, margin)
    model, theirs = loaded(text), reference(text)
    random, data, count = np.random.default_rng(3), mujoco.MjData(theirs), 0
    for _ in range(30):
        data.qpos[:] = pose(random)
        mujoco.mj_fwdPosition(theirs, data)
        wanted = np.array([[c.dist, *c.frame[:3], *c.pos] for c in data.contact[: data.ncon]]).reshape(-1, 7)
        got = contacts(model, data.qpos)
        assert got.shape == wanted.shape
        count += len(got)
        loose = margin > 1e-3
        close = np.abs(got - wanted)
        assert (close[:, 0] <= max(DISTANCES.get(shape, SEARCHED), loose * SEARCHED)).all()
        assert (close[:, 4:] <= max(POINTS[shape], loose * 1e-3)).all()
    assert count > 40


@pytest.mark.parametrize("shape", ["sphere", "capsule", "box"])
def test_a_step_is_mujocos(shape: str) -> None:
    text = scene(shape, 1e-9, 0.2)
    model, theirs, engine = loaded(text), reference(text), Engine(threads=1)
    data = mujoco.MjData(theirs)
    data.qpos[:3] = 0.13, 0.04, 0.3
    touching = 0
    for step in range(300):
        mujoco.mj_step(theirs, data)
        if step % 30 or not data.ncon:
            continue
        touching += 1
        qpos, qvel = data.qpos.copy(), data.qvel.copy()
        _, next_qvel = mujoco_step(theirs, qpos, qvel, np.zeros(0))
        found = engine.rollout(model, qpos, qvel, np.zeros((1, 0)))
        scale = np.abs(next_qvel - qvel).max()
        tolerance = POINTS[shape] if shape == "capsule" else SEARCHED
        assert np.abs(found.qvel[1] - next_qvel).max() <= tolerance * max(scale, 1e-2)
    assert touching > 3


def test_a_ball_rolls_over_hills_as_in_mujoco() -> None:
    text = scene("sphere", 0.0, 0.3)
    model, theirs = loaded(text), reference(text)
    data = mujoco.MjData(theirs)
    data.qpos[:3] = 0.3, 0.2, 0.28
    mujoco.mj_forward(theirs, data)
    qpos, qvel = data.qpos.copy(), data.qvel.copy()
    for _ in range(300):
        mujoco.mj_step(theirs, data)
    found = Engine(threads=1).rollout(model, qpos, qvel, np.zeros((300, 0)))
    assert np.linalg.norm(found.qpos[-1, :2] - qpos[:2]) > 0.05
    assert np.abs(found.qpos[-1] - data.qpos).max() < 1e-4


def settled(model: Model, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    qpos = pose(random)
    qpos[:3] = *random.uniform(-0.3, 0.3, 2), 0.35
    found = Engine(threads=1).rollout(model, qpos, np.zeros(6), np.zeros((120, 0)))
    return found.qpos[-1], found.qvel[-1] + 0.1 * random.normal(size=6)


@pytest.mark.parametrize("contact_model", ["mujoco", "hard"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_gradient_is_that_of_the_steps(shape: str, contact_model: str) -> None:
    text = scene(shape, 0.0, 0.3)
    model = load_model(text, contact_model=contact_model, warn=False)
    theirs, engine, steps = reference(text), Engine(threads=1), 3
    ctrl = np.zeros((steps, 0))
    touched = 0
    for seed in range(6):
        qpos, qvel = settled(model, seed)
        random = np.random.default_rng(seed)
        qvel_bar = np.zeros((steps + 1, 6))
        qvel_bar[-1] = random.normal(size=6)
        found = engine.rollout(model, qpos, qvel, ctrl)
        gradient = engine.backward(model, found, qvel_bar=qvel_bar, wrt=["qpos", "qvel"])
        bar = tangent(theirs, qpos, gradient.qpos)
        direction, by_velocity = random.normal(size=6), random.normal(size=6)

        def loss(step: float, at: Any = (qpos, qvel, direction, by_velocity, qvel_bar)) -> float:
            moved = at[0].copy()
            mujoco.mj_integratePos(theirs, moved, at[2], step)
            end = engine.rollout(model, moved, at[1] + step * at[3], ctrl).qvel[-1]
            return float(at[4][-1] @ end)

        step = 1e-7
        ends = [loss(n * step) for n in (-2, -1, 0, 1, 2)]
        wanted = (8 * (ends[3] - ends[1]) - (ends[4] - ends[0])) / (12 * step)
        scale = np.linalg.norm(bar) + np.linalg.norm(gradient.qvel)
        # a smooth curve bends four times as much over twice the length, a kink where a contact begins twice
        bends = [abs(ends[2 + n] - 2 * ends[2] + ends[2 - n]) / step for n in (1, 2)]
        if max(bends) > 1e-6 * scale and abs(bends[1] - 4 * bends[0]) > 0.2 * bends[1]:
            continue
        touched += len(contacts(model, qpos))
        assert abs(bar @ direction + gradient.qvel @ by_velocity - wanted) <= 1e-6 * scale
    assert touched > 0


@pytest.mark.parametrize("contact_model", ["mujoco", "hard"])
def test_packs_and_forward_derivatives_agree(contact_model: str) -> None:
    model = load_model(scene("box", 0.0, 0.3), contact_model=contact_model, warn=False)
    states = [settled(model, seed) for seed in range(3)]
    qpos, qvel = (np.stack([each[i] for each in states]) for i in (0, 1))
    check_packs(reference(scene("box")), model, (qpos, qvel), np.zeros((3, 4, 0)), FORWARD)


def test_the_jacobian_of_a_step_is_that_of_its_derivatives() -> None:
    model = loaded(scene("capsule", 0.0, 0.3))
    check_jacobian(model, (*settled(model, 1), np.zeros(0)))


def test_a_crowd_meets_the_field_as_in_mujoco() -> None:
    # more pairs than are listed: those with the ground still are
    random = np.random.default_rng(2)
    balls = "".join(
        f'<body pos="{x:.3f} {y:.3f} {z:.3f}"><freejoint/><geom size=".02" mass="1"/></body>'
        for x, y, z in random.uniform([-0.8, -0.8, 0.1], [0.8, 0.8, 0.3], size=(220, 3))
    )
    text = scene("sphere", 0.0, 0.3).replace("</worldbody>", f"{balls}</worldbody>")
    model, theirs, engine = loaded(text), reference(text), Engine(threads=1)
    assert model.arrays["unlisted_pairs"]
    data = mujoco.MjData(theirs)
    mujoco.mj_fwdPosition(theirs, data)
    states = engine.states_to_measure(model, data.qpos, np.zeros(theirs.nv), np.zeros(0))
    got = engine.contacts(model, states)
    wanted = np.array([[*contact.geom, contact.dist] for contact in data.contact[: data.ncon]])
    with_field = wanted[wanted[:, 0] == 0]
    ours = np.column_stack([got["geom"], got["distance"]])
    ours = ours[ours[:, 0] == 0]
    assert len(with_field) == len(ours) > 100
    order, other = (np.lexsort(rows.T) for rows in (ours, with_field))
    assert np.abs(ours[order] - with_field[other]).max() < SEARCHED


def test_a_box_rests_on_a_flat_field() -> None:
    # one peak, since MuJoCo scales heights to [0, 1]
    heights = " ".join("1" if i == 0 else "0" for i in range(81))
    text = f"""<mujoco><asset><hfield name="flat" nrow="9" ncol="9" size="2 2 .2 .1" elevation="{heights}"/>
</asset><worldbody><geom type="hfield" hfield="flat"/><body pos=".4 .3 .1"><freejoint/>
<geom type="box" size=".3 .2 .1"/></body></worldbody></mujoco>"""
    for contact_model in ("mujoco", "hard"):
        model = load_model(text, contact_model=contact_model, warn=False)
        start = np.array([0.4, 0.3, 0.1, 1, 0, 0, 0])
        end = Engine(threads=1).rollout(model, start, np.zeros(6), np.zeros((500, 0))).qpos[-1]
        assert np.abs(end - start).max() < 2e-3, contact_model


def test_the_file_of_a_field_is_read_and_bounded() -> None:
    heights = np.random.default_rng(0).uniform(size=(5, 7)).astype("<f4")
    binary = np.array([5, 7], "<i4").tobytes() + heights.tobytes()
    text = """<mujoco><compiler meshdir="terrain"/><asset><hfield file="hills.bin" size="1 1 .3 .1"/></asset>
<worldbody><geom type="hfield" hfield="hills"/><body pos="0 0 1"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""
    model = load_model(text, assets={"terrain/hills.bin": binary}, contact_model="mujoco", warn=False)
    assert model.arrays["hfield_nrow"].tolist() == [5] and model.arrays["hfield_ncol"].tolist() == [7]
    with pytest.raises(ModelError, match=r"hfield 'hills\.bin': expected two int32"):
        load_model(text, assets={"hills.bin": binary[:-4]})
    png = text.replace(".bin", ".png")
    with pytest.raises(ModelError, match=r"hfield 'hills\.png': expected a PNG file"):
        load_model(png, assets={"hills.png": binary})
    header = b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + b"IHDR" + (60000).to_bytes(4, "big") * 2
    with pytest.raises(ModelError, match=r"expected at most 1000000 heights in all, got 3\.6e"):
        load_model(png, assets={"hills.png": header})
    many = '<hfield name="{}" nrow="700" ncol="800" size="1 1 1 1"/>'
    fields = "".join(many.format(name) for name in "ab")
    with pytest.raises(ModelError, match=r"hfield 'b': expected at most 1000000 heights in all, got 1\.12e"):
        load_model(f"<mujoco><asset>{fields}</asset></mujoco>")
    with pytest.raises(ModelError, match=r"hfield 'hills\.bin': expected a file, got none at terrain/"):
        load_model(text)


@pytest.mark.parametrize("body", ['<body mocap="true">', '<body pos="0 0 3"><freejoint/><geom size="0.1"/>'])
def test_a_field_that_moves_is_refused_by_name(body: str) -> None:
    text = f"""<mujoco><asset><hfield name="hills" nrow="3" ncol="3" size="1 1 1 1"/></asset><worldbody>
    {body}<geom name="ground" type="hfield" hfield="hills"/></body>
    <body pos="0 0 2"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>"""
    with pytest.raises(ModelError, match="geom 'ground': a height field on a body that moves"):
        load_model(text.encode())
