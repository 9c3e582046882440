"""Moves and differences of configurations against MuJoCo's, and their rates against each other."""

import mujoco
import numpy as np
import pytest

from revolute.contract.tangents import difference, move, normalized, pull, rate
from revolute_engine import Model, load_model
from tests import tangents
from tests.robots import THREE_TREES


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model(THREE_TREES, contact=False)


def _random(model: Model, seed: int, batch: int = 7) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    qpos = normalized(model, model.qpos0 + 0.4 * random.normal(size=(batch, model.nq)))
    return qpos, random.normal(size=(batch, model.nv))


@pytest.mark.parametrize("by", [1.0, 1e-3, 1e-9, 0.0])
def test_moves_are_mujocos(model: Model, by: float) -> None:
    qpos, tangent = _random(model, 1)
    for one, other, way in zip(move(model, qpos, by * tangent), qpos, tangent, strict=True):
        assert np.abs(one - tangents.moved(model, other, way, by)).max() < 1e-14


@pytest.mark.parametrize("by", [1.0, 1e-3, 1e-9, 0.0])
def test_differences_undo_moves_and_are_mujocos(model: Model, by: float) -> None:
    qpos, tangent = _random(model, 2)
    end = move(model, qpos, by * tangent)
    assert np.abs(difference(model, qpos, end) - by * tangent).max() < 1e-13
    assert np.abs(difference(model, qpos, end) - tangents.difference(model, qpos, end)).max() < 1e-13
    flipped = np.array(end)
    flipped[:, 3:7] *= -1
    assert np.abs(difference(model, qpos, flipped) - by * tangent).max() < 1e-13


def test_rates_are_derivatives_of_moves(model: Model) -> None:
    qpos, tangent = _random(model, 3)
    by = 1e-6
    ends = [move(model, qpos, sign * by * tangent) for sign in (1, -1)]
    assert np.abs(rate(model, qpos, tangent) - (ends[0] - ends[1]) / (2 * by)).max() < 1e-9


def test_pull_is_the_transpose_of_rate(model: Model) -> None:
    qpos, tangent = _random(model, 4)
    bar = np.random.default_rng(5).normal(size=qpos.shape)
    assert (pull(model, qpos, bar) * tangent).sum() == pytest.approx((bar * rate(model, qpos, tangent)).sum())


def test_one_configuration_moves_along_many_tangents(model: Model) -> None:
    qpos, tangent = _random(model, 6)
    together = move(model, qpos[0], tangent)
    assert np.array_equal(together[3], move(model, qpos[0], tangent[3]))
    normal = np.array(qpos[0])
    mujoco.mj_normalizeQuat(model.mujoco_model, normal)
    assert np.allclose(normal, normalized(model, qpos[0]), atol=1e-15)
