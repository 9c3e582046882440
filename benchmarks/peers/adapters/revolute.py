"""revolute, through its public interface, by the same rules as its peers."""

from __future__ import annotations

import numpy as np

import revolute

from ...memory import with_peak
from .row import Job, difference_error, emit, timed

BATCH = 64
DIFFERENCE = 1e-5


class Standing:
    """The robot, its loss |final base position|^2, and the gradient by the joint targets."""

    def __init__(self, job: Job, file: str) -> None:
        self.simulator = revolute.connect(threads=1)
        self.model = self.simulator.load_model(job.file(file), contact_model="hard")
        self.start = job.start()

    def rollout(self, controls: np.ndarray) -> revolute.Trajectory:
        """Return the trajectory from standing."""
        return self.simulator.rollout(self.model, self.start, self.model.qvel0, controls)

    def loss(self, controls: np.ndarray) -> float:
        """Return |final base position|^2."""
        return float(np.sum(self.rollout(controls).qpos[-1, :3] ** 2))

    def backward(self, trajectory: revolute.Trajectory) -> np.ndarray:
        """Return the gradient by the controls."""
        qpos_bar = np.zeros(trajectory.qpos.shape)
        qpos_bar[..., -1, :3] = 2 * trajectory.qpos[..., -1, :3]
        return trajectory.backward(qpos_bar, wrt=["qpos", "qvel", "ctrl"]).ctrl


def main() -> None:
    """Print rows with and without contacts, and of a batch."""
    job = Job.from_command_line()
    for file, name in (("laikago.xml", "standing"), ("laikago_free.xml", "no contacts")):
        standing = Standing(job, file)
        controls = job.controls()
        standing.loss(controls)
        trajectory, forward = timed(lambda: standing.rollout(controls), job.repeats)  # noqa: B023
        gradient, backward = timed(lambda: standing.backward(trajectory), job.repeats)  # noqa: B023
        _, memory = with_peak(lambda: standing.backward(standing.rollout(controls)))  # noqa: B023
        emit(
            what=f"{name}, rollout and backward",
            forward_us=1e6 * forward / job.steps,
            backward_us=1e6 * backward / job.steps,
            gradient_error=difference_error(standing.loss, controls, gradient, job.direction(), DIFFERENCE),
            memory_mb=memory,
        )
    standing = Standing(job, "laikago.xml")
    batch = np.tile(job.controls(), (BATCH, 1, 1))
    trajectory, forward = timed(lambda: standing.rollout(batch), job.repeats)
    _, backward = timed(lambda: standing.backward(trajectory), job.repeats)
    emit(
        what=f"standing, batch of {BATCH}",
        forward_us=1e6 * forward / job.steps / BATCH,
        backward_us=1e6 * backward / job.steps / BATCH,
    )


if __name__ == "__main__":
    main()
