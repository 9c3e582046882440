"""The contact model "mujoco" beside mj_step, in the same run: scenes, derivatives of a step, a batch.

Both engines start from the same state, which MuJoCo reached from the scene's start, and follow the same
controls. MuJoCo has its defaults (Newton, warm starts, islands) on one thread, through mujoco.rollout. A
ratio is the processor time of revolute over that of MuJoCo, fastest of the rounds, which take turns. The
Unitree G1 comes from PyPI's package example-robot-data; without it its row is missing.
"""

from __future__ import annotations

import site
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

import revolute_engine

from ..laikago import MODEL_FILE, POSE, START
from ..measure import Timing, interleaved
from ..script import Effort, script
from ..table import Row, Table

TIMESTEP = 2e-3
STEPS, TRANSITIONS = 100, 10
BATCH, BATCH_STEPS = 1024, 20
CROWD = 100
HUMANOID = Path(gymnasium.__file__).parent / "envs/mujoco/assets/humanoid.xml"
G1 = "cmeel.prefix/share/example-robot-data/robots/g1_description/urdf/g1_29dof_rev_1_0.urdf"

WALLS = """<geom type="plane" size="5 5 1"/>
<geom type="box" size=".02 {w} .4" pos="{w} 0 .4"/><geom type="box" size=".02 {w} .4" pos="-{w} 0 .4"/>
<geom type="box" size="{w} .02 .4" pos="0 {w} .4"/><geom type="box" size="{w} .02 .4" pos="0 -{w} .4"/>"""

GRIPPER = """<mujoco><worldbody><geom type="plane" size="2 2 1"/>
<body pos="0 0 .25"><joint name="lift" type="slide" axis="0 0 1" damping="20"/>
  <geom type="box" size=".06 .03 .02" mass=".5"/>
  <body pos="-.05 0 -.06"><joint name="left" type="slide" axis="1 0 0" damping="5"/>
    <geom type="box" size=".008 .02 .05" mass=".1" friction="1"/></body>
  <body pos=".05 0 -.06"><joint name="right" type="slide" axis="-1 0 0" damping="5"/>
    <geom type="box" size=".008 .02 .05" mass=".1" friction="1"/></body></body>
<body pos="0 0 .14"><freejoint/><geom type="box" size=".025 .025 .03" mass=".2" friction="1"/></body>
</worldbody><actuator><position joint="lift" kp="2000"/><position joint="left" kp="500"/>
<position joint="right" kp="500"/></actuator></mujoco>"""


def spheres(side: int = 5, radius: float = 0.05) -> str:
    """Return MJCF of a heap of loose spheres between four walls."""
    random = np.random.default_rng(0)
    text = WALLS.format(w=1.2 * side * radius + 0.02)
    for place in np.ndindex(side, side, side):
        x, y, z = 2.1 * radius * (np.array(place) - [(side - 1) / 2, (side - 1) / 2, -0.6])
        x, y = np.array([x, y]) + random.uniform(-0.004, 0.004, 2)
        text += f'<body pos="{x} {y} {z}"><freejoint/><geom size="{radius}" mass=".1"/></body>'
    return f"<mujoco><worldbody>{text}</worldbody></mujoco>"


def boxes(count: int = 20) -> str:
    """Return MJCF of a heap of boxes between four walls."""
    random, text = np.random.default_rng(0), WALLS.format(w=0.25)
    for i in range(count):
        x, y = random.uniform(-0.12, 0.12, 2)
        quat = " ".join(map(str, random.normal(size=4)))
        text += f'<body pos="{x} {y} {0.12 + 0.11 * i}" quat="{quat}"><freejoint/>'
        text += '<geom type="box" size=".05 .05 .05" mass=".5"/></body>'
    return f"<mujoco><worldbody>{text}</worldbody></mujoco>"


