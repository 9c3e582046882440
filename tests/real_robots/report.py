"""Writes docs/robots.md: every robot, how far it is from MuJoCo and Pinocchio, and its gradients.

    python -m tests.real_robots.report docs/robots.md

Takes about ten minutes on one core. Figures are measured; nothing is kept from an earlier page.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import mujoco

from revolute.errors import DivergedError, ModelError
from revolute_engine import Engine, Model, check_gradient

from .catalogue import FREE_OF_CONSTRAINTS, ROBOTS, Robot
from .gradients import on_the_ground
from .mujoco_reference import is_lone_free_body
from .smooth_dynamics import (
    SAMPLES,
    STEPS,
    compare_steps,
    compare_trajectories,
    mujoco_compiles,
    smooth_models,
)

CHECKED_STEPS = 20
GROUND_INPUTS = ("qpos", "qvel", "ctrl", "body_mass", "geom_friction")
MOST_PAIRS = 400
"""Robots with more pairs of shapes to watch are not checked on the ground, which would take minutes each."""

HEAD = """# Robots of others' making

Robot files from Python packages, as they are shipped: {loaded} of {tried} load. Written by
`python -m tests.real_robots.report docs/robots.md` from the robots in `tests/real_robots/catalogue.py`; the
tests beside it hold the figures below their tolerances.

{packages}

## Smooth dynamics and gradients

Contacts, limits, dry friction and equality constraints are off in the first figures.

* *step*: one step from {samples} random states with random controls, against `mj_step`: largest difference of
  qpos and of qvel, each relative to its largest entry; Euler and implicitfast.
* *{steps} steps*: the larger of the two integrators' differences over a trajectory, relative to the largest
  entry ever; in brackets by how much MuJoCo's own trajectory amplifies a small change of the start.
* *Pinocchio*: acceleration, M(q) M(q)⁻¹ = 1, and the derivatives of the acceleration by q and v, the largest
  of the four relative errors; URDF only.
* *air*: what `check_gradient` finds contact-free over {checked} steps, with limits and dry friction, for all
  inputs and parameters; *ground*: with contacts on the file's floor or `ground=True`, for qpos, qvel, ctrl,
  body_mass and geom_friction. A number counts the inputs whose gradient is right (or without influence), `s`
  those at a switching point or sensitive, `w` those that failed. A dash: nothing could touch, or the contacts
  are refused (reasons below).

