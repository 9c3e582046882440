"""Gradients where shapes are aligned: the derivative is that of a state beside it, backward as forward.

Each scene of the first tests once had the derivative of a tie that rounding decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from revolute.contract.tangents import move
from revolute_engine import Engine, Model, check_gradient, load_model
from testbed import aligned_scenes
from testbed.aligned_scenes import PRESSED, judge
from testbed.long_form import LONG

ENGINE = Engine(threads=1)
SCENES = 120
COSTLY = 29
"""A scene for the long form: the exact solver takes two thirds of the time of all scenes for this one."""
SOFT = 1e-4
"""Rows that contradict each other leave rounding over the softness of 1e-10 in forward derivatives."""
OPTIONS: dict[str, dict[str, Any]] = {
    "mujoco": {},
    "hard": {"contact_model": "hard"},
    "hard, exact": {"contact_model": "hard", "solver": "exact"},
}


def _derivative(model: Model, qpos: np.ndarray) -> np.ndarray:
    """Return d qvel / d qpos of a step from rest."""
    directions, count = np.eye(model.nv), model.nv
    step = ENGINE.rollout(
        model, np.repeat(qpos[None], count, axis=0), np.zeros((count, count)), np.zeros((count, 1, model.nu))
    )
    return ENGINE.jvp(model, step, qpos_tan=directions).qvel[:, 1].T


def test_a_cylinder_has_the_same_derivative_upright_and_a_little_tilted() -> None:
    """MuJoCo's formula for the rim loses all digits of small tilts."""
    text = """<mujoco><worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 .0999"><freejoint/>
    <geom type="cylinder" size=".03 .1" mass="1"/></body></worldbody></mujoco>"""
    model = load_model(text, warn=False)
    upright = _derivative(model, model.qpos0)
    for tilt in (1e-10, 1e-9, 1e-8):
        turn = tilt * np.array([0, 0, 0, np.cos(0.3), np.sin(0.3), 0])
        tilted = _derivative(model, move(model, model.qpos0, turn))
        np.testing.assert_allclose(tilted, upright, atol=1e-4 * np.abs(upright).max())


