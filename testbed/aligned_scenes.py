"""Random scenes of aligned shapes: face-on, edge-on, standing or lying, in either order of the file.

Most robot files start in such states, and there rounding decides ties. `judge` asks of a state that

* the backward derivative equals the forward one, and                                                   (1)
* the derivative at the state is that of some state beside it, or the motion jumps or has many pieces.  (2)

It compares derivatives with each other; `check_gradient` compares them with differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from revolute.contract.tangents import move, pull
from revolute_engine import Engine, Model, load_model

Floats = npt.NDArray[np.float64]

_HALF = np.sqrt(0.5)
_EIGHTH = (np.cos(np.pi / 8), np.sin(np.pi / 8))


def _prism(corners: int, radius: float) -> Floats:
    angles = 2 * np.pi * (np.arange(corners) + 0.5) / corners
    return np.array([(radius * np.cos(a), radius * np.sin(a), z) for a in angles for z in (-0.05, 0.05)])


def _block(x: float, y: float, z: float) -> Floats:
    return np.array([(a * x, b * y, c * z) for a in (1, -1) for b in (1, -1) for c in (1, -1)])


MESHES = {
    "cube": _block(0.05, 0.05, 0.05),
    "slab": _block(0.15, 0.12, 0.03),
    "wedge": _prism(3, 0.07),
    "hexagon": _prism(6, 0.07),
    "drum": _prism(24, 0.06),
}
SHAPES: dict[str, tuple[str, tuple[float, ...]]] = {
    "small ball": ("sphere", (0.05,)),
    "large ball": ("sphere", (0.08,)),
    "capsule": ("capsule", (0.03, 0.08)),
    "thick capsule": ("capsule", (0.05, 0.05)),
    "long capsule": ("capsule", (0.02, 0.15)),
    "cylinder": ("cylinder", (0.05, 0.05)),
    "disk": ("cylinder", (0.1, 0.02)),
    "pole": ("cylinder", (0.03, 0.1)),
    "ellipsoid": ("ellipsoid", (0.05, 0.07, 0.04)),
    "spheroid": ("ellipsoid", (0.06, 0.06, 0.04)),
    "box": ("box", (0.05, 0.05, 0.05)),
    "brick": ("box", (0.08, 0.06, 0.03)),
    "plate": ("box", (0.15, 0.12, 0.03)),
    "stick": ("box", (0.02, 0.02, 0.1)),
    **dict.fromkeys(MESHES, ("mesh", ())),
}
TURNS: dict[str, tuple[float, float, float, float]] = {
    "as it is": (1, 0, 0, 0),
    "x 90": (_HALF, _HALF, 0, 0),
    "y 90": (_HALF, 0, _HALF, 0),
    "z 90": (_HALF, 0, 0, _HALF),
    "x 180": (0, 1, 0, 0),
    "x 45": (_EIGHTH[0], _EIGHTH[1], 0, 0),
    "y 45": (_EIGHTH[0], 0, _EIGHTH[1], 0),
    "z 45": (_EIGHTH[0], 0, 0, _EIGHTH[1]),
}
JOINTS = {
    "none": "",
    "free": "<freejoint/>",
    "slide": '<joint type="slide" axis="0 0 1" stiffness="500" damping="5"/>',
    "hinge": '<joint type="hinge" pos="-.2 .02 .01" axis="0 1 0" stiffness="200" damping=".5"/>',
    "ball": '<joint type="ball" pos="-.2 .03 .02" stiffness="200" damping=".5"/>',
    "planar": '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>'
    '<joint type="hinge" axis="0 1 0"/>',
}
PRESSED = 'damping="2" stiffness="100" springref="0.05"'
"""Attributes of a finger's joint that presses with 5 N."""
FIELD = '<hfield name="field" nrow="5" ncol="5" size=".4 .4 .1 .1" elevation="{}"/>'


@dataclass(frozen=True)
class Aligned:
    """A scene and its start.

    Attributes:
        text: the file.
        what: what was drawn, for messages.
        velocity: size of random velocities.
    """

    text: str
    what: dict[str, Any]
    velocity: float


def _numbers(values: npt.ArrayLike) -> str:
    return " ".join(repr(float(value)) for value in np.ravel(values))


def _matrix(turn: tuple[float, ...]) -> Floats:
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, np.array(turn))
    return out.reshape(3, 3)


