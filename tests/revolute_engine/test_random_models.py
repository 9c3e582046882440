"""Random models of mixed parts: a smooth step is MuJoCo's, and gradients by every constraint pass the check.

A few seeds by default; REVOLUTE_RANDOM_MODELS=200 tries more.
"""

from __future__ import annotations

import os

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, check_gradient, load_model
from tests.random_models import random_model

SEEDS = range(int(os.environ.get("REVOLUTE_RANDOM_MODELS", "5")))

# of a step's velocity, relative to its largest entry; observed below 1e-13
TOLERANCE = 1e-10


@pytest.mark.parametrize("seed", SEEDS)
def test_a_smooth_step_is_mujocos(seed: int) -> None:
    text = random_model(seed, ties=False)
    model = load_model(text, contact=False, limits=False, dry_friction=False)
    theirs = mujoco.MjModel.from_xml_string(text)
    flags = mujoco.mjtDisableBit
    for flag in (flags.mjDSBL_CONTACT, flags.mjDSBL_LIMIT, flags.mjDSBL_FRICTIONLOSS):
        theirs.opt.disableflags |= flag
    random = np.random.default_rng(seed)
    data = mujoco.MjData(theirs)
    mujoco.mj_integratePos(theirs, data.qpos, 0.5 * random.normal(size=theirs.nv), 1.0)
    data.qvel[:], data.ctrl[:] = random.normal(size=theirs.nv), random.normal(size=theirs.nu)
    ours = Engine(threads=1).rollout(model, data.qpos.copy(), data.qvel.copy(), data.ctrl[None].copy())
    mujoco.mj_step(theirs, data)
    for one, other in ((ours.qpos[1], data.qpos), (ours.qvel[1], data.qvel)):
        assert np.abs(one - other).max() <= TOLERANCE * np.abs(other).max()


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_pass_the_check(seed: int) -> None:
    model = load_model(random_model(seed))
    report = check_gradient(Engine(threads=1), model, steps=10, directions=1, seed=seed)
    assert report.passed, report.to_text()
