"""States of a rollout can be read while it is computed, and are those that it returns."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from revolute_engine import Cancelled, CancelToken, Engine, load_model
from revolute_engine._growing import GrowingStates

ENGINE = Engine(threads=1)
MODEL = load_model("pendulum1", timestep=1e-3)


@pytest.mark.parametrize("checkpoints", ["every", "none", "interval=7"])
@pytest.mark.parametrize("batch", [(), (1,)])
def test_the_result_is_the_same_in_memory_of_the_callers(checkpoints: str, batch: tuple[int, ...]) -> None:
    ctrl = np.random.default_rng(0).normal(size=(*batch, 50, MODEL.nu))
    start = MODEL.qpos0, np.ones(MODEL.nv), ctrl
    plain = ENGINE.rollout(MODEL, *start, checkpoints=checkpoints, states="all")
    growing = GrowingStates(MODEL, 50)
    found = ENGINE.rollout(MODEL, *start, checkpoints=checkpoints, states="all", growing=growing)
    assert growing.count == 51
    for name in ("qpos", "qvel", "kept_qpos", "final_qpos", "final_qvel", "status", "diverged_step"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name), strict=True)
    assert np.shares_memory(found.qpos, growing.qpos) and np.shares_memory(found.qvel, growing.qvel)
    assert not found.qpos.flags.writeable


def test_states_that_diverged_are_counted_as_well() -> None:
    model = load_model("pendulum1", timestep=10.0)
    growing = GrowingStates(model, 30)
    start = model.qpos0, np.full(model.nv, 1e160), np.zeros((30, model.nu))
    found = ENGINE.rollout(model, *start, growing=growing)
    assert found.status == 1 and growing.count == 31
    np.testing.assert_array_equal(growing.qpos[0], ENGINE.rollout(model, *start).qpos)


def test_what_is_counted_is_there_and_stays() -> None:
    steps = 10**6
    growing, token = GrowingStates(MODEL, steps), CancelToken()
    caught: list[BaseException] = []

    def compute() -> None:
        try:
            ctrl = np.zeros((steps, MODEL.nu))
            ENGINE.rollout(MODEL, MODEL.qpos0, np.ones(MODEL.nv), ctrl, growing=growing, cancel=token)
        except Cancelled as error:
            caught.append(error)

    growing.qpos[:] = np.nan
    worker = threading.Thread(target=compute)
    worker.start()
    deadline = time.monotonic() + 30
    while not growing.count:
        assert time.monotonic() < deadline
    count = growing.count
    seen = growing.qpos[0, :count].copy()
    token.cancel()
    worker.join()
    assert 0 < count < steps + 1 and len(caught) == 1
    assert np.isfinite(seen).all()
    np.testing.assert_array_equal(growing.qpos[0, :count], seen)
    ctrl = np.zeros((count - 1, MODEL.nu))
    np.testing.assert_array_equal(seen, ENGINE.rollout(MODEL, MODEL.qpos0, np.ones(MODEL.nv), ctrl).qpos)
