"""Makes Laikago hop: 0.4 s after it stands, its base should be at a given height, above its start and level.

The joint targets of the twelve servos change every 20 ms. They start from a crouch of 0.16 s and standing
after it, which is no hop yet, and may change by 1 rad. The loss is the length of (0.3 x, 0.3 y, z - height,
0.3 times the vector part of the base's quaternion).
"""

import numpy as np
from search import Report, Task, arguments

import revolute

STEPS, HOLD = 200, 10
UNIT, LARGEST = 0.1, 1.0  # of a joint target's change, rad
BASE = [0, 1, 2, 4, 5, 6]
CROUCH, CROUCHED = np.tile([0, 0.6, -1.6], 4), 8


def make_task(sim: revolute.Simulator, contact_model: str, height: float) -> Task:
    """Return the task: x are the changes of the joint targets [STEPS / HOLD, 12] in units of UNIT."""
    model = sim.load_model("laikago", timestep=2e-3, contact_model=contact_model)
    qpos = model.keyframes["home"]
    standing = qpos[7:]
    first = np.where(np.arange(STEPS // HOLD)[:, None] < CROUCHED, CROUCH, standing)
    return Task(
        sim,
        model,
        qpos,
        ctrl=lambda x: first + UNIT * x.reshape(len(x), -1, model.nu),
        pull=lambda gradient, x: UNIT * gradient.reshape(len(BASE), -1),
        index=BASE,
        target=np.array([0, 0, height, 0, 0, 0]),
        weight=np.array([0.3, 0.3, 1, 0.3, 0.3, 0.3]),
        hold=HOLD,
        bounds=(-LARGEST / UNIT, LARGEST / UNIT),
    )


def main() -> None:
    """Compare the searches."""
    parser = arguments(__doc__, iterations=30, generations=300)
    parser.add_argument(
        "--target", type=float, nargs="+", default=[0.75], help="height of the base, m; it stands at 0.46"
    )
    parser.add_argument("--goal", type=float, default=0.01, help="metres")
    given = parser.parse_args()
    sim, report = revolute.connect(given.address), Report("hop", given.save)
    for height in given.target:
        for contact_model in given.contact_model:
            task = make_task(sim, contact_model, height)
            for seed in given.seed:
                start = 0.1 * np.random.default_rng(seed).normal(size=STEPS // HOLD * task.model.nu)
                case = f"{contact_model}, target {height:g}, seed {seed}"
                found = report.compare(case, task, start, given, spread=0.1, seed=seed)
    report.finish(task.simulate(found.x[None]), camera="track")


if __name__ == "__main__":
    main()
