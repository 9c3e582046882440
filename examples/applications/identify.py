"""Identifies a robot from a recorded motion: masses, damping, friction, and the servos' gain.

Laikago follows wavy joint targets for 1.2 s, so that its feet slide. The record has its joint angles, and
position and orientation of its base, 50 times a second with noise. The velocity at the start is unknown, the
pose there is known up to the noise. What fits best minimizes the sum of squares of
    r = (predicted - recorded) / noise   (1)
over x: logarithms of the parameters beside the file's values, and the start state. The first samples are
fitted first. dr/dx comes from one forward derivative of a batch, one environment per column. Error bars are
the square roots of the diagonal of
    C = s^2 (J' J)^-1,   s^2 = r'r / (number of r - number of x)   (2)
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares
from search import Report, Search, arguments, by_cma, by_gradient

import revolute
from revolute.optimize import tangent_basis

TIMESTEP, SAMPLE = 2e-3, 10
STAGES = (15, 30, 45, 70)
"""Samples that are fitted before all are: a guess that is wrong by a third predicts the first of them."""
POLISH = 12
"""Iterations after these stages, against the steps that sticking feet make in the loss."""
NOISE = 1e-3
"""Standard deviation of the record: metres, rad, and half of it for the entries of the quaternion."""
SOLIMP = (0.0, 0.95, 0.002, 0.5, 2.0)
"""With "mujoco", a toe's force begins at zero; with the usual solimp the loss has steps where toes touch."""
VELOCITY = 0.1
"""Unit of the start velocity in x; that of the start pose is NOISE."""
DAMPING, DRY_FRICTION, STIFFNESS = 0.5, 0.3, 220.0


@dataclass(frozen=True)
class Input:
    """One unknown number.

    Attributes:
        param: the model parameter that it belongs to.
        value: the guess.
        fill: sets the entries of the parameter's array to a number.
        unit: for the table.
    """

    param: str
    value: float
    fill: Callable[[np.ndarray, float], None]
    unit: str


def entries(index: object, factor: float = 1.0) -> Callable[[np.ndarray, float], None]:
    """Return a function that sets entries of an array to a number, times a factor."""

    def fill(array: np.ndarray, value: float) -> None:
        array[index] = factor * value

    return fill


def inputs_of(model: revolute.ModelHandle) -> dict[str, list[Input]]:
    """Return what can be identified, by name; a servo's gain and bias are one."""
    bodies = model.body_names
    upper = [i for i, name in enumerate(bodies) if name.endswith("upper_leg")]
    lower = [i for i, name in enumerate(bodies) if name.endswith("lower_leg")]
    chassis = bodies.index("chassis")
    mass = model.params["body_mass"]
    return {
        "chassis mass": [Input("body_mass", mass[chassis], entries(chassis), "kg")],
        "upper leg mass": [Input("body_mass", mass[upper[0]], entries(upper), "kg")],
        "lower leg mass": [Input("body_mass", mass[lower[0]], entries(lower), "kg")],
        "joint damping": [Input("dof_damping", DAMPING, entries(slice(6, None)), "N m s")],
        "joint dry friction": [Input("dof_frictionloss", DRY_FRICTION, entries(slice(6, None)), "N m")],
        "floor friction": [Input("geom_friction", 0.8, entries((slice(None), 0)), "")],
        "servo gain": [
            Input("actuator_gainprm", STIFFNESS, entries((slice(None), 0)), "N m"),
            Input("actuator_biasprm", STIFFNESS, entries((slice(None), 1), -1.0), "N m"),
        ],
        "torsional friction": [Input("geom_friction", 0.005, entries((slice(None), 1)), "m")],
    }


DEFAULT = (
    "chassis mass,upper leg mass,lower leg mass,joint damping,joint dry friction,floor friction,servo gain"
)