def _reach(name: str, turn: tuple[float, ...], direction: tuple[float, float, float]) -> float:
    """Return how far a shape reaches from its centre."""
    kind, size = SHAPES[name]
    d = _matrix(turn).T @ direction
    if kind == "sphere":
        return size[0]
    if kind == "capsule":
        return float(size[0] + size[1] * abs(d[2]))
    if kind == "cylinder":
        return float(size[1] * abs(d[2]) + size[0] * np.hypot(d[0], d[1]))
    if kind == "ellipsoid":
        return float(np.linalg.norm(np.array(size) * d))
    if kind == "box":
        return float(np.abs(size) @ np.abs(d))
    return float((MESHES[name] @ d).max())


def _geom(name: str, attributes: str) -> str:
    kind, size = SHAPES[name]
    shape = f'type="mesh" mesh="{name}"' if kind == "mesh" else f'type="{kind}" size="{_numbers(size)}"'
    return f'<geom {shape} mass="1" {attributes}/>'


def scene(seed: int) -> Aligned:
    """Draw a scene."""
    random = np.random.default_rng([7, seed])

    def one(*choices: Any) -> Any:
        return choices[random.integers(len(choices))]

    names = tuple(SHAPES)
    what = {
        "layout": one("plane", "field", "pair", "pair", "pair", "grip", "stack"),
        "shapes": [one(*names), one(*names), one(*names)],
        "turns": [one(*["as it is"] * 4, *TURNS), one(*["as it is"] * 4, *TURNS)],
        "offset": [one(0, 0, 0.01, -0.03, 0.05), one(0, 0, 0.01)],
        "gap": one(-1e-4, -1e-4, -1e-3, 0.0, 1e-3),
        "joints": [one(*["free"] * 4, *list(JOINTS)[1:]), one(*JOINTS)],
        "cone": one("pyramidal", "elliptic"),
        "condim": one(1, 3, 3, 4, 6),
        "integrator": one("Euler", "Euler", "implicitfast", "RK4"),
        "last first": bool(one(False, True)),
    }
    margin = 0.005 if what["gap"] > 0 else one(0, 0.005)
    attributes = f'condim="{what["condim"]}" margin="{margin}" friction="{one(0.3, 1)} .01 .002"'
    bodies, more = _bodies(what, attributes)
    if what["last first"]:
        bodies.reverse()
    used = [name for name in MESHES if name in what["shapes"]]
    assets = "".join(f'<mesh name="{name}" vertex="{_numbers(MESHES[name])}"/>' for name in used)
    option = (
        f'timestep="0.002" cone="{what["cone"]}" integrator="{what["integrator"]}" '
        'tolerance="0" iterations="300"'
    )
    text = (
        f"<mujoco><option {option}/><asset>{assets}{more}</asset>"
        f"<worldbody>{''.join(bodies)}</worldbody></mujoco>"
    )
    return Aligned(text, what, one(0.0, 0.0, 0.1))


def _bodies(what: dict[str, Any], attributes: str) -> tuple[list[str], str]:
    """Return the bodies of a scene, and the height field that it needs."""
    (a, b, c), gap, layout = what["shapes"], what["gap"], what["layout"]
    turn_a, turn_b = (TURNS[each] for each in what["turns"])
    up, down = (0.0, 0.0, 1.0), (0.0, 0.0, -1.0)
    x, y = what["offset"]

    def body(name: str, at: tuple[float, ...], turn: tuple[float, ...], joint: str) -> str:
        turned = f'{attributes} quat="{_numbers(turn)}"'
        return f'<body pos="{_numbers(at)}">{JOINTS[joint]}{_geom(name, turned)}</body>'

    first, second = what["joints"]
    below = _reach(a, turn_a, down) + gap
    if layout == "plane":
        return [
            f'<geom type="plane" size="0 0 1" {attributes}/>',
            body(a, (x, y, below), turn_a, first),
        ], ""
    if layout == "field":
        heights = " ".join(["1"] * 25 if x <= 0 else ["0.5", "0.5", "1", "0.5", "0.5"] * 5)
        ground = f'<geom type="hfield" hfield="field" {attributes}/>'
        return [ground, body(a, (x, y, below + 0.1), turn_a, first)], FIELD.format(heights)
    if layout == "pair":
        height = below + _reach(b, turn_b, up)
        return [body(a, (x, y, height), turn_a, first), body(b, (0, 0, 0), turn_b, second)], ""
    if layout == "stack":
        low = _reach(c, turn_b, down) + gap
        middle = low + _reach(c, turn_b, up) + _reach(b, turn_b, down) + gap
        top = middle + _reach(b, turn_b, up) + below
        places = [(a, (x, y, top), turn_a), (b, (0, 0, middle), turn_b), (c, (0, 0, low), turn_b)]
        ground = f'<geom type="plane" size="0 0 1" {attributes}/>'
        return [ground, *(body(*place, "free") for place in places)], ""
    bodies = [body(a, (0, y, x), turn_a, "free")]
    for side in (1.0, -1.0):
        outward, inward = (side, 0.0, 0.0), (-side, 0.0, 0.0)
        at = side * (_reach(a, turn_a, outward) + _reach(b, turn_b, inward) + gap)
        finger = body(b, (at, 0, 0), turn_b, "none")
        joint = f'<joint type="slide" axis="{-side} 0 0" {PRESSED}/>'
        bodies.append(finger.replace("<geom", joint + "<geom", 1))
    return bodies, ""


