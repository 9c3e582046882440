"""A rollout in segments is the rollout in one piece, bit for bit."""

import numpy as np
import pytest

from revolute.contract.errors import ArgumentError
from revolute_engine import Cancelled, CancelToken, Engine, Model, load_model
from revolute_engine.segments import SegmentedRollout

POSE = np.tile([0.0, 0.1, -0.8], 4)
START = np.concatenate([[0, 0, 0.458476, 1, 0, 0, 0], POSE])
ENGINE = Engine(threads=1)
STEPS = 60


@pytest.fixture(scope="module")
def laikago() -> Model:
    return load_model("laikago", timestep=2e-3)


def controls(*batch: int) -> np.ndarray:
    return POSE + np.random.default_rng(0).normal(0, 0.05, (*batch, STEPS, 12))


@pytest.mark.parametrize("batch", [(), (1,), (11,)])
@pytest.mark.parametrize("length", [1, 7, 60, 100, None])
def test_segments_make_up_the_rollout(laikago: Model, batch: tuple[int, ...], length: int | None) -> None:
    # a quaternion that is not of unit length is kept as it was given
    start, ctrl = START * np.where(np.arange(19) == 3, 1.5, 1.0), controls(*batch)
    params = {"geom_friction": np.full((laikago.ngeom, 3), 0.4)}
    whole = ENGINE.rollout(laikago, start, np.zeros(laikago.nv), ctrl, params=params)
    pieces = SegmentedRollout(laikago, start, np.zeros(laikago.nv), ctrl, params)
    segments = []
    while not pieces.over:
        segments.append(pieces.compute(ENGINE, length))
    assert [segment.first for segment in segments][:2] in ([0], [0, 1 + (length or STEPS)])
    for name in ("qpos", "qvel"):
        joined = np.concatenate([getattr(segment, name) for segment in segments], axis=len(batch))
        np.testing.assert_array_equal(joined, getattr(whole, name), strict=True)
    result = pieces.result()
    for name in ("qpos", "qvel", "ctrl", "status", "diverged_step"):
        np.testing.assert_array_equal(getattr(result, name), getattr(whole, name), strict=True)
    bar = np.ones(whole.qpos.shape)
    np.testing.assert_array_equal(
        ENGINE.backward(laikago, result, bar).ctrl, ENGINE.backward(laikago, whole, bar).ctrl
    )


def test_an_environment_that_diverges_stays_nan_and_disturbs_nobody() -> None:
    model = load_model("pendulum1", timestep=10.0)
    qvel = np.array([[0.0], [1e160], [0.0]])
    ctrl = np.zeros((3, 30, model.nu))
    whole = ENGINE.rollout(model, model.qpos0, qvel, ctrl)
    assert whole.status.tolist() == [0, 1, 0]
    pieces = SegmentedRollout(model, model.qpos0, qvel, ctrl)
    while not pieces.over:
        pieces.compute(ENGINE, 4)
    for name in ("qpos", "qvel", "status", "diverged_step"):
        np.testing.assert_array_equal(getattr(pieces.result(), name), getattr(whole, name))


def test_no_steps_give_the_start(laikago: Model) -> None:
    pieces = SegmentedRollout(laikago, START, np.zeros(laikago.nv), np.zeros((0, 12)))
    segment = pieces.compute(ENGINE)
    assert pieces.over
    np.testing.assert_array_equal(segment.qpos, START[None])


def test_a_late_fault_is_found_at_once_and_a_token_stops(laikago: Model) -> None:
    ctrl = controls()
    ctrl[-1, 3] = np.nan
    with pytest.raises(ArgumentError, match="ctrl"):
        SegmentedRollout(laikago, START, np.zeros(laikago.nv), ctrl)
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        SegmentedRollout(laikago, START, np.zeros(laikago.nv), controls()).compute(ENGINE, cancel=token)
