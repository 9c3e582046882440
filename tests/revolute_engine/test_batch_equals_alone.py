"""An environment gets the same bits in a batch as alone, whatever its neighbours do.

Random models, each environment with parameters of its own, some exactly zero, so that contacts, limits, dry
friction and bounces act in some lanes of a pack and not in others. A few examples by default;
REVOLUTE_RANDOM_MODELS=1000 tries more.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import mujoco
import numpy as np
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from revolute.contract.errors import DivergedError
from revolute_engine import Engine, Gradient, Jvp, Model, Rollout, load_model
from revolute_engine.parameters import default_parameter, parameters_of
from tests.random_models import random_model

EXAMPLES = int(os.environ.get("REVOLUTE_RANDOM_MODELS", "15"))
STEPS = 12

BLOWN_UP = 1e30
"""Speed beyond which contact_model="mujoco" overflows: a row of a neighbour adds zero times infinity."""

SOMETIMES_ZERO = {"geom_friction", "dof_frictionloss", "dof_damping", "dof_armature", "jnt_stiffness"}
"""Parameters of which some entries, or all, are exactly zero in some environments; so are gravity, gear and
restitution."""


def tied_model(seed: int) -> str:
    """Return a random model, two of its bodies tied together every other time, some with rolling friction."""
    random, counter = np.random.default_rng([seed, 1]), iter(range(1000))
    text = re.sub("<body ", lambda _: f'<body name="b{next(counter)}" ', random_model(seed))
    bodies = next(counter)
    if bodies > 1 and random.random() < 0.5:
        one, other = random.choice(bodies, 2, replace=False)
        kind = random.choice(["connect", "weld"])
        anchor = 'anchor="0.05 0 0.02"'
        tie = f'<equality><{kind} body1="b{one}" body2="b{other}" {anchor}/></equality>'
        text = text.replace("</mujoco>", f"{tie}</mujoco>")
    condim = random.choice([1, 3, 4, 6])
    return text.replace("<worldbody>", f'<default><geom condim="{condim}"/></default><worldbody>', 1)


def _with_method(text: str, seed: int) -> str:
    """Give a model a cone and an integrator, which count for contact_model="mujoco"."""
    random = np.random.default_rng([seed, 3])
    cone = random.choice(["pyramidal", "elliptic"])
    integrator = random.choice(["Euler", "implicitfast", "implicit", "RK4"])
    return text.replace("<option", f'<option cone="{cone}" integrator="{integrator}"', 1)


@dataclass(frozen=True)
class Batch:
    """Inputs of a batch of environments, and what they are differentiated along."""

    qpos: np.ndarray
    qvel: np.ndarray
    ctrl: np.ndarray
    params: dict[str, np.ndarray]
    bars: tuple[np.ndarray, np.ndarray]
    tangents: dict[str, np.ndarray]
    params_tan: dict[str, np.ndarray]

    def only(self, index: int) -> Batch:
        """Return one environment, without batch axis."""
        return Batch(
            self.qpos[index],
            self.qvel[index],
            self.ctrl[index],
            {name: value[index] for name, value in self.params.items()},
            (self.bars[0][index], self.bars[1][index]),
            {name: value[index] for name, value in self.tangents.items()},
            {name: value[index] for name, value in self.params_tan.items()},
        )


def random_batch(model: Model, random: np.random.Generator, batch: int) -> Batch:
    """Return environments in different states with different parameters."""
    qpos, nv = np.tile(model.qpos0, (batch, 1)), model.nv
    for row in qpos:
        mujoco.mj_integratePos(model.mujoco_model, row, random.uniform(0, 1) * random.normal(size=nv), 1.0)
        for joint in np.flatnonzero(model.arrays["jnt_type"] == int(mujoco.mjtJoint.mjJNT_FREE)):
            row[model.arrays["jnt_qposadr"][joint] + 2] = random.uniform(-1.6, 0.2)  # the floor is at -1.5
    qvel = random.choice([0.0, 1.0, 5.0], size=(batch, 1)) * random.normal(size=(batch, nv))
    params = {name: _parameter(model, name, random, batch) for name in parameters_of(model)}
    return Batch(
        qpos=qpos,
        qvel=qvel,
        ctrl=random.normal(size=(batch, STEPS, model.nu)),
        params=params,
        bars=(
            random.normal(size=(batch, STEPS + 1, model.nq)),
            random.normal(size=(batch, STEPS + 1, nv)),
        ),
        tangents={
            "qpos_tan": random.normal(size=(batch, nv)),
            "qvel_tan": random.normal(size=(batch, nv)),
            "ctrl_tan": random.normal(size=(batch, STEPS, model.nu)),
        },
        params_tan={name: 0.1 * random.normal(size=value.shape) for name, value in params.items()},
    )


def _parameter(model: Model, name: str, random: np.random.Generator, batch: int) -> np.ndarray:
    """Return a parameter of each environment."""
    value = default_parameter(model, name)
    shape = (batch, *value.shape)
    if name == "restitution":
        return random.choice([0.0, 0.0, 0.5], size=batch)
    if name in ("body_mass", "body_inertia"):  # one factor per body keeps its moments of inertia possible
        return value * random.uniform(0.5, 2, size=(batch, model.nbody, *[1] * (value.ndim - 1)))
    if name == "body_ipos":
        return value + 0.01 * random.normal(size=shape)
    if name in ("gravity", "actuator_gear"):
        return value * random.choice([0.0, 1.0, 1.5], size=(batch, *[1] * value.ndim))
    factors = random.uniform(0.5, 2, size=shape)
    if name in SOMETIMES_ZERO:
        factors *= random.choice([0.0, 1.0, 1.0], size=shape)
        factors *= random.choice([0.0, 1.0, 1.0], size=(batch, *[1] * value.ndim))
    given = np.where(value == 0, 0.05, value) if name != "jnt_stiffness" else value
    return given * factors


def _wrt(model: Model) -> list[str]:
    return ["qpos", "qvel", "ctrl", *parameters_of(model)]


def _rollout(model: Model, batch: Batch) -> Rollout:
    return Engine(threads=1).rollout(model, batch.qpos, batch.qvel, batch.ctrl, params=batch.params)


def _gradient(model: Model, batch: Batch, rollout: Rollout) -> Gradient | None:
    """Return the gradient, None where no environment has a finite one."""
    try:
        return Engine(threads=1).backward(model, rollout, *batch.bars, wrt=_wrt(model))
    except DivergedError:
        return None


def _jvp(model: Model, batch: Batch, rollout: Rollout) -> Jvp | None:
    """Return the forward derivative, None where no environment has a finite one."""
    try:
        return Engine(threads=1).jvp(model, rollout, **batch.tangents, params_tan=batch.params_tan)
    except DivergedError:
        return None


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="REVOLUTE_RANDOM_MODELS" not in os.environ,
    phases=[Phase.explicit, Phase.generate],  # a smaller seed is no simpler model
)
@given(
    seed=st.integers(0, 2**32 - 1),
    batch=st.sampled_from([3, 8, 11]),
    method=st.sampled_from([("hard", "pgs"), ("hard", "exact"), ("mujoco", "pgs")]),
)
# neighbours' constraints fill in Newton's matrix; only neighbours have constraints; a row that nothing can
# move; speeds beyond 1e180
@example(seed=2187, batch=8, method=("mujoco", "pgs"))
@example(seed=47, batch=11, method=("mujoco", "pgs"))
@example(seed=53, batch=11, method=("hard", "exact"))
@example(seed=1513, batch=8, method=("mujoco", "pgs"))
def test_an_environment_in_a_batch_equals_itself_alone(
    seed: int, batch: int, method: tuple[str, str]
) -> None:
    contact_model, solver = method
    model = load_model(_with_method(tied_model(seed), seed), contact_model=contact_model, solver=solver)
    environments = random_batch(model, np.random.default_rng([seed, 2]), batch)
    rollout = _rollout(model, environments)
    gradient, jvp = (derive(model, environments, rollout) for derive in (_gradient, _jvp))
    for b in range(batch):
        one = environments.only(b)
        alone = _rollout(model, one)
        sound = np.abs(alone.qvel).max(axis=1) < BLOWN_UP
        if contact_model == "mujoco" and not sound.all():
            before = np.argmin(sound)
            _same_bits(rollout.qpos[b, :before], alone.qpos[:before], f"qpos of {b} before it blows up")
            _same_bits(rollout.qvel[b, :before], alone.qvel[:before], f"qvel of {b} before it blows up")
            continue
        assert rollout.status[b] == alone.status
        _same_bits(rollout.qpos[b], alone.qpos, f"qpos of {b}")
        _same_bits(rollout.qvel[b], alone.qvel, f"qvel of {b}")
        own, pushed = (derive(model, one, alone) for derive in (_gradient, _jvp))
        if own is None:
            assert gradient is None or gradient.status[b] != 0
        else:
            assert gradient is not None and gradient.status[b] == 0
            for name in _wrt(model):
                _same_bits(gradient[name][b], own[name], f"gradient by {name} of {b}")
        if pushed is None:
            assert jvp is None or not np.isfinite(jvp.qvel[b]).all()
        else:
            assert jvp is not None
            _same_bits(jvp.qpos[b], pushed.qpos, f"tangent of qpos of {b}")
            _same_bits(jvp.qvel[b], pushed.qvel, f"tangent of qvel of {b}")


def _same_bits(one: np.ndarray, other: np.ndarray, what: str) -> None:
    # 0 and -0 are equal: a masked lane may add a zero of either sign
    np.testing.assert_array_equal(one, other, err_msg=what)


def test_the_environments_differ_in_what_acts() -> None:
    """Else the test above would compare lanes that all take the same branches."""
    mixed = {"contact": 0, "limits": 0, "dry_friction": 0}
    for seed in range(6):
        text = tied_model(seed)
        everything = load_model(text)
        batch = random_batch(everything, np.random.default_rng([seed, 2]), 8)
        all_on = _rollout(everything, batch)
        for name in mixed:
            without = _rollout(load_model(text, **{name: False}), batch)
            acts = (all_on.qvel != without.qvel).any(axis=(1, 2))
            mixed[name] += bool(acts.any() and not acts.all())
    assert all(mixed.values()), mixed
