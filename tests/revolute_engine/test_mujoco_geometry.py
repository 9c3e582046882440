"""With MuJoCo's contact model, contacts are those of MuJoCo: number, distance, point and frame.

Poses are random, and every fourth pair is face-on or parallel. Where several vertices or corners are equally
low, MuJoCo's order of the contacts hangs on rounding, so contacts are compared as sets.
"""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np
import numpy.typing as npt
import pytest

from revolute_engine import Engine, load_model
from revolute_engine import native as _native

TOLERANCE = 1e-9
TRIALS = 300

Vectors = npt.NDArray[np.float64]


def _numbers(values: npt.ArrayLike) -> str:
    return " ".join(f"{value:.6f}" for value in np.ravel(values))


def _prism(corners: int) -> Vectors:
    angles = 2 * np.pi * (np.arange(corners) + 0.5) / corners
    return np.array([(0.1 * np.cos(a), 0.1 * np.sin(a), z) for a in angles for z in (-0.1, 0.1)])


SIZES = {
    "plane": "3 3 1",
    "sphere": "0.1",
    "capsule": "0.06 0.12",
    "ellipsoid": "0.1 0.06 0.13",
    "cylinder": "0.09 0.11",
    "box": "0.1 0.13 0.08",
}
MESHES = {
    "stone": np.random.default_rng(5).normal(size=(40, 3)) * 0.07,
    "tetrahedron": np.array([(0, 0, 0), (0.2, 0, 0), (0, 0.2, 0), (0, 0, 0.2)]),
    "cube": _prism(4),
    "drum": _prism(64),
}
PLANE_PAIRS = [("plane", name) for name in [*list(SIZES)[1:], *MESHES]]
ROUND_PAIRS = [("sphere", name) for name in ("sphere", "capsule", "cylinder", "box")]
CLOSED_PAIRS = [*PLANE_PAIRS, *ROUND_PAIRS, ("capsule", "capsule"), ("capsule", "box"), ("box", "box")]
# MuJoCo searches these pairs. Of flat faces, edges and cylinders it takes a face that is nearly the nearest
# feature, and lists several points along its normal; docs/algorithm.md says how ours differ.
SMOOTH_PAIRS = [
    *(("sphere", name) for name in ("ellipsoid", "stone")),
    ("capsule", "ellipsoid"),
    *(("ellipsoid", name) for name in ("ellipsoid", "cylinder", "box", "stone")),
]
MOST_POINTS = {
    "plane-capsule": 2,
    "plane-box": 4,
    "plane-cylinder": 4,
    "plane-stone": 3,
    "plane-tetrahedron": 3,
    "plane-cube": 4,
    "plane-drum": 4,
    "capsule-capsule": 2,
    "capsule-box": 2,
    "box-box": 6,
}


def _geom(name: str, attributes: str = "") -> str:
    shape = f'type="{name}" size="{SIZES[name]}"' if name in SIZES else f'type="mesh" mesh="{name}"'
    return f"<geom {shape} {attributes}/>"


def _scene(first: str, second: str, attributes: str) -> str:
    meshes = "".join(f'<mesh name="{name}" vertex="{_numbers(points)}"/>' for name, points in MESHES.items())
    fixed = _geom(first) if first == "plane" else f"<body><freejoint/>{_geom(first)}</body>"
    moving = f"<body><freejoint/>{_geom(second, attributes)}</body>"
    return f"<mujoco><asset>{meshes}</asset><worldbody>{fixed}{moving}</worldbody></mujoco>"


def _native_model(text: str) -> _native.Model:
    return load_model(text, contact_model="mujoco").native


def _turn(random: np.random.Generator, special: bool) -> Vectors:
    turn = random.normal(size=4)
    if special:
        turn = np.array([(1.0, 0, 0, 0), (1, 1, 0, 0), (1, 0, 0, random.uniform(-1, 1))][random.integers(3)])
    return turn / np.linalg.norm(turn)


