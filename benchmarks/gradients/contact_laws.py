"""Scenes of contact whose answer is known: each contact model beside Coulomb's law and `mj_step`.

The files are those of tests/cases. "mujoco" and `mj_step` have the elliptic cone.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from revolute_engine import Engine, Model, load_model
from testbed.case_files import case_file, expected, with_option
from testbed.final_state import final_gradient
from testbed.robot_catalogue import ROBOTS

from .contact_scenes import SKID_STEER
from .differences import Array


@dataclass(frozen=True)
class Motion:
    """States [steps + 1, ...] of a rollout."""

    qpos: Array
    qvel: Array


@dataclass(frozen=True)
class Law:
    """A contact model of ours, by the options of `load_model`."""

    options: dict[str, Any]

    def load(self, source: Any) -> Model:
        """Load a file, or its text."""
        return load_model(source, warn=False, **self.options)

    def roll(self, model: Model, qpos: Array, qvel: Array, ctrl: Array, gravity: Array) -> Motion:
        """Take one step for each row of ctrl."""
        found = Engine(threads=1).rollout(model, qpos, qvel, ctrl, params={"gravity": gravity})
        return Motion(found.qpos, found.qvel)

    def slope(self, model: Model, qpos: Array, qvel: Array, steps: int) -> float:
        """Return the derivative of the last qvel[2] by qpos[1]."""
        engine = Engine(threads=1)
        found = engine.rollout(model, qpos, qvel, np.zeros((steps, model.nu)))
        return float(final_gradient(engine, model, found, qvel=2, wrt=["qpos"]).qpos[1])


class MuJoCo(Law):
    """`mj_step` itself, with the elliptic cone, to convergence."""

    def roll(self, model: Model, qpos: Array, qvel: Array, ctrl: Array, gravity: Array) -> Motion:
        """Take one step for each row of ctrl."""
        peer = copy.copy(model.mujoco_model)
        peer.opt.cone, peer.opt.gravity = mujoco.mjtCone.mjCONE_ELLIPTIC, gravity
        peer.opt.tolerance, peer.opt.iterations = 0, 300
        data = mujoco.MjData(peer)
        data.qpos, data.qvel = qpos, qvel
        states = [(data.qpos.copy(), data.qvel.copy())]
        for row in ctrl:
            data.ctrl = row
            mujoco.mj_step(peer, data)
            states.append((data.qpos.copy(), data.qvel.copy()))
        return Motion(*map(np.array, zip(*states, strict=True)))

    def slope(self, model: Model, qpos: Array, qvel: Array, steps: int) -> float:
        """Return the difference quotient of the last qvel[2] by qpos[1]."""
        ends = [
            _roll(self, model, steps, qpos + np.eye(len(qpos))[1] * side, qvel).qvel[-1, 2]
            for side in (_SMALL, -_SMALL)
        ]
        return float(ends[0] - ends[1]) / (2 * _SMALL)


_SMALL = 1e-7
"""Half the difference of heights in m, small against the depth in which MuJoCo's contact sets in."""

LAWS = {
    "MuJoCo, elliptic": MuJoCo({"contact_model": "mujoco", "cone": "elliptic"}),
    "mujoco": Law({"contact_model": "mujoco", "cone": "elliptic"}),
    "hard": Law({"contact_model": "hard"}),
    "hard, exact": Law({"contact_model": "hard", "solver": "exact"}),
}
BEYOND = ("pybullet:a1/a1", "example-robot-data:go2_description/go2")
"""Robots whose zero pose is beyond their joints' limits, by 0.9 rad."""


def _text(case: str, name: str, **options: object) -> str:
    return with_option(case_file(case, name).read_text(), **options)


def _roll(
    law: Law,
    model: Model,
    steps: int,
    qpos: Any = None,
    qvel: Any = None,
    ctrl: Any = None,
    gravity: Any = None,
) -> Motion:
    return law.roll(
        model,
        np.asarray(model.qpos0 if qpos is None else qpos, dtype=float),
        np.asarray(model.qvel0 if qvel is None else qvel, dtype=float),
        np.zeros((steps, model.nu)) if ctrl is None else ctrl,
        model.mujoco_model.opt.gravity if gravity is None else gravity,
    )


