"""Random settings of soft constraints: every form of solref and solimp, mixing, margins, limits, equalities.

One step and its gradient against MuJoCo's step; forward against backward derivatives.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, load_model
from tests.robots import gymnasium_ant

from .mujoco_scenes import CONES, INTEGRATORS, Floats, reference, state_in_contact
from .mujoco_steps import mujoco_step, tangent

SEEDS = range(40)
STEP = 1e-9
"""Of accelerations, relative to the largest: both solvers go to rounding of stiff rows."""
GRADIENT = 1e-5
"""Of derivatives by states, against the best of centred differences of MuJoCo's step."""
FORWARD = 1e-8
"""Forward against backward derivatives, with the tangent of a quaternion by differences."""


class Settings:
    """Draws attributes of elements."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def one_of(self, *values: object) -> object:
        return values[self.random.integers(len(values))]

    def numbers(self, *ranges: tuple[float, float]) -> str:
        return " ".join(f"{self.random.uniform(*each):.4f}" for each in ranges)

    def solref(self, name: str = "solref") -> str:
        """Standard, direct (negative), raised by refsafe, or the default."""
        standard, direct = self.numbers((0.004, 0.05), (0.3, 1.5)), self.numbers((-5e3, -200), (-100, -5))
        return str(self.one_of("", f'{name}="{standard}"', f'{name}="{direct}"', f'{name}="0.001 1.2"'))

    def solimp(self, name: str = "solimp") -> str:
        """Any curve, a constant, one outside its range, or the default."""
        curve = self.numbers((0.1, 0.9), (0.5, 0.99), (1e-3, 1e-2), (0.1, 0.9), (1.5, 5))
        return str(
            self.one_of("", f'{name}="{curve}"', f'{name}="1.2 1.3 0 2 0.5"', f'{name}="0.9 0.9 0.001 1 2"')
        )

    def geom(self, name: str) -> str:
        size = self.numbers((0.05, 0.1), (0.05, 0.1), (0.05, 0.1))
        kind = self.one_of("sphere", "capsule", "box")
        margin = self.random.uniform(0, 0.01) * self.random.integers(2)
        return (
            f'<geom name="{name}" type="{kind}" size="{size}" mass="{self.numbers((0.2, 2))}" '
            f'condim="{self.one_of(1, 3, 4, 6)}" friction="{self.numbers((0, 1.2), (0, 0.05), (0, 0.01))}" '
            f'margin="{margin:.4f}" gap="{margin * self.random.uniform():.4f}" '
            f'priority="{self.one_of(0, 0, 0, 1)}" solmix="{self.one_of(1, 1, 0, 3)}" '
            f'pos="{self.numbers((0.02, 0.04), (-0.04, -0.02))} 0" '
            f'euler="{self.numbers((0, 90), (0, 90), (0, 90))}" {self.solref()} {self.solimp()}/>'
        )

    def joint(self, name: str, attributes: str) -> str:
        return (
            f'<joint name="{name}" {attributes} limited="true" margin="{self.numbers((0, 0.05))}" '
            f'frictionloss="{self.numbers((0, 0.3))}" {self.solref("solreflimit")} '
            f"{self.solimp('solimplimit')} {self.solref('solreffriction')} {self.solimp('solimpfriction')}/>"
        )


def scene(seed: int) -> str:
    """Return a scene of some bodies on a floor, with limits, friction, equalities, a tendon and a pair."""
    s = Settings(seed)
    bodies = [f'<body name="top" pos=".17 0 .35"><freejoint/>{s.geom("gt")}</body>']
    for i in range(4):
        place = f'name="b{i}" pos="{0.35 * i} 0 {s.numbers((0.08, 0.25))}"'
        if i % 2:
            ball, hinge = (
                s.joint(f"ball{i}", 'type="ball" range="0 30" damping="0.02"'),
                s.joint(f"hinge{i}", 'axis="1 .2 0" range="-30 20" armature="0.01" stiffness="1"'),
            )
            end = f'<body pos="0 .1 -.15">{hinge}{s.geom(f"h{i}")}</body>'
            bodies.append(f"<body {place}>{ball}{s.geom(f'g{i}')}{end}</body>")
        else:
            bodies.append(f"<body {place}><freejoint/>{s.geom(f'g{i}')}</body>")
    equalities = [
        f'<connect body1="b0" body2="b1" anchor="{s.numbers((-0.1, 0.1))} 0 .1" {s.solref()} {s.solimp()}/>',
        f'<weld body1="b2" body2="top" torquescale="{s.numbers((0.2, 2))}" {s.solref()} {s.solimp()}/>',
        f'<joint joint1="hinge1" joint2="hinge3" polycoef="0.01 .8 .3 .1 .05" {s.solref()} {s.solimp()}/>',
        f'<tendon tendon1="t" polycoef="0.02" {s.solref()} {s.solimp()}/>',
    ]
    equality = "".join(each for each in equalities if s.random.random() < 0.4)
    pair = (
        f'<pair geom1="g0" geom2="floor" condim="{s.one_of(1, 3, 4, 6)}" friction="0.8 0.6 .02 .003 .004" '
        f'margin="{s.numbers((0, 0.01))}" {s.solref()} {s.solref("solreffriction")} {s.solimp()}/>'
    )
    tendon = (
        f'<fixed name="t" limited="true" range="-.1 .2" margin=".01" frictionloss="{s.numbers((0, 0.3))}" '
        f'stiffness="2" damping=".1" {s.solref("solreflimit")} {s.solref("solreffriction")}>'
        '<joint joint="hinge1" coef="1"/><joint joint="hinge3" coef="-.7"/></fixed>'
    )
    return (
        f'<mujoco><option timestep="{s.one_of(0.001, 0.002, 0.005)}" impratio="{s.one_of(1, 1, 5, 20)}" '
        f'cone="{CONES[seed % 2]}" integrator="{INTEGRATORS[seed // 2 % 4]}"/><worldbody>'
        f'<geom name="floor" type="plane" size="5 5 1" condim="{s.one_of(1, 3, 4, 6)}" '
        f'friction="{s.numbers((0.2, 1))} .02 .003" solmix="{s.one_of(1, 0, 2)}" {s.solref()} {s.solimp()}/>'
        f"{''.join(bodies)}</worldbody><contact>{pair if s.random.random() < 0.5 else ''}</contact>"
        f"<tendon>{tendon}</tendon><equality>{equality}</equality>"
        '<actuator><motor joint="hinge1" gear="2"/><motor joint="hinge3"/></actuator></mujoco>'
    )


def moved(model: mujoco.MjModel, qpos: Floats, direction: Floats, by: float) -> Floats:
    out = qpos.copy()
    mujoco.mj_integratePos(model, out, direction, by)
    return out


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_and_its_gradient_are_mujocos(seed: int) -> None:
    text = scene(seed)
    theirs, model, engine = reference(text), load_model(text, warn=False), Engine(threads=1)
    qpos, qvel, ctrl = state_in_contact(theirs, 15, seed)
    wanted = mujoco_step(theirs, qpos, qvel, ctrl)
    found = engine.rollout(model, qpos, qvel, ctrl[None])
    accelerations = [(end - qvel) / theirs.opt.timestep for end in (wanted[1], found.qvel[1])]
    error = np.abs(accelerations[0] - accelerations[1]).max()
    assert error <= STEP * max(1.0, np.abs(accelerations[0]).max())
    assert found.unsettled_step == -1

    random = np.random.default_rng(seed)
    bar, by_qpos, by_qvel = random.normal(size=(3, theirs.nv))
    gradient = engine.backward(model, found, None, np.stack([0 * bar, bar]), wrt=["qpos", "qvel"])
    bars = {"qpos": tangent(theirs, qpos, gradient.qpos), "qvel": gradient.qvel}
    directions = {"qpos": by_qpos, "qvel": by_qvel}
    pushed = engine.jvp(model, found, qpos_tan=by_qpos, qvel_tan=by_qvel)
    backward = sum(bars[name] @ directions[name] for name in bars)
    size = sum(np.abs(bars[name] * directions[name]).sum() for name in bars)
    assert abs(bar @ pushed.qvel[1] - backward) <= FORWARD * size

    def end(name: str, by: float) -> float:
        start = {"qpos": qpos, "qvel": qvel}
        start[name] = moved(theirs, qpos, by_qpos, by) if name == "qpos" else qvel + by * directions[name]
        return float(bar @ mujoco_step(theirs, start["qpos"], start["qvel"], ctrl)[1])

    for name in bars:
        differences = [
            (8 * (end(name, by) - end(name, -by)) - (end(name, 2 * by) - end(name, -2 * by))) / (12 * by)
            for by in (1e-5, 1e-6, 1e-7)
        ]
        off = np.abs(np.array(differences) - bars[name] @ directions[name]).min()
        assert off <= GRADIENT * np.abs(bars[name] * directions[name]).sum(), name


def test_gymnasiums_ant_walks_as_in_mujoco() -> None:
    model = load_model(gymnasium_ant(), warn=False)
    theirs = model.mujoco_model
    theirs.opt.tolerance, theirs.opt.iterations, theirs.opt.timestep = 0, 200, model.timestep
    assert theirs.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    ctrl = np.random.default_rng(0).uniform(-1, 1, size=(100, model.nu))
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, ctrl)
    data, contacts = mujoco.MjData(theirs), 0
    data.qpos[:] = model.qpos0
    for step, row in enumerate(ctrl):
        data.ctrl[:], data.qacc_warmstart[:] = row, 0
        mujoco.mj_step(theirs, data)
        contacts += data.ncon
        assert np.abs(rollout.qpos[step + 1] - data.qpos).max() < 1e-8
    assert contacts > 50
