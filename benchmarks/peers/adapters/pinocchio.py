"""Pinocchio: forward dynamics and their analytic derivatives, without contacts, called from Python.

Pinocchio is a library of algorithms, not a simulator: the rows are single calls, to be compared with a step
without contacts and its adjoint. Its derivatives are all columns at once; a gradient has yet to be chained
from them.
"""

from __future__ import annotations

import numpy as np
import pinocchio

from .row import Job, emit, timed

CALLS = 2000
DIFFERENCE = 1e-6


def main() -> None:
    """Print a row each for ABA and its derivatives."""
    job = Job.from_command_line()
    model = pinocchio.buildModelFromUrdf(job.file("laikago.urdf"), pinocchio.JointModelFreeFlyer())
    data = model.createData()
    start = job.start()
    q = np.concatenate([start[:3], start[4:7], start[3:4], start[7:]])  # quaternion x y z w
    random = np.random.default_rng(1)
    v, tau = random.normal(size=model.nv), random.normal(size=model.nv)

    def repeat(call: object, *arguments: object) -> None:
        for _ in range(CALLS):
            call(model, data, *arguments)  # type: ignore[operator]

    _, seconds = timed(lambda: repeat(pinocchio.aba, q, v, tau), job.repeats)
    emit(what="no contacts, aba", forward_us=1e6 * seconds / CALLS)
    _, both = timed(lambda: repeat(pinocchio.computeABADerivatives, q, v, tau), job.repeats)
    error = derivative_error(model, data, q, v, tau)
    emit(what="no contacts, computeABADerivatives", backward_us=1e6 * both / CALLS, gradient_error=error)


def derivative_error(
    model: pinocchio.Model, data: pinocchio.Data, q: np.ndarray, v: np.ndarray, tau: np.ndarray
) -> float:
    """Return the error of the derivatives along one direction of (q, v, tau) against a central difference."""
    random = np.random.default_rng(2)
    directions = random.normal(size=(3, model.nv))
    by_q, by_v, by_tau = (np.array(part) for part in pinocchio.computeABADerivatives(model, data, q, v, tau))
    exact = by_q @ directions[0] + by_v @ directions[1] + by_tau @ directions[2]

    def moved(h: float) -> np.ndarray:
        return np.array(
            pinocchio.aba(
                model,
                data,
                pinocchio.integrate(model, q, h * directions[0]),
                v + h * directions[1],
                tau + h * directions[2],
            )
        )

    difference = (moved(DIFFERENCE) - moved(-DIFFERENCE)) / (2 * DIFFERENCE)
    return float(np.linalg.norm(exact - difference) / np.linalg.norm(difference))


if __name__ == "__main__":
    main()