| robot | kind | nv | step, Euler | step, implicitfast | {steps} steps | Pinocchio | air | ground |
|---|---|---|---|---|---|---|---|---|
"""

NOTES = """
`†` The robot is a single free body. MuJoCo (since 3.11) gives such bodies gyroscopic derivatives under
implicitfast, which the integrator leaves out everywhere else; revolute leaves them out for them too, so
implicitfast is not compared. `‡` The trajectory diverges from the default start of the check. `§` Not
checked: more than {most} pairs of shapes. `¶` MuJoCo refuses the file (moments of inertia that no body has);
it simulates what revolute's loader made of it, and Pinocchio is the independent judge.
"""


@dataclass(frozen=True)
class Row:
    """One line of the table, and why contacts were refused."""

    cells: tuple[str, ...]
    refused_contacts: str = ""


def measure(robot: Robot, engine: Engine) -> Row:
    """Measure one robot that loads."""
    model, reference = smooth_models(robot, "euler")
    alone = is_lone_free_body(reference)
    integrators = ["euler"] if alone else ["euler", "implicitfast"]
    steps = [_figure(compare_steps(robot, integrator).state) for integrator in integrators]
    longs = [compare_trajectories(robot, integrator) for integrator in integrators]
    error, growth = max(long.error for long in longs), max(long.growth for long in longs)
    air = _verdicts(engine, robot.load(contact=False))
    ground, refused = _on_the_ground(engine, robot)
    cells = (
        f"{robot.name}{' †' if alone else ''}{'' if mujoco_compiles(robot) else ' ¶'}",
        robot.kind,
        str(model.nv),
        *steps,
        *([] if not alone else ["–"]),
        f"{_figure(error)} ({growth:.0g})",
        _pinocchio(robot),
        air,
        ground,
    )
    return Row(cells, refused)


def _on_the_ground(engine: Engine, robot: Robot) -> tuple[str, str]:
    try:
        model = on_the_ground(robot)
    except ModelError as error:
        return "–", reason(robot, error)
    pairs = len(model.arrays["pair_geom1"])
    if not pairs or pairs > MOST_PAIRS:
        return "§" if pairs else "–", ""
    return _verdicts(engine, model, [name for name in GROUND_INPUTS if name != "ctrl" or model.nu]), ""


def _verdicts(engine: Engine, model: Model, wrt: list[str] | None = None) -> str:
    """Return the verdicts of `check_gradient` in short."""
    try:
        report = check_gradient(engine, model, steps=CHECKED_STEPS, directions=1, wrt=wrt)
    except DivergedError:
        return "‡"
    counts = Counter(check.verdict for check in report.inputs)
    right = counts["right"] + counts["right step by step"] + counts["zero"]
    soft = counts["at a switching point"] + counts["sensitive"]
    parts = [str(right), f"{soft} s" if soft else "", f"{counts['wrong']} w" if counts["wrong"] else ""]
    return ", ".join(part for part in parts if part)


def _pinocchio(robot: Robot) -> str:
    if not robot.is_urdf:
        return "–"
    from .pinocchio_reference import UnreadableError, compare

    try:
        figures = compare(robot)
    except UnreadableError:
        return "refused"
    return _figure(max(figures.acceleration, figures.inertia, figures.by_qpos, figures.by_qvel))


def _figure(value: float) -> str:
    return "0" if value == 0 else f"{value:.0e}".replace("e-0", "e-")


def reason(robot: Robot, error: ModelError) -> str:
    """Return an error's message without the file's name."""
    message = str(error)
    assert robot.file is not None
    return message.removeprefix(f"{robot.file.name}: ").replace("|", "\\|")


def feature(message: str) -> str:
    """Return what a refusal is about, without the names in it."""
    bare = re.sub(r"'[^']*'", "…", message)
    bare = re.sub(r"\bgeom \d+ of body …|geom …", "geom", bare)
    bare = re.sub(r"line \d+(, column \d+)?", "line …", bare)
    found = re.search(r"contact of (.+? against .+?) is not supported", bare)
    return f"contact of {found.group(1)}" if found else re.split(r"; |, got |, in ", bare)[0]


def _packages() -> str:
    names = sorted({robot.package for robot in ROBOTS if robot.file is not None})
    versions = [f"{name} {metadata.version(name)}" for name in names]
    return f"Packages: {', '.join(versions)}; MuJoCo {mujoco.__version__}."


def _table(title: str, text: str, entries: list[tuple[str, str]]) -> str:
    """Return refusals counted by feature, then one by one."""
    counts = Counter(feature(message) for _, message in entries)
    lines = [f"\n## {title}\n", f"{text}\n", "| robots | feature |", "|---|---|"]
    lines += [f"| {count} | {name} |" for name, count in counts.most_common()]
    lines += ["", "| robot | reason |", "|---|---|"]
    lines += [f"| {name} | {message} |" for name, message in entries]
    return "\n".join(lines) + "\n"


def main(path: Path) -> None:
    """Measure all robots and write the page."""
    warnings.simplefilter("ignore")
    engine = Engine()
    rows: list[Row] = []
    refused: list[tuple[str, str]] = []
    refused_contacts: list[tuple[str, str]] = []
    for robot in ROBOTS:
        if robot.file is None:
            print(f"{robot.name}: {robot.package} is not installed", file=sys.stderr)
            continue
        try:
            robot.load(**FREE_OF_CONSTRAINTS)
        except ModelError as error:
            refused.append((robot.name, reason(robot, error)))
            continue
        row = measure(robot, engine)
        rows.append(row)
        if row.refused_contacts:
            refused_contacts.append((robot.name, row.refused_contacts))
        print(*row.cells, sep="  ", flush=True)
    head = HEAD.format(
        loaded=len(rows),
        tried=len(rows) + len(refused),
        packages=_packages(),
        samples=SAMPLES,
        steps=STEPS,
        checked=CHECKED_STEPS,
    )
    table = "".join(f"| {' | '.join(row.cells)} |\n" for row in rows)
    page = head + table + NOTES.format(most=MOST_PAIRS)
    page += _table("What does not load", "Refused even without contacts, limits and dry friction.", refused)
    if refused_contacts:
        page += _table("What loads only without contacts", "`contact=False` loads these.", refused_contacts)
    path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
