"""What MJX and brax share: a step, scanned over the controls, and the loss |final base position|^2 of it.

Times are per step without the compilation, which has a column of its own. float32, JAX's default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .row import Job, difference_error, emit, failed, once, timed

Step = Callable[[Any, Any], Any]
Position = Callable[[Any], Any]
Loss = Callable[[Any], Any]
DIFFERENCE = 3e-3  # of the controls, rad: large enough for float32


def rollout_loss(step: Step, start: Any, position: Position, checkpoint: bool) -> Loss:
    """Return the loss as a function of the controls; `checkpoint` recomputes each step in reverse."""

    def scanned(state: Any, ctrl: Any) -> tuple[Any, None]:
        return step(state, ctrl), None

    body = jax.checkpoint(scanned) if checkpoint else scanned

    def loss(controls: Any) -> Any:
        end, _ = jax.lax.scan(body, start, controls)
        return jnp.sum(position(end) ** 2)

    return loss


def time_forward(job: Job, loss: Loss, what: str) -> float:
    """Print the row of a forward pass, and return its seconds."""
    forward = jax.jit(loss)
    controls = jnp.asarray(job.controls())
    _, compiling = once(lambda: forward(controls).block_until_ready())
    _, seconds = timed(lambda: forward(controls).block_until_ready(), job.repeats)
    emit(what=what, forward_us=1e6 * seconds / job.steps, compile_s=compiling)
    return seconds


def time_gradient(job: Job, loss: Loss, forward_seconds: float, what: str) -> None:
    """Print the row of a gradient, or why there is none; backward is its time beyond the forward pass."""
    try:
        differentiate, forward = jax.jit(jax.grad(loss)), jax.jit(loss)
        controls = jnp.asarray(job.controls())
        _, compiling = once(lambda: differentiate(controls).block_until_ready())
        result, seconds = timed(lambda: differentiate(controls).block_until_ready(), job.repeats)
        error = difference_error(
            lambda values: float(forward(jnp.asarray(values))),
            job.controls(),
            np.asarray(result, dtype=float),
            job.direction(),
            DIFFERENCE,
        )
    except Exception as failure:
        failed(what, failure)
        return
    emit(
        what=what,
        forward_us=1e6 * forward_seconds / job.steps,
        backward_us=1e6 * (seconds - forward_seconds) / job.steps,
        compile_s=compiling,
        gradient_error=error,
    )
