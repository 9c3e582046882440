"""MuJoCo MJX: forward with its defaults; reverse with one solver iteration, all that jax.grad accepts."""

from __future__ import annotations

import jax.numpy as jnp
import mujoco
from mujoco import mjx

from .jax_peer import Loss, rollout_loss, time_forward, time_gradients
from .row import Job


def main() -> None:
    """Print rows for the forward passes, the gradient, and the gradient with jax.checkpoint."""
    job = Job.from_command_line()
    plain = mujoco.MjModel.from_xml_path(job.file("laikago.xml"))
    usual = int(plain.opt.iterations)
    time_forward(job, make_loss(job, plain, usual, False), f"forward, {usual} iterations")
    time_gradients(job, make_loss(job, plain, usual, False), 0.0, f"gradient, {usual} iterations")
    seconds = time_forward(job, make_loss(job, plain, 1, False), "forward, 1 iteration")
    time_gradients(job, make_loss(job, plain, 1, False), seconds, "gradient, 1 iteration")
    time_gradients(job, make_loss(job, plain, 1, True), seconds, "gradient, 1 iteration, jax.checkpoint")


def make_loss(job: Job, plain: mujoco.MjModel, iterations: int, checkpoint: bool) -> Loss:
    """Return |final base position|^2 as a function of the controls."""
    model = mjx.put_model(plain)
    model = model.replace(opt=model.opt.replace(iterations=iterations))
    start = mjx.make_data(plain).replace(qpos=jnp.asarray(job.start()))
    return rollout_loss(
        lambda state, ctrl: mjx.step(model, state.replace(ctrl=ctrl)),
        start,
        lambda state: state.qpos[:3],
        checkpoint,
    )


if __name__ == "__main__":
    main()
