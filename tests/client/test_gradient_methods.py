"""How to differentiate, as an option of every call that pulls a gradient back, over every transport."""

from __future__ import annotations

import numpy as np
import pytest

import revolute
from tests.revolute_engine.test_contact_from_distance import BALL, FROM, PUSH


def test_contact_from_distance_is_the_same_over_every_transport(
    simulators: dict[str, revolute.Simulator],
) -> None:
    found = {}
    for name, simulator in simulators.items():
        model = simulator.load_model(PUSH.format(option=""))
        start, loss = (
            ([0.0, 0.0], [0.0, 0.0], np.full((20, 1), 0.2)),
            revolute.Term("qpos", index=[1], target=1),
        )
        trajectory = simulator.rollout(model, *start)
        bar = np.zeros(trajectory.qpos.shape)
        bar[-1] = -2 * BALL
        gradients = [
            trajectory.backward(bar, gradient=FROM),
            trajectory.backward(-2 * BALL, times=[-1], gradient=FROM),
            simulator.value_and_gradient(model, *start, loss, gradient=FROM)[1],
            simulator.value_and_gradient(model, *start, lambda _, bar=bar: (0.0, bar, None), gradient=FROM)[
                1
            ],
        ]
        assert {each.method for each in gradients} == {FROM}
        assert {each.ctrl.tobytes() for each in gradients} == {gradients[0].ctrl.tobytes()}
        assert (gradients[0].ctrl[:-1] < 0).all()
        exact = trajectory.backward(bar)
        assert exact.method == "exact" and not exact.ctrl.any()
        found[name] = gradients[0].ctrl.tobytes()
        with pytest.raises(revolute.ArgumentError, match=r"^gradient: expected 'exact', "):
            trajectory.backward(bar, gradient="smooth")
        hard = simulator.rollout(simulator.load_model(PUSH.format(option=""), contact_model="hard"), *start)
        with pytest.raises(revolute.ArgumentError, match=r'^gradient: expected .* contact_model="mujoco"$'):
            hard.backward(bar, gradient=FROM)
    assert len(set(found.values())) == 1
