"""One Laikago on one thread, forward and backward, beside MuJoCo on the same scene in the same run.

MuJoCo's gradient is mjd_transitionFD: the Jacobian of one step by one-sided finite differences, without
the chain.
"""

from __future__ import annotations

from ..laikago import SWEEPS, TIMESTEP, Scene
from ..measure import interleaved
from ..script import Effort, script
from ..table import Table

STEPS, TRANSITIONS = 1000, 20
STATES = 64
COLUMNS = {"what": "what", "median_us": "median µs", "fastest_us": "fastest", "slowest_us": "slowest"}


def measure(effort: Effort) -> list[Table]:
    """Return the table of one robot."""
    steps = effort.steps(STEPS)
    table = Table(
        "step",
        f"Laikago, 18 DoF, 4 contacts, h = {TIMESTEP * 1e3:g} ms, {SWEEPS} sweeps, {steps} steps, "
        "one thread; processor time in microseconds per step.",
        COLUMNS,
    )
    for scene, name in ((Scene(steps), "standing"), (Scene(steps, contact=False), "no contacts")):
        calls = {
            f"{name}, forward": scene.forward(1),
            f"{name}, backward": scene.backward(1),
            f"{name}, MuJoCo mj_step": scene.mujoco_forward(),
        }
        for what, timing in interleaved(calls, effort.repeats).items():
            table.rows.append({"what": what, **timing.per(steps)})
    scene = Scene(steps)
    # each call, and how many steps it takes
    derivatives = {
        "standing, MuJoCo mjd_transitionFD (one-sided)": (scene.mujoco_transition(TRANSITIONS), TRANSITIONS),
        "standing, full Jacobian of a step": (scene.jacobian(TRANSITIONS), TRANSITIONS),
        f"standing, full Jacobian of a step, {STATES} states in a call": (scene.jacobian(1, STATES), STATES),
    }
    timings = interleaved({what: call for what, (call, _) in derivatives.items()}, effort.repeats)
    for what, (_, count) in derivatives.items():
        table.rows.append({"what": what, **timings[what].per(count)})
    return [table]


if __name__ == "__main__":
    script("benchmarks.ours.step", __doc__, measure)
