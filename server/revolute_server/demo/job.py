"""The demo's computation: loads a robot, differentiates a loss by all controls, and repeats it in process."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

import revolute
from revolute.contract.errors import DivergedError
from revolute.contract.load_options import Base
from revolute.render import compiled_model

from .gradient_check import GradientCheck, check_gradient
from .scene import Scene, any_robot, laikago

STEPS = 1000
STEPS_OF_A_FILE = 200  # an unknown robot may fall over, and the derivative of a long fall is useless
FEWEST_STEPS = 25
TIMESTEP = 2e-3
REPEATS = 5


@dataclass(frozen=True)
class Robot:
    """A robot to load on the server and in this process.

    Attributes:
        path: URDF or MJCF file; None for the built-in laikago.
        base: "free" or "fixed" for a URDF's base; None for free, and for the file's own base of an MJCF file.
    """

    path: str | None = None
    base: Base | None = None

    def load(self, simulator: revolute.Simulator) -> Any:
        """Load the robot and return its handle; a URDF with a free base gets a ground."""
        if self.path is None:
            return simulator.load_model("laikago", timestep=TIMESTEP)
        urdf = self.path.lower().endswith(".urdf")
        base: Base | None = self.base or ("free" if urdf else None)
        return simulator.load_model(self.path, base=base, ground=urdf and base == "free")

    def scene(self, model: Any, steps: int) -> Scene:
        """Return the start, the controls and the moved coordinate for the loaded robot."""
        if self.path is None:
            return laikago(model, steps)
        return any_robot(model, compiled_model(model), steps)


@dataclass(frozen=True)
class Task:
    """A scene with its loss, first rollout, gradient, and the check of that gradient."""

    scene: Scene
    loss: revolute.Loss
    target: float
    first: revolute.Trajectory
    value: float
    gradient: np.ndarray
    check: GradientCheck


def prepare(simulator: revolute.Simulator, robot: Robot, steps: int | None) -> Task:
    """Load the robot, simulate it, differentiate its loss by all controls and check the gradient.

    Args:
        simulator: a connected simulator.
        robot: the robot.
        steps: length of the rollout. None for the default length, which is halved for a file as long as the
            gradient check is inconclusive.

    Raises:
        RevoluteError: the robot cannot be loaded, has no actuators, or its rollout diverges.
    """
    model = robot.load(simulator)
    count = steps or (STEPS if robot.path is None else STEPS_OF_A_FILE)
    while True:
        task = _differentiate(simulator, robot.scene(model, count))
        if steps or robot.path is None or task.check.conclusive or count // 2 < FEWEST_STEPS:
            return task
        count //= 2


def _differentiate(simulator: revolute.Simulator, scene: Scene) -> Task:
    """Simulate the scene, derive its loss, and compute and check the gradient."""
    first = rollout(simulator, scene, scene.ctrl)
    loss, target = scene.task(first.qpos)
    value, gradient = _value_and_gradient(simulator, scene, loss)
    return Task(scene, loss, target, first, value, gradient, check_gradient(simulator, scene, loss, gradient))


def rollout(simulator: revolute.Simulator, scene: Scene, ctrl: np.ndarray) -> revolute.Trajectory:
    """Simulate one environment.

    Raises:
        DivergedError: its state becomes non-finite.
    """
    trajectory = simulator.rollout(scene.model, scene.qpos, scene.qvel, ctrl)
    if trajectory.status.any():
        step = int(trajectory.diverged_step.max())
        raise DivergedError(f"rollout: expected finite states, got none after step {step}; use fewer --steps")
    return trajectory


def _value_and_gradient(
    simulator: revolute.Simulator, scene: Scene, loss: revolute.Loss
) -> tuple[float, np.ndarray]:
    """Return the loss and its gradient by the controls, in one round trip."""
    value, gradient = simulator.value_and_gradient(
        scene.model, scene.qpos, scene.qvel, scene.ctrl, loss, wrt=("ctrl",)
    )
    return value, np.array(gradient.ctrl)


def measure(simulator: revolute.Simulator, task: Task) -> tuple[float, float]:
    """Return the median µs per step of a rollout and of its backward pass, measured in this client."""
    scene, seconds = task.scene, []
    for _ in range(REPEATS):
        start = perf_counter()
        with rollout(simulator, scene, scene.ctrl) as trajectory:
            rolled_out = perf_counter()
            bars = task.loss.evaluate(trajectory.qpos, trajectory.qvel, trajectory.ctrl)
            evaluated = perf_counter()
            trajectory.backward(bars.qpos_bar, bars.qvel_bar)
            seconds.append((rolled_out - start, perf_counter() - evaluated))
    forward, backward = np.median(seconds, axis=0) * 1e6 / len(scene.ctrl)
    return float(forward), float(backward)


def repeat_in_process(robot: Robot, task: Task, threads: int | None) -> tuple[tuple[float, float], bool]:
    """Repeat the task with the engine in this process.

    Returns:
        µs per step, forward and backward, and whether loss and gradient have the same bits.
    """
    with revolute.connect(threads=threads) as simulator, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        local = replace(task, scene=replace(task.scene, model=robot.load(simulator)))
        times = measure(simulator, local)
        value, gradient = _value_and_gradient(simulator, local.scene, task.loss)
    return times, value == task.value and np.array_equal(gradient, task.gradient)
