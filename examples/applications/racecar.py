"""Finds the sliding friction that stops a car at a given place.

The car of Qiao et al. (2021) is dropped from 0.5 m at 1 m/s and slides on locked wheels. It stops at
    x = v t + (v - mu g t)^2 / (2 mu g),   t = sqrt(2 * 0.5 m / g)   (1)
With `--seconds 1` the place after one second counts, as in the released code, whether the car stands or not.
Wheels that roll (`--rolling`) take a tenth of the car's speed, and no friction stops it.
The search starts from mu = 0.002, in x = log mu. The other searches use no gradient: Nelder and Mead's, and
Brent's, which needs to know that x falls as mu grows.
"""

import contextlib
import re
import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize, root_scalar
from search import MODELS, Report, Search, Task, arguments, by_gradient

import revolute

WHEELS = {"cylinder": "0.05 0.0225", "sphere": "0.05"}
FIRST_FRICTION, RANGE = 0.002, (1e-4, 1.5)
SPEED, TIMESTEP = 1.0, 1e-3


def make_task(
    sim: revolute.Simulator, contact_model: str, wheels: str, target: float, seconds: float, locked: bool
) -> Task:
    """Return the task: x is the logarithm of the friction of all shapes, [1]."""
    text = (MODELS / "racecar.xml").read_text()
    text = text.replace('type="cylinder" size="0.05 0.0225"', f'type="{wheels}" size="{WHEELS[wheels]}"')
    if locked:
        text = re.sub(r'<joint name="\w+_wheel" class="wheel"/>', "", text)
    model = sim.load_model(text, name="racecar", contact_model=contact_model, timestep=TIMESTEP)
    qvel = model.qvel0.copy()
    qvel[0] = SPEED
    friction = model.params["geom_friction"]

    def params(x: np.ndarray) -> dict[str, np.ndarray]:
        given = np.tile(friction, (len(x), 1, 1))
        given[:, :, 0] = np.exp(x)
        return {"geom_friction": given}

    return Task(
        sim,
        model,
        model.qpos0,
        ctrl=lambda x: np.zeros((len(x), round(seconds / TIMESTEP), 0)),
        params=params,
        wrt="geom_friction",
        pull=lambda gradient, x: gradient[..., 0].sum(axis=-1) * np.exp(x),
        index=[0],
        target=target,
        qvel=qvel,
        bounds=np.log(RANGE),
    )


def without_gradient(
    task: Task,
    method: str,
    search: Callable[[Callable[[float], float], float], object],
    goal: float,
    limit: int,
) -> Search:
    """Run a search of one variable that calls a function of x; each call is an iteration."""
    start = np.log(FIRST_FRICTION)
    found = Search(method, goal, np.array([start]))
    begin, task.steps, task.pulled = time.perf_counter(), 0, 0

    class StopError(Exception):
        """Ends the search."""

    def distance(x: float) -> float:
        point = np.array([x])
        r = task.residuals(task.simulate(point[None], checkpoints="none", states="final").final_qpos)[0, 0]
        found.note(point, abs(r), task, begin)
        if found.done or len(found.losses) > limit:
            raise StopError
        return float(r)

    with contextlib.suppress(StopError):
        search(distance, start)
    return found


def simplex(distance: Callable[[float], float], start: float) -> object:
    """Nelder and Mead's search for the least |distance|."""
    return minimize(lambda x: abs(distance(x[0])), [start], method="Nelder-Mead")


def bracket(distance: Callable[[float], float], start: float) -> object:
    """Brent's search for distance = 0 between the first and the largest friction."""
    return root_scalar(distance, bracket=[start, np.log(RANGE[1])], method="brentq")


def main() -> None:
    """Compare the searches."""
    parser = arguments(__doc__, iterations=10, generations=200)
    parser.add_argument("--target", type=float, nargs="+", default=[0.8, 0.75], help="metres")
    parser.add_argument("--goal", type=float, default=1e-3, help="metres")
    parser.add_argument(
        "--wheels", nargs="+", default=list(WHEELS), choices=list(WHEELS), help="default both"
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="length of the motion")
    parser.add_argument("--rolling", action="store_true", help="wheels roll freely, instead of being locked")
    given = parser.parse_args()
    sim, report = revolute.connect(given.address), Report("racecar", given.save)
    for target in given.target:
        for contact_model in given.contact_model:
            for wheels in given.wheels:
                task = make_task(sim, contact_model, wheels, target, given.seconds, not given.rolling)
                start = np.log([FIRST_FRICTION])
                found = by_gradient(task, start, given.goal, given.iterations, spread=0.0)
                case = f"{contact_model}, {wheels}, target {target:g}"
                report.add(f"{case}: mu = {np.exp(found.x[0]):.4f}", found)
                if given.generations:
                    for method, search in (("Nelder-Mead", simplex), ("Brent", bracket)):
                        report.add(
                            case, without_gradient(task, method, search, given.goal, given.generations)
                        )
    report.finish(task.simulate(found.x[None]), camera="side")


if __name__ == "__main__":
    main()
