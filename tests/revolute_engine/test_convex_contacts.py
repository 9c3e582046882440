"""Contacts of boxes, cylinders, ellipsoids and meshes, through the public interface.

Distances and normals of the hard model's contacts are MuJoCo's.
"""

import itertools

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, Model, Rollout, load_model, native

_POINTS = np.random.default_rng(0).normal(size=(14, 3))
_ROCK = _POINTS / np.linalg.norm(_POINTS, axis=1, keepdims=True) * [0.12, 0.2, 0.15]
_CORNERS = np.array(list(itertools.product((-0.1, 0.1), (-0.15, 0.15), (-0.2, 0.2))))
_ANGLES = np.linspace(0, 2 * np.pi, 40, endpoint=False)
_DRUM = np.array([[0.1 * np.cos(t), 0.1 * np.sin(t), z] for z in (-0.1, 0.1) for t in _ANGLES])


def _mesh(name: str, vertices: np.ndarray) -> str:
    return f'<mesh name="{name}" vertex="{" ".join(f"{value:.9g}" for value in vertices.ravel())}"/>'


ASSETS = f"<asset>{_mesh('rock', _ROCK)}{_mesh('cube', _CORNERS)}{_mesh('drum', _DRUM)}</asset>"
SHAPES = {
    "plane": 'type="plane" size="1 1 1"',
    "sphere": 'type="sphere" size=".13"',
    "capsule": 'type="capsule" size=".08 .15"',
    "ellipsoid": 'type="ellipsoid" size=".1 .2 .15"',
    "cylinder": 'type="cylinder" size=".12 .15"',
    "box": 'type="box" size=".1 .15 .2"',
    "rock": 'type="mesh" mesh="rock"',
}
PAIRS = list(itertools.combinations_with_replacement(SHAPES, 2))[1:]
TIMESTEP = 0.1
# MuJoCo's iteration for convex pairs stops at 1e-6 of its own; a face wins against a point that is better by
# 1e-6 of the shapes' size
DISTANCE = 5e-6
NORMAL = 1e-4
# central differences of a trajectory in contact, with steps that switch nothing
GRADIENT = 2e-6
# forward against backward derivatives, the tangents of quaternions by differences
PAIRED = 1e-8


