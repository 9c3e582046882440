"""What MJX and brax share: a step, scanned over the controls, and the loss |final base position|^2 of it.

Times are per step without the compilation, which has a column of its own. float32, JAX's default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .row import Job, difference_error, emit, failed, once, timed

Step = Callable[[Any, Any], Any]
Position = Callable[[Any], Any]
Loss = Callable[[Any], Any]
DIFFERENCE = 3e-3  # of the controls, rad: large enough for float32
LONGER = 10


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
    """Print the row of a forward pass, and return its seconds per step."""
    controls = jnp.asarray(job.controls())
    forward, compiling = once(lambda: jax.jit(loss).lower(controls).compile())
    forward(controls).block_until_ready()
    _, seconds = timed(lambda: forward(controls).block_until_ready(), job.repeats)
    emit(what=what, forward_us=1e6 * seconds / job.steps, compile_s=compiling)
    return seconds / job.steps


def time_gradients(job: Job, loss: Loss, forward_seconds: float, what: str) -> None:
    """Print the rows of a gradient: over the job's steps, and over LONGER times as many."""
    _time_gradient(job, loss, forward_seconds, what)
    longer = replace(job, steps=LONGER * job.steps)
    _time_gradient(longer, loss, forward_seconds, f"{what}, {longer.steps} steps")


def _time_gradient(job: Job, loss: Loss, forward_seconds: float, what: str) -> None:
    """Print a row, or why there is none; backward is beyond the forward pass, memory is XLA's buffers."""
    try:
        controls = jnp.asarray(job.controls())
        differentiate, compiling = once(lambda: jax.jit(jax.grad(loss)).lower(controls).compile())
        differentiate(controls).block_until_ready()
        gradient, seconds = timed(lambda: differentiate(controls).block_until_ready(), job.repeats)
        forward = jax.jit(loss)
        error = difference_error(
            lambda values: float(forward(jnp.asarray(values))),
            job.controls(),
            np.asarray(gradient, dtype=float),
            job.direction(),
            DIFFERENCE,
        )
    except Exception as failure:
        failed(what, failure)
        return
    emit(
        what=what,
        forward_us=1e6 * forward_seconds,
        backward_us=1e6 * (seconds / job.steps - forward_seconds),
        memory_mb=differentiate.memory_analysis().temp_size_in_bytes / 1e6,
        compile_s=compiling,
        gradient_error=error,
    )
