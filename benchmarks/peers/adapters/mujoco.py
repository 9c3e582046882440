"""MuJoCo: mj_step looped in C by mujoco.rollout; the gradient as a chain of mjd_transitionFD."""

from __future__ import annotations

import mujoco
import numpy as np
from mujoco import rollout

from .row import Job, difference_error, emit, timed

BATCH = 64
STEP = 1e-6  # of mjd_transitionFD
DIFFERENCE = 1e-5


class Chain:
    """The robot, its loss |final base position|^2, and the gradient by the joint targets."""

    def __init__(self, job: Job, file: str) -> None:
        self.model = mujoco.MjModel.from_xml_path(job.file(file))
        self.data = mujoco.MjData(self.model)
        self.start = job.start()

    def states(self, batch: int) -> np.ndarray:
        """Return the start state for mujoco.rollout, [batch, state]."""
        kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = self.start
        state = np.empty(mujoco.mj_stateSize(self.model, kind))
        mujoco.mj_getState(self.model, self.data, state, kind)
        return np.tile(state, (batch, 1))

    def loss(self, controls: np.ndarray) -> float:
        """Return |final base position|^2."""
        states, _ = rollout.rollout(self.model, self.data, self.states(1), controls[None])
        return float(np.sum(states[0, -1, 1:4] ** 2))

    def gradient(self, controls: np.ndarray, centred: bool) -> np.ndarray:
        """Return the gradient by the controls, [steps, nu]: a Jacobian of each step, chained backwards."""
        nv, nu, steps = self.model.nv, self.model.nu, len(controls)
        by_state, by_ctrl = np.empty((steps, 2 * nv, 2 * nv)), np.empty((steps, 2 * nv, nu))
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = self.start
        for t, ctrl in enumerate(controls):
            self.data.ctrl[:] = ctrl
            mujoco.mjd_transitionFD(self.model, self.data, STEP, centred, by_state[t], by_ctrl[t], None, None)
            mujoco.mj_step(self.model, self.data)
        bar = np.zeros(2 * nv)
        bar[:3] = 2 * self.data.qpos[:3]
        out = np.empty_like(controls)
        for t in reversed(range(steps)):
            out[t] = bar @ by_ctrl[t]
            bar = bar @ by_state[t]
        return out


def main() -> None:
    """Print rows with and without contacts."""
    job = Job.from_command_line()
    for file, name in (("laikago.xml", "standing"), ("laikago_free.xml", "no contacts")):
        chain = Chain(job, file)
        controls = job.controls()
        chain.loss(controls)
        _, forward = timed(lambda: chain.loss(controls), job.repeats)  # noqa: B023
        for centred in (False, True):
            gradient, seconds = timed(lambda: chain.gradient(controls, centred), 3)  # noqa: B023
            emit(
                what=f"{name}, transitionFD {'centred' if centred else 'one-sided'}, chained",
                forward_us=1e6 * forward / job.steps,
                backward_us=1e6 * (seconds - forward) / job.steps,
                gradient_error=difference_error(chain.loss, controls, gradient, job.direction(), DIFFERENCE),
            )
    chain = Chain(job, "laikago.xml")
    batch = np.tile(job.controls(), (BATCH, 1, 1))
    _, seconds = timed(
        lambda: rollout.rollout(chain.model, chain.data, chain.states(BATCH), batch), job.repeats
    )
    emit(what=f"standing, rollout of {BATCH}", forward_us=1e6 * seconds / job.steps / BATCH)


if __name__ == "__main__":
    main()