def _scene(first: str, second: str, random: np.random.Generator) -> tuple[str, np.ndarray]:
    """Return a fixed shape and one that slides towards it, turned at random, and their direction."""
    turns = [" ".join(f"{value:.6f}" for value in random.normal(size=4)) for _ in range(2)]
    direction = random.normal(size=3)
    direction /= np.linalg.norm(direction)
    if first == "plane":
        turns[0], direction = "1 0 0 0", np.array([0, 0, 1.0])
    place = random.uniform(0.15 if first == "plane" else 0.3, 0.45) * direction
    slides = "".join(f'<joint type="slide" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", "0 0 1"))
    text = (
        f'<mujoco><option timestep="{TIMESTEP}" gravity="0 0 0"/>{ASSETS}<worldbody>'
        f'<geom name="a" {SHAPES[first]} quat="{turns[0]}" condim="1"/>'
        f'<body pos="{" ".join(map(str, place))}">{slides}'
        '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
        f'<geom name="b" {SHAPES[second]} quat="{turns[1]}" condim="1"/></body></worldbody></mujoco>'
    )
    return text, direction


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_distances_and_normals_are_mujocos(first: str, second: str) -> None:
    random = np.random.default_rng(PAIRS.index((first, second)))
    compared = 0
    for _ in range(12):
        text, _ = _scene(first, second, random)
        model = load_model(text, margin=1.0, contact_model="hard")
        found = native.contacts(model.native, model.qpos0)
        deepest = int(np.argmin(found["distance"]))
        gap, normal = found["distance"][deepest], found["frame"][deepest][0]

        reference = model.mujoco_model
        reference.opt.ccd_tolerance, reference.opt.ccd_iterations = 1e-12, 200
        data = mujoco.MjData(reference)
        mujoco.mj_forward(reference, data)
        ends = np.zeros(6)
        theirs = mujoco.mj_geomDistance(
            reference, data, reference.geom("a").id, reference.geom("b").id, 2, ends
        )
        if theirs < -0.05 and {first, second} == {"capsule", "box"}:
            # MuJoCo's own formula for this pair is not the depth once the capsule's axis enters the box
            continue
        compared += 1
        assert gap == pytest.approx(theirs, abs=DISTANCE)
        if abs(theirs) > 1e-3:
            assert normal @ (ends[3:] - ends[:3]) / theirs == pytest.approx(1, abs=NORMAL)
    assert compared >= 6


# --- whole steps -----------------------------------------------------------------------------------------

FLOOR = '<geom type="plane" size="5 5 1"/>'
SLAB = '<body pos="0 0 .05"><freejoint/><geom type="box" size=".4 .4 .05" density="500"/></body>'


def _world(
    *bodies: tuple[str, str], floor: str = FLOOR, gravity: str = "0 0 -9.81", timestep: float = 0.002
) -> str:
    """Return free bodies, each a (place and turn, shape), on a floor."""
    text = "".join(
        f'<body {place}><freejoint/><geom {shape} density="500"/></body>' for place, shape in bodies
    )
    option = f'<option timestep="{timestep}" gravity="{gravity}"/>'
    return f"<mujoco>{option}{ASSETS}<worldbody>{floor}{text}</worldbody></mujoco>"


BOX, CYLINDER = 'type="box" size=".1 .15 .2"', 'type="cylinder" size=".1 .15"'
RESTING = {
    "box on a box": _world(('pos="0 0 .2"', BOX), ('pos=".02 .03 .6" euler="0 0 20"', BOX)),
    "box on an equal box": _world(('pos="0 0 .2"', BOX), ('pos="0 0 .6"', BOX)),
    "box on a fixed box": _world(
        ('pos="0 0 .2"', BOX), floor='<geom type="box" size="3 3 .5" pos="0 0 -.5"/>'
    ),
    "cylinder that stands": _world(('pos="0 0 .15"', CYLINDER)),
    "cylinder that stands on a box": _world(('pos="0 0 .25"', CYLINDER), floor=FLOOR + SLAB),
    "cylinder that lies": _world(('pos="0 0 .1" euler="90 0 0"', CYLINDER)),
    "cylinder that lies on a box": _world(('pos="0 0 .2" euler="90 0 0"', CYLINDER), floor=FLOOR + SLAB),
    "cylinder on a cylinder": _world(('pos="0 0 .15"', CYLINDER), ('pos=".01 .02 .45"', CYLINDER)),
    "capsule on a box": _world(
        ('pos="0 0 .16" euler="90 0 0"', 'type="capsule" size=".06 .15"'), floor=FLOOR + SLAB
    ),
    "ellipsoid on a box": _world(('pos="0 0 .15"', 'type="ellipsoid" size=".2 .15 .05"'), floor=FLOOR + SLAB),
    "mesh on the floor": _world(('pos="0 0 .2"', 'type="mesh" mesh="cube"')),
    "mesh on a box": _world(('pos="0 0 .3"', 'type="mesh" mesh="cube"'), floor=FLOOR + SLAB),
    "drum on a drum": _world(
        ('pos="0 0 .1"', 'type="mesh" mesh="drum"'), ('pos=".01 .02 .3"', 'type="mesh" mesh="drum"')
    ),
    "box on two boxes": _world(('pos="0 -.16 .2"', BOX), ('pos="0 .16 .2"', BOX), ('pos="0 0 .6"', BOX)),
}


def _run(model: Model, steps: int, qvel: np.ndarray | None = None, batch: int | None = None) -> Rollout:
    shape = (steps, model.nu) if batch is None else (batch, steps, model.nu)
    return Engine(threads=1).rollout(
        model, model.qpos0, np.zeros(model.nv) if qvel is None else qvel, np.zeros(shape)
    )


@pytest.mark.parametrize("name", RESTING)
def test_what_rests_stays(name: str) -> None:
    model = load_model(RESTING[name], contact_model="hard")
    rollout = _run(model, 1000)
    moved = np.abs(rollout.qpos[-1] - rollout.qpos[0])
    assert rollout.status == 0
    assert moved.max() < 5e-4, moved
    assert np.abs(rollout.qvel[-1]).max() < 1e-3


def test_a_mesh_cube_moves_as_a_box() -> None:
    place = 'pos="0 0 .5" euler="20 30 10"'
    box, mesh = (
        _run(load_model(_world((place, shape), timestep=0.001), contact_model="hard"), 300)
        for shape in (BOX, 'type="mesh" mesh="cube"')
    )
    # the mesh's vertices are in single precision, and its frame is turned to its principal axes
    assert box.qpos[:, 2] == pytest.approx(mesh.qpos[:, 2], abs=1e-5)
    assert box.qvel[:, 2].min() < -1.5


def test_a_cylinder_rolls_without_slipping() -> None:
    model = load_model(
        _world(('pos="0 0 .1" euler="90 0 0"', CYLINDER), timestep=0.001), contact_model="hard"
    )
    start = np.array([1.0, 0, 0, 0, 0, 0])
    rollout = _run(model, 1500, start)
    # sliding turns into rolling: the velocity that keeps the moment about the line of contact, v = (2/3) v0
    assert rollout.qvel[-1, 0] == pytest.approx(2 / 3, abs=2e-3)
    assert np.linalg.norm(rollout.qvel[-1, 3:]) == pytest.approx(rollout.qvel[-1, 0] / 0.1, rel=1e-3)
    assert rollout.qpos[-1, 2] == pytest.approx(0.1, abs=1e-6)


COLLIDING = [pair for pair in PAIRS if "plane" not in pair]


def _collision(first: str, second: str) -> tuple[Model, Model, np.ndarray, np.ndarray]:
    """Return two bodies, with and without contact, and their state one step before they touch."""
    bodies = (
        ('pos="0 0 0" euler="10 20 30"', SHAPES[first]),
        ('pos=".5 .03 .02" euler="70 10 50"', SHAPES[second]),
    )
    text = _world(*bodies, floor="", gravity="0 0 0", timestep=0.001)
    model, free = (
        load_model(text, contact_model="hard"),
        load_model(text, contact=False, contact_model="hard"),
    )
    flight = _run(model, 400, np.array([0.5, 0, 0, 1, -1, 0.5, -1.5, 0, 0.1, 0.5, 1, -2]))
    hit = int(np.argmax(np.abs(np.diff(flight.qvel[:, 0])) > 1e-3))
    assert hit > 0
    return model, free, flight.qpos[hit], flight.qvel[hit]


def _momentum(model: Model, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
    """Return linear and angular momentum of both bodies, about the origin."""
    data = mujoco.MjData(model.mujoco_model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(model.mujoco_model, data)
    mujoco.mj_subtreeVel(model.mujoco_model, data)
    total = data.subtree_linvel[0] * model.body_mass.sum()
    return np.r_[total, data.subtree_angmom[0] + np.cross(data.subtree_com[0], total)]


@pytest.mark.parametrize(("first", "second"), COLLIDING)
def test_two_free_bodies_keep_their_momenta(first: str, second: str) -> None:
    model, free, qpos, qvel = _collision(first, second)
    engine, none, h = Engine(threads=1), np.zeros((1, 0)), model.timestep
    hit = engine.rollout(model, qpos, qvel, none)
    # the bodies fly with qvel until they touch, then with the new velocity: the places tell the moment
    change = hit.qvel[1, :3] - qvel[:3]
    k = int(np.abs(change).argmax())
    touch = qpos.copy()
    moment = h - (hit.qpos[1, k] - qpos[k] - h * qvel[k]) / change[k]
    mujoco.mj_integratePos(model.mujoco_model, touch, qvel, moment)
    unhit = engine.rollout(free, touch, qvel, none).qvel[1]
    assert np.abs(hit.qvel[1] - unhit).max() > 0.1
    before, after = (_momentum(model, touch, velocity) for velocity in (unhit, hit.qvel[1]))
    assert after == pytest.approx(before, abs=1e-12 * model.body_mass.sum())


# --- gradients -------------------------------------------------------------------------------------------


def _gradient_error(
    model: Model, qpos: np.ndarray, qvel: np.ndarray, steps: int, seed: int
) -> tuple[float, float]:
    """Return how far the adjoint is from central differences and from the forward tangent, relatively."""
    random, engine = np.random.default_rng(seed), Engine(threads=1)
    ctrl = np.zeros((steps, model.nu))
    rollout = engine.rollout(model, qpos, qvel, ctrl)
    bars = [random.normal(size=rollout.qpos.shape), random.normal(size=rollout.qvel.shape)]
    gradient = engine.backward(model, rollout, *bars)
    tangents = [random.normal(size=model.nv), random.normal(size=model.nv)]

    def moved(by: float) -> np.ndarray:
        position = np.array(qpos)
        mujoco.mj_integratePos(model.mujoco_model, position, tangents[0], by)
        return position

    def loss(by: float) -> float:
        at = engine.rollout(model, moved(by), qvel + by * tangents[1], ctrl)
        return float((bars[0] * at.qpos).sum() + (bars[1] * at.qvel).sum())

    def central(by: float) -> float:
        return (loss(by) - loss(-by)) / (2 * by)

    # larger steps cross the solver's switching points, smaller ones lose digits
    differences = np.array([central(by) for by in (1e-6, 1e-7, 1e-8, 1e-9)])
    ambient = (moved(1e-6) - moved(-1e-6)) / 2e-6
    exact = float(gradient.qpos @ ambient + gradient.qvel @ tangents[1])
    pushed = engine.jvp(model, rollout, qpos_tan=tangents[0], qvel_tan=tangents[1])
    # the tangent of each state moves it along the manifold
    forward = 0.0
    for step in range(steps + 1):
        ends = [np.array(rollout.qpos[step]) for _ in range(2)]
        for end, by in zip(ends, (1e-6, -1e-6), strict=True):
            mujoco.mj_integratePos(model.mujoco_model, end, pushed.qpos[step], by)
        forward += float(bars[0][step] @ (ends[0] - ends[1]) / 2e-6 + bars[1][step] @ pushed.qvel[step])
    scale = abs(exact) + 1e-3 * np.linalg.norm(bars[1])
    return np.abs(exact - differences).min() / scale, abs(exact - forward) / scale


@pytest.mark.parametrize("solver", ["pgs", "exact"])
@pytest.mark.parametrize("name", RESTING)
def test_gradients_of_what_rests(name: str, solver: str) -> None:
    # after few sweeps a pile's contacts are still switching, within any difference
    model = load_model(RESTING[name], iterations=500, contact_model="hard", solver=solver)
    random = np.random.default_rng(4)
    qpos = model.qpos0 + 1e-5 * random.normal(size=model.nq)
    mujoco.mj_normalizeQuat(model.mujoco_model, qpos)
    settled = Engine(threads=1).rollout(model, qpos, np.zeros(model.nv), np.zeros((20, model.nu)))
    # what rests to the last digit lies on switches; 1e-7 beside them it does not
    qpos = settled.qpos[-1].copy()
    mujoco.mj_integratePos(model.mujoco_model, qpos, random.normal(size=model.nv), 1e-7)
    one = Engine(threads=1).rollout(model, qpos, settled.qvel[-1], np.zeros((5, model.nu)))
    assert one.unsettled_step == -1
    differences, paired = _gradient_error(model, qpos, settled.qvel[-1], 5, 4)
    print(name, differences, paired)
    assert differences < GRADIENT and paired < PAIRED


@pytest.mark.parametrize(("first", "second"), COLLIDING)
def test_gradients_of_collisions(first: str, second: str) -> None:
    model, _, qpos, qvel = _collision(first, second)
    errors = _gradient_error(model, qpos, qvel, 3, 5)
    print(first, second, errors)
    assert max(errors) < GRADIENT


def test_environments_do_not_depend_on_their_neighbours() -> None:
    model = load_model(
        _world(
            ('pos="0 0 .2" euler="10 20 30"', BOX),
            ('pos=".05 0 .6" euler="50 20 30"', CYLINDER),
            ('pos="0 .05 1.0" euler="10 70 30"', 'type="mesh" mesh="rock"'),
            ('pos="0 0 1.4"', 'type="ellipsoid" size=".2 .15 .1"'),
        ),
        contact_model="hard",
    )
    random, engine = np.random.default_rng(7), Engine(threads=1)
    qvel = 0.3 * random.normal(size=(5, model.nv))
    ctrl = np.zeros((5, 400, model.nu))
    together = engine.rollout(model, model.qpos0, qvel, ctrl)
    bar = random.normal(size=together.qpos.shape)
    gradient = engine.backward(model, together, bar, None)
    for one in range(5):
        alone = engine.rollout(model, model.qpos0, qvel[one], ctrl[one])
        assert np.array_equal(alone.qpos, together.qpos[one])
        assert np.array_equal(engine.backward(model, alone, bar[one], None).qvel, gradient.qvel[one])
