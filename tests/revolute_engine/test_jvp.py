"""Forward derivatives: they agree with backward ones (dot products) and with central differences."""

from typing import Any

import numpy as np
import pytest

from revolute.contract.errors import ArgumentError, DivergedError
from revolute_engine import Cancelled, CancelToken, Engine, Model, load_model
from revolute_engine.parameters import default_parameter, parameters_of
from tests.robots import THREE_TREES, gymnasium_ant
from tests.tangents import ambient, difference, moved

# the two ways round in different order only
DOT = 1e-11
# a long way through contact: cancellation
DOT_CONTACT = 1e-9


def _scene(name: str, batch: int, steps: int) -> tuple[Model, dict[str, np.ndarray]]:
    """Return a model and a start per environment: in the air, standing, or falling onto the ground."""
    random = np.random.default_rng(11)
    if name == "laikago":
        model = load_model("laikago")
        # pressed into the floor by 2 mm, deeper than the width over which solimp changes
        qpos = np.tile(model.keyframes["home"] - 2e-3 * np.eye(model.nq)[2], (batch, 1))
        ctrl = qpos[:, None, 7:] + 0.05 * random.normal(size=(batch, steps, model.nu))
    else:
        model = load_model(THREE_TREES if name == "trees" else gymnasium_ant())
        qpos = model.qpos0 + 0.1 * random.normal(size=(batch, model.nq))
        ctrl = 0.3 * random.normal(size=(batch, steps, model.nu))
    return model, {"qpos": qpos, "qvel": 0.3 * random.normal(size=(batch, model.nv)), "ctrl": ctrl}


def _tangents(model: Model, batch: int, steps: int, random: np.random.Generator) -> dict[str, Any]:
    """Return a random direction of everything; parameters move in proportion to themselves."""
    shapes = {
        "qpos_tan": (batch, model.nv),
        "qvel_tan": (batch, model.nv),
        "ctrl_tan": (batch, steps, model.nu),
    }
    tangents: dict[str, Any] = {name: random.normal(size=shape) for name, shape in shapes.items()}
    tangents["params_tan"] = {}
    for name in parameters_of(model):
        own = default_parameter(model, name)
        if not name.endswith(
            "_friction"
        ):  # equal coefficients tie: the derivative of the larger has two sides
            tangents["params_tan"][name] = random.normal(size=(batch, *own.shape)) * np.abs(own)
    return tangents


@pytest.mark.parametrize(
    ("name", "steps", "tolerance"),
    [("trees", 30, DOT), ("ant", 30, DOT_CONTACT), ("laikago", 50, DOT_CONTACT)],
)
def test_forward_and_backward_agree(name: str, steps: int, tolerance: float) -> None:
    batch = 5
    model, start = _scene(name, batch, steps)
    engine, random = Engine(threads=2), np.random.default_rng(12)
    params = {each: np.stack([default_parameter(model, each)] * batch) for each in parameters_of(model)}
    rollout = engine.rollout(model, **start, params=params)
    tangents = _tangents(model, batch, steps, random)
    jvp = engine.jvp(model, rollout, **tangents)
    bars = [random.normal(size=rollout.qpos.shape), random.normal(size=rollout.qvel.shape)]
    gradient = engine.backward(model, rollout, *bars, wrt=["qpos", "qvel", "ctrl", *parameters_of(model)])
    # a tangent moves the start's quaternions, of any length, in proportion to it
    pairs = [
        (bars[0] * ambient(model, rollout.qpos, jvp.qpos)).sum(axis=(1, 2))
        + (bars[1] * jvp.qvel).sum(axis=(1, 2)),
        (gradient.qpos * ambient(model, start["qpos"], tangents["qpos_tan"])).sum(axis=1)
        + (gradient.qvel * tangents["qvel_tan"]).sum(axis=1)
        + (gradient.ctrl * tangents["ctrl_tan"]).sum(axis=(1, 2)),
    ]
    for each, tangent in tangents["params_tan"].items():
        pairs[1] += (gradient[each] * tangent).reshape(batch, -1).sum(axis=1)
    print(name, *pairs)
    assert np.abs(pairs[0] - pairs[1]).max() < tolerance * np.abs(pairs[0]).max()
    assert not np.array_equal(pairs[0], pairs[1])