def load(aligned: Aligned, **options: Any) -> Model:
    """Load a scene."""
    return load_model(aligned.text, warn=False, **options)


SMALL = 1e-2
"""Derivatives below this are compared absolutely: bodies that cannot move have rounding only."""

SIZES = (1e-9, 1e-7)
STATES = 64


@dataclass(frozen=True)
class Judgement:
    """What `judge` finds.

    Attributes:
        opposed: relative distance of backward and forward derivative (1).
        nearest: relative distance of the derivative to the nearest one beside the state, at two sizes (2).
        jumps: whether the velocities after the step jump beside the state.
        pieces: the share of states beside it that have a derivative of their own.
    """

    opposed: float
    nearest: tuple[float, ...]
    jumps: bool
    pieces: float

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        has_neighbour = self.nearest[0] < 1e-3
        many = self.pieces > 0.25 and min(self.nearest) > 1e-3
        return self.opposed < 1e-6 and (has_neighbour or self.jumps or many)


def judge(engine: Engine, model: Model, qpos: Floats, qvel: Floats, seed: int = 0) -> Judgement:
    """Compare derivatives of one step with each other: backward and forward, here and beside."""
    random, nv = np.random.default_rng(seed), model.nv
    directions = random.normal(size=(2, 2 * nv))
    ctrl = np.zeros((1, 1, model.nu))

    def along(states: Floats, speeds: Floats) -> tuple[Floats, Floats]:
        count = len(directions)
        starts = np.repeat(states, count, axis=0), np.repeat(speeds, count, axis=0)
        step = engine.rollout(model, *starts, np.repeat(ctrl, len(starts[0]), axis=0))
        moves = np.tile(directions, (len(states), 1))
        pushed = engine.jvp(model, step, qpos_tan=moves[:, :nv], qvel_tan=moves[:, nv:])
        shape = (len(states), count, nv)
        return step.qvel[:, 1].reshape(shape)[:, 0], pushed.qvel[:, 1].reshape(shape)

    after, here = along(qpos[None], qvel[None])
    step = engine.rollout(model, qpos, qvel, ctrl[0])
    weights = random.normal(size=(2, nv))
    bars = np.zeros((2, 2, nv))
    bars[:, 1] = weights
    gradient = engine.backward(model, step, qvel_bar=bars, wrt=("qpos", "qvel"))
    by_state = np.concatenate([pull(model, qpos, gradient["qpos"]), gradient["qvel"]], axis=1)
    forward, backward = weights @ here[0].T, by_state @ directions.T
    terms = np.abs(weights) @ np.abs(here[0]).T + SMALL
    opposed = float((np.abs(forward - backward) / terms).max())
    nearest: list[float] = []
    jumps, pieces = False, 0.0
    for size in SIZES:
        moved = size * random.normal(size=(STATES, 2 * nv))
        ends, beside = along(
            move(model, np.repeat(qpos[None], STATES, axis=0), moved[:, :nv]), qvel + moved[:, nv:]
        )
        scale = max(float(np.abs(here).max()), float(np.abs(beside).max()), SMALL)
        nearest.append(float(np.abs(beside - here).max(axis=(1, 2)).min()) / scale)
        change = np.abs(ends - after).max(axis=1)
        jumps = jumps or bool(np.median(change) > 100 * scale * size and size == SIZES[0])
        same = np.abs(beside[:, None] - beside).max(axis=(2, 3)) < 1e-3 * scale
        own = ~np.tril(same, -1).any(axis=1)
        pieces = max(pieces, float(own.mean()))
    return Judgement(opposed, tuple(nearest), jumps, pieces)