def _yaw(quaternions: Array) -> float:
    w, x, y, z = quaternions[[0, -1]].T
    yaw = np.unwrap(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
    return float(np.degrees(yaw[1] - yaw[0]))


def _list(values: Iterable[float], form: str = ".4f") -> str:
    return ", ".join(format(value, form) for value in values)


def across(law: Law) -> str:
    """Way across of a block that is kept sliding, pushed across by a share of its friction."""
    model = law.load(_text("T01", "puck.xml"))
    ways = []
    for share in expected("T01")["s"]:
        ctrl = np.tile(0.5 * 9.81 * np.array([1, share]), (300, 1))
        ways.append(_roll(law, model, 300, qvel=[2.0, 0, 0], ctrl=ctrl).qpos[-1, 1])
    return _list(ways)


def pushed_box(law: Law) -> str:
    """Yaw of a box pushed 20, 50, 80 mm beside its centre, and the largest spread over three headings."""
    turns = np.zeros((3, 3))
    for i, heading in enumerate((0, 30, 45)):
        for k, offset in enumerate((20, 50, 80)):
            model = law.load(_text("T02", f"push_h{heading:02d}_o{offset}.xml", impratio=20))
            turns[i, k] = _yaw(_roll(law, model, 2000, ctrl=np.linspace(0, 0.2, 2000)[:, None]).qpos[:, -4:])
    return f"{_list(turns[0], '.1f')}; {np.ptp(turns, axis=0).max():.0e}"


def skid_steer(law: Law) -> str:
    """Yaw of a skid-steer after 0.4 s, and its spread over the headings 0, 20, 45 degrees."""
    model, turns = law.load(SKID_STEER), []
    for heading in np.radians([0, 20, 45]):
        qpos = model.qpos0.copy()
        qpos[3:7] = np.cos(heading / 2), 0, 0, np.sin(heading / 2)
        ctrl = np.tile([-1.5, 1.5, -1.5, 1.5], (200, 1))
        turns.append(_yaw(_roll(law, model, 200, qpos=qpos, ctrl=ctrl).qpos[:, 3:7]))
    return f"{turns[0]:.2f}; {np.ptp(turns):.0e}"


def inside(law: Law) -> str:
    """Rise in mm above its place of a box that starts inside of the floor, for three time steps."""
    cells = []
    for depth in (0.01, 0.05):
        rises = []
        for timestep in (5e-3, 2e-3, 1e-3):
            model = law.load(_text("F22", "box.xml", timestep=timestep))
            qpos = model.qpos0.copy()
            qpos[2] -= depth
            rises.append(1e3 * (_roll(law, model, round(1.2 / timestep), qpos=qpos).qpos[:, 2].max() - 0.1))
        cells.append(_list(rises, ".1f"))
    return "; ".join(cells)


def beyond_limits(law: Law) -> str:
    """Largest kinetic energy in J of robots that start beyond their limits, without gravity, in 0.5 s."""
    return _list((_largest_energy(name, law) for name in BEYOND), ".1f")


def _largest_energy(name: str, law: Law) -> float:
    robot = next(each for each in ROBOTS if each.name == name)
    if robot.file is None:
        return float("nan")
    model = robot.load(contact=False, **law.options)
    model.mujoco_model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    found = _roll(law, model, round(0.5 / model.timestep), gravity=np.zeros(3))
    data, largest = mujoco.MjData(model.mujoco_model), 0.0
    matrix = np.zeros((model.nv, model.nv))
    for qpos, qvel in zip(found.qpos, found.qvel, strict=True):
        data.qpos[:] = qpos
        mujoco.mj_forward(model.mujoco_model, data)
        mujoco.mj_fullM(model.mujoco_model, data, matrix)
        largest = max(largest, 0.5 * qvel @ matrix @ qvel)
    return largest


def grip(law: Law) -> str:
    """Spin (rad/s) and creep (mm/s) of two equal spheres, gripped 3 % above what holds them."""
    cells, numbers = [], expected("F07")
    squeeze = np.r_[np.full(500, 12.0), np.full(500, 1.03 * numbers["N0"])]
    ctrl = np.stack([np.full(1000, numbers["lift"]), np.zeros(1000), squeeze, squeeze], axis=1)
    for shape in ("pair", "pair_swapped"):
        model = law.load(case_file("F07", f"grip_{shape}.xml"))
        found = _roll(law, model, 1000, ctrl=ctrl)
        creep = 1e3 * abs(found.qvel[-1, 0] - found.qvel[-1, 6])
        cells.append(f"{np.abs(found.qvel[:, 7]).max():.0e}, {creep:.0e}")
    return "; ".join(cells)


def stacks(law: Law) -> str:
    """Sink and shift in mm of ten boxes after 10 s, and of 30 kg on seven thin plates after 1 s."""
    cells = []
    for name, steps in (("stack_10", 5000), ("plates", 500)):
        qpos = _roll(law, law.load(case_file("F13", f"{name}.xml")), steps).qpos
        start, end = (each.reshape(-1, 7) for each in qpos[[0, -1]])
        sink, shift = (start - end)[:, 2].max(), np.hypot(*(end - start)[:, :2].T).max()
        cells.append(f"{1e3 * sink:.1f}, {1e3 * shift:.1f}")
    return "; ".join(cells)


def heavy(law: Law) -> str:
    """Sink in mm of 100 kg on a box of 1 kg after 2 s."""
    model = law.load(case_file("B13", "stack.xml"))
    return f"{1e3 * np.abs(_roll(law, model, 2000).qpos[-1, [2, 9]] - expected('B13')['z']).max():.2f}"


def rod(law: Law) -> str:
    """Spin of a turning rod just after it landed, and its derivative by the height at the start."""
    case = next(c for c in expected("F23")["rod"]["cases"] if (c["e"], c["a0"], c["spin"]) == (0, 0.2, 4.0))
    model = law.load(_text("F23", "rod.xml", timestep=1e-3))
    steps = int(case["t"] / 1e-3) + 3
    start = np.array([0, case["z0"] - 0.4, case["a0"]]), np.array([0, -2.0, case["spin"]])
    spin = _roll(law, model, steps, *start).qvel[-1, 2]
    return f"{spin:.2f}; {law.slope(model, *start, steps):.2f}"


def edge(law: Law) -> str:
    """Largest deflection in degrees of a ball that passes 1 mm over an edge, eight phases each."""
    model, turns = law.load(_text("T03", "edge.xml")), []
    for speed in (10.0, 30.0):
        for phase in np.arange(8) / 8:
            steps = int(np.ceil(1.0 / (speed * 2e-3)))
            end = _roll(law, model, steps, [-phase * speed * 2e-3, 1e-3], [speed, 0.0]).qvel[-1]
            turns.append(abs(np.degrees(np.arctan2(end[1], end[0]))))
    return f"{max(turns):.0e}"


def top(law: Law) -> str:
    """Relative change of the energy of a top over 1 s by the integrators Euler, implicit, RK4."""
    numbers, cells = expected("T04"), []
    inertia = np.array([numbers["I1"] + numbers["m"] * numbers["l"] ** 2] * 2 + [numbers["I3"]])
    for integrator in ("Euler", "implicit", "RK4"):
        model = law.load(_text("T04", "top.xml", integrator=integrator, timestep=1e-3))
        found = _roll(law, model, 1000, numbers["q0"], numbers["w0"])
        _, x, y, _ = found.qpos.T
        height = numbers["l"] * (1 - 2 * (x * x + y * y))
        energy = 0.5 * found.qvel**2 @ inertia + numbers["m"] * 9.81 * height
        cells.append(energy[-1] / energy[0] - 1)
    return _list(cells, ".0e")


def linkage(law: Law) -> str:
    """Largest gap in mm of a four-bar linkage's closing joint in 2.1 s."""
    model = law.load(case_file("B16", "fourbar.xml"))
    at = [model.joint_names.index(name) for name in ("c1", "c2", "cp")]
    start = np.zeros(3)
    start[at] = 0.1, 0.1, -0.1
    first, second, turn = _roll(law, model, 2100, qpos=start).qpos.T[at]
    coupler = first + turn
    ends = [
        np.stack([0.5 * np.cos(coupler) - np.sin(first), -0.5 * np.sin(coupler) - np.cos(first)]),
        np.stack([0.5 - np.sin(second), -np.cos(second)]),
    ]
    return f"{1e3 * np.linalg.norm(ends[0] - ends[1], axis=0).max():.2f}"


SCENES: dict[str, tuple[Callable[[Law], str], str]] = {
    "block kept sliding at 2 m/s, pushed across by 0.1, 0.3, 0.6, 0.9 μmg: way in 0.3 s, m": (
        across,
        "0.0175, 0.0526, 0.1056, 0.1593",
    ),
    "box pushed 20, 50, 80 mm off centre: yaw °; spread over three headings °": (
        pushed_box,
        "-12.4, -25.4, -31.6; 0",
    ),
    "skid steer: yaw ° in 0.4 s; spread over three headings °": (skid_steer, "-74.8; 0"),
    "box starts 10 mm; 50 mm inside the floor: rise mm for h = 5, 2, 1 ms": (inside, "below 10; below 50"),
    "zero pose beyond limits (A1, Go2), no gravity: largest kinetic energy J": (beyond_limits, "small"),
    "two spheres gripped, either file order: spin rad/s, creep mm/s": (grip, "0, 0; 0, 0"),
    "ten boxes, 10 s; 30 kg on plates, 1 s: sink, shift mm": (stacks, "0, 0; 0, 0"),
    "100 kg on 1 kg, 2 s: error of heights mm": (heavy, "0"),
    "turning rod lands (e = 0): spin after it; d spin / d height": (rod, "-7.99; -2.52"),
    "ball passes 1 mm over an edge at 10, 30 m/s: deflection °": (edge, "0"),
    "top at 150 rad/s, h = 1 ms, Euler, implicit, RK4: change of energy": (top, "0, 0, 0"),
    "four-bar linkage, 2.1 s: opening mm": (linkage, "0"),
}
"""Row: what measures it, and the answer of rigid bodies with Coulomb friction."""


def table() -> str:
    """Return each scene with each contact model."""
    lines = ["| scene | rigid, Coulomb | " + " | ".join(LAWS) + " |", "|---" * (2 + len(LAWS)) + "|"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (measure, rigid) in SCENES.items():
            cells = [measure(law) for law in LAWS.values()]
            lines.append(f"| {name} | {rigid} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