@pytest.mark.parametrize("name", ["trees", "laikago"])
def test_tangents_are_central_differences_of_trajectories(name: str) -> None:
    model, start = _scene(name, 1, 40)
    engine, by = Engine(threads=1), 3e-7
    tangents = _tangents(model, 1, 40, np.random.default_rng(13))
    mass = default_parameter(model, "body_mass")
    tangents["params_tan"] = {"body_mass": tangents["params_tan"]["body_mass"][0]}
    rollout = engine.rollout(model, **start, params={"body_mass": mass})
    jvp = engine.jvp(model, rollout, **tangents)
    ends = [
        engine.rollout(
            model,
            moved(model, start["qpos"][0], tangents["qpos_tan"][0], sign * by),
            start["qvel"] + sign * by * tangents["qvel_tan"],
            start["ctrl"] + sign * by * tangents["ctrl_tan"],
            params={"body_mass": mass + sign * by * tangents["params_tan"]["body_mass"]},
        )
        for sign in (-1, 1)
    ]
    dq = difference(model, ends[0].qpos, ends[1].qpos) / (2 * by)
    dv = (ends[1].qvel - ends[0].qvel) / (2 * by)
    assert np.abs(jvp.qpos - dq).max() < 1e-6 * np.abs(dq).max()
    assert np.abs(jvp.qvel - dv).max() < 1e-6 * np.abs(dv).max()


def _world(bodies: str) -> str:
    return (
        '<mujoco><option timestep="0.001"/><worldbody><geom type="plane" size="5 5 1"/>'
        f"{bodies}</worldbody></mujoco>"
    )


def _body(geom: str, height: float, x: float = 0.0, joint: str = "<freejoint/>", turn: str = "") -> str:
    return f'<body pos="{x} 0 {height}" {turn}>{joint}<geom mass="1" {geom}/></body>'


_RAIL = '<joint type="slide" axis="0 0 1"/>'
_BALL, _CAPSULE = 'type="sphere" size="0.125"', 'type="capsule" size="0.0625 0.25"'
_TURNED = 'quat="0.6 0.8 0 0"'
_LOW = 0.125 + 2**-12
# the small range and the spin reach each other within a step
_LOCKED = '<joint type="ball" range="0 0.001" limited="true"/>'


@pytest.mark.parametrize(
    ("bodies", "speed"),
    [
        pytest.param(_body('type="box" size="0.25 0.5 0.125"', _LOW), (0, 0, -1, 0, 0, 0), id="flat box"),
        pytest.param("".join(_body(_BALL, _LOW, x, _RAIL) for x in (0, 1, 2)), (-1,) * 3, id="three balls"),
        pytest.param(_body(_BALL, 0.125), (0.2, 0, -1, 0, 0, 0), id="closed gap"),
        pytest.param(_body(_BALL, 2) + _body('type="sphere" size="0.25"', 2), (0,) * 12, id="one centre"),
        pytest.param(_body(_BALL, 2) + _body(_CAPSULE, 2, turn=_TURNED), (0,) * 12, id="ball on an axis"),
        pytest.param(
            _body(_CAPSULE, 2) + _body('type="capsule" size="0.125 0.25"', 2, turn=_TURNED),
            (0,) * 12,
            id="crossed axes",
        ),
        pytest.param(
            _body(_CAPSULE, 2) + _body(_BALL, 2.25, 0.1875 - 2**-12),
            (1, 2, 3, 1, 2, 3, -1, 2, 1, 3, 1, 2),
            id="ball beside an end",
        ),
        pytest.param(_body(_BALL, 2, joint=_LOCKED), (1, 2, 3), id="angle 0"),
    ],
)
def test_where_several_derivatives_meet_forward_and_backward_take_one(
    bodies: str, speed: tuple[float, ...]
) -> None:
    model = load_model(_world(bodies), contact_model="hard", restitution=0.5)
    engine, random = Engine(threads=1), np.random.default_rng(17)
    rollout = engine.rollout(model, model.qpos0, speed, np.zeros((1, 0)))
    rows = engine.jacobian(model, model.qpos0, speed, np.zeros(0)).A
    for _ in range(5):
        qpos_tan, qvel_tan = random.normal(size=(2, model.nv))
        forward = engine.jvp(model, rollout, qpos_tan=qpos_tan, qvel_tan=qvel_tan)
        expected = rows @ np.concatenate([qpos_tan, qvel_tan])
        found = np.concatenate([forward.qpos[1], forward.qvel[1]])
        assert np.abs(found - expected).max() < DOT * np.abs(rows).max()


