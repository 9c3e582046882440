"""A face that slides on more contacts than it needs: "exact" chooses one load and differentiates it."""

from __future__ import annotations

import numpy as np
import pytest

from revolute_engine import Engine, Model, load_model

from .mujoco_scenes import Floats

STEPS = 25
WIDTHS = (1e-6, 1e-7)
"""Half widths of differences, in m/s; times the time step of positions, in m."""
TOLERANCE = 1e-3
"""Of a derivative: R is 1e-6 of the diagonal, and differences have rounding of 1e-16/1e-7."""
SMOOTH = 0.9
"""Share of states whose differences agree from both sides at least. Of the sweeps' choice it was a half."""
PRISM = " ".join(
    f"{0.15 * np.cos(angle)} {0.12 * np.sin(angle)} {z}"
    for z in (-0.05, 0.05)
    for angle in (0.1, 1.2, 2.5, 3.4, 5.0)
)
SHAPES = {
    "box": 'type="box" size="0.15 0.1 0.05"',
    "cylinder": 'type="cylinder" size="0.12 0.05"',
    "mesh": 'type="mesh" mesh="prism"',
}


def scene(shape: str, under: int, condim: int) -> str:
    """Return a shape on the ground, or on so many boxes."""
    supports = "".join(
        f'<body pos="{place} 0 0.06" euler="0 0 {7 * place}"><freejoint/>'
        f'<geom type="box" size="0.1 0.09 0.06" mass="2" friction="0.8 0.01 0.001" condim="{condim}"/></body>'
        for place in ((), (0.0,), (-0.12, 0.12))[under]
    )
    height = 0.05 + (0.12 if under else 0.0)
    return f"""<mujoco><option timestep="0.002"/><asset><mesh name="prism" vertex="{PRISM}"/></asset>
    <worldbody><geom type="plane" size="5 5 1" friction="0.3 0.01 0.001" condim="{condim}"/>
    <body pos="0.01 0.02 {height}" euler="0 0 25"><freejoint/>
    <geom {SHAPES[shape]} mass="1.3" friction="0.3 0.01 0.001" condim="{condim}"/></body>{supports}
    </worldbody></mujoco>"""


def moving(model: Model, seed: int) -> tuple[Floats, Floats]:
    """Return the states of a trajectory whose first body slides and spins."""
    random = np.random.default_rng(seed)
    qvel = model.qvel0.copy()
    qvel[:2], qvel[5] = random.normal(size=2), 4 * random.normal()
    rollout = Engine(threads=1).rollout(model, model.qpos0, qvel, np.zeros((STEPS, 0)))
    return rollout.qpos[:-1], rollout.qvel[:-1]


def derivatives(model: Model, qpos: Floats, qvel: Floats, wrt: str) -> tuple[Floats, Floats, Floats]:
    """Return each state's derivative of a step along a direction, differences, and how far these differ.

    Positions move by translations of the bodies.
    """
    engine, random = Engine(threads=1), np.random.default_rng(3)
    bodies, ctrl = model.nv // 6, np.zeros((len(qpos), 1, 0))
    tangent, bar = random.normal(size=qvel.shape), random.normal(size=(len(qvel), 1, model.nv))
    direction = tangent
    if wrt == "qpos":
        direction = np.zeros((len(qpos), bodies, 7))
        direction[..., :3] = model.timestep * tangent.reshape(len(qpos), bodies, 6)[..., :3]
        direction = direction.reshape(qpos.shape)

    def step(by: float) -> Floats:
        moved = (qpos + by * direction, qvel) if wrt == "qpos" else (qpos, qvel + by * direction)
        return engine.rollout(model, *moved, ctrl).qvel[:, 1]

    rollout = engine.rollout(model, qpos, qvel, ctrl)
    assert (rollout.unsettled_step == -1).all()
    qpos_bar = np.zeros((len(qpos), 1, model.nq))
    gradient = engine.backward(model, rollout, qpos_bar, bar, times=[-1], wrt=[wrt])[wrt]
    here = step(0.0)
    sides = [
        (bar[:, 0] * change).sum(axis=1) / width
        for width in WIDTHS
        for change in (step(width) - here, here - step(-width))
    ]
    return (gradient * direction).sum(axis=1), 0.5 * (sides[0] + sides[1]), np.ptp(sides, axis=0)


@pytest.mark.parametrize("wrt", ["qvel", "qpos"])
@pytest.mark.parametrize(
    ("shape", "under", "condim"),
    [
        *(("box", under, 3) for under in range(3)),
        *(("cylinder", under, 3) for under in range(2)),
        *(("mesh", under, 3) for under in range(2)),
        ("box", 0, 4),
    ],
)
def test_a_sliding_face_has_the_gradient_of_differences(
    shape: str, under: int, condim: int, wrt: str
) -> None:
    model = load_model(scene(shape, under, condim), contact_model="hard", solver="exact", warn=False)
    for seed in range(2):
        gradient, differences, apart = derivatives(model, *moving(model, seed), wrt)
        size = 1 + np.abs(differences)
        smooth = apart < 10 * TOLERANCE * size
        assert smooth.mean() >= SMOOTH
        wrong = np.abs(differences - gradient)[smooth] > TOLERANCE * size[smooth] + apart[smooth]
        assert not wrong.any()


def test_forward_and_backward_derivatives_of_a_sliding_face_agree() -> None:
    model = load_model(scene("box", 1, 4), contact_model="hard", solver="exact", warn=False)
    qpos, qvel = (states[STEPS // 2] for states in moving(model, 0))
    engine, random, ctrl = Engine(threads=1), np.random.default_rng(5), np.zeros((1, 0))
    rollout = engine.rollout(model, qpos, qvel, ctrl)
    friction, bar = random.uniform(size=(model.ngeom, 3)), random.normal(size=(1, model.nv))
    forward = engine.jvp(model, rollout, params_tan={"geom_friction": friction}).qvel[-1] @ bar[0]
    qpos_bar = np.zeros((1, model.nq))
    backward = engine.backward(model, rollout, qpos_bar, bar, times=[-1], wrt=["geom_friction"])
    assert abs(forward) > TOLERANCE
    assert (backward["geom_friction"] * friction).sum() == pytest.approx(forward, rel=1e-8)
