"""Contacts of hulls with hundreds of vertices and with faces of many corners, against MuJoCo's distances.

A frictionless contact takes from an approaching body just the velocity that would carry it through the
surface, so the velocity after one step tells the gap and the normal.
"""

import itertools

import mujoco
import numpy as np
import numpy.typing as npt
import pytest

from revolute_engine import Engine, load_model, native

Array = npt.NDArray[np.float64]


def _pebble(count: int) -> Array:
    """Return points spread evenly over an ellipsoid (a spiral of equal areas)."""
    index = np.arange(count) + 0.5
    height, angle = 1 - 2 * index / count, index * np.pi * (3 - np.sqrt(5))
    ring = np.sqrt(1 - height**2)
    return np.column_stack([ring * np.cos(angle), ring * np.sin(angle), height]) * [0.12, 0.2, 0.15]


def _drum(corners: int) -> Array:
    angles = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    return np.array([[0.15 * np.cos(t), 0.15 * np.sin(t), z] for z in (-0.1, 0.1) for t in angles])


MESHES = {
    "pebble": _pebble(1500),
    "stone": _pebble(60),
    "drum": _drum(128),
    "cube": np.array(list(itertools.product((-0.1, 0.1), (-0.15, 0.15), (-0.2, 0.2)))),
}
ASSETS = "".join(
    f'<mesh name="{name}" inertia="convex" vertex="{" ".join(f"{value:.9g}" for value in mesh.ravel())}"/>'
    for name, mesh in MESHES.items()
)
SHAPES = {name: f'type="mesh" mesh="{name}"' for name in MESHES} | {
    "box": 'type="box" size=".1 .15 .2"',
    "capsule": 'type="capsule" size=".08 .15"',
    "plane": 'type="plane" size="1 1 1"',
}
DISTANCE = 2e-5
"""A face is preferred to a better point by 1e-6 of the shapes' size, MuJoCo stops at 1e-6, and the
polytope that is grown in overlapping hulls ends at 68 points."""


def _turn(random: np.random.Generator) -> Array:
    turn = random.normal(size=4)
    return turn / np.linalg.norm(turn)


def _gaps(first: str, second: str, poses: list[tuple[Array, Array, Array]]) -> tuple[Array, Array]:
    """Return our gaps and MuJoCo's of a fixed shape, turned, and one that comes from a place, turned."""
    ours, theirs = [], []
    for turn_a, place, turn_b in poses:
        slides = "".join(f'<joint type="slide" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", "0 0 1"))
        text = (
            f"<mujoco><asset>{ASSETS}</asset><worldbody>"
            f'<geom name="a" {SHAPES[first]} quat="{" ".join(map(str, turn_a))}" condim="1"/>'
            f'<body pos="{" ".join(map(str, place))}">{slides}'
            '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
            f'<geom name="b" {SHAPES[second]} quat="{" ".join(map(str, turn_b))}" condim="1"/></body>'
            "</worldbody></mujoco>"
        )
        model = load_model(text, margin=1.0, contact_model="hard")
        ours.append(native.contacts(model.native, model.qpos0)["distance"].min(initial=np.inf))
        reference = model.mujoco_model
        reference.opt.ccd_tolerance, reference.opt.ccd_iterations = 1e-12, 200
        data = mujoco.MjData(reference)
        mujoco.mj_forward(reference, data)
        ends = np.zeros(6)
        geoms = reference.geom("a").id, reference.geom("b").id
        theirs.append(mujoco.mj_geomDistance(reference, data, *geoms, 2, ends))
    return np.array(ours), np.array(theirs)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *(("pebble", other) for other in ("pebble", "stone", "drum", "cube", "box", "capsule")),
        *(("drum", other) for other in ("drum", "stone", "box")),
        *(("plane", other) for other in ("pebble", "drum")),
    ],
)
def test_distances_are_mujocos(first: str, second: str) -> None:
    random = np.random.default_rng(sum(map(ord, first + second)))
    poses = []
    for _ in range(6):
        direction = np.array([0, 0, 1.0]) if first == "plane" else random.normal(size=3)
        reach = random.uniform(0.05, 0.3) if first == "plane" else random.uniform(0.2, 0.4)
        turn = np.array([1.0, 0, 0, 0]) if first == "plane" else _turn(random)
        poses.append((turn, reach * direction / np.linalg.norm(direction), _turn(random)))
    ours, theirs = _gaps(first, second, poses)
    assert np.isfinite(ours).sum() >= 3
    # a corner that is not among the 24 of its face may be the nearest: 1.1 % of the drums' radius
    tolerance = 2e-3 if first == second == "drum" else DISTANCE
    assert ours == pytest.approx(theirs, abs=tolerance)


def test_crossing_rims_of_128_edges_are_found() -> None:
    """All edges of both rims lie within the depth in which edges are looked for; few are the ones."""
    random = np.random.default_rng(1)
    poses = []
    for _ in range(8):
        azimuth, tilt, side = (
            random.uniform(0, 2 * np.pi),
            random.uniform(5e-3, 2e-2),
            random.uniform(0.2, 0.28),
        )
        # tilted about the axis across the line between both middles: rims cross beside it
        axis = np.array([-np.sin(azimuth), np.cos(azimuth), 0])
        turn = np.concatenate([[np.cos(tilt / 2)], np.sin(tilt / 2) * axis])
        place = np.array([side * np.cos(azimuth), side * np.sin(azimuth), 0.2 + random.uniform(-2e-3, 2e-3)])
        poses.append((np.array([1.0, 0, 0, 0]), place, turn))
    ours, theirs = _gaps("drum", "drum", poses)
    assert ours == pytest.approx(theirs, abs=DISTANCE)


def test_a_sharp_corner_among_rounded_ones_is_kept() -> None:
    """A plate whose one end is rounded by 60 corners carries a cube on each of its two sharp ones."""
    end = np.linspace(-np.pi / 2, np.pi / 2, 60)
    outline = [(-0.5, 0.2), (-0.5, -0.2), *((0.3 + 0.2 * np.cos(t), 0.2 * np.sin(t)) for t in end)]
    plate = " ".join(f"{x} {y} {z}" for z in (-0.05, 0.05) for x, y in outline)
    # the middle of each cube lies 2 cm inside of a corner of the plate
    text = f"""<mujoco><asset><mesh name="plate" vertex="{plate}"/></asset><worldbody>
      <body pos="0 0 -.05"><geom name="top" type="mesh" mesh="plate"/></body>
      <body pos="-.48 .18 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
      <body pos="-.48 -.18 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>"""
    model = load_model(text, contact_model="hard")
    assert any("geom 'top' (62)" in note for note in model.notes)
    rollout = Engine(threads=1).rollout(model, model.qpos0, np.zeros(12), np.zeros((500, 0)))
    assert np.abs(rollout.qpos[-1] - rollout.qpos[0]).max() < 1e-3
