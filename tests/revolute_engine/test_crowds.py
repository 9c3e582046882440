"""Scenes of many bodies: islands solved alone, pairs that are not listed, rows that are not coupled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from revolute_engine import Engine, Model, _pairs, load_model

from .mujoco_scenes import Floats, reference
from .mujoco_steps import mujoco_step

STEPS = 3
SEVERAL = ("qpos", "qvel", "body_mass", "geom_friction", "geom_solref", "geom_solimp")


def heap(cone: str = "pyramidal") -> str:
    """Return 18 spheres, capsules and boxes that fall on each other in a corner, too many for a pack."""
    random, bodies = np.random.default_rng(3), ""
    for i, place in enumerate(np.ndindex(3, 3, 2)):
        x, y, z = 0.19 * np.array(place) + random.uniform(-0.01, 0.01, 3) + [0.1, 0.1, 0.09]
        kind = ('size=".1"', 'type="capsule" size=".07 .04"', 'type="box" size=".08 .07 .07"')[i % 3]
        bodies += f'<body pos="{x} {y} {z}"><freejoint/><geom {kind} mass="{0.5 + 0.1 * i}"/></body>'
    return f"""<mujoco><option timestep="0.002" cone="{cone}"/><worldbody><geom type="plane" size="5 5 1"/>
    <geom type="plane" size="5 5 1" euler="0 90 0"/>{bodies}</worldbody></mujoco>"""


FILTERED = """<mujoco><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 1"/>
<geom name="shelf" type="box" size=".5 .5 .02" pos="0 0 .3" condim="1"/>
<body pos="0 0 .409"><freejoint/><geom size=".09" priority="1" friction=".4" solref=".03 1"/></body>
<body pos=".17 0 .409"><freejoint/><geom size=".09" solmix="3" condim="4" margin=".01"
  gap=".004"/></body>
<body name="one" pos=".3 0 .1"><freejoint/><geom name="a" size=".1"/></body>
<body name="two" pos=".3 0 .19"><freejoint/><geom name="b" size=".1"/></body>
<body pos=".6 0 .1"><freejoint/><geom size=".1" contype="2" conaffinity="4"/></body>
<body pos=".7 0 .1"><freejoint/><geom size=".1" contype="4" conaffinity="1"/></body>
<body pos="1 0 .1"><joint type="slide" axis="0 0 1"/><geom size=".1"/>
  <body pos=".1 0 0"><joint axis="0 1 0"/><geom size=".1"/>
    <body pos=".1 0 0"><joint axis="0 1 0" damping=".1"/>
      <geom type="box" size=".1 .1 .1"/></body></body></body>
<body pos="-.5 0 .1"><freejoint/><geom name="p" size=".1" contype="0" conaffinity="0"/></body>
<body pos="-.31 0 .1"><freejoint/><geom name="q" size=".1"/></body>
</worldbody><contact><exclude body1="one" body2="two"/>
<pair geom1="p" geom2="q" condim="3" friction="0.8 0.6 0.02 0.003 0.004"
  solref="0.04 1"/></contact></mujoco>"""


def loaded(text: str, **options: Any) -> Model:
    return load_model(text, contact_model="mujoco", warn=False, **options)


@pytest.fixture
def unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the loader list no pairs but those with planes and those that the file names."""
    monkeypatch.setattr(_pairs, "MAX_LISTED", 0)


def in_motion(model: Model, batch: int) -> tuple[Floats, Floats]:
    """Return states in which bodies press on each other and slide, each with contacts of its own."""
    random = np.random.default_rng(4)
    qvel = 0.3 * random.normal(size=(batch, model.nv))
    found = Engine().rollout(model, model.qpos0, qvel, np.zeros((batch, 25, model.nu)))
    return found.final_qpos, found.final_qvel


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_a_step_of_a_heap_is_mujocos(cone: str) -> None:
    theirs, model = reference(heap(cone)), loaded(heap(cone))
    assert model.mujoco_model.ntree > 16
    qpos, qvel = in_motion(model, 2)
    for q, v in zip(qpos, qvel, strict=True):
        found = Engine().rollout(model, q, v, np.zeros((1, 0)))
        _, wanted = mujoco_step(theirs, q, v, np.zeros(0))
        change = np.abs(wanted - v).max()
        assert np.abs(found.qvel[1] - wanted).max() <= 1e-9 * change
        assert found.unsettled_step == -1


