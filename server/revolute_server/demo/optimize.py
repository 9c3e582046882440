"""Find controls that lower the scene's loss: L-BFGS over all T x nu controls, one round trip each."""

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

MEMORY = 20  # pairs of steps and gradients that L-BFGS keeps


@dataclass(frozen=True)
class Optimum:
    """What the optimizer found.

    Attributes:
        ctrl: the best controls, [T, nu].
        losses: loss after each iteration, the start first.
        evaluations: how many values and gradients were asked for.
        seconds: time they took, round trips included.
    """

    ctrl: np.ndarray
    losses: list[float]
    evaluations: int
    seconds: float


class _Objective:
    """Loss and gradient as functions of the flat controls, with the best so far."""

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
            return self._wall(flat)
        if value < self.best_loss:
            self.best, self.best_loss = flat.copy(), value
        return value, np.array(gradient.ctrl).ravel()

    def _wall(self, flat: np.ndarray) -> tuple[float, np.ndarray]:
        """Stand in for a diverged trajectory: a steep slope that sends the line search back to the best."""
        away = flat - self.best
        height = 10.0 * (1.0 + abs(self.best_loss))
        return self.best_loss + height, 2.0 * height * away / max(float(away @ away), 1e-300)


def optimize(simulator: Any, scene: Scene, loss: Loss, iterations: int, progress: bool = True) -> Optimum:
    """Run L-BFGS from the scene's controls.

    Args:
        simulator: a connected revolute.Simulator.
        scene: model, start and first controls.
        loss: what is lowered.
        iterations: at most so many iterations.
        progress: show a progress bar on stderr.
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
            options={"maxiter": iterations, "maxcor": MEMORY, "ftol": 1e-9, "gtol": 1e-10},
        )
        seconds = bar.format_dict["elapsed"]
    return Optimum(objective.best.reshape(scene.ctrl.shape), losses, objective.evaluations, seconds)
