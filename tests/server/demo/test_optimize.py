"""The demo's optimizer, on a problem whose answer is known, and against a wall of diverged trajectories."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

import revolute
from revolute_server.demo.optimize import optimize
from revolute_server.demo.scene import Scene

STEPS, NU = 4, 2
LOSS = revolute.Loss([revolute.Term("ctrl", when="running")])


class Bowl:
    """Stands for a simulator: loss |ctrl - centre|^2, which diverges where a control exceeds `edge`."""

    def __init__(self, centre: float, edge: float = np.inf) -> None:
        self.centre = centre
        self.edge = edge

    def value_and_gradient(
        self, model: Any, qpos: Any, qvel: Any, ctrl: np.ndarray, loss: Any, wrt: Any
    ) -> tuple[float, Any]:
        if (ctrl > self.edge).any():
            raise revolute.DivergedError("ctrl: over the edge")
        return float(((ctrl - self.centre) ** 2).sum()), SimpleNamespace(ctrl=2 * (ctrl - self.centre))


def scene(low: float = -np.inf, high: float = np.inf) -> Scene:
    return Scene(
        model=None,
        qpos=np.zeros(1),
        qvel=np.zeros(1),
        ctrl=np.zeros((STEPS, NU)),
        ctrlrange=np.tile([low, high], (NU, 1)),
        moved=0,
        label="bowl",
        free_base=False,
    )


def test_finds_the_bottom() -> None:
    optimum = optimize(Bowl(3.0), scene(), LOSS, iterations=20, progress=False)
    np.testing.assert_allclose(optimum.ctrl, 3.0, rtol=1e-6)
    assert optimum.losses[0] == 9.0 * STEPS * NU
    assert optimum.losses[-1] < 1e-10
    assert optimum.evaluations >= len(optimum.losses)


def test_respects_the_controls_range() -> None:
    optimum = optimize(Bowl(3.0), scene(-1.0, 2.0), LOSS, iterations=20, progress=False)
    np.testing.assert_allclose(optimum.ctrl, 2.0)


def test_turns_back_from_diverged_trajectories() -> None:
    optimum = optimize(Bowl(3.0, edge=0.5), scene(), LOSS, iterations=20, progress=False)
    assert np.isfinite(optimum.ctrl).all()
    assert (optimum.ctrl <= 0.5).all()
    assert optimum.losses[-1] < optimum.losses[0]
