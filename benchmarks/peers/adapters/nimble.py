"""nimblephysics: a step with its LCP contacts as a torch function; y is up, on a box as floor.

The joint targets become torques outside the engine, in torch, so that the gradient by the targets is the
same question as for the others.
"""

from __future__ import annotations

import nimblephysics as nimble
import numpy as np
import torch

from .row import Job, difference_error, emit, timed

STIFFNESS, DAMPING, FRICTION = 220.0, 4.0, 0.8
DIFFERENCE = 1e-5
FLOOR = """<robot name="floor"><link name="world"/><link name="slab">
<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
<collision><origin xyz="0 -0.5 0"/><geometry><box size="20 1 20"/></geometry></collision></link>
<joint name="hold" type="fixed"><parent link="world"/><child link="slab"/></joint></robot>"""


class Standing:
    """The robot on the floor, and its loss as a function of the joint targets."""

    def __init__(self, job: Job) -> None:
        floor = job.folder / "floor.urdf"
        floor.write_text(FLOOR, "utf-8")
        self.world = nimble.simulation.World()
        self.world.setGravity([0.0, -9.81, 0.0])
        self.world.setTimeStep(0.002)
        self.world.loadSkeleton(str(floor))
        robot = self.world.loadSkeleton(job.file("laikago.urdf"))
        for skeleton in (self.world.getSkeleton(0), robot):
            for i in range(skeleton.getNumBodyNodes()):
                skeleton.getBodyNode(i).setFrictionCoeff(FRICTION)
        start = job.start()
        # root: rotation vector that turns z up into y up, then position
        q = np.concatenate([[-np.pi / 2, 0, 0], [start[0], start[2], -start[1]], start[7:]])
        self.start = torch.tensor(np.concatenate([q, np.zeros(18)]))

    def loss(self, targets: torch.Tensor) -> torch.Tensor:
        """Return |final base position|^2."""
        state = self.start
        root = torch.zeros(6, dtype=torch.float64)
        for target in targets:
            torque = STIFFNESS * (target - state[6:18]) - DAMPING * state[24:36]
            state = nimble.timestep(self.world, state, torch.cat([root, torque]))
        return torch.sum(state[3:6] ** 2)

    def value(self, controls: np.ndarray) -> float:
        """Return the loss without a graph."""
        with torch.no_grad():
            return float(self.loss(torch.tensor(controls)))


def main() -> None:
    """Print the row of the rollout and its gradient."""
    torch.set_num_threads(1)
    job = Job.from_command_line()
    standing = Standing(job)
    controls = job.controls()
    standing.value(controls[:2])
    value, seconds = timed(lambda: standing.value(controls), job.repeats)

    def differentiate() -> np.ndarray:
        targets = torch.tensor(controls, requires_grad=True)
        standing.loss(targets).backward()
        assert targets.grad is not None
        return targets.grad.numpy()

    gradient, total = timed(differentiate, job.repeats)
    emit(
        what="rollout and gradient",
        forward_us=1e6 * seconds / job.steps,
        backward_us=1e6 * (total - seconds) / job.steps,
        gradient_error=difference_error(standing.value, controls, gradient, job.direction(), DIFFERENCE),
        note=f"final height {np.sqrt(value):.3f} m",
    )


if __name__ == "__main__":
    main()
