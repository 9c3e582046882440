"""Calls computed together give, bit for bit, what each gives alone; an error stays with its call."""

from typing import Any

import numpy as np
import pytest

from revolute import Loss, Term
from revolute.contract.errors import ArgumentError, DivergedError
from revolute_engine import Cancelled, CancelToken, Engine, Gradient, Model, Rollout, load_model
from revolute_engine.merged_calls import (
    BackwardCall,
    RolloutCall,
    ValueAndGradientCall,
    backward_together,
    rollout_together,
    value_and_gradient_together,
)

STEPS = 40
POSE = np.tile([0.0, 0.1, -0.8], 4)
START = np.concatenate([[0, 0, 0.458476, 1, 0, 0, 0], POSE])
ENGINE = Engine(threads=2)


@pytest.fixture(scope="module")
def laikago() -> Model:
    return load_model("laikago", timestep=2e-3)


@pytest.fixture(scope="module")
def calls(laikago: Model) -> list[RolloutCall]:
    """Return calls of every kind: single, batched, with shared parameters, with those per environment, with
    an environment that diverges."""
    random = np.random.default_rng(0)

    def ctrl(*batch: int) -> np.ndarray:
        return POSE + random.normal(0, 0.05, (*batch, STEPS, 12))

    zero = np.zeros(laikago.nv)
    friction = np.full((laikago.ngeom, 3), 0.3)
    partly = np.tile(zero, (2, 1))
    partly[1] = 1e200
    return [
        RolloutCall(START, zero, ctrl()),
        RolloutCall(np.tile(START, (3, 1)), random.normal(0, 0.1, (3, laikago.nv)), ctrl(3)),
        RolloutCall(START, zero, ctrl(), {"geom_friction": friction}),
        RolloutCall(START, zero, ctrl(2), {"gravity": np.array([[0, 0, -9.81], [0.5, 0, -3.7]])}),
        RolloutCall(START, partly, ctrl(2)),
        RolloutCall(START, zero, ctrl(1), {"body_mass": 1.1 * laikago.body_mass}),
    ]


def assert_same_rollout(found: Any, alone: Rollout) -> None:
    assert isinstance(found, Rollout), found
    for name in ("qpos", "qvel", "final_qpos", "final_qvel", "ctrl", "status", "diverged_step"):
        np.testing.assert_array_equal(getattr(found, name), getattr(alone, name), strict=True)
    for name in ("batched", "report", "model_id"):
        assert getattr(found, name) == getattr(alone, name)
    assert found.params.keys() == alone.params.keys()
    assert not found.qpos.flags.writeable
    assert found.qpos.base is None or found.qpos.base.nbytes <= alone.report.checkpoint_bytes


def assert_same_gradient(found: Any, alone: Gradient) -> None:
    assert isinstance(found, Gradient), found
    assert list(found.arrays) == list(alone.arrays)
    for name, array in alone.arrays.items():
        np.testing.assert_array_equal(found[name], array, strict=True)
    np.testing.assert_array_equal(found.status, alone.status, strict=True)
    np.testing.assert_array_equal(found.diverged_step, alone.diverged_step)
    assert found.report == alone.report


def alone(model: Model, call: RolloutCall) -> Rollout:
    return ENGINE.rollout(model, call.qpos, call.qvel, call.ctrl, params=call.params)


def test_rollouts(laikago: Model, calls: list[RolloutCall]) -> None:
    for found, call in zip(rollout_together(ENGINE, laikago, calls), calls, strict=True):
        assert_same_rollout(found, alone(laikago, call))


def test_a_call_that_is_refused_leaves_the_others_alone(laikago: Model, calls: list[RolloutCall]) -> None:
    wrong = RolloutCall(START[1:], np.zeros(laikago.nv), calls[0].ctrl)
    first, refused, last = rollout_together(ENGINE, laikago, [calls[0], wrong, calls[1]])
    assert isinstance(refused, ArgumentError) and refused.argument == "qpos"
    assert_same_rollout(first, alone(laikago, calls[0]))
    assert_same_rollout(last, alone(laikago, calls[1]))


