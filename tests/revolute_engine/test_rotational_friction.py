"""Torsional and rolling friction (condim 4 and 6), and limits of ball joints, against closed forms."""

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, Model, Rollout, load_model

GRAVITY, RADIUS, MASS = 9.81, 0.1, 1.0
SPHERE_INERTIA = 0.4 * MASS * RADIUS**2
TORSION, ROLLING = 0.004, 0.003


def _ball(condim: int, sliding: float = 0.8) -> Model:
    """Return a ball that lies on a plane, with friction coefficients in metres for rotations."""
    return load_model(
        f"""<mujoco><option timestep="0.001"/>
        <default><geom condim="{condim}" friction="{sliding} {TORSION} {ROLLING}"/></default>
        <worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 {RADIUS}"><freejoint/>
        <geom size="{RADIUS}" mass="{MASS}"/></body></worldbody></mujoco>""",
        contact_model="hard",
    )


def _spun(model: Model, qvel: list[float], steps: int = 300) -> Rollout:
    return Engine(threads=1).rollout(model, model.qpos0, qvel, np.zeros((steps, 0)))


@pytest.mark.parametrize(("condim", "slows"), [(1, False), (3, False), (4, True), (6, True)])
def test_torsion_slows_a_spinning_ball(condim: int, slows: bool) -> None:
    """The friction moment about the normal is the coefficient times the weight."""
    rollout = _spun(_ball(condim), [0, 0, 0, 0, 0, 5])
    lost = TORSION * MASS * GRAVITY / SPHERE_INERTIA * 0.3 if slows else 0.0
    assert rollout.qvel[-1, 5] == pytest.approx(5 - lost, abs=1e-9)
    assert np.abs(rollout.qvel[-1, :3]).max() < 1e-9


@pytest.mark.parametrize(("condim", "slows"), [(3, False), (4, False), (6, True)])
def test_rolling_friction_slows_a_rolling_ball(condim: int, slows: bool) -> None:
    """The angular momentum about the point of touch falls by the rolling moment, a little less than mu_r g.

    The force that slows the ball, k times the moment, has its part of the ellipse
    (force/mu)^2 + (moment/mu_r)^2 = weight^2.
    """
    sliding, k = 0.8, 1 / (1.4 * RADIUS)
    rollout = _spun(_ball(condim, sliding), [1, 0, 0, 0, 1 / RADIUS, 0])
    moment = GRAVITY / np.hypot(1 / ROLLING, k / sliding) if slows else 0.0
    speed, spin = rollout.qvel[-1, 0], _world_spin(rollout)[1]
    momentum = RADIUS * speed + 0.4 * RADIUS**2 * spin
    assert momentum == pytest.approx(1.4 * RADIUS - 0.3 * moment, rel=1e-5)
    # what slides and what rolls stand to each other as the ellipse's normal
    slip = k * (ROLLING / sliding) ** 2 * spin if slows else 0.0
    assert abs(RADIUS * spin - speed) == pytest.approx(slip, rel=0.02, abs=1e-9)


def _world_spin(rollout: Rollout) -> np.ndarray:
    """Return the angular velocity at the end in the world frame."""
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, rollout.qpos[-1, 3:])
    return turn.reshape(3, 3) @ rollout.qvel[-1, 3:]


def test_a_ball_comes_to_rest_and_stays() -> None:
    rollout = _spun(_ball(6), [0.05, 0.02, 0, -0.2, 0.5, 1.0], 2000)
    assert np.abs(rollout.qvel[-1]).max() < 1e-6


@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_rest_is_rest_whatever_the_condim(condim: int) -> None:
    rollout = _spun(_ball(condim), [0.0] * 6)
    assert np.abs(rollout.qvel).max() < 1e-9


@pytest.mark.parametrize("condim", [4, 6])
def test_gradients_through_rotational_friction(condim: int) -> None:
    """Sliding, spinning and rolling at once; every row of the contact is at a bound or free."""
    model, engine = _ball(condim, sliding=0.1), Engine(threads=1)
    qvel = np.array([1.0, -0.5, 0, 2, -3, 4])
    bars = np.random.default_rng(1).normal(size=(2, 51, 7))

    def loss(start: np.ndarray) -> float:
        rollout = engine.rollout(model, model.qpos0, start, np.zeros((50, 0)))
        return float((bars[0] * rollout.qpos).sum() + (bars[1, :, :6] * rollout.qvel).sum())

    rollout = engine.rollout(model, model.qpos0, qvel, np.zeros((50, 0)))
    gradient = engine.backward(model, rollout, bars[0], bars[1, :, :6], wrt="qvel")
    for axis in range(6):
        move = 1e-6 * np.eye(6)[axis]
        if axis == 2:  # towards the plane: the derivative has two sides at rest
            continue
        difference = (loss(qvel + move) - loss(qvel - move)) / 2e-6
        assert gradient.qvel[axis] == pytest.approx(difference, rel=1e-5, abs=1e-6)


BALL_JOINT = """<mujoco><compiler angle="radian"/><option timestep="0.001" gravity="3 2 -4"/><worldbody>
  <body><joint name="ball" type="ball" range="0 0.5"/>
  <inertial pos="0 0 -0.3" mass="1" diaginertia="0.01 0.02 0.03"/></body></worldbody></mujoco>"""


def _angle(qpos: np.ndarray) -> np.ndarray:
    return 2 * np.arctan2(np.linalg.norm(qpos[..., 1:], axis=-1), np.abs(qpos[..., 0]))


def test_a_ball_joint_stops_at_its_limit() -> None:
    model = load_model(BALL_JOINT, contact_model="hard")
    rollout = _spun(model, [2.0, -1, 3], 3000)
    angle = _angle(rollout.qpos)
    assert angle.max() < 0.5 + 2e-4  # a step turns along the cone's tangent, and depth comes back slowly
    assert angle.max() > 0.5 - 1e-4
    free = _spun(load_model(BALL_JOINT, limits=False, contact_model="hard"), [2.0, -1, 3], 3000)
    assert _angle(free.qpos).max() > 0.6


def test_a_limit_of_a_ball_joint_is_mujocos() -> None:
    """The row's gap and Jacobian: at the limit the speed across it vanishes, with MuJoCo's Jacobian."""
    model = load_model(BALL_JOINT, contact_model="hard")
    data = mujoco.MjData(model.mujoco_model)
    axis = np.array([0.6, -0.64, 0.48])
    qpos = np.array([np.cos(0.3), *(np.sin(0.3) * axis)])  # 0.6 rad, 0.1 beyond
    data.qpos[:] = qpos
    mujoco.mj_forward(model.mujoco_model, data)
    assert data.efc_pos[0] == pytest.approx(-0.1)
    step = Engine(threads=1).rollout(model, qpos, [1.0, 2, 3], np.zeros((1, 0)))
    # s = 10 h^2 is given back, and of what is deeper 80 parts a second, at most 0.45 rad/s
    expected = 10 * model.timestep + 0.45
    assert data.efc_J.reshape(-1)[:3] @ step.qvel[1] == pytest.approx(expected, rel=1e-9)