def humanoids(count: int = CROWD) -> str:
    """Return MJCF of humanoids on one floor, 1.5 m apart."""
    scene, side = mujoco.MjSpec.from_file(str(HUMANOID)), int(np.ceil(np.sqrt(count)))
    for i in range(1, count):
        robot = mujoco.MjSpec.from_file(str(HUMANOID))
        for extra in [*robot.keys, *robot.worldbody.geoms, *robot.worldbody.lights, *robot.worldbody.cameras]:
            robot.delete(extra)
        frame = scene.worldbody.add_frame(pos=[1.5 * (i // side), 1.5 * (i % side), 0.0])
        scene.attach(robot, prefix=f"h{i}_", frame=frame)
    scene.compile()
    return scene.to_xml()


def no_ctrl(model: mujoco.MjModel) -> np.ndarray:
    """Return controls of zero."""
    return np.zeros(model.nu)


@dataclass
class Scene:
    """A scene in both engines.

    Args:
        source: what `load_model` takes.
        settle: MuJoCo's steps from the scene's start to the start of the measurement.
        steps: length of the measured rollouts.
        ctrl: returns the controls, the same in every step.
        start: positions at the start; None takes the scene's.
        options: further options of `load_model`.
    """

    source: str
    settle: int
    steps: int = STEPS
    ctrl: Callable[[mujoco.MjModel], np.ndarray] = no_ctrl
    start: np.ndarray | None = None
    options: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = revolute_engine.load_model(
                self.source, contact_model="mujoco", timestep=TIMESTEP, **(self.options or {})
            )
        self.engine = revolute_engine.Engine(threads=1)
        self.reference = self.model.mujoco_model
        self.reference.opt.timestep = TIMESTEP
        self.data = mujoco.MjData(self.reference)
        if self.start is not None:
            self.data.qpos[:] = self.start
        self.data.ctrl[:] = self.ctrl(self.reference)
        for _ in range(self.settle):
            mujoco.mj_step(self.reference, self.data)
        self.qpos, self.qvel = self.data.qpos.copy(), self.data.qvel.copy()
        self.contacts = self.data.ncon

    def shortened(self, effort: Effort) -> Scene:
        """Return this scene with the steps that the effort allows."""
        self.steps = effort.steps(self.steps)
        return self

    def forward(self, batch: int = 1) -> Callable[[], Any]:
        """Return a call that rolls out `batch` environments."""
        ctrl = np.broadcast_to(self.data.ctrl, (batch, self.steps, self.model.nu)).copy()
        qpos, qvel = np.tile(self.qpos, (batch, 1)), np.tile(self.qvel, (batch, 1))
        return lambda: self.engine.rollout(self.model, qpos, qvel, ctrl, checkpoints="every")

    def backward(self, batch: int = 1) -> Callable[[], Any]:
        """Return a call that pulls a cotangent of the last positions back through such a rollout."""
        rollout = self.forward(batch)()
        qpos_bar = np.ones((batch, 1, self.model.nq))
        return lambda: self.engine.backward(self.model, rollout, qpos_bar, times=[-1])

    def mujoco_forward(self, batch: int = 1) -> Callable[[], Any]:
        """Return a call of mujoco.rollout over the same steps."""
        kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
        data = mujoco.MjData(self.reference)
        data.qpos[:], data.qvel[:] = self.qpos, self.qvel
        start = np.empty(mujoco.mj_stateSize(self.reference, kind))
        mujoco.mj_getState(self.reference, data, start, kind)
        starts = np.tile(start, (batch, 1))
        ctrl = np.broadcast_to(self.data.ctrl, (batch, self.steps, self.model.nu)).copy()
        warm = np.tile(self.data.qacc_warmstart, (batch, 1))
        return lambda: mujoco_rollout.rollout(
            self.reference, data, starts, ctrl, nstep=self.steps, initial_warmstart=warm
        )

    def transition(self, centred: bool) -> Callable[[], Any]:
        """Return a call of mjd_transitionFD, TRANSITIONS times, at the scene's state."""
        model = self.reference
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:], data.ctrl[:] = self.qpos, self.qvel, self.data.ctrl
        mujoco.mj_forward(model, data)
        by_state = np.empty((2 * model.nv + model.na,) * 2)
        by_ctrl = np.empty((2 * model.nv + model.na, model.nu))

        def differentiate() -> None:
            for _ in range(TRANSITIONS):
                mujoco.mjd_transitionFD(model, data, 1e-6, centred, by_state, by_ctrl, None, None)

        return differentiate


def laikago() -> Scene:
    """Return the built-in robot standing on four toes, held by its position actuators."""
    return Scene(str(MODEL_FILE), 300, ctrl=lambda model: POSE, start=START)


def lying_g1() -> Scene | None:
    """Return a Unitree G1 that has fallen to the ground, or None if the package with its URDF is not
    installed."""
    paths = [Path(folder) / G1 for folder in site.getsitepackages()]
    found = next((str(path) for path in paths if path.is_file()), None)
    if found is None:
        return None
    start = np.zeros(36)
    start[2:4] = 0.8, 1.0
    return Scene(found, 1500, start=start, options={"base": "free", "ground": True})


def gripper() -> Scene:
    """Return two fingers that hold a box in the air."""
    return Scene(GRIPPER, 300, ctrl=lambda model: np.array([0.0, 0.03, 0.03]))


SCENES: dict[str, Callable[[], Scene | None]] = {
    "Laikago standing": laikago,
    "humanoid falling": lambda: Scene(str(HUMANOID), 250),
    "G1 lying": lying_g1,
    "gripper holding a box": gripper,
    "125 loose spheres": lambda: Scene(spheres(), 500, steps=20),
    "20 boxes in a box": lambda: Scene(boxes(), 500),
    f"{CROWD} humanoids": lambda: Scene(humanoids(), 250, steps=10),
}


def ratio(timings: dict[str, Timing], one: str, other: str) -> float:
    """Return how much longer one call took than another, fastest rounds."""
    return timings[one].fastest / timings[other].fastest


def measure_scenes(effort: Effort) -> Table:
    """Return the table of scenes."""
    table = Table(
        "contact",
        'contact_model="mujoco", h = 2 ms, one environment, one thread; processor microseconds per step, '
        "fastest round, and ratios to mj_step.",
        {
            "scene": "scene",
            "dofs": "DoF",
            "contacts": "contacts",
            "mujoco_us": "mj_step µs",
            "forward_us": "forward µs",
            "backward_us": "backward µs",
            "forward": "forward, × mj_step",
            "backward": "backward, × mj_step",
        },
    )
    for name in effort.some(list(SCENES)):
        scene = SCENES[name]()
        if scene is None:
            continue
        scene.shortened(effort)
        calls = {"forward": scene.forward(), "backward": scene.backward(), "mujoco": scene.mujoco_forward()}
        timings = interleaved(calls, effort.repeats)
        row: Row = {"scene": name, "dofs": scene.model.nv, "contacts": scene.contacts}
        row |= {f"{call}_us": timings[call].per(scene.steps)["fastest_us"] for call in calls}
        row |= {call: ratio(timings, call, "mujoco") for call in ("forward", "backward")}
        table.rows.append(row)
    return table


def measure_derivatives(effort: Effort) -> Table:
    """Return the table of derivatives of the standing robot."""
    scene = laikago().shortened(effort)
    calls = {
        "backward": scene.backward(),
        "mjd_transitionFD, one-sided": scene.transition(False),
        "mjd_transitionFD, centred": scene.transition(True),
    }
    timings = interleaved(calls, effort.repeats)
    counts = {"backward": scene.steps}
    backward = timings["backward"].fastest / scene.steps
    table = Table(
        "contact_derivatives",
        'Derivatives of a step of the standing Laikago, contact_model="mujoco"; the backward step pulls one '
        "cotangent back, mjd_transitionFD gives the Jacobian by differences. Processor microseconds, "
        "fastest round.",
        {"what": "what", "us": "µs", "ratio": "× a backward step"},
    )
    for what, timing in timings.items():
        seconds = timing.fastest / counts.get(what, TRANSITIONS)
        table.rows.append({"what": what, "us": 1e6 * seconds, "ratio": seconds / backward})
    return table


def measure_batch(effort: Effort) -> Table:
    """Return the table of a batch of standing robots."""
    scene, batch = laikago(), 16 if effort.quick else BATCH
    scene.steps = effort.steps(BATCH_STEPS)
    calls = {
        "forward": scene.forward(batch),
        "backward": scene.backward(batch),
        "mujoco.rollout": scene.mujoco_forward(batch),
    }
    timings = interleaved(calls, effort.repeats)
    table = Table(
        "contact_batch",
        f'{batch} standing Laikagos, contact_model="mujoco", one thread; processor microseconds per '
        "environment and step, fastest round.",
        {"what": "what", "us": "µs", "ratio": "× mujoco.rollout"},
    )
    for what, timing in timings.items():
        microseconds = 1e6 * timing.fastest / (batch * scene.steps)
        table.rows.append({"what": what, "us": microseconds, "ratio": ratio(timings, what, "mujoco.rollout")})
    return table


def measure(effort: Effort) -> list[Table]:
    """Return the tables of scenes, derivatives and batches."""
    return [measure_scenes(effort), measure_derivatives(effort), measure_batch(effort)]


if __name__ == "__main__":
    script("benchmarks.ours.contact", __doc__, measure)