def test_a_heap_in_a_batch_is_a_heap_alone() -> None:
    model, engine = loaded(heap()), Engine(threads=2)
    qpos, qvel = in_motion(model, 5)
    ctrl = np.zeros((5, STEPS, 0))
    together = engine.rollout(model, qpos, qvel, ctrl)
    random = np.random.default_rng(5)
    qpos_bar = random.normal(size=(3, *together.qpos.shape))
    gradient = engine.backward(model, together, qpos_bar, wrt=SEVERAL)
    for i in (0, 3):
        alone = engine.rollout(model, qpos[i], qvel[i], ctrl[i])
        assert np.array_equal(alone.qpos, together.qpos[i]) and np.array_equal(alone.qvel, together.qvel[i])
        # one cotangent by itself, and several side by side
        one = engine.backward(model, alone, qpos_bar[1, i], wrt=SEVERAL)
        several = engine.backward(model, alone, qpos_bar[:, i], wrt=SEVERAL)
        for name in SEVERAL:
            assert np.array_equal(one[name], several[name][1]), name
        for name in ("qpos", "qvel"):
            assert np.array_equal(one[name], gradient[name][1, i]), name


def test_the_gradient_of_a_heap_is_that_of_differences() -> None:
    model, engine = loaded(heap()), Engine()
    (qpos,), (qvel,) = in_motion(model, 1)
    ctrl, random, width = np.zeros((1, 0)), np.random.default_rng(6), 1e-6
    rollout = engine.rollout(model, qpos, qvel, ctrl)
    bar, tangent = random.normal(size=model.nv), random.normal(size=model.nv)
    gradient = engine.backward(model, rollout, np.zeros((1, model.nq)), bar[None], times=[-1], wrt=["qvel"])
    ahead, behind = (
        engine.rollout(model, qpos, qvel + sign * width * tangent, ctrl).qvel[1] for sign in (1, -1)
    )
    wanted = bar @ (ahead - behind) / (2 * width)
    assert abs(gradient["qvel"] @ tangent - wanted) < 1e-6 * np.abs(bar).max() * np.abs(tangent).max()
    pushed = engine.jvp(model, rollout, qvel_tan=tangent)
    assert np.isclose(pushed.qvel[1] @ bar, gradient["qvel"] @ tangent, rtol=1e-9)


@pytest.mark.parametrize("text", [heap(), FILTERED], ids=["heap", "filtered"])
def test_unlisted_pairs_are_those_that_would_be_listed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, models = Engine(), [loaded(text)]
    monkeypatch.setattr(_pairs, "MAX_LISTED", 0)
    models.append(loaded(text))
    assert [int(model.arrays["unlisted_pairs"]) for model in models] == [0, 1]
    assert len(models[1].arrays["pair_geom1"]) < len(models[0].arrays["pair_geom1"])
    qpos, qvel = in_motion(models[0], 3)
    bar = np.random.default_rng(7).normal(size=(3, STEPS + 1, models[0].nq))
    results = []
    for model in models:
        rollout = engine.rollout(model, qpos, qvel, np.zeros((3, STEPS, 0)))
        results.append((rollout.qpos, engine.backward(model, rollout, bar, wrt=SEVERAL)))
    (listed, listed_bar), (found, found_bar) = results
    assert np.allclose(found, listed, rtol=0, atol=1e-12)
    for name in SEVERAL:
        largest = np.abs(listed_bar[name]).max()
        assert largest > 0 and np.abs(found_bar[name] - listed_bar[name]).max() < 1e-9 * largest, name


