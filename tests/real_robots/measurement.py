"""Measures one robot in a process of its own, within limits of time and memory.

    python -m tests.real_robots.measurement ROBOT alone|ground SECONDS GIGABYTES

Each part is printed as a line of JSON as soon as it is measured, so that a robot that is cut off keeps what
it had. `alone`: the smooth dynamics against MuJoCo and Pinocchio, and the gradient in the air. `ground`: the
gradient in contact, standing and lying.
"""

from __future__ import annotations

import hashlib
import json
import math
import resource
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import revolute_engine
from revolute.contract.errors import DivergedError, ModelError
from revolute_engine import Engine, Model, check_gradient
from revolute_engine.gradient_check.start import default_ctrl
from testbed.robot_catalogue import FREE_OF_CONSTRAINTS, ROBOTS, Robot
from testbed.robot_starts import on_the_ground, standing_start

from .mujoco_reference import Array, is_lone_free_body
from .smooth_dynamics import compare_steps, compare_trajectories, mujoco_compiles, smooth_models

CHECKED_STEPS = 20
SETTLING = 1.0
"""Seconds that a robot has to come to lie."""

SEED = 0
GROUND_INPUTS = ("qpos", "qvel", "ctrl", "body_mass", "geom_friction")

Figures = dict[str, Any]


def engine_digest() -> str:
    """Return a short name of the engine that is installed: a hash of its code, compiled and Python."""
    digest = hashlib.sha256(mujoco.__version__.encode())
    folders = {Path(str(folder)) for folder in revolute_engine.__path__}
    folders.add(Path(str(revolute_engine.native._extension.__file__)).parent)
    files = (path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".so"))
    for path in sorted(files, key=lambda path: path.name):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def alone(robot: Robot) -> Iterator[Figures]:
    """Measure a robot that touches nothing; the last part says how much there is to do on the ground."""
    try:
        robot.load(**FREE_OF_CONSTRAINTS)
    except ModelError as error:
        yield {"refused": _reason(robot, error)}
        return
    model, reference = smooth_models(robot, "euler")
    lone = is_lone_free_body(reference)
    yield {"nv": model.nv, "lone": lone, "mujoco_compiles": mujoco_compiles(robot)}
    option = reference.opt
    in_medium = bool(option.density or option.viscosity)
    integrators = ["euler"] if lone or in_medium else ["euler", "implicitfast"]
    longs = [compare_trajectories(robot, integrator) for integrator in integrators]
    yield {
        "steps": [compare_steps(robot, integrator).state for integrator in integrators],
        "long": max(long.error for long in longs),
        "growth": max(long.growth for long in longs),
    }
    yield {"pinocchio": _pinocchio(robot)}
    try:
        on_ground = on_the_ground(robot)
    except ModelError as error:
        yield {"refused_in_part": _reason(robot, error)}
    else:
        yield {"pairs": len(on_ground.arrays["pair_geom1"]), "hull_pairs": _hull_pairs(on_ground)}
    try:
        in_the_air = robot.load(contact=False)
    except ModelError:  # limits that are not supported, which is why the load above was refused too
        return
    yield {"air": _verdicts(in_the_air)}


def ground(robot: Robot) -> Iterator[Figures]:
    """Check the gradient in contact: from where the robot just stands, and from where it lies later."""
    model = on_the_ground(robot)
    wrt = [name for name in GROUND_INPUTS if name != "ctrl" or model.nu]
    start = standing_start(model)
    yield {"standing": _verdicts(model, wrt, (start.qpos, start.qvel))}
    ctrl = default_ctrl(model, start.qpos, int(SETTLING / model.timestep), np.random.default_rng(SEED))
    rollout = Engine(threads=1).rollout(model, start.qpos, start.qvel, ctrl)
    if rollout.status:
        yield {"lying": {"diverged": f"before it lies, at step {rollout.diverged_step}"}}
    else:
        yield {"lying": _verdicts(model, wrt, (rollout.qpos[-1], rollout.qvel[-1]))}


def _hull_pairs(model: Model) -> int:
    """Return the number of pairs with a mesh in them, which cost most."""
    is_mesh = model.arrays["geom_type"] == int(mujoco.mjtGeom.mjGEOM_MESH)
    pairs = model.arrays["pair_geom1"], model.arrays["pair_geom2"]
    return int(np.count_nonzero(is_mesh[pairs[0]] | is_mesh[pairs[1]]))


def _verdicts(
    model: Model, wrt: Sequence[str] | None = None, start: tuple[Array | None, Array | None] = (None, None)
) -> Figures:
    """Return what `check_gradient` says of each input, from a start or from its own."""
    try:
        report = check_gradient(
            Engine(threads=1), model, *start, steps=CHECKED_STEPS, directions=1, wrt=wrt, seed=SEED
        )
    except DivergedError as error:
        return {"diverged": str(error)}
    return {"inputs": [[check.name, check.verdict, check.reason] for check in report.inputs]}


def _pinocchio(robot: Robot) -> float | str | None:
    """Return the largest of the relative errors, why there is none, or None for MJCF."""
    if not robot.is_urdf:
        return None
    from .pinocchio_reference import UnreadableError, compare

    try:
        figures = compare(robot)
    except UnreadableError as error:
        return str(error)
    return max(figures.acceleration, figures.inertia, figures.by_qpos, figures.by_qvel)


def _reason(robot: Robot, error: ModelError) -> str:
    """Return an error's message without the file's name."""
    assert robot.file is not None
    return str(error).removeprefix(f"{robot.file.name}: ")


def main(name: str, part: str, seconds: float) -> int:
    """Measure a part of one robot; returns the exit status."""
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
    warnings.simplefilter("ignore")
    robot = next(robot for robot in ROBOTS if robot.name == name)
    for figures in {"alone": alone, "ground": ground}[part](robot):
        print(json.dumps({"engine": engine_digest(), **figures}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
