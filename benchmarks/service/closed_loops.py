"""Compares closed loops inside one call with the same loops as one call per control, and with open loops.

    python -m benchmarks.service.closed_loops [--repeats 9] [--quick] [--out closed_loops.json]

A cart-pole's model-predictive control by iLQR (one rollout, the Jacobians of 50 steps, a line search over ten
step lengths), that line search alone over 100 steps, and the policy gradient of 64 ants. Each row stands
beside another way to the same result in the same run.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import revolute
from testbed.server_process import running_server

from ..script import Effort, script
from ..table import Table

ALPHAS = 0.5 ** np.arange(10)
HORIZON, LONG = 50, 100
ANTS, CONTROLS, HOLD, WIDTH = 64, 32, 2, 64


def seconds(calls: list[Callable[[], object]], repeats: int) -> list[float]:
    """Return the median time of each call; they take turns."""
    taken: list[list[float]] = [[] for _ in calls]
    for turn in range(repeats + 1):
        for place, call in enumerate(calls):
            began = time.perf_counter()
            call()
            if turn:
                taken[place].append(time.perf_counter() - began)
    return [median(each) for each in taken]


class CartPole:
    """A cart-pole with nominal controls and gains of random size.

    Args:
        simulator: simulates it.
        steps: length of the nominal trajectory.
    """

    def __init__(self, simulator: revolute.Simulator, steps: int) -> None:
        random = np.random.default_rng(0)
        self.simulator = simulator
        self.model = simulator.load_model("cartpole", timestep=0.02)
        self.start = self.model.keyframes["hanging"], self.model.qvel0
        self.ctrl, self.change = random.normal(size=(2, steps, 1))
        self.gain = 0.1 * random.normal(size=(steps, 1, 4))
        with simulator.rollout(self.model, *self.start, self.ctrl) as nominal:
            self.qpos, self.qvel = nominal.qpos, nominal.qvel

    def search(self) -> np.ndarray:
        """Return the final states of a line search, in one call."""
        feedback = revolute.Feedback(self.gain, self.qpos[:-1], self.qvel[:-1])
        ctrl = self.ctrl + ALPHAS[:, None, None] * self.change
        found = self.simulator.rollout(
            self.model, *self.start, ctrl, feedback=feedback, checkpoints="none", states="all"
        )
        return found.final_qpos

    def search_step_by_step(self) -> np.ndarray:
        """Return the same with one call per step of a session."""
        with self.simulator.session(self.model, len(ALPHAS)) as session:
            state = session.reset(*self.start)
            for t, gain in enumerate(self.gain):
                error = np.concatenate([state.qpos - self.qpos[t], state.qvel - self.qvel[t]], axis=1)
                state = session.step(self.ctrl[t] + ALPHAS[:, None] * self.change[t] + error @ gain.T)
            return state.qpos

    def control(self) -> np.ndarray:
        """Return the first control that one iteration of iLQR finds."""
        with self.simulator.rollout(self.model, *self.start, self.ctrl) as nominal:
            self.qpos, self.qvel = nominal.qpos, nominal.qvel
        step = self.simulator.jacobian(self.model, self.qpos[:-1], self.qvel[:-1], self.ctrl)
        states = np.concatenate([self.qpos, self.qvel], axis=1)
        self.change, self.gain = riccati(step.A, step.B, states, self.ctrl)
        return self.search()


def riccati(by_x: Any, by_u: Any, states: np.ndarray, ctrl: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the changes of the controls and the gains of one backward sweep of iLQR."""
    running, final, effort = 0.01 * np.eye(4), np.diag([1.0, 10.0, 0.1, 0.1]), 1e-3
    value, slope = final, final @ states[-1]
    change, gain = np.empty_like(ctrl), np.empty((len(ctrl), 1, 4))
    for t in reversed(range(len(ctrl))):
        by_state, by_ctrl = running @ states[t] + by_x[t].T @ slope, effort * ctrl[t] + by_u[t].T @ slope
        curvature = effort + (by_u[t].T @ value @ by_u[t])[0, 0]
        mixed = by_u[t].T @ value @ by_x[t]
        change[t], gain[t] = -by_ctrl / curvature, -mixed / curvature
        value = running + by_x[t].T @ value @ by_x[t] + mixed.T @ gain[t]
        slope = by_state + mixed.T @ change[t]
    return change, gain


