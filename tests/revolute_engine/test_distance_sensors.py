"""Distances between shapes and bodies, with their normals and nearest points."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from revolute.contract.errors import ArgumentError
from revolute_engine import load_model

from .sensor_checks import (
    ENGINE,
    compare_with_differences,
    compare_with_mujoco,
    data_at,
    reference,
    state_of,
)

FORMULA, SEARCHED, SMOOTH = 1e-12, 2e-6, 1e-6
"""MuJoCo's formulae; its search, which stops at 1e-6."""

ROUND = ('type="sphere" size=".3"', 'type="capsule" size=".15 .3"')
SHAPES = (
    *ROUND,
    'type="ellipsoid" size=".2 .3 .15"',
    'type="cylinder" size=".2 .25"',
    'type="box" size=".2 .3 .1"',
    'type="mesh" mesh="tet"',
)
KINDS = ("distance", "normal", "fromto")


def scene(shapes: tuple[str, ...], sensors: str) -> str:
    bodies = "".join(
        f'<body name="b{i}" pos="{1.2 * i} 0 0"><freejoint/><geom name="g{i}" {shape}/>'
        f'<geom name="h{i}" {shape} pos="0 .5 .2"/></body>'
        for i, shape in enumerate(shapes)
    )
    return f"""<mujoco><asset><mesh name="tet" vertex="0 0 0 .3 0 0 0 .3 0 0 0 .3 .3 .3 .3 .1 .1 .1"/></asset>
      <option><flag contact="disable"/></option><worldbody>
      <body mocap="true" pos="0 0 -.7"><geom name="floor" type="plane" size="3 3 .1"/></body>
      <geom name="wall" type="plane" size="3 3 .1" zaxis="1 0 0" pos="-2 0 0"/>{bodies}</worldbody>
      <sensor>{sensors}</sensor></mujoco>"""


def pairs(count: int, kinds: tuple[str, ...] = KINDS) -> str:
    return "".join(
        f'<{kind} geom1="g{i}" geom2="g{j}" cutoff="{10 if (i + j) % 3 else 1}"/>'
        for i in range(count)
        for j in range(count)
        if i != j
        for kind in kinds
    )


def with_floor(count: int, kinds: tuple[str, ...] = KINDS) -> str:
    return "".join(
        f'<{kind} geom1="g{i}" geom2="floor" cutoff="10"/><{kind} geom1="wall" geom2="h{i}" cutoff="10"/>'
        for i in range(count)
        for kind in kinds
    )


OF_BODIES = '<distance body1="b0" body2="b1" cutoff="10"/><fromto geom1="g1" body2="b0" cutoff="10"/>'


def test_closed_formulae_give_mujocos_readings() -> None:
    compare_with_mujoco(scene(ROUND, pairs(2) + with_floor(2) + OF_BODIES), FORMULA, seeds=range(4))


def test_searched_distances_are_mujocos() -> None:
    sensors = pairs(6, ("distance",)) + with_floor(6, ("distance",))
    compare_with_mujoco(scene(SHAPES, sensors), SEARCHED, seeds=range(4))


def test_points_are_on_the_shapes_and_at_the_distance() -> None:
    text = scene(
        SHAPES, "".join(f'<{kind} geom1="g2" geom2="g{i}" cutoff="10"/>' for i in (3, 4, 5) for kind in KINDS)
    )
    model, theirs = load_model(text), reference(text)
    for seed in range(4):
        found = ENGINE.measure(
            model, ["sensor"], ENGINE.states_to_measure(model, *state_of(data_at(theirs, seed)).values())
        )["sensor"].reshape(3, 10)
        apart = found[:, 7:] - found[:, 4:7]
        np.testing.assert_allclose(apart, found[:, :1] * found[:, 1:4], atol=1e-12)


@pytest.mark.parametrize("shapes", [ROUND, SHAPES], ids=["formulae", "search"])
def test_cotangents_are_the_derivative(shapes: tuple[str, ...]) -> None:
    count = len(shapes)
    text = scene(shapes, pairs(count) + with_floor(count) + OF_BODIES)
    model, theirs = load_model(text), reference(text)
    for seed in range(2):
        compare_with_differences(model, state_of(data_at(theirs, seed)), SMOOTH, step=1e-6)


def test_a_distance_is_negative_where_shapes_overlap() -> None:
    def overlap(model: mujoco.MjModel, data: mujoco.MjData, random: np.random.Generator) -> None:
        data.qpos[7:10] = (0.1, 0.2, 0.3)

    sensors = (
        '<distance geom1="g0" geom2="g1"/><normal geom1="g1" geom2="g0"/><fromto geom1="g1" geom2="g0"/>'
    )
    compare_with_mujoco(scene(ROUND, sensors), FORMULA, seeds=[0], place=overlap)


def test_the_hard_model_measures_the_same() -> None:
    text = scene(SHAPES, pairs(6) + with_floor(6) + OF_BODIES)
    soft, hard = load_model(text), load_model(text, contact_model="hard")
    start = state_of(data_at(reference(text), 1))
    found = [
        ENGINE.measure(model, ["sensor"], ENGINE.states_to_measure(model, *start.values()))["sensor"]
        for model in (soft, hard)
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        ('geom1="floor" geom2="wall"', "'d' of type geomdist between two planes; leave it out"),
        ('body1="world" body2="b0"', "'d' of type geomdist of a height field; measure with a range finder"),
    ],
)
def test_pairs_without_a_distance_are_refused_when_asked_for(pair: str, text: str) -> None:
    field = '<hfield name="hills" nrow="2" ncol="2" size="1 1 1 1" elevation="0 1 1 0"/>'
    file = scene(ROUND, f'<distance name="d" {pair} cutoff="1"/>').replace("<asset>", f"<asset>{field}")
    model = load_model(file.replace("<worldbody>", '<worldbody><geom type="hfield" hfield="hills"/>'))
    with pytest.raises(ArgumentError, match=text):
        ENGINE.measure(model, ["sensor:d"], ENGINE.states_to_measure(model, model.qpos0))
