"""States of a rollout can be read while it is computed, and are those that it returns."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from revolute_engine import Cancelled, CancelToken, Engine, Rollout, load_model
from revolute_engine._growing import GrowingStates, grows
from revolute_engine._native import lanes

ENGINE = Engine(threads=1)
MODEL = load_model("pendulum1", timestep=1e-3)


@pytest.mark.parametrize("checkpoints", ["every", "none", "interval=7"])
@pytest.mark.parametrize("batch", [(), (1,), (3,), (21,)])
def test_the_result_is_the_same_in_memory_of_the_callers(checkpoints: str, batch: tuple[int, ...]) -> None:
    ctrl = np.random.default_rng(0).normal(size=(*batch, 50, MODEL.nu))
    start = MODEL.qpos0, np.ones(MODEL.nv), ctrl
    plain = ENGINE.rollout(MODEL, *start, checkpoints=checkpoints, states="all")
    growing = GrowingStates(MODEL, *(batch or (1,)), 50)
    found = ENGINE.rollout(MODEL, *start, checkpoints=checkpoints, states="all", growing=growing)
    assert growing.count == 51 * (batch or (1,))[0]
    for name in ("qpos", "qvel", "kept_qpos", "final_qpos", "final_qvel", "status", "diverged_step"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name), strict=True)
    assert np.shares_memory(found.qpos, growing.qpos) and np.shares_memory(found.qvel, growing.qvel)
    assert not found.qpos.flags.writeable


def test_one_pack_ends_together() -> None:
    assert [grows(batch) for batch in (1, 2, lanes, lanes + 1)] == [True, False, False, True]


def test_states_that_diverged_are_counted_as_well() -> None:
    model = load_model("pendulum1", timestep=10.0)
    growing = GrowingStates(model, 1, 30)
    start = model.qpos0, np.full(model.nv, 1e160), np.zeros((30, model.nu))
    found = ENGINE.rollout(model, *start, growing=growing)
    assert found.status == 1 and growing.count == 31
    np.testing.assert_array_equal(growing.qpos[0], ENGINE.rollout(model, *start).qpos)


@pytest.mark.parametrize("threads", [1, 2])
def test_environments_of_a_batch_are_counted_in_order(threads: int) -> None:
    """Packs that end before an earlier one wait for it."""
    batch, steps = 5 * lanes + 3, 20_000
    ctrl = np.random.default_rng(0).normal(size=(batch, steps, MODEL.nu))
    growing = GrowingStates(MODEL, batch, steps)
    growing.qpos[:] = np.nan
    found: list[Rollout] = []

    def compute() -> None:
        start = MODEL.qpos0, np.ones(MODEL.nv), ctrl
        found.append(Engine(threads=threads).rollout(MODEL, *start, growing=growing))

    worker = threading.Thread(target=compute)
    worker.start()
    counts = [0]
    while worker.is_alive():
        if (count := growing.count) != counts[-1]:
            assert np.isfinite(growing.qpos.reshape(-1, MODEL.nq)[:count]).all()
            counts.append(count)
    worker.join()
    sizes = np.diff([*counts, growing.count])
    assert growing.count == batch * (steps + 1) and (sizes % (steps + 1) == 0).all() and len(counts) > 2
    np.testing.assert_array_equal(
        found[0].qpos, ENGINE.rollout(MODEL, MODEL.qpos0, np.ones(MODEL.nv), ctrl).qpos
    )


def test_what_is_counted_is_there_and_stays() -> None:
    steps = 10**6
    growing, token = GrowingStates(MODEL, 1, steps), CancelToken()
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