def test_a_step_with_unlisted_pairs_is_mujocos(unlisted: None) -> None:
    theirs, model = reference(FILTERED), loaded(FILTERED)
    (qpos,), (qvel,) = in_motion(model, 1)
    found = Engine().rollout(model, qpos, qvel, np.zeros((1, 0)))
    _, wanted = mujoco_step(theirs, qpos, qvel, np.zeros(0))
    assert np.abs(found.qvel[1] - wanted).max() <= 1e-9 * np.abs(wanted - qvel).max()


def test_shapes_whose_pairs_could_not_be_listed_load_and_fall() -> None:
    side = 39  # 1521 spheres, more than a million pairs
    bodies = "".join(
        f'<body pos="{0.3 * x} {0.3 * y} .0995"><freejoint/><geom size=".1"/></body>'
        for x, y in np.ndindex(side, side)
    )
    model = loaded(f'<mujoco><worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody></mujoco>')
    rollout = Engine(threads=1).rollout(model, model.qpos0, np.zeros(model.nv), np.zeros((2, 0)))
    heights = rollout.final_qpos.reshape(-1, 7)[:, 2]
    assert len(model.arrays["pair_geom1"]) == side**2
    assert np.abs(heights - heights[0]).max() < 1e-12 and abs(heights[0] - 0.0995) < 1e-3


HARD = ("qpos", "qvel", "body_mass", "geom_friction")


def cube(side: int, spacing: float = 0.2, kinds: int = 1) -> str:
    """Return side³ loose spheres, or spheres, capsules and boxes in turn, a little out of line."""
    random, bodies = np.random.default_rng(8), ""
    for i, place in enumerate(np.ndindex(side, side, side)):
        x, y, z = spacing * np.array(place) + [*random.uniform(-0.01, 0.01, 2), 0.1]
        kind = ('size=".1"', 'type="capsule" size=".07 .04"', 'type="box" size=".08 .07 .07"')[i % kinds]
        friction = 0.3 + 0.1 * (i % 5)
        bodies += (
            f'<body pos="{x} {y} {z}"><freejoint/><geom {kind} friction="{friction} .01 .001"'
            f' condim="{(3, 4)[i % 2]}"/></body>'
        )
    return f"""<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="9 9 1"/>
    {bodies}</worldbody></mujoco>"""


