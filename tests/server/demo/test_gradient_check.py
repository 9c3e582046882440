"""The demo's gradient check passes the engine's gradient and fails a wrong one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import revolute
from revolute_server.demo.gradient_check import DIRECTIONS, check_gradient
from revolute_server.demo.scene import Scene, laikago

STEPS = 50


@pytest.fixture(scope="module")
def simulator() -> Iterator[Any]:
    with revolute.connect() as simulator:
        yield simulator


@pytest.fixture(scope="module")
def case(simulator: Any) -> tuple[Scene, revolute.Loss, np.ndarray]:
    scene = laikago(simulator.load_model("laikago", timestep=2e-3), STEPS)
    first = simulator.rollout(scene.model, scene.qpos, scene.qvel, scene.ctrl)
    loss, _ = scene.task(first.qpos)
    _, gradient = simulator.value_and_gradient(scene.model, scene.qpos, scene.qvel, scene.ctrl, loss)
    return scene, loss, gradient.ctrl


def test_the_engines_gradient_passes(simulator: Any, case: tuple[Scene, revolute.Loss, np.ndarray]) -> None:
    check = check_gradient(simulator, *case)
    assert check.passed
    assert check.directions == DIRECTIONS
    assert 2 * check.resolved >= DIRECTIONS
    assert 0.0 < check.relative_error < 1e-4


@pytest.mark.parametrize("wrong", ["scaled", "one control", "not finite", "zero"])
def test_a_wrong_gradient_fails(
    simulator: Any, case: tuple[Scene, revolute.Loss, np.ndarray], wrong: str
) -> None:
    scene, loss, gradient = case
    bad = gradient.copy()
    if wrong == "scaled":
        bad *= 1.001
    elif wrong == "one control":
        bad[STEPS // 2, 0] += 0.01 * np.linalg.norm(gradient)
    else:
        bad[:] = np.nan if wrong == "not finite" else 0.0
    assert not check_gradient(simulator, scene, loss, bad).passed
