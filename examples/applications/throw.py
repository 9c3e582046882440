"""An arm of seven joints with a gripper of two fingers throws a ball.

`--setting released` is that of Qiao et al. (2021): 10 s in steps of 10 ms with almost no gravity, the arm
stretched up, the fingers loose about the ball, torques of 0.03 N m at random. `--setting gravity` is a throw
on earth: the arm starts with the torques that hold it, grips the ball, lets it go after 0.6 s, and the ball
should be at the target 0.4 s later. The loss is the root mean square of the ball's distance from the target
along the three axes.
"""

from dataclasses import dataclass

import numpy as np
from search import MODELS, Report, Task, arguments

import revolute

ARM = 7
BRAKE = 10.0
"""Braking torque of the arm's joints after the release, N m per rad/s."""


@dataclass(frozen=True)
class Setting:
    """One throw.

    Attributes:
        gravity: m/s^2, along z.
        timestep: seconds.
        steps: number of steps.
        pose: joint angles of the arm at the start.
        target: of the ball, metres.
        grip: force of each finger until the release, N.
        release: step of the release.
        hold: steps that a torque acts for.
        noise: standard deviation of the first torques, N m.
        unit: of x, N m.
    """

    gravity: float
    timestep: float
    steps: int
    pose: tuple[float, ...]
    target: tuple[float, float, float]
    grip: float
    release: int
    hold: int
    noise: float
    unit: float


SETTINGS = {
    "released": Setting(
        -1 / 980,
        0.01,
        1000,
        (0,) * 7,
        (0.2679, 0.2135, 0.6616),
        grip=0,
        release=0,
        hold=20,
        noise=0.03,
        unit=0.03,
    ),
    "gravity": Setting(
        -9.81,
        0.002,
        500,
        (0, -0.785, 0, -2.356, 0, 1.571, 0.785),
        (1.0, 0.2, 0.1),
        grip=5,
        release=300,
        hold=10,
        noise=0.1,
        unit=1.0,
    ),
}


def make_task(
    sim: revolute.Simulator,
    contact_model: str,
    setting: Setting,
    target: list[float] | None,
    hold: int | None,
) -> Task:
    """Return the task: x are changes of the arm's torques [steps / hold, 7] in the setting's unit."""
    text = (MODELS / "arm.xml").read_text()
    text = text.replace('gravity="0 0 -9.81"', f'gravity="0 0 {setting.gravity}"')
    model = sim.load_model(
        text, name="arm", contact_model=contact_model, timestep=setting.timestep, limits=setting.grip > 0
    )
    qpos = model.qpos0.copy()
    qpos[:9] = *setting.pose, 0.02, 0.02
    poses = sim.kinematics(model, qpos)
    ball = model.qpos_index("ball")[:3]
    qpos[ball] = poses.site_pos[0]
    # the arm's weight pulls at its mass centre: torque = - m g dz/dq
    mass = model.params["body_mass"][1:-1].sum()
    holding = -setting.gravity * mass * poses.jacobian("subtree_com:link1")[2, :ARM]
    hold = hold or setting.hold
    rows = setting.steps // hold
    fingers = np.where(np.arange(rows) * hold < setting.release, -setting.grip, setting.grip)

    brake = np.zeros((rows, model.nu, 2 * model.nv))
    brake[setting.release // hold :, range(ARM), range(model.nv, model.nv + ARM)] = -BRAKE * (
        setting.grip > 0
    )

    def ctrl(x: np.ndarray) -> np.ndarray:
        torques = holding + setting.unit * x.reshape(len(x), rows, ARM)
        return np.concatenate([torques, np.broadcast_to(fingers[:, None], (len(x), rows, 2))], axis=2)

    return Task(
        sim,
        model,
        qpos,
        ctrl,
        pull=lambda gradient, x: setting.unit * gradient[..., :ARM].reshape(3, -1),
        index=ball,
        target=setting.target if target is None else target,
        weight=1 / np.sqrt(3),
        feedback=revolute.Feedback(brake, qpos, model.qvel0) if setting.grip else None,
        hold=hold,
    )


def main() -> None:
    """Compare the searches."""
    parser = arguments(__doc__, iterations=20, generations=500)
    parser.add_argument(
        "--setting", nargs="+", default=list(SETTINGS), choices=list(SETTINGS), help="default both"
    )
    parser.add_argument("--target", type=float, nargs=3, action="append", metavar=("X", "Y", "Z"))
    parser.add_argument("--goal", type=float, default=0.02, help="metres")
    parser.add_argument("--hold", type=int, help="steps that a torque acts for; default the setting's")
    given = parser.parse_args()
    sim, report = revolute.connect(given.address), Report("throw", given.save)
    for name in given.setting:
        setting = SETTINGS[name]
        for target in given.target or [list(setting.target)]:
            for contact_model in given.contact_model:
                task = make_task(sim, contact_model, setting, target, given.hold)
                size = setting.steps // task.hold * ARM
                for seed in given.seed:
                    start = setting.noise / setting.unit * np.random.default_rng(seed).normal(size=size)
                    where = " ".join(f"{each:g}" for each in target)
                    case = f"{name}, {contact_model}, target {where}, seed {seed}"
                    found = report.compare(case, task, start, given, spread=0.1, seed=seed)
    report.finish(task.simulate(found.x[None]), camera="side")


if __name__ == "__main__":
    main()
