"""A club of two links hits a ball, which should be at a target one second later.

The scene is that of Qiao et al. (2021): 1 ms steps, torques start as random numbers of 1 N m, the loss is the
root mean square of the ball's distance from the target along the three axes. Torques change every 10 ms
(`--period`).
"""

import numpy as np
from search import MODELS, Report, Task, arguments

import revolute

SECONDS = 1.0
CONTACT = {"mujoco": {}, "hard": {"restitution": 0.5, "solver": "exact"}}


def make_task(
    sim: revolute.Simulator, contact_model: str, target: list[float], timestep: float, period: float
) -> Task:
    """Return the task: x are the torques [SECONDS / period, 2] in one row."""
    options = CONTACT[contact_model] | {"timestep": timestep, "contact_model": contact_model}
    model = sim.load_model(MODELS / "golf.xml", **options)
    return Task(
        sim,
        model,
        model.qpos0,
        ctrl=lambda x: x.reshape(len(x), -1, model.nu),
        pull=lambda gradient, x: gradient.reshape(3, -1),
        index=model.qpos_index("ball")[:3],
        target=target,
        weight=1 / np.sqrt(3),
        hold=round(period / timestep),
    )


def main() -> None:
    """Compare the searches."""
    parser = arguments(__doc__, iterations=30, generations=1500)
    parser.add_argument("--target", type=float, nargs=3, action="append", metavar=("X", "Y", "Z"))
    parser.add_argument("--goal", type=float, default=0.05, help="metres")
    parser.add_argument("--timestep", type=float, default=1e-3, help="seconds")
    parser.add_argument("--period", type=float, default=0.01, help="time that a torque acts for, seconds")
    given = parser.parse_args()
    sim, report = revolute.connect(given.address), Report("golf", given.save)
    for target in given.target or [[0, -3, -1]]:
        for contact_model in given.contact_model:
            task = make_task(sim, contact_model, target, given.timestep, given.period)
            for seed in given.seed:
                start = np.random.default_rng(seed).normal(size=round(SECONDS / given.period) * 2)
                case = f"{contact_model}, target {target[1]:g} {target[2]:g}, seed {seed}"
                found = report.compare(case, task, start, given, spread=0.3, seed=seed)
    report.finish(task.simulate(found.x[None]), camera="side")


if __name__ == "__main__":
    main()
