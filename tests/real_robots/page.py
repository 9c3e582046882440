"""The page benchmarks/results/robots.md from the figures of all robots; nothing is measured here."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from testbed.robot_catalogue import Robot

from .measurement import CHECKED_STEPS, SETTLING, Figures
from .processes import Limits
from .smooth_dynamics import SAMPLES, STEPS

RIGHT = ("right", "right step by step", "zero")
SOFT = ("at a switching point", "sensitive")

HEAD = """# Robots of others' making

Robot files from Python packages, as they are shipped: {loaded} of {tried} load. Written by
`python -m tests.real_robots.report benchmarks/results/robots.md` from the robots in
`testbed/robot_catalogue.py`, all of it with one engine; the tests beside it hold the figures below
their tolerances.

{engine}

{packages}

{summary}

## Smooth dynamics and gradients

Contacts, limits, dry friction and equality constraints are off in the first figures.

* *step*: one step from {samples} random states with random controls, against `mj_step`: largest difference of
  qpos and of qvel, each relative to its largest entry; Euler and implicitfast.
* *{steps} steps*: the larger of the two integrators' differences over a trajectory, relative to the largest
  entry ever; in brackets by how much MuJoCo's own trajectory amplifies a small change of the start.
* *Pinocchio*: acceleration, M(q) M(q)⁻¹ = 1, and the derivatives of the acceleration by q and v, the largest
  of the four relative errors; of URDF files only. *refused*: Pinocchio does not read the file.
* *air*: what `check_gradient` finds contact-free over {checked} steps, with limits and dry friction, for all
  inputs and parameters.
* *standing*: the same in contact, on the file's floor or `ground=True`, from the reference pose with a
  floating base put down until it is 0.1 mm in the floor, for qpos, qvel, ctrl (where there are
  actuators), body_mass and geom_friction.
* *lying*: the same from where the robot is {settling:g} s later; until then its servos hold the pose, and its
  motors shake it a little.
* In these three a number counts the inputs whose gradient is right, right step by step or without influence;
  `s` follows the number of those at a switching point or sensitive, `w` of those that are wrong. The table
  after this one lists both. *diverges*: the trajectory does.
* *pairs*: how many pairs of shapes are watched on the ground, and in brackets how many of them with a mesh.
* A dash: there is nothing to measure (no URDF, no shapes that could touch), or a note below the table says
  why. Each robot has two processes of its own: for all but *standing* and *lying*, and for these. *time* or
  *memory*: the process was cut off after {seconds:g} s of processor time, or for wanting more than
  {gigabytes:g} GB, and nothing is known. *no turn*: the page was written before the run came to it.

| robot | kind | nv | Euler | implicitfast | {steps} steps | Pinocchio | air | pairs | standing | lying |
|---|---|---|---|---|---|---|---|---|---|---|
"""

NOTES = """
`†` The robot is, or holds, a single free body. MuJoCo (since 3.11) gives such bodies gyroscopic derivatives
under implicitfast, which the integrator leaves out everywhere else; revolute leaves them out for them too, so
implicitfast is not compared. `¶` MuJoCo refuses the file (moments of inertia that no body has);
it simulates what revolute's loader made of it, and Pinocchio is the independent judge. `‡` Loads without
contacts only, or without limits; the reason is below.
"""

DOUBTFUL = """
## Gradients that are not plainly right

| robot | where | by | verdict | what the check says |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Run:
    """What the page says about the run that measured.

    Attributes:
        engine: what was measured, in a sentence.
        packages: where the robots are from, in a sentence.
        limits: of each process.
    """

    engine: str
    packages: str
    limits: Limits


def page(run: Run, results: list[tuple[Robot, Figures]]) -> str:
    """Return the page of a run; robots in the order of the catalogue."""
    loaded = [(robot, figures) for robot, figures in results if "refused" not in figures]
    refused = [(robot.name, figures["refused"]) for robot, figures in results if "refused" in figures]
    in_part = [
        (robot.name, figures["refused_in_part"]) for robot, figures in loaded if "refused_in_part" in figures
    ]
    text = HEAD.format(
        loaded=len(loaded),
        tried=len(results),
        engine=run.engine,
        packages=run.packages,
        summary=_summary(loaded),
        samples=SAMPLES,
        steps=STEPS,
        checked=CHECKED_STEPS,
        settling=SETTLING,
        **vars(run.limits),
    )
    text += "".join(f"| {' | '.join(_cells(robot, figures))} |\n" for robot, figures in loaded) + NOTES
    text += _doubtful(loaded)
    text += _table("What does not load", "Refused even without contacts, limits and dry friction.", refused)
    if in_part:
        text += _table(
            "What loads only in part",
            "`contact=False` loads these, some with `limits=False` as well.",
            in_part,
        )
    return text


def _cells(robot: Robot, figures: Figures) -> tuple[str, ...]:
    """Return a robot's line of the table."""
    marks = {"†": figures.get("lone"), "¶": not figures.get("mujoco_compiles", True)}
    marks["‡"] = "refused_in_part" in figures
    cut = _cut(figures, "alone")
    steps = [_number(value) for value in figures["steps"]] if "steps" in figures else [cut, cut]
    return (
        " ".join([robot.name, *(mark for mark, holds in marks.items() if holds)]),
        robot.kind,
        str(figures.get("nv", cut)),
        *(steps if len(steps) == 2 else [*steps, "–"]),
        f"{_number(figures['long'])} ({figures['growth']:.0g})" if "long" in figures else cut,
        _pinocchio(figures["pinocchio"]) if "pinocchio" in figures else cut,
        _verdicts(figures["air"]) if "air" in figures else cut,
        _pairs(figures),
        _ground(figures, "standing"),
        _ground(figures, "lying"),
    )


