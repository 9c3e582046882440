"""Small scenes of contact: the motion beside MuJoCo's, and verdicts on the gradient, with either model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from revolute_engine import Engine, Model, check_gradient, load_model

from .differences import Array

CHECKED = 20
"""Steps whose gradient is checked."""

CASES = Path(__file__).resolve().parents[2] / "tests" / "cases"
MODELS: dict[str, dict[str, Any]] = {
    "mujoco": {},
    "hard": {"contact_model": "hard"},
    "hard, exact": {"contact_model": "hard", "solver": "exact"},
}

SKID_STEER = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="0 0 1"/>
<body pos="0 0 0.1"><freejoint/><geom type="box" size="0.2 0.12 0.04" mass="5"/>{}</body></worldbody>
<actuator>{}</actuator></mujoco>""".format(
    "".join(
        f'<body pos="{x} {y} 0"><joint name="w{x}{y}" axis="0 1 0" damping="0.01"/>'
        f'<geom type="sphere" size="0.1" mass="0.5"/></body>'
        for x in (-0.15, 0.15)
        for y in (-0.2, 0.2)
    ),
    "".join(f'<motor joint="w{x}{y}"/>' for x in (-0.15, 0.15) for y in (-0.2, 0.2)),
)
"""Four driven wheels in two rows: it can turn only by skidding."""


@dataclass(frozen=True)
class Scene:
    """A file with its start and its controls.

    Attributes:
        source: path or text.
        steps: length of the trajectory.
        start: changes qpos and qvel in place.
        ctrl: returns the controls [steps, nu].
    """

    source: str | Path
    steps: int = 200
    start: Callable[[Array, Array], None] = lambda qpos, qvel: None
    ctrl: Callable[[int, int], Array] = lambda steps, nu: np.zeros((steps, nu))


def _slide(_qpos: Array, qvel: Array) -> None:
    qvel[0] = 2.0


def _sink(qpos: Array, _qvel: Array) -> None:
    qpos[2] -= 0.01


def _press(qpos: Array, _qvel: Array) -> None:
    """Press each body of a stack 0.1 mm into the one below: where they just touch, contact begins."""
    qpos[2::7] -= 1e-4 * np.arange(1, len(qpos) // 7 + 1)


SCENES = {
    "block slides, pushed across": Scene(
        CASES / "F10/block.xml", start=_slide, ctrl=lambda steps, nu: np.tile(np.arange(nu) * 2.0, (steps, 1))
    ),
    "block sticks on a slope": Scene(CASES / "B11/slope.xml"),
    "box pushed off centre": Scene(
        CASES / "T02/push_h30_o50.xml",
        ctrl=lambda steps, nu: np.tile(np.linspace(0, 0.2, steps)[:, None], nu),
    ),
    "skid steer turns": Scene(
        SKID_STEER, ctrl=lambda steps, _nu: np.tile([-0.6, 0.6, -0.6, 0.6], (steps, 1))
    ),
    "ten boxes in a stack": Scene(CASES / "F13/stack_10.xml", steps=50, start=_press),
    "heavy box on a light one": Scene(CASES / "B13/stack.xml", start=_press),
    "box starts inside the floor": Scene(CASES / "F22/box.xml", start=_sink),
    "box in a grip": Scene(
        CASES / "F07/grip_box.xml", ctrl=lambda steps, _nu: np.tile([0.0, 0.0, 8.0, 8.0], (steps, 1))
    ),
    "four-bar linkage": Scene(CASES / "B16/fourbar.xml"),
}


def _theirs(model: Model, qpos: Array, qvel: Array, ctrl: Array) -> Array:
    """Return MuJoCo's last qpos, solved to convergence."""
    compiled = model.mujoco_model
    compiled.opt.tolerance, compiled.opt.iterations = 0, 200
    data = mujoco.MjData(compiled)
    data.qpos[:], data.qvel[:] = qpos, qvel
    for row in ctrl:
        data.ctrl[:] = row
        data.qacc_warmstart[:] = 0
        mujoco.mj_step(compiled, data)
    return data.qpos.copy()


def _row(name: str, scene: Scene, options: str) -> str:
    model, engine = load_model(scene.source, warn=False, **MODELS[options]), Engine(threads=1)
    qpos, qvel = model.qpos0.copy(), np.zeros(model.nv)
    scene.start(qpos, qvel)
    ctrl = scene.ctrl(scene.steps, model.nu)
    found = engine.rollout(model, qpos, qvel, ctrl)
    wrt = [
        each for each in ("qpos", "qvel", "ctrl", "body_mass", "geom_friction") if each != "ctrl" or model.nu
    ]
    report = check_gradient(engine, model, qpos, qvel, ctrl[:CHECKED], directions=1, wrt=wrt)
    verdicts = [check.verdict for check in report.inputs]
    counted = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts))
    away = np.abs(found.qpos[-1] - _theirs(model, qpos, qvel, ctrl)).max()
    assert found.unsettled_step is not None
    settled = "–" if found.unsettled_step < 0 else f"step {found.unsettled_step}, {found.residual:.0e} m/s"
    return f"| {name}, {scene.steps} | {options} | {away:.0e} | {settled} | {counted} |"


def table() -> str:
    """Return each scene with each contact model."""
    lines = [
        "| scene, steps | contact model | from `mj_step` | unsettled | gradient |",
        "|---|---|---|---|---|",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, scene in SCENES.items():
            lines += [_row(name, scene, options) for options in MODELS]
    return "\n".join(lines)