class Recording:
    """A recorded motion, and how well inputs x predict it.

    Attributes:
        steps: steps simulated so far.
        pulled: steps differentiated so far; a batch counts once per column.
    """

    bounds = (-np.inf, np.inf)

    def __init__(
        self, sim: revolute.Simulator, model: revolute.ModelHandle, names: list[str], samples: int, seed: int
    ) -> None:
        self._sim, self._model, self.names = sim, model, names
        known = inputs_of(model)
        self.inputs = [known[name] for name in names]
        self.guess = np.array([each[0].value for each in self.inputs])
        self.steps = self.pulled = 0
        self.stages = [*(stage for stage in STAGES if stage < samples), samples]
        random = np.random.default_rng(seed)
        home = model.keyframes["home"]
        # two waves per joint
        times = TIMESTEP * SAMPLE * np.arange(samples - 1)[:, None, None]
        phase, rate = (
            random.uniform(0, 2 * np.pi, (2, model.nu)),
            random.uniform([[3], [9]], [[6], [15]], (2, model.nu)),
        )
        self._ctrl = home[7:] + (np.array([[0.15], [0.12]]) * np.sin(rate * times + phase)).sum(axis=1)
        self.truth = self.guess * np.exp(random.uniform(-0.35, 0.35, len(names)))
        start = np.concatenate([random.normal(0, 0.1, 6), random.normal(0, 0.5, model.nv - 6)])
        self._noise = np.full(model.nq, NOISE)
        self._noise[3:7] /= 2
        self._size = len(names)
        self._place(home)
        true_x = np.concatenate([np.log(self.truth / self.guess), np.zeros(model.nv), start / VELOCITY])
        with self._simulate(true_x[None]) as motion:
            true = motion.qpos[0, ::SAMPLE]
        self.record = true + self._noise * random.normal(size=true.shape)
        self._place(self.record[0])

    def _place(self, pose: np.ndarray) -> None:
        self._pose, self._basis = pose, tangent_basis(self._model, pose[None])[0]

    def values(self, x: np.ndarray) -> np.ndarray:
        """Return the parameters that x stands for, [..., inputs]."""
        return self.guess * np.exp(x[..., : self._size])

    def _params(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """Return arrays of parameters for numbers [n, inputs]."""
        model, params = self._model, {}
        for name, array in model.params.items():
            params[name] = np.tile(array, (len(values), *[1] * array.ndim))
        if "geom_solimp" in params:
            params["geom_solimp"][...] = SOLIMP
        params["dof_damping"][:, 6:], params["dof_frictionloss"][:, 6:] = DAMPING, DRY_FRICTION
        for row, numbers in enumerate(values):
            for parts, number in zip(self.inputs, numbers, strict=True):
                for part in parts:
                    part.fill(params[part.param][row], number)
        return {name: params[name] for name in self._used()}

    def _used(self) -> set[str]:
        set_here = {"dof_damping", "dof_frictionloss", "geom_solimp"} & set(self._model.params)
        return set_here | {part.param for parts in self.inputs for part in parts}

    def _simulate(self, x: np.ndarray, samples: int | None = None) -> revolute.Trajectory:
        """Simulate all rows of x in one call, up to a number of samples."""
        pose, velocity = np.split(x[:, self._size :], 2, axis=1)
        ctrl = self._ctrl[: samples - 1] if samples else self._ctrl
        self.steps += len(x) * SAMPLE * len(ctrl)
        return self._sim.rollout(
            self._model,
            self._pose + NOISE * pose @ self._basis.T,
            VELOCITY * velocity,
            np.broadcast_to(ctrl, (len(x), *ctrl.shape)),
            hold=SAMPLE,
            params=self._params(self.values(x)),
        )

    def residuals(self, x: np.ndarray, samples: int | None = None) -> np.ndarray:
        """Return r, equation (1), for rows of x [n, k]: [n, m]. Large where the motion diverges."""
        with self._simulate(x, samples) as motion:
            r = (motion.qpos[:, ::SAMPLE] - self.record[:samples]) / self._noise
        return np.nan_to_num(r.reshape(len(x), -1), nan=1e3)

    def losses(self, x: np.ndarray) -> np.ndarray:
        """Return the root mean square of r for rows of x; 1 is what the noise leaves."""
        return np.sqrt(np.mean(self.residuals(x) ** 2, axis=1))

    def linearize(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return r and dr/dx at one x, scaled so that the length of r is the loss."""
        factor = self.record.size**-0.5
        return factor * self.residuals(x[None])[0], factor * self.jacobian(x)

    def jacobian(self, x: np.ndarray, samples: int | None = None) -> np.ndarray:
        """Return dr/dx [m, k] at one x [k]: an environment per column."""
        size, nv, model = self._size, self._model.nv, self._model
        columns = np.eye(len(x))
        values = self.values(x)
        nudged = self._params(values * (1 + columns[:, :size]))
        at = self._params(values[None])
        with self._simulate(np.tile(x, (len(x), 1)), samples) as motion:
            tangent = motion.jvp(
                qpos_tan=NOISE * columns[:, size : size + nv],
                qvel_tan=VELOCITY * columns[:, size + nv :],
                # the arrays are linear in the numbers, whose derivative by x is the numbers themselves
                params_tan={name: nudged[name] - at[name] for name in at},
            )
            basis = tangent_basis(model, motion.qpos[0, ::SAMPLE])
        self.pulled += len(x) * (motion.qpos.shape[1] - 1)
        moved = np.einsum("tqv,ktv->tqk", basis, tangent.qpos[:, ::SAMPLE]) / self._noise[:, None]
        return moved.reshape(-1, len(x))


def fit(recording: Recording, x: np.ndarray, goal: float, iterations: int) -> tuple[Search, np.ndarray]:
    """Fit by the gradient from one start; return the search and the Jacobian at its end."""
    search, begin = Search("gradient", goal, x), time.perf_counter()
    recording.steps = recording.pulled = 0

    search.note(x, recording.losses(x[None])[0], recording, begin)
    for samples in recording.stages:

        def slope(x: np.ndarray, samples: int = samples) -> np.ndarray:
            """Return the Jacobian where the search has moved to, and note the loss of the record."""
            search.note(x, recording.losses(x[None])[0], recording, begin)
            return recording.jacobian(x, samples)

        found = least_squares(
            lambda x, samples=samples: recording.residuals(x[None], samples)[0],
            x,
            jac=slope,
            ftol=1e-4,
            max_nfev=iterations,
        )
        x = found.x
        search.note(x, recording.losses(x[None])[0], recording, begin)
    polish = by_gradient(recording, search.x, 0.0, POLISH, spread=0.01, scaled=True)
    search.add(polish)
    return search, recording.jacobian(search.x)


def error_bars(jacobian: np.ndarray, loss: float) -> np.ndarray:
    """Return the standard deviations of x, equation (2); infinite for inputs without influence."""
    lengths = np.linalg.norm(jacobian, axis=0)
    seen = lengths > 1e-9 * lengths.max()
    bars = np.full(len(lengths), np.inf)
    scaled = jacobian[:, seen] / lengths[seen]
    rows, columns = scaled.shape
    covariance = loss**2 * rows / (rows - columns) * np.linalg.pinv(scaled.T @ scaled)
    bars[seen] = np.sqrt(np.diag(covariance)) / lengths[seen]
    return bars


def main() -> None:
    """Identify, print a table per seed and contact model, and compare the searches."""
    parser = arguments(__doc__, iterations=30, generations=0)
    parser.add_argument("--inputs", default=DEFAULT, help="names, separated by commas; default: %(default)s")
    parser.add_argument("--samples", type=int, default=60, help="length of the record, of 20 ms each")
    parser.add_argument("--starts", type=int, default=3, help="starts within 50 %% of the file's values")
    parser.add_argument("--goal", type=float, default=1.05, help="root mean square of r, default %(default)s")
    given = parser.parse_args()
    sim, report = revolute.connect(given.address), Report("identify", given.save)
    tables = []
    for contact_model in given.contact_model:
        model = sim.load_model("laikago", timestep=TIMESTEP, contact_model=contact_model)
        for seed in given.seed:
            recording = Recording(
                sim, model, [name.strip() for name in given.inputs.split(",")], given.samples, seed
            )
            size, case = len(recording.names), f"{contact_model}, seed {seed}"
            random = np.random.default_rng(seed)
            starts = np.zeros((given.starts, size + 2 * model.nv))
            starts[1:, :size] = random.uniform(-0.5, 0.5, (given.starts - 1, size))
            fits = [fit(recording, start, given.goal, given.iterations) for start in starts]
            for number, (search, _) in enumerate(fits):
                report.add(f"{case}, start {number}", search)
            best, jacobian = min(fits, key=lambda each: each[0].losses[-1])
            tables.append((case, recording, best, error_bars(jacobian, best.losses[-1])[:size]))
            if given.generations:
                report.add(case, by_cma(recording, starts[0], given.goal, given.generations, 0.2, seed=seed))
    for case, recording, best, bars in tables:
        show(case, recording, best, bars)
    report.finish()


def show(case: str, recording: Recording, best: Search, bars: np.ndarray) -> None:
    """Print what was found beside the truth, and warn of what the record does not tell."""
    print(f"\n{case}: root mean square of r {best.losses[-1]:.3f}\n")
    print("| input | guess | found | error bar | truth | error / bar |\n|---|---|---|---|---|---|")
    rows = zip(recording.names, recording.guess, recording.values(best.x), bars, recording.truth, strict=True)
    for (name, guess, found, bar, truth), parts in zip(rows, recording.inputs, strict=True):
        ratio = f"{np.log(found / truth) / bar:.1f}"
        print(
            f"| {name} | {guess:.4g} | {found:.5g} {parts[0].unit} | {100 * bar:.2g} % "
            f"| {truth:.5g} | {ratio} |"
        )
        if not np.isfinite(bar):
            warnings.warn(f"{name} has no influence on this record; its value means nothing", stacklevel=2)
        elif bar > 0.5:
            warnings.warn(f"{name} is hardly seen in this record: error bar {100 * bar:.0f} %", stacklevel=2)


if __name__ == "__main__":
    main()
