"""Drives Laikago by model predictive control at 100 Hz: iLQR plans, the first joint targets act for 10 ms.

The base should rise, sink and pitch in a wave; after one second a push gives it 0.3 m/s to the side. The
robot that is driven has a chassis 15 % heavier than the model that plans. Each period does one iteration of
iLQR, from the last plan shifted by a row: a call for the Jacobians, one for the line search. The robot waits
for its plan; the table has the milliseconds per plan, of the wall clock and of this process's processors, the
rate that the clock allows, and the microseconds of `mj_step` between plans as a measure of the machine.
"without" holds the standing robot's joint targets.
"""

import time

import mujoco
import numpy as np
from search import arguments

import revolute
from revolute.optimize import ilqr

TIMESTEP, HOLD = 2e-3, 5
PUSHED, PUSH = 100, 0.3  # period, m/s
HEAVIER = 1.15
WEIGHTS = {"z": 100.0, "quaternion": 20.0, "sideways": 5.0, "qvel": 0.01, "ctrl": 0.05}


def reference(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return height and y of the base's quaternion at times in seconds."""
    return 0.44 + 0.02 * np.cos(2 * np.pi * times), 0.06 * np.sin(np.pi * times)


def loss_of(begin: float, rows: int, standing: np.ndarray) -> revolute.Loss:
    """Return the loss of the next rows * HOLD steps."""
    height, pitch = reference(begin + TIMESTEP * np.arange(rows * HOLD + 1))
    vector = np.stack([0 * pitch, pitch, 0 * pitch], axis=1)
    return revolute.Loss(
        [
            revolute.Term("qpos", index=[2], target=height[:, None], weight=WEIGHTS["z"], when="running"),
            revolute.Term(
                "qpos", index=[4, 5, 6], target=vector, weight=WEIGHTS["quaternion"], when="running"
            ),
            revolute.Term("qpos", index=[0, 1], weight=WEIGHTS["sideways"], when="running"),
            revolute.Term("qvel", weight=WEIGHTS["qvel"], when="running"),
            revolute.Term("ctrl", target=standing, weight=WEIGHTS["ctrl"], when="running"),
        ]
    )


def step_of_mujoco(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Return the seconds of an `mj_step`, over fifty."""
    begin = time.perf_counter()
    for _ in range(50):
        mujoco.mj_step(model, data)
    return (time.perf_counter() - begin) / 50


def drive(
    sim: revolute.Simulator, contact_model: str, periods: int, rows: int, seed: int, planning: bool
) -> dict[str, float]:
    """Drive the robot; return the error of the base, and seconds per plan and per `mj_step`."""
    model = sim.load_model("laikago", timestep=TIMESTEP, contact_model=contact_model)
    random = np.random.default_rng(seed)
    home = model.keyframes["home"]
    qpos, qvel = home.copy(), 0.02 * random.normal(size=model.nv)
    ctrl = np.tile(home[7:], (rows, 1))
    heavier = {
        "body_mass": {"chassis": HEAVIER * model.params["body_mass"][model.body_names.index("chassis")]}
    }
    peer, seconds, errors = model.mujoco(), [], []
    data = mujoco.MjData(peer)
    data.qpos[:] = home
    for period in range(periods):
        begin = period * HOLD * TIMESTEP
        if planning:
            loss = loss_of(begin, rows, home[7:])
            started, worked = time.perf_counter(), time.process_time()
            ctrl = ilqr(sim, model, qpos, qvel, ctrl, loss, hold=HOLD, iterations=1).ctrl
            seconds.append(
                (time.perf_counter() - started, time.process_time() - worked, step_of_mujoco(peer, data))
            )
        if period == PUSHED:
            qvel[1] += PUSH
        end = sim.rollout(
            model, qpos, qvel, ctrl[:1], hold=HOLD, params=heavier, checkpoints="none", states="final"
        )
        qpos, qvel = end.final_qpos.copy(), end.final_qvel.copy()
        ctrl = np.concatenate([ctrl[1:], ctrl[-1:]])
        height, pitch = reference(begin + HOLD * TIMESTEP)
        errors.append([qpos[2] - height, 2 * (qpos[5] - pitch), qpos[1]])
    plan, cpu, step = np.median(seconds, axis=0) if seconds else [np.nan] * 3
    height, pitch, sideways = np.sqrt(np.mean(np.square(errors), axis=0))
    return {"height": height, "pitch": pitch, "sideways": sideways, "plan": plan, "cpu": cpu, "step": step}


def main() -> None:
    """Drive with both contact models, with and without plans."""
    parser = arguments(__doc__, iterations=1, generations=0)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of the drive")
    parser.add_argument("--rows", type=int, default=15, help="horizon, in periods of 10 ms")
    given = parser.parse_args()
    # one thread: a plan's calls are too small for two
    sim = revolute.connect(given.address, threads=None if given.address else 1)
    print(
        "| case | control | height error, mm | pitch error, rad | sideways, mm "
        "| ms per plan | CPU ms | plans/s | mj_step, us |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for contact_model in given.contact_model:
        for seed in given.seed:
            for planning in (True, False):
                found = drive(
                    sim, contact_model, round(given.seconds / (HOLD * TIMESTEP)), given.rows, seed, planning
                )
                errors = f"{1e3 * found['height']:.1f} | {found['pitch']:.3f} | {1e3 * found['sideways']:.0f}"
                plan, step = 1e3 * found["plan"], 1e6 * found["step"]
                times = (
                    f"{plan:.1f} | {1e3 * found['cpu']:.1f} | {1e3 / plan:.0f} | {step:.1f}"
                    if planning
                    else " | | | "
                )
                how = "iLQR" if planning else "without"
                print(f"| {contact_model}, seed {seed} | {how} | {errors} | {times} |", flush=True)


if __name__ == "__main__":
    main()
