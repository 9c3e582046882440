"""Range finders on every shape, projections on cameras, and points in the volumes of sites."""

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

EQUAL, SMOOTH = 1e-12, 1e-6
RAYS = 60
RANDOM = np.random.default_rng(5)


def _numbers(values: np.ndarray) -> str:
    return " ".join(f"{value:.3f}" for value in values)


ALL = 'data="dist dir origin point normal depth"'
DATA = (ALL, "", f'cutoff=".5" {ALL}', 'data="dist normal"')
SHAPES = (
    'type="sphere" size=".3"',
    'type="capsule" size=".15 .3"',
    'type="ellipsoid" size=".2 .3 .15"',
    'type="cylinder" size=".2 .25"',
    'type="box" size=".2 .3 .1"',
    'type="mesh" mesh="tet"',
    'type="sphere" size=".3" rgba="1 1 1 0"',
)
ZONES = ("box", "ellipsoid", "capsule", "cylinder", "sphere")
PLACES, TURNS = RANDOM.uniform(-0.9, 0.9, (RAYS, 3)), RANDOM.normal(size=(RAYS, 4))
SITES = "".join(
    f'<site name="r{i}" pos="{_numbers(place)}" quat="{_numbers(turn)}"/>'
    for i, (place, turn) in enumerate(zip(PLACES, TURNS, strict=True))
)
BODIES = "".join(
    f'<body pos="{_numbers(RANDOM.uniform(-1, 1, 3))}"><freejoint/><geom name="g{i}" {shape} mass="1"/>'
    f'<site name="z{i}" type="{ZONES[i % 5]}" size=".6 .7 .8"/></body>'
    for i, shape in enumerate(SHAPES)
)
SENSORS = "".join(f'<rangefinder site="r{i}" {DATA[i % 4]}/>' for i in range(RAYS))
HEIGHTS = _numbers(RANDOM.uniform(size=42))
MESH = (
    '<mesh name="tet" vertex="0 0 0 .3 0 0 0 .3 0 0 0 .3 .3 .3 .3 .1 .1 .1"/>'
    f'<hfield name="hills" nrow="6" ncol="7" size="1 1.2 .4 .1" elevation="{HEIGHTS}"/>'
)
TEXT = f"""<mujoco><default><geom contype="0" conaffinity="0"/></default><asset>{MESH}</asset><worldbody>
  <camera name="still" pos="1 -1 1" xyaxes="1 1 0 -.3 .3 1" fovy="50" resolution="640 480"/>
  <camera name="follows" mode="track"/>
  <geom type="plane" size="3 3 .1" pos="0 0 -1"/>
  <geom type="hfield" hfield="hills" pos="0 0 -.6" euler="4 5 6"/>
  <body name="mover"><freejoint/><geom size=".02" mass="1"/><site name="in"/>{SITES}
    <camera name="moves" pos=".1 -.1 .1" xyaxes="1 1 0 -.3 .3 1" resolution="640 480" sensorsize=".01 .008"
      focal=".006 .007" principal=".0005 .001"/></body>{BODIES}</worldbody><sensor>{SENSORS}
  <camprojection site="in" camera="still"/><camprojection site="z1" camera="moves"/>
  <insidesite site="z0" objtype="site" objname="in"/><insidesite site="z1" objtype="body" objname="mover"/>
  <insidesite site="z2" objtype="geom" objname="g1"/><framepos objtype="camera" objname="moves"/>
  <framelinvel objtype="camera" objname="moves" reftype="camera" refname="still"/></sensor></mujoco>"""


def test_readings_are_mujocos() -> None:
    compare_with_mujoco(TEXT, EQUAL, seeds=range(6))
    theirs = reference(TEXT)
    first = theirs.sensor_adr[theirs.sensor_type == int(mujoco.mjtSensor.mjSENS_RANGEFINDER)]
    misses = [(data_at(theirs, seed).sensordata[first] < 0).mean() for seed in range(3)]
    assert all(0.02 < share < 0.8 for share in misses)


def test_cotangents_are_the_derivative() -> None:
    model, theirs = load_model(TEXT, contact_model="mujoco"), reference(TEXT)
    for seed in range(3):
        compare_with_differences(model, state_of(data_at(theirs, seed)), SMOOTH, step=1e-6)


def test_a_batch_gives_the_bits_of_each_state_alone() -> None:
    model, theirs = load_model(TEXT), reference(TEXT)
    rows = [state_of(data_at(theirs, seed)) for seed in range(3)]
    together = [np.array([row[name] for row in rows]) for name in ("qpos", "qvel", "ctrl")]
    states = ENGINE.states_to_measure(model, *together)
    bar = np.random.default_rng(1).normal(size=(3, theirs.nsensordata))
    values = ENGINE.measure(model, ["sensor"], states)["sensor"]
    pulled = ENGINE.measure_backward(model, {"sensor": bar}, states, wrt=["qpos"])["qpos"]
    for row, (value, gradient) in enumerate(zip(values, pulled, strict=True)):
        own = ENGINE.states_to_measure(model, *rows[row].values())
        np.testing.assert_array_equal(ENGINE.measure(model, ["sensor"], own)["sensor"], value)
        alone = ENGINE.measure_backward(model, {"sensor": bar[row]}, own, wrt=["qpos"])["qpos"]
        np.testing.assert_array_equal(alone, gradient)


@pytest.mark.parametrize(
    ("sensor", "text"),
    [
        ('<rangefinder name="eye" camera="still"/>', "'eye' of type rangefinder of a camera"),
        ('<framepos name="eye" objtype="camera" objname="follows"/>', "of a camera that follows a body"),
    ],
)
def test_cameras_that_are_not_measured_are_refused_when_asked_for(sensor: str, text: str) -> None:
    model = load_model(TEXT.replace(SENSORS, sensor).replace("640 480", "2 2"))
    with pytest.raises(ArgumentError, match=text):
        ENGINE.measure(model, ["sensor:eye"], ENGINE.states_to_measure(model, model.qpos0))