def both(text: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[Model]:
    """Return the model with contact_model="hard" with its pairs listed, and without."""
    models = []
    for most in (10**9, 0):
        monkeypatch.setattr(_pairs, "MAX_LISTED", most)
        models.append(load_model(text, contact_model="hard", warn=False, **options))
    listed, unlisted = (len(model.arrays["pair_geom1"]) for model in models)
    assert [int(model.arrays["unlisted_pairs"]) for model in models] == [0, 1] and unlisted < listed
    return models


@pytest.mark.parametrize(
    ("text", "steps", "options"),
    [
        (cube(5), 8, {}),
        (cube(11), 2, {}),
        (cube(4, kinds=3), 12, {}),
        (cube(3, kinds=3), 12, {"solver": "exact"}),
        (cube(4, spacing=0.22), 60, {"restitution": 0.5}),
        (FILTERED.replace("0.8 0.6 0.02 0.003 0.004", "0.8 0.8 0.02 0.003 0.003"), 40, {}),
    ],
    ids=["125", "1331", "shapes", "exact", "bounces", "filtered"],
)
def test_unlisted_pairs_of_the_hard_model_give_the_same_bits(
    text: str, steps: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = []
    for model in both(text, monkeypatch, **options):
        engine, qvel = Engine(threads=1), 0.5 * np.random.default_rng(9).normal(size=model.nv)
        rollout = engine.rollout(model, model.qpos0, qvel, np.zeros((steps, 0)))
        bar = np.random.default_rng(10).normal(size=rollout.qpos.shape)
        # the largest crowd only forward: its tape is long
        gradient = engine.backward(model, rollout, bar, wrt=HARD) if model.nv < 2000 else {}
        results.append((rollout, gradient))
    (listed, listed_bar), (found, found_bar) = results
    assert np.array_equal(found.qpos, listed.qpos) and np.array_equal(found.qvel, listed.qvel)
    assert found.residual == listed.residual
    for name in HARD if found_bar else ():
        assert np.abs(listed_bar[name]).max() > 0 and np.array_equal(found_bar[name], listed_bar[name]), name


def test_crowds_of_the_hard_model_in_a_batch_are_those_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(threads=1)
    for model in both(cube(3, kinds=3), monkeypatch):
        qvel = 0.5 * np.random.default_rng(11).normal(size=(3, model.nv))
        qvel[1, :3] = 1e8  # leaves, and is near everything on its way
        qvel[2, 6] = 1e200
        ctrl = np.zeros((3, 3, 0))
        together = engine.rollout(model, model.qpos0, qvel, ctrl)
        bar = np.random.default_rng(12).normal(size=together.qpos.shape)
        gradient = engine.backward(model, together, bar, wrt=HARD)
        assert np.isnan(together.final_qpos[2]).any()
        for i in (0, 1):
            alone = engine.rollout(model, model.qpos0, qvel[i], ctrl[i])
            assert np.array_equal(alone.qpos, together.qpos[i])
            one = engine.backward(model, alone, bar[i], wrt=("qpos", "qvel"))
            for name in ("qpos", "qvel"):
                assert np.array_equal(one[name], gradient[name][i]), name


def test_the_gradient_of_a_crowd_of_the_hard_model_is_that_of_differences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, model = both(cube(3, spacing=0.199), monkeypatch)
    engine, random, width = Engine(threads=1), np.random.default_rng(13), 1e-7
    qvel = 0.3 * random.normal(size=model.nv)
    rollout = engine.rollout(model, model.qpos0, qvel, np.zeros((3, 0)))
    bar, tangent = random.normal(size=model.nv), random.normal(size=model.nv)
    gradient = engine.backward(
        model, rollout, np.zeros((1, model.nq)), bar[None], times=[-1], wrt=["qvel", "geom_friction"]
    )
    ahead, behind = (
        engine.rollout(model, model.qpos0, qvel + sign * width * tangent, np.zeros((3, 0))).qvel[-1]
        for sign in (1, -1)
    )
    wanted = bar @ (ahead - behind) / (2 * width)
    assert abs(gradient["qvel"] @ tangent - wanted) < 1e-5 * abs(wanted)
    friction = model.mujoco_model.geom_friction
    ahead, behind = (
        engine.rollout(
            model,
            model.qpos0,
            qvel,
            np.zeros((3, 0)),
            params={"geom_friction": friction * (1 + sign * width)},
        ).qvel[-1]
        for sign in (1, -1)
    )
    wanted = bar @ (ahead - behind) / (2 * width)
    assert abs((gradient["geom_friction"] * friction).sum() - wanted) < 1e-5 * abs(wanted)


def test_two_thousand_spheres_load_and_fall_with_the_hard_model() -> None:
    side = 45
    bodies = "".join(
        f'<body pos="{0.3 * x} {0.3 * y} .1"><freejoint/><geom size=".1"/></body>'
        for x, y in np.ndindex(side, side)
    )
    text = f'<mujoco><worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody></mujoco>'
    model = load_model(text, contact_model="hard", warn=False)
    rollout = Engine(threads=1).rollout(model, model.qpos0, np.zeros(model.nv), np.zeros((2, 0)))
    assert len(model.arrays["pair_geom1"]) == side**2 and model.arrays["unlisted_pairs"]
    assert np.abs(rollout.final_qpos.reshape(-1, 7)[:, 2] - 0.1).max() < 1e-12