def _poses(bodies: int, random: np.random.Generator) -> Iterator[Vectors]:
    for trial in range(TRIALS):
        poses = np.array(
            [[*random.uniform(-0.25, 0.25, 3), *_turn(random, trial % 4 == 0)] for _ in range(bodies)]
        )
        if bodies == 2:
            poses[1, :3] = poses[0, :3] + random.uniform(-0.22, 0.22, 3)
        yield poses.ravel()


def _acting(data: mujoco.MjData) -> Vectors:
    """Return MuJoCo's contacts that act, each as distance, point and frame."""
    rows = [[c.dist, *c.pos, *c.frame] for c in data.contact if c.dist < c.includemargin]
    return np.array(rows).reshape(-1, 13)


def _ours(native: _native.Model, qpos: Vectors) -> Vectors:
    found = _native.contacts(native, qpos)
    return np.column_stack([found["distance"], found["position"], found["frame"].reshape(-1, 9)])


@pytest.mark.parametrize("attributes", ['margin="0.03"', 'margin="0.03" gap="0.02"'], ids=["margin", "gap"])
@pytest.mark.parametrize(("first", "second"), CLOSED_PAIRS, ids=str)
def test_closed_pairs_have_mujocos_contacts(first: str, second: str, attributes: str) -> None:
    text = _scene(first, second, attributes)
    model = mujoco.MjModel.from_xml_string(text)
    data, native = mujoco.MjData(model), _native_model(text)
    most = 0
    for qpos in _poses(model.nq // 7, np.random.default_rng(3)):
        data.qpos[:] = qpos
        mujoco.mj_fwdPosition(model, data)
        theirs, ours = _acting(data), _ours(native, qpos)
        assert len(ours) == len(theirs), qpos.tolist()
        apart = np.abs(ours[:, None] - theirs[None]).max(axis=2)
        assert (apart.min(axis=0, initial=np.inf) < TOLERANCE).all(), qpos.tolist()
        assert (apart.min(axis=1, initial=np.inf) < TOLERANCE).all(), qpos.tolist()
        most = max(most, len(ours))
    assert most >= MOST_POINTS.get(f"{first}-{second}", 1)


@pytest.mark.parametrize(("first", "second"), SMOOTH_PAIRS, ids=str)
def test_smooth_pairs_have_mujocos_distances_and_normals(first: str, second: str) -> None:
    exact = '<mujoco><option ccd_tolerance="1e-9" ccd_iterations="200"/>'
    text = _scene(first, second, "").replace("<mujoco>", exact)
    model = mujoco.MjModel.from_xml_string(text)
    data, native = mujoco.MjData(model), _native_model(text)
    touching = 0
    for qpos in _poses(2, np.random.default_rng(3)):
        data.qpos[:] = qpos
        mujoco.mj_fwdPosition(model, data)
        theirs, ours = _acting(data), _ours(native, qpos)
        assert len(ours) == len(theirs), qpos.tolist()
        touching += len(ours)
        # the search stops at a distance that is good to its tolerance, and a normal to the root of it
        np.testing.assert_allclose(ours[:, 0], theirs[:, 0], atol=1e-6)
        np.testing.assert_allclose(ours[:, 4:7], theirs[:, 4:7], atol=1e-3)
    assert touching > TRIALS // 10


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize(("first", "second"), CLOSED_PAIRS, ids=str)
def test_a_step_in_contact_is_mujocos(first: str, second: str, cone: str) -> None:
    option = f'<mujoco><option cone="{cone}" tolerance="0" iterations="300"/>'
    text = _scene(first, second, 'margin="0.01"').replace("<mujoco>", option)
    model = mujoco.MjModel.from_xml_string(text)
    data, native = mujoco.MjData(model), load_model(text, contact_model="mujoco").native
    random = np.random.default_rng(5)
    touching = 0
    for qpos in _poses(model.nq // 7, np.random.default_rng(3)):
        mujoco.mj_resetData(model, data)
        data.qpos[:] = qpos
        mujoco.mj_fwdPosition(model, data)
        if data.ncon == 0 or data.contact.dist.min() < -0.05:
            continue
        touching += 1
        data.qvel[:] = qvel = 0.3 * random.normal(size=model.nv)
        mujoco.mj_step(model, data)
        _, ours, *_ = _native.advance(native, qpos[None], qvel[None], np.zeros((1, 0)), 1, None, 1, None)
        np.testing.assert_allclose(ours[0], data.qvel, rtol=0, atol=1e-9 * np.abs(data.qvel).max())
        if touching == TRIALS // 10:
            break
    assert touching >= TRIALS // 20


def _displaced(model: mujoco.MjModel, qpos: Vectors, direction: Vectors, step: float) -> Vectors:
    out = qpos.copy()
    mujoco.mj_integratePos(model, out, direction, step)
    return out


@pytest.mark.parametrize(("first", "second"), CLOSED_PAIRS, ids=str)
def test_gradients_in_contact_are_differences_also_several_at_once(first: str, second: str) -> None:
    model = load_model(_scene(first, second, 'margin="0.01"'), contact_model="mujoco", warn=False)
    engine, random, ctrl = Engine(threads=1), np.random.default_rng(6), np.zeros((1, 0))
    checked = 0
    for trial, qpos in enumerate(_poses(model.nq // 7, np.random.default_rng(4))):
        found = _native.contacts(model.native, qpos)["distance"]
        # face-on poses are kinks, and so is where a contact begins to act
        if trial % 4 == 0 or len(found) == 0 or found.min() < -0.05 or found.max() > 0.009:
            continue
        qvel, direction = 0.3 * random.normal(size=(2, model.nv))
        bars = np.zeros((3, 2, model.nv))
        bars[:, 1] = random.normal(size=(3, model.nv))
        rollout = engine.rollout(model, qpos, qvel, ctrl)
        together = engine.backward(model, rollout, qvel_bar=bars, wrt="qpos").qpos
        alone = [engine.backward(model, rollout, qvel_bar=bar, wrt="qpos").qpos for bar in bars]
        np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-12 * np.abs(together).max())
        ends = [_displaced(model.mujoco_model, qpos, direction, step) for step in (-1e-6, 1e-6)]
        moved = [engine.rollout(model, end, qvel, ctrl).qvel[-1] for end in ends]
        difference, displacement = (moved[1] - moved[0]) / 2e-6, (ends[1] - ends[0]) / 2e-6
        scale = (np.abs(bars[:, 1]) * np.abs(difference)).sum(axis=1) + 1
        assert (np.abs(together @ displacement - bars[:, 1] @ difference) < 1e-5 * scale).all(), qpos.tolist()
        checked += 1
        if checked == 10:
            return
    assert checked > 0


@pytest.mark.parametrize("is_first", [True, False], ids=["small box first", "large box first"])
def test_a_small_face_on_a_large_one_has_a_gradient_in_either_order_of_the_file(is_first: bool) -> None:
    """Aligned faces tie, and after any small turn the larger one decides, so this is no kink."""
    small = '<body pos="0.01 0 0.139"><freejoint/><geom type="box" size="0.05 0.04 0.03" mass="1"/></body>'
    large = '<body pos="0 0 0.08"><freejoint/><geom type="box" size="0.2 0.15 0.03" mass="9"/></body>'
    bodies = small + large if is_first else large + small
    text = f'<mujoco><option tolerance="0" iterations="300"/><worldbody>{bodies}</worldbody></mujoco>'
    model = load_model(text, warn=False)
    engine, random = Engine(threads=1), np.random.default_rng(2)
    qpos, qvel, ctrl = model.qpos0, 0.1 * random.normal(size=model.nv), np.zeros((1, 0))
    rollout = engine.rollout(model, qpos, qvel, ctrl)
    for _ in range(5):
        direction = random.normal(size=model.nv)
        along = engine.jvp(model, rollout, qpos_tan=direction).qvel[-1]
        moved = []
        for step in (-1e-8, 1e-8):
            data = mujoco.MjData(model.mujoco_model)
            data.qpos[:], data.qvel[:] = _displaced(model.mujoco_model, qpos, direction, step), qvel
            mujoco.mj_step(model.mujoco_model, data)
            moved.append(data.qvel.copy())
        np.testing.assert_allclose(
            along, (moved[1] - moved[0]) / 2e-8, rtol=0, atol=1e-4 * np.abs(along).max()
        )