@pytest.mark.parametrize(
    "equality",
    [
        '<joint joint1="a" joint2="b" solimp="0.5 0.99 0.001 0.5 1"/>',
        '<tendon tendon1="between" solimp="0.5 0.99 0.001 0.5 2"/>',
        '<connect body1="left" body2="right" anchor="0.25 0 -0.25" solimp="0.5 0.99 0.001 0.5 2"/>',
        '<weld body1="left" body2="right" solimp="0.5 0.99 0.001 0.5 2"/>',
    ],
)
def test_an_equality_that_holds_exactly_takes_one(equality: str) -> None:
    # MuJoCo's impedance is a function of the violation's size, which has a corner at zero
    bodies = "".join(
        f'<body name="{name}" pos="{x} 0 0"><joint name="{joint}" axis="0 1 0"/>'
        '<geom size="0.05" pos="0 0 -0.25" mass="1"/></body>'
        for name, joint, x in (("left", "a", 0), ("right", "b", 0.5))
    )
    joints = '<joint joint="a" coef="1"/><joint joint="b" coef="-1"/>'
    tendon = f'<tendon><fixed name="between">{joints}</fixed></tendon>'
    model = load_model(
        f"<mujoco><worldbody>{bodies}</worldbody>{tendon}<equality>{equality}</equality></mujoco>",
        contact=False,
    )
    engine, qvel = Engine(threads=1), np.array([0.3, -0.2])
    rollout = engine.rollout(model, np.zeros(2), qvel, np.zeros((1, 0)))
    rows = engine.jacobian(model, np.zeros(2), qvel, np.zeros(0)).A
    for k, direction in enumerate(np.eye(2)):
        forward = engine.jvp(model, rollout, qpos_tan=direction).qvel[1]
        assert np.abs(forward - rows[2:, k]).max() < DOT * np.abs(rows).max()


def test_a_turn_about_a_capsules_own_axis_moves_nothing_when_a_ball_sits_on_it() -> None:
    """There the contact's normal is z and does not turn with the shapes."""
    model = load_model(_world(_body(_BALL, 2) + _body(_CAPSULE, 2, turn=_TURNED)))
    rows = Engine(threads=1).jacobian(model, model.qpos0, np.zeros(12), np.zeros(0)).A
    others = [k for k in range(24) if k != 11]
    assert rows[11, 11] == 1 and not rows[others, 11].any()


def test_a_shared_tangent_is_each_environments_and_none_is_zero() -> None:
    model, start = _scene("trees", 3, 5)
    engine, random = Engine(threads=1), np.random.default_rng(14)
    rollout = engine.rollout(model, **start)
    tangent = random.normal(size=model.nv)
    mass = random.normal(size=model.nbody)
    shared = engine.jvp(model, rollout, qvel_tan=tangent, params_tan={"body_mass": mass})
    each = engine.jvp(
        model,
        rollout,
        qpos_tan=np.zeros((3, model.nv)),
        qvel_tan=np.tile(tangent, (3, 1)),
        ctrl_tan=np.zeros((5, model.nu)),
        params_tan={"body_mass": np.tile(mass, (3, 1))},
    )
    assert np.array_equal(shared.qpos, each.qpos) and np.array_equal(shared.qvel, each.qvel)
    assert np.array_equal(shared.qvel[:, 0], np.tile(tangent, (3, 1)))
    assert not shared.qvel.flags.writeable


def test_without_batch_axis_tangents_have_none() -> None:
    model, start = _scene("trees", 3, 5)
    engine = Engine(threads=1)
    rollout = engine.rollout(model, start["qpos"][1], start["qvel"][1], start["ctrl"][1])
    alone = engine.jvp(model, rollout, ctrl_tan=np.ones((5, model.nu)))
    assert alone.qpos.shape == alone.qvel.shape == (6, model.nv)
    together = engine.jvp(model, engine.rollout(model, **start), ctrl_tan=np.ones((5, model.nu)))
    assert np.array_equal(alone.qvel, together.qvel[1])


