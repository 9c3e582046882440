"""brax's generalized pipeline: forward, reverse, and reverse with jax.checkpoint."""

from __future__ import annotations

import jax.numpy as jnp
from brax.generalized import pipeline
from brax.io import mjcf

from .jax_peer import Loss, rollout_loss, time_forward, time_gradients
from .row import Job


def main() -> None:
    """Print the rows."""
    job = Job.from_command_line()
    seconds = time_forward(job, make_loss(job, False), "generalized, forward")
    time_gradients(job, make_loss(job, False), seconds, "generalized, gradient")
    time_gradients(job, make_loss(job, True), seconds, "generalized, gradient, jax.checkpoint")


def make_loss(job: Job, checkpoint: bool) -> Loss:
    """Return |final base position|^2 as a function of the controls."""
    system = mjcf.load(job.file("laikago_fused.xml"))
    start = pipeline.init(system, jnp.asarray(job.start()), jnp.zeros(system.qd_size()))
    return rollout_loss(
        lambda state, ctrl: pipeline.step(system, state, ctrl), start, lambda state: state.q[:3], checkpoint
    )


if __name__ == "__main__":
    main()