def _pairs(figures: Figures) -> str:
    pairs, meshes = figures.get("pairs", 0), figures.get("hull_pairs", 0)
    if not pairs:
        return "–"
    return f"{pairs} ({meshes})" if meshes else str(pairs)


def _ground(figures: Figures, column: str) -> str:
    if column in figures:
        return _verdicts(figures[column])
    return _cut(figures, "ground") if figures.get("pairs") else "–"


def _cut(figures: Figures, part: str) -> str:
    """Return what cut off a part; one that was neither measured nor cut off had no turn yet."""
    if part in figures.get("cut", {}):
        return str(figures["cut"][part]["by"])
    return "–" if part in figures.get("done", []) else "no turn"


def _pinocchio(found: float | str | None) -> str:
    if found is None:
        return "–"
    return "refused" if isinstance(found, str) else _number(found)


def _verdicts(found: Figures) -> str:
    """Return the verdicts of `check_gradient` in short."""
    if "inputs" not in found:
        return "diverges"
    counts = Counter(verdict for _, verdict, _ in found["inputs"])
    right, soft = (sum(counts[verdict] for verdict in verdicts) for verdicts in (RIGHT, SOFT))
    parts = [str(right), f"{soft} s" if soft else "", f"{counts['wrong']} w" if counts["wrong"] else ""]
    return ", ".join(part for part in parts if part)


def _summary(loaded: list[tuple[Robot, Figures]]) -> str:
    """Return the page in one paragraph."""
    lines = []
    for part, words in (("air", "In the air"), ("standing", "Standing"), ("lying", "Lying")):
        found = [figures[part] for _, figures in loaded if part in figures]
        checks = [verdict for one in found for _, verdict, _ in one.get("inputs", [])]
        whole = sum(all(check[1] in RIGHT for check in one["inputs"]) for one in found if "inputs" in one)
        diverging = sum("diverged" in one for one in found)
        cut = sum(part not in figures and bool(_cut_off(figures, part)) for _, figures in loaded)
        own = "alone" if part == "air" else "ground"
        waiting = sum(
            part not in figures and own not in {*figures.get("cut", {}), *figures.get("done", [])}
            for _, figures in loaded
            if part == "air" or figures.get("pairs")
        )
        counts = Counter(checks)
        soft = sum(counts[verdict] for verdict in SOFT)
        lines.append(
            f"{words}, {len(found)} robots were checked by {len(checks)} inputs: {whole} robots are right by "
            f"all of them; {soft} inputs are at a switching point or sensitive, {counts['wrong']} are wrong"
            + (f"; {diverging} trajectories diverge" if diverging else "")
            + (f"; {cut} robots were cut off" if cut else "")
            + (f"; {waiting} had no turn" if waiting else "")
            + "."
        )
    return " ".join(lines)


def _cut_off(figures: Figures, part: str) -> bool:
    return ("alone" if part == "air" else "ground") in figures.get("cut", {})


def _doubtful(loaded: list[tuple[Robot, Figures]]) -> str:
    """Return the inputs that are not right throughout, with what the check says of each."""
    lines = [
        f"| {robot.name} | {part} | {name} | {verdict} | {_escaped(reason)} |"
        for robot, figures in loaded
        for part in ("air", "standing", "lying")
        for name, verdict, reason in figures.get(part, {}).get("inputs", [])
        if verdict not in RIGHT
    ]
    lines += [
        f"| {robot.name} | {part} | all | diverges | {_escaped(figures[part]['diverged'])} |"
        for robot, figures in loaded
        for part in ("air", "standing", "lying")
        if "diverged" in figures.get(part, {})
    ]
    return DOUBTFUL + "\n".join(lines) + "\n" if lines else ""


def _number(value: float) -> str:
    return "0" if value == 0 else f"{value:.0e}".replace("e-0", "e-")


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def feature(message: str) -> str:
    """Return what a refusal is about, without the names in it."""
    bare = re.sub(r"'[^']*'", "…", message)
    bare = re.sub(r"\bgeom \d+ of body …|geom …", "geom", bare)
    bare = re.sub(r"line \d+(, column \d+)?", "line …", bare)
    found = re.search(r"contact of (.+? against .+?) is not supported", bare)
    return f"contact of {found.group(1)}" if found else re.split(r"; |, got |, in ", bare)[0]


def _table(title: str, text: str, entries: list[tuple[str, str]]) -> str:
    """Return refusals counted by feature, then one by one."""
    counts = Counter(feature(message) for _, message in entries)
    lines = [f"\n## {title}\n", f"{text}\n", "| robots | feature |", "|---|---|"]
    lines += [f"| {count} | {_escaped(name)} |" for name, count in counts.most_common()]
    lines += ["", "| robot | reason |", "|---|---|"]
    lines += [f"| {name} | {_escaped(message)} |" for name, message in entries]
    return "\n".join(lines) + "\n"
