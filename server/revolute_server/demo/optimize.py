"""Minimises the scene's loss with L-BFGS over all T x nu controls, with one round trip per evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from tqdm import tqdm

from revolute import DivergedError

if TYPE_CHECKING:
    from revolute import Loss

    from .scene import Scene

HISTORY = 20  # pairs of steps and gradients that L-BFGS keeps


@dataclass(frozen=True)
class Optimum:
    """Result of the optimizer.

    Attributes:
        ctrl: the best controls, [T, nu].
        losses: loss at the start and after each iteration.
        evaluations: number of evaluations of value and gradient.
        seconds: time of all evaluations, including round trips.
    """

    ctrl: np.ndarray
    losses: list[float]
    evaluations: int
    seconds: float


class _Objective:
    """Loss and gradient as functions of the flattened controls; remembers the best controls."""

    def __init__(self, simulator: Any, scene: Scene, loss: Loss) -> None:
        self._simulator = simulator
        self._scene = scene
        self._loss = loss
        self.best = scene.ctrl.ravel().copy()
        self.best_loss = np.inf
        self.evaluations = 0

    def __call__(self, flat: np.ndarray) -> tuple[float, np.ndarray]:
        scene = self._scene
        ctrl = flat.reshape(scene.ctrl.shape)
        self.evaluations += 1
        try:
            value, gradient = self._simulator.value_and_gradient(
                scene.model, scene.qpos, scene.qvel, ctrl, self._loss, wrt=("ctrl",)
            )
        except DivergedError:
            return self._barrier(flat)
        if value < self.best_loss:
            self.best, self.best_loss = flat.copy(), value
        return value, np.array(gradient.ctrl).ravel()

    def _barrier(self, flat: np.ndarray) -> tuple[float, np.ndarray]:
        """Return a high, steep loss for a diverged trajectory, so that the line search goes back."""
        away = flat - self.best
        height = 10.0 * (1.0 + abs(self.best_loss))
        return self.best_loss + height, 2.0 * height * away / max(float(away @ away), 1e-300)


def optimize(simulator: Any, scene: Scene, loss: Loss, iterations: int, progress: bool = True) -> Optimum:
    """Run L-BFGS from the scene's controls.

    Args:
        simulator: a connected revolute.Simulator.
        scene: model, start and first controls.
        loss: the loss to minimise.
        iterations: largest number of iterations.
        progress: whether to show a progress bar on stderr.
    """
    objective = _Objective(simulator, scene, loss)
    losses = [objective(scene.ctrl.ravel())[0]]
    with tqdm(total=iterations, desc="L-BFGS", unit="it", disable=not progress, leave=True) as bar:

        def show(_: np.ndarray) -> None:
            losses.append(objective.best_loss)
            bar.set_postfix_str(f"loss {objective.best_loss:.3g}", refresh=False)
            bar.update()

        bounds = np.broadcast_to(scene.ctrlrange, (*scene.ctrl.shape, 2)).reshape(-1, 2)
        minimize(
            objective,
            scene.ctrl.ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=show,
            options={"maxiter": iterations, "maxcor": HISTORY, "ftol": 1e-9, "gtol": 1e-10},
        )
        seconds = bar.format_dict["elapsed"]
    return Optimum(objective.best.reshape(scene.ctrl.shape), losses, objective.evaluations, seconds)