STATE = {"qpos": 17, "qvel": 14}
"""Observations of the ant's policy, with their sizes."""
TASK_SPACE = {"body_mat:torso": 9, "subtree_com:torso": 3, "body_linvel:torso": 3}


def ant_calls(
    simulator: revolute.Simulator, observe: dict[str, int] = STATE, ants: int = ANTS
) -> list[Callable[[], object]]:
    """Return a policy gradient, and the gradient by the controls that this policy applies."""
    model, random = simulator.load_model("ant"), np.random.default_rng(0)
    qpos = np.repeat(model.qpos0[None], ants, axis=0)
    qpos[:, 2] = 0.55
    qpos[:, 7:] += 0.1 * random.normal(size=(ants, model.nq - 7))
    start = qpos, 0.1 * random.normal(size=(ants, model.nv))
    noise = 0.3 * random.normal(size=(ants, CONTROLS, model.nu))
    sizes = [sum(observe.values()), WIDTH, WIDTH, model.nu]
    weights = []
    for inputs, outputs in itertools.pairwise(sizes):
        weights += [random.normal(size=(outputs, inputs)) / np.sqrt(inputs), np.zeros(outputs)]
    policy = revolute.MLP(weights, list(observe), scale=0.3)
    applied = simulator.rollout(model, *start, noise, hold=HOLD, policy=policy).ctrl
    loss = revolute.Term("qpos", index=[0], form="linear", when="running")
    names = ["policy.weights"]
    return [
        lambda: simulator.value_and_gradient(model, *start, noise, loss, hold=HOLD, policy=policy, wrt=names),
        lambda: simulator.value_and_gradient(model, *start, applied, loss, hold=HOLD, wrt=["ctrl"]),
    ]


def measure(effort: Effort) -> list[Table]:
    """Return the table over loops and transports."""
    table = Table(
        "closed_loops",
        "Closed loops in one call, over gRPC on loopback and in process.",
        {
            "loop": "loop",
            "transport": "transport",
            "ms": "ms",
            "beside": "beside",
            "other_ms": "ms of that",
            "ratio": "ratio",
        },
    )

    def row(loop: str, transport: str, own: float, beside: str, other: float) -> None:
        ratio = f"{own / other:.2f}"
        cells = (loop, transport, 1e3 * own, beside, 1e3 * other, ratio)
        table.rows.append(dict(zip(table.columns, cells, strict=True)))
        print(table.rows[-1], flush=True)

    with running_server() as server, revolute.connect() as local, revolute.connect(server.grpc) as remote:
        for transport, simulator in {"in process": local, "gRPC": remote}.items():
            pole = CartPole(simulator, LONG)
            np.testing.assert_allclose(pole.search(), pole.search_step_by_step(), atol=1e-8)
            one, many = seconds([pole.search, pole.search_step_by_step], effort.repeats)
            row("line search, 10 of 100 steps", transport, one, "one call per step", many)
            far, near = CartPole(simulator, HORIZON), CartPole(local, HORIZON)
            one, other = seconds([far.control, near.control], effort.repeats)
            row("iLQR of 50 steps", transport, one, "in process", other)
            one, other = seconds(ant_calls(simulator), effort.repeats)
            row("policy gradient of 64 ants", transport, one, "the same without policy", other)
            one, other = seconds(ant_calls(simulator, STATE | TASK_SPACE), effort.repeats)
            row("the same, observing poses", transport, one, "the same without policy", other)
        one, other = seconds([ant_calls(each)[0] for each in (remote, local)], effort.repeats)
        row("policy gradient of 64 ants", "gRPC", one, "in process", other)
    return [table]


if __name__ == "__main__":
    script("benchmarks.service.closed_loops", __doc__, measure)
