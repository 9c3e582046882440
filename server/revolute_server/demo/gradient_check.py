"""Check a gradient by all controls against central finite differences along random directions.

With g the gradient, d a random direction and e a step,

    slope(d) = g . d                                         (1)
    difference(d, e) = (loss(u + e d) - loss(u - e d)) / 2 e   (2)

Every perturbed trajectory of every direction and step goes in one batch. The difference is trusted where two
successive steps agree best, and their disagreement is its uncertainty: a loss with contacts has kinks, and a
difference across one is no derivative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from revolute import Loss

    from .scene import Scene

DIRECTIONS = 8
STEPS = (1e-4, 1e-5, 1e-6, 1e-7)  # per unit of ctrl; each direction has entries of size one
TOLERANCE = 1e-5  # relative; truncation and rounding of (2) stay below it on smooth stretches
RESOLVED = 1e-2  # a difference that is less certain than this says nothing about the gradient
SEED = 7


@dataclass(frozen=True)
class GradientCheck:
    """What the comparison gave.

    Attributes:
        relative_error: largest |slope - difference| over the resolved directions, by the typical slope.
        uncertainty: largest uncertainty of these differences, relative likewise.
        resolved: how many directions have a difference that can be trusted.
        directions: how many were tried.
        passed: every resolved direction agrees, and at least half of them could be resolved.
    """

    relative_error: float
    uncertainty: float
    resolved: int
    directions: int
    passed: bool


def check_gradient(simulator: Any, scene: Scene, loss: Loss, gradient: np.ndarray) -> GradientCheck:
    """Compare a gradient by the controls with finite differences of the loss.

    Args:
        simulator: a connected revolute.Simulator.
        scene: model, start and controls.
        loss: what was differentiated.
        gradient: what is checked, d loss / d ctrl, [T, nu].
    """
    directions = np.random.default_rng(SEED).standard_normal((DIRECTIONS, *scene.ctrl.shape))
    slopes = np.tensordot(directions, gradient, axes=2)

    # one batch: [direction, step, sign, T, nu]
    offsets = np.multiply.outer(np.multiply.outer(np.array(STEPS), np.array([1.0, -1.0])), directions)
    offsets = np.moveaxis(offsets, 2, 0)
    batch = (scene.ctrl + offsets).reshape(-1, *scene.ctrl.shape)
    trajectory = simulator.rollout(scene.model, scene.qpos, scene.qvel, batch)
    values = loss.evaluate(trajectory.qpos, trajectory.qvel, trajectory.ctrl).value
    trajectory.delete()

    # (2), then the pair of successive steps that agree best
    values = values.reshape(DIRECTIONS, len(STEPS), 2)
    differences = (values[..., 0] - values[..., 1]) / (2 * np.array(STEPS))
    gaps = np.abs(np.diff(differences, axis=1))
    best = np.nanargmin(np.where(np.isfinite(gaps), gaps, np.inf), axis=1)
    rows = np.arange(DIRECTIONS)
    return _judge(slopes, differences[rows, best + 1], gaps[rows, best])


def _judge(slopes: np.ndarray, differences: np.ndarray, gaps: np.ndarray) -> GradientCheck:
    """Compare slopes with differences, both relative to the typical slope."""
    scale = float(np.sqrt(np.mean(slopes**2)))
    if not np.isfinite(scale) or scale == 0.0:
        return GradientCheck(float("nan"), float("nan"), 0, len(slopes), False)
    errors, uncertainties = np.abs(slopes - differences) / scale, gaps / scale
    resolved = np.isfinite(errors) & (uncertainties < RESOLVED)
    if not resolved.any():
        return GradientCheck(float("nan"), float("nan"), 0, len(slopes), False)
    agrees = errors[resolved] <= np.maximum(TOLERANCE, 3 * uncertainties[resolved])
    return GradientCheck(
        relative_error=float(errors[resolved].max()),
        uncertainty=float(uncertainties[resolved].max()),
        resolved=int(resolved.sum()),
        directions=len(slopes),
        passed=bool(agrees.all() and 2 * resolved.sum() >= len(slopes)),
    )
