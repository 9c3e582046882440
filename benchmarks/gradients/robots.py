"""Robots of other makers in contact: one step beside MuJoCo's, and verdicts on the gradient.

    python -m benchmarks.gradients.robots [PACKAGE or ROBOT ...]

Each robot of testbed/robot_catalogue.py whose package is installed stands on a floor, pressed into it by
1 mm where its base floats, and moves for a quarter of a second by MuJoCo. From there:

* *acceleration*: (qvel+ - qvel)/h of one step against `mj_step` (tolerance 0, no warm start), largest
  difference relative to its largest entry, or to 1 m/s^2, with the pyramidal and the elliptic cone;
* *gradient*: how many of five inputs `check_gradient` calls right over 20 steps, with either contact model;
  `s` counts those at a switching point or sensitive, `w` the wrong ones.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection

import mujoco
import numpy as np

from revolute.contract.errors import DivergedError, ModelError
from revolute_engine import Engine, Model, check_gradient
from testbed.robot_catalogue import ROBOTS, Robot
from testbed.robot_starts import standing_start

from .differences import Array

CONES = ("pyramidal", "elliptic")
INPUTS = ("qpos", "qvel", "ctrl", "body_mass", "geom_friction")
LEAST = 1.0
"""Acceleration below which errors are absolute: bodies at rest have rounding errors only."""
SECONDS = 600
"""Processor time after which the run of a robot is stopped."""


def _load(robot: Robot, **options: str) -> Model:
    """Load a robot, with a ground if its file has none."""
    model = robot.load(**options)
    has_plane = np.any(model.arrays["geom_type"] == int(mujoco.mjtGeom.mjGEOM_PLANE))
    return model if has_plane else robot.load(ground=True, **options)


def _state(model: Model) -> tuple[mujoco.MjData, Array]:
    """Return MuJoCo's data after a quarter of a second on the ground, and controls."""
    start, theirs = standing_start(model, pressed=1e-3), model.mujoco_model
    theirs.opt.timestep, theirs.opt.tolerance, theirs.opt.iterations = model.timestep, 0, 200
    theirs.opt.noslip_iterations = 0  # the engine leaves them out, and says so
    data = mujoco.MjData(theirs)
    data.qpos[:], data.qvel[:], data.ctrl[:] = start.qpos, start.qvel[: model.nv], start.ctrl[0]
    mujoco.mj_step(theirs, data, int(0.25 / model.timestep))
    return data, start.ctrl[0]


def _velocities(data: mujoco.MjData) -> Array:
    """Return velocities and activations [nv + na], as the engine has them."""
    return np.concatenate([data.qvel, data.act])


def _acceleration(robot: Robot, cone: str) -> tuple[float, int]:
    """Return the relative difference of one step's acceleration, and the number of contacts."""
    model = _load(robot, cone=cone)
    model.mujoco_model.opt.cone = CONES.index(cone)
    data, ctrl = _state(model)
    qpos, qvel = data.qpos.copy(), _velocities(data)
    data.qacc_warmstart[:] = 0
    mujoco.mj_step(model.mujoco_model, data)
    ours = Engine(threads=1).rollout(model, qpos, qvel, ctrl[None]).qvel[1]
    h, wanted = model.timestep, (_velocities(data) - qvel)[: model.nv] / model.timestep
    errors = np.abs((ours - qvel)[: model.nv] / h - wanted)
    return float(errors.max() / max(np.abs(wanted).max(), LEAST)), int(data.ncon)


def _verdicts(robot: Robot, contact_model: str) -> str:
    """Return how many inputs are right, and how many are not."""
    model = _load(robot, contact_model=contact_model)
    data, _ = _state(_load(robot))
    wrt = [name for name in INPUTS if name != "ctrl" or model.nu]
    try:
        report = check_gradient(
            Engine(threads=1), model, data.qpos.copy(), _velocities(data), steps=20, directions=1, wrt=wrt
        )
    except DivergedError:
        return "diverges"
    verdicts = [check.verdict for check in report.inputs]
    wrong, right = verdicts.count("wrong"), sum(each.startswith(("right", "zero")) for each in verdicts)
    marks = [f"{len(verdicts) - right - wrong} s"] if right + wrong < len(verdicts) else []
    return ", ".join([str(right), *marks, *([f"{wrong} w"] if wrong else [])])


def _cells(robot: Robot) -> Iterator[str]:
    for cone in CONES:
        error, contacts = _acceleration(robot, cone)
        if cone == CONES[0]:
            yield str(contacts)
        yield f"{error:.0e}"
    for contact_model in ("mujoco", "hard"):
        yield _verdicts(robot, contact_model)


def _work(name: str, answers: Connection) -> None:
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    robot = next(robot for robot in ROBOTS if robot.name == name)
    try:
        for cell in _cells(robot):
            answers.send(cell)
    except ModelError:
        answers.send("refused")
    answers.close()


def _row(robot: Robot) -> str:
    """Measure a robot in a process of its own."""
    mine, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_work, args=(robot.name, theirs))
    process.start()
    theirs.close()
    cells = []
    try:
        while True:
            cells.append(mine.recv())
    except EOFError:
        process.join()
    if process.exitcode:
        cells.append("time" if process.exitcode < 0 else "failed")
    cells += ["–"] * (5 - len(cells))
    return f"| {robot.name} | " + " | ".join(cells) + " |"


def table(names: list[str] | None = None) -> str:
    """Return the rows of all installed robots, or of some robots or packages."""
    lines = ["| robot | contacts | pyramidal | elliptic | gradient, mujoco | gradient, hard |"]
    lines.append("|---" * 6 + "|")
    for robot in ROBOTS:
        if robot.file is not None and (not names or robot.package in names or robot.name in names):
            lines.append(_row(robot))
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(sys.argv[1:]))