def test_an_environment_that_diverges_has_no_tangent() -> None:
    model = load_model("laikago")
    ctrl = np.tile(model.keyframes["home"][7:], (2, 3, 1))
    qvel = np.zeros((2, model.nv))
    qvel[0, 7] = 1e200
    engine = Engine(threads=1)
    rollout = engine.rollout(model, model.keyframes["home"], qvel, ctrl)
    assert rollout.status.tolist() == [1, 0]
    jvp = engine.jvp(model, rollout, ctrl_tan=ctrl)
    assert np.isnan(jvp.qpos[0]).all() and np.isnan(jvp.qvel[0]).all()
    assert np.isfinite(jvp.qpos[1]).all() and np.isfinite(jvp.qvel[1]).all()
    lost = engine.rollout(model, model.keyframes["home"], qvel[0], ctrl[0])
    with pytest.raises(DivergedError, match="diverged first at step 0"):
        engine.jvp(model, lost, ctrl_tan=ctrl[0])


@pytest.mark.parametrize(
    ("tangents", "message"),
    [
        (
            {"qpos_tan": np.zeros((2, 19))},
            "qpos_tan: expected shape [18] or [2, 18], got [2, 19]; tangents of qpos have nv entries",
        ),
        ({"qvel_tan": np.zeros((3, 18))}, "qvel_tan: expected shape [18] or [2, 18], got [3, 18]"),
        ({"ctrl_tan": np.zeros((5, 12))}, "ctrl_tan: expected shape [4, 12] or [2, 4, 12], got [5, 12]"),
        (
            {"qvel_tan": np.full(18, np.inf)},
            "qvel_tan: expected finite values, got inf at [0]; replace it before the call",
        ),
        (
            {"params_tan": {"body_mass": np.zeros(3)}},
            "params_tan.body_mass: expected shape [nbody=18] or [batch=2, nbody=18], got [3]",
        ),
        ({"params_tan": 3}, "params_tan: expected a mapping of names to arrays, got int"),
        (
            {},
            "qpos_tan, qvel_tan, ctrl_tan, params_tan, control_tan: expected a tangent in at least one, "
            "got None in all",
        ),
    ],
)
def test_a_wrong_tangent_is_named(tangents: dict[str, Any], message: str) -> None:
    model = load_model("laikago")
    engine = Engine(threads=1)
    rollout = engine.rollout(model, model.keyframes["home"], model.qvel0, np.zeros((2, 4, 12)))
    with pytest.raises(ArgumentError) as caught:
        engine.jvp(model, rollout, **tangents)
    assert str(caught.value) == message


def test_a_cancelled_call_says_so() -> None:
    model, start = _scene("trees", 2, 5)
    engine, token = Engine(threads=1), CancelToken()
    rollout = engine.rollout(model, **start)
    token.cancel()
    with pytest.raises(Cancelled, match="jvp: stopped by its cancel token"):
        engine.jvp(model, rollout, qvel_tan=np.ones(model.nv), cancel=token)
    with pytest.raises(Cancelled, match="jacobian: stopped by its cancel token"):
        engine.jacobian(model, start["qpos"], start["qvel"], start["ctrl"][:, 0], cancel=token)


UNDAMPED = """<mujoco><option timestep="0.005" integrator="{integrator}"/><worldbody><body>
  <joint name="hinge" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0" mass="1"/></body></worldbody>
  <actuator><general joint="hinge" gaintype="affine" biastype="affine" gainprm="2"/></actuator></mujoco>"""
"""A pendulum on which nothing acts by its velocity."""


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit"])
def test_a_velocity_gain_of_zero_has_forward_derivatives(integrator: str) -> None:
    model, engine = load_model(UNDAMPED.format(integrator=integrator)), Engine(threads=1)
    rollout = engine.rollout(model, [0.3], [2.0], [[1.0]])
    gains = {"dof_damping": [1.0], "actuator_gainprm": [[0.0, 0.0, 1.0]]}
    gains["actuator_biasprm"] = gains["actuator_gainprm"]
    for name, tangent in gains.items():
        pushed = engine.jvp(model, rollout, params_tan={name: tangent}).qvel[-1, 0]
        pulled = engine.backward(model, rollout, None, [[0.0], [1.0]], wrt=[name])[name]
        assert pushed == pytest.approx((pulled * np.array(tangent)).sum(), rel=1e-12)
        ends = [
            engine.rollout(model, [0.3], [2.0], [[1.0]], params={name: default_parameter(model, name) + step})
            for step in (np.zeros(()), 1e-6 * np.array(tangent))
        ]
        difference = (ends[1].qvel[-1, 0] - ends[0].qvel[-1, 0]) / 1e-6
        assert pushed == pytest.approx(difference, rel=1e-4)
