"""Checks a gradient by all controls against finite differences along random directions.

With g the gradient, d a random direction and e a step,

    slope(d) = g . d                                         (1)
    right(d, e) = (loss(u + e d) - loss(u)) / e              (2)
    left(d, e) = (loss(u) - loss(u - e d)) / e               (3)
    central(d, e) = (right + left) / 2                       (4)

All perturbed trajectories are simulated in one batch. If a contact or limit switches between u - e d and
u + e d, or if the loss has a kink at u, then right and left differ. The central difference is taken at the
step size where they differ least; half of that gap is its uncertainty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from revolute import Loss

    from .scene import Scene

DIRECTIONS = 8
STEPS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)  # per unit of ctrl; each direction has entries of size one
TOLERANCE = 1e-5  # relative; truncation and rounding of (2) stay below it on smooth stretches
RESOLVED = 1e-2  # differences with a larger relative uncertainty are not compared
SEED = 7


@dataclass(frozen=True)
class GradientCheck:
    """Result of the comparison.

    Attributes:
        relative_error: largest |slope - difference| over the resolved directions, relative to the typical
            slope.
        uncertainty: largest uncertainty of these differences, relative to the typical slope.
        resolved: number of directions with a sufficiently certain difference.
        directions: number of all directions.
        agrees: whether all resolved directions agree.
    """

    relative_error: float
    uncertainty: float
    resolved: int
    directions: int
    agrees: bool

    @property
    def conclusive(self) -> bool:
        """Whether at least half of the directions are resolved."""
        return 2 * self.resolved >= self.directions

    @property
    def passed(self) -> bool:
        """Whether enough directions are resolved and all of them agree."""
        return self.conclusive and self.agrees


def check_gradient(simulator: Any, scene: Scene, loss: Loss, gradient: np.ndarray) -> GradientCheck:
    """Compare a gradient by the controls with finite differences of the loss.

    Args:
        simulator: a connected revolute.Simulator.
        scene: model, start and controls.
        loss: the differentiated loss.
        gradient: the gradient to check, d loss / d ctrl, [T, nu].
    """
    directions = np.random.default_rng(SEED).standard_normal((DIRECTIONS, *scene.ctrl.shape))
    slopes = np.tensordot(directions, gradient, axes=2)

    # one batch: the controls themselves, then [direction, step, sign]
    offsets = np.multiply.outer(np.multiply.outer(np.array(STEPS), np.array([1.0, -1.0])), directions)
    offsets = np.moveaxis(offsets, 2, 0).reshape(-1, *scene.ctrl.shape)
    batch = np.concatenate([scene.ctrl[None], scene.ctrl + offsets])
    with simulator.rollout(scene.model, scene.qpos, scene.qvel, batch) as trajectory:
        values = loss.evaluate(trajectory.qpos, trajectory.qvel, trajectory.ctrl).value
    return _judge(slopes, values[0], values[1:].reshape(DIRECTIONS, len(STEPS), 2))


def _judge(slopes: np.ndarray, middle: float, values: np.ndarray) -> GradientCheck:
    """Compare slopes with differences, both relative to the typical slope.

    Args:
        slopes: (1), [directions].
        middle: loss(u).
        values: loss(u + e d) and loss(u - e d), [directions, steps, 2].
    """
    right = (values[..., 0] - middle) / np.array(STEPS)
    left = (middle - values[..., 1]) / np.array(STEPS)
    gaps = np.abs(right - left) / 2
    gaps = np.where(np.isfinite(gaps), gaps, np.inf)
    best = (np.arange(len(slopes)), gaps.argmin(axis=1))
    return _compare(slopes, ((right + left) / 2)[best], gaps[best])


def _compare(slopes: np.ndarray, differences: np.ndarray, uncertainties: np.ndarray) -> GradientCheck:
    """Count the resolved directions and check whether they agree."""
    scale = float(np.sqrt(np.mean(slopes**2)))
    if not np.isfinite(scale) or scale == 0.0:
        return GradientCheck(np.nan, np.nan, 0, len(slopes), agrees=False)
    errors, uncertainties = np.abs(slopes - differences) / scale, uncertainties / scale
    resolved = np.isfinite(errors) & (uncertainties < RESOLVED)
    allowed = np.maximum(TOLERANCE, 3 * uncertainties)
    return GradientCheck(
        relative_error=float(errors[resolved].max(initial=0.0)),
        uncertainty=float(uncertainties[resolved].max(initial=0.0)),
        resolved=int(resolved.sum()),
        directions=len(slopes),
        agrees=bool((errors <= allowed)[resolved].all()),
    )