@pytest.mark.parametrize("cotangents", [None, 2])
def test_gradients(laikago: Model, calls: list[RolloutCall], cotangents: int | None) -> None:
    random = np.random.default_rng(1)
    wanted = [
        ("qpos", "qvel", "ctrl"),
        ("ctrl", "body_mass"),
        ("geom_friction",),
        ("gravity", "qvel", "body_mass"),
        ("ctrl", "gravity"),
        ("body_mass", "qpos"),
    ]
    axis = () if cotangents is None else (cotangents,)
    pulls = []
    for call, wrt in zip(calls, wanted, strict=True):
        rollout = alone(laikago, call)
        bars = [random.normal(size=(*axis, *array.shape)) for array in (rollout.qpos, rollout.qvel)]
        pulls.append(BackwardCall(rollout, *bars, wrt=wrt))
    pulls[0] = BackwardCall(pulls[0].rollout, None, pulls[0].qvel_bar, pulls[0].wrt)
    for found, pull in zip(backward_together(ENGINE, laikago, pulls), pulls, strict=True):
        single = ENGINE.backward(laikago, pull.rollout, pull.qpos_bar, pull.qvel_bar, wrt=pull.wrt)
        assert_same_gradient(found, single)


def test_a_trajectory_without_a_gradient_leaves_the_others_alone(
    laikago: Model, calls: list[RolloutCall]
) -> None:
    gone = ENGINE.rollout(laikago, START, np.full(laikago.nv, 1e200), calls[0].ctrl)
    fine = alone(laikago, calls[0])
    bar = np.ones(fine.qpos.shape)
    pulls = [BackwardCall(gone, bar), BackwardCall(fine, bar), BackwardCall(fine, bar, wrt=["mass"])]
    diverged, found, unknown = backward_together(ENGINE, laikago, pulls)
    assert isinstance(diverged, DivergedError)
    assert isinstance(unknown, ArgumentError) and unknown.argument == "wrt"
    assert_same_gradient(found, ENGINE.backward(laikago, fine, bar))


def test_values_and_gradients(laikago: Model, calls: list[RolloutCall]) -> None:
    in_time = np.linspace(0.5, 1.5, STEPS)[:, None]
    each = np.array([0.3, 0.7])[:, None, None]
    losses = [
        Loss([Term("qpos", index=[0, 1]), Term("ctrl", weight=1e-3, when="running")]),
        Loss([Term("qvel", when="running", form="linear")]),
        Loss([Term("qpos", target=[0.1, 0.2], index=[0, 1]), Term("ctrl", in_time, POSE, "running")]),
        Loss([Term("qpos", index=[0, 1]), Term("ctrl", target=each, when="running")]),
        Loss([Term("qvel", weight=-2.0, when="running", form="linear")]),
        Loss([Term("qpos", index=[1, 0]), Term("ctrl", weight=1e-3, when="running")]),
    ]
    wanted = [
        ("ctrl", "qvel"),
        ("qpos", "body_mass"),
        ("geom_friction", "ctrl"),
        ("gravity", "qvel"),
        ("ctrl", "gravity"),
        ("body_mass",),
    ]
    asked = [ValueAndGradientCall(*call) for call in zip(calls, losses, wanted, strict=True)]
    wrong = ValueAndGradientCall(calls[0], Loss([Term("qpos", index=[99])]))
    found = value_and_gradient_together(ENGINE, laikago, [*asked, wrong])
    refused = found.pop()
    assert isinstance(refused, ArgumentError) and refused.argument == "loss.terms.0.index"
    for answer, call in zip(found, asked, strict=True):
        inputs = call.inputs
        value, gradient = ENGINE.value_and_gradient(
            laikago, inputs.qpos, inputs.qvel, inputs.ctrl, call.loss, params=inputs.params, wrt=call.wrt
        )
        assert isinstance(answer, tuple), answer
        np.testing.assert_array_equal(answer[0], value)
        assert_same_gradient(answer[1], gradient)


def test_a_loss_beyond_float64_leaves_the_others_alone(laikago: Model, calls: list[RolloutCall]) -> None:
    asked = [
        ValueAndGradientCall(calls[0], Loss([Term("qpos", target=target, when="running")]), ("ctrl",))
        for target in (1e200, 0.1)
    ]
    gone = RolloutCall(START, np.full(laikago.nv, 1e200), calls[0].ctrl)
    asked.append(ValueAndGradientCall(gone, asked[1].loss, ("ctrl",)))
    refused, found, diverged = value_and_gradient_together(ENGINE, laikago, asked)
    assert isinstance(refused, ArgumentError) and refused.argument == "loss"
    assert isinstance(diverged, DivergedError)
    alone = ENGINE.value_and_gradient(
        laikago, START, calls[0].qvel, calls[0].ctrl, asked[1].loss, wrt=("ctrl",)
    )
    assert isinstance(found, tuple) and found[0] == alone[0]
    assert_same_gradient(found[1], alone[1])


def test_a_cancelled_token_stops_all(laikago: Model, calls: list[RolloutCall]) -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        rollout_together(ENGINE, laikago, calls, token)