CAPSULES = """<mujoco><worldbody><body pos="0 0 .0599"><freejoint/>
<geom type="capsule" size=".03 .08" mass="1" quat="1 1 0 0" condim="1"/></body><body>
<geom type="capsule" size=".03 .08" mass="1" quat="1 1 0 0" condim="1"/>
<joint type="slide" axis="0 0 1" stiffness="100"/>
<joint type="hinge" axis="1 0 0" stiffness="1"/></body></worldbody></mujoco>"""
BOXES = """<mujoco><worldbody><body pos="0 0 .0999"><freejoint/><geom type="box" size=".05 .04 .05" mass="1"/>
</body><body><geom type="box" size=".05 .04 .05" mass="1"/><joint type="slide" axis="0 0 1" stiffness="100"/>
<joint type="hinge" axis="0 1 0" stiffness="1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("text", [CAPSULES, BOXES], ids=["capsules", "boxes"])
def test_flush_shapes_have_the_derivative_of_a_small_shift(text: str) -> None:
    """All ends are ties: some end with one shape, the others with the other, and none of them with both."""
    model = load_model(text, warn=False)
    here = _derivative(model, model.qpos0)
    beside = []
    for x, y in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        shift = np.zeros(model.nv)
        shift[:2] = 1e-9 * x, 1e-9 * y
        beside.append(_derivative(model, move(model, model.qpos0, shift)))
    distances = [np.abs(each - here).max() / np.abs(here).max() for each in beside]
    assert min(distances) < 1e-5, distances


def _grip(condim: int) -> str:
    contact = f'condim="{condim}" friction=".3 .01 .002" margin=".005"'
    fingers = "".join(
        f'<body pos="{-0.1199 * side} 0 0"><joint type="slide" axis="{side} 0 0" {PRESSED}/>'
        f'<geom type="box" size=".02 .02 .1" mass="1" {contact}/></body>'
        for side in (1, -1)
    )
    return f"""<mujoco><option timestep="0.002"/><worldbody><body pos="0 0 .05"><freejoint/>
    <geom type="cylinder" size=".1 .02" mass="1" {contact}/></body>
    {fingers}</worldbody></mujoco>"""


@pytest.mark.parametrize("shape", ["cylinder", "capsule"])
def test_a_lying_rod_tips_about_its_ends_with_the_exact_solver(shape: str) -> None:
    """Friction along the rod is the same row at both ends; they held each other at its bounds, as if it slid.

    Turned by a small angle about y, an end is that much higher: the rod falls by it within the step, and its
    middle moves along with the ends that stick.
    """
    radius, timestep = 0.03, 0.002
    text = f"""<mujoco><option timestep="{timestep}"/><worldbody>
    <geom type="plane" size="0 0 1" friction=".3 .01 .002"/>
    <body pos=".01 0 {radius}"><freejoint/><geom type="{shape}" size="{radius} .1" euler="0 90 0" mass="1"
    friction=".3 .01 .002"/></body></worldbody></mujoco>"""
    model = load_model(text, contact_model="hard", solver="exact", warn=False)
    by_state = ENGINE.jacobian(model, model.qpos0, np.zeros(6), np.zeros(0)).A
    np.testing.assert_allclose(by_state[10, 4], -1 / timestep, rtol=1e-9)
    np.testing.assert_allclose(by_state[6, 4], -radius / timestep, rtol=1e-9)
    np.testing.assert_allclose(by_state[6, 6:], 0, atol=1e-9)


@pytest.mark.parametrize("condim", [3, 4])
def test_a_disk_between_two_jaws_has_a_bounded_derivative_with_the_exact_solver(condim: int) -> None:
    """Its rows contradict each other beside the aligned state, and the forward derivative was 1e10."""
    model = load_model(_grip(condim), contact_model="hard", solver="exact", warn=False)
    found = judge(ENGINE, model, np.array(model.qpos0), np.zeros(model.nv))
    assert found.opposed < SOFT
    assert np.abs(_derivative(model, model.qpos0)).max() < 1e3


@pytest.mark.parametrize("contacts", OPTIONS)
def test_random_aligned_scenes_have_sound_derivatives(contacts: str) -> None:
    """Left out: contacts without force, whose pieces rounding decides, and grips, whose ties contradict each
    other."""
    unsound = []
    for seed in range(SCENES):
        if seed == COSTLY and contacts == "hard, exact" and not LONG:
            continue
        scene = aligned_scenes.scene(seed)
        model = aligned_scenes.load(scene, **OPTIONS[contacts])
        if model.nv == 0 or scene.what["gap"] == 0 or scene.what["layout"] == "grip":
            continue
        qvel = scene.velocity * np.random.default_rng(seed).normal(size=model.nv)
        found = judge(ENGINE, model, np.array(model.qpos0), qvel, seed)
        # where rows contradict each other beside the state, the exact solver has compliance, but not at it
        is_sound = found.opposed < SOFT if contacts == "hard, exact" else found.is_sound
        if not is_sound:
            unsound.append((seed, found, scene.what))
    assert not unsound, unsound


def test_check_gradient_calls_a_motion_that_jumps_a_switching_point() -> None:
    """MuJoCo gives a capsule exactly along a box fewer contacts than one that is turned a little."""
    text = """<mujoco><worldbody><body pos="0 .01 .1199"><freejoint/>
    <geom type="box" size=".02 .02 .1" mass="1"/></body><body>
    <geom type="capsule" size=".02 .15" quat="1 1 0 0" mass="1"/>
    <joint type="hinge" pos="-.2 .02 .01" axis="0 1 0" stiffness="200"/></body></worldbody></mujoco>"""
    model = load_model(text, warn=False)
    report = check_gradient(
        ENGINE, model, np.array(model.qpos0), np.zeros(model.nv), np.zeros((3, 0)), wrt=["qpos"], directions=2
    )
    assert report.inputs[0].verdict == "at a switching point", report.to_text()
