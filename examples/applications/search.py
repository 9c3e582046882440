"""What the scripts share: a task with a target, its search with and without gradients, and the report.

A task's inputs x (torques, or a friction) decide a motion whose final state should be at a target:
    r(x) = weight (q_T(x) - target),   loss(x) = |r(x)|   (1)
`by_gradient` is Levenberg and Marquardt's method, whose Jacobian dr/dx is one backward call with a cotangent
per entry of r. Each iteration tries sixteen lengths of its step in one call:
    d = -J' (J J' + s I)^-1 r,   s = 10^-6 ... 100 times the largest eigenvalue of J J'   (2)
Contacts make the loss rugged, so each length is tried once more with a small random change, which doubles
after each iteration that gains less than a tenth, up to 32-fold.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cma
import numpy as np

import revolute

MODELS = Path(__file__).parent / "models"
LENGTHS = np.geomspace(1e-6, 1e2, 16)
WIDEST = 32
"""Largest random change, in units of the first."""
FULL_COVARIANCE = 500
"""Most variables for which CMA-ES learns all covariances; beyond, it learns their variances."""


@dataclass(eq=False)
class Task:
    """A motion that should end at a target, equation (1).

    Attributes:
        sim: the simulator.
        model: the model.
        qpos: start configuration, [nq].
        ctrl: controls for x, [n, k] to [n, T, nu].
        params: parameters of the model for x, [n, k] to arrays [n, ...].
        wrt: the input that x decides.
        pull: from the gradient by that input, [m, 1, ...], and x [k] to the Jacobian by x, [m, k].
        index: entries of the final configuration.
        target: where they should be.
        weight: factor of each entry.
        feedback: added to the controls.
        qvel: start velocity, [nv]; None for rest.
        hold: steps that each row of the controls acts for.
        bounds: lower and upper bound of each x, which `by_gradient` keeps.
        steps: steps simulated so far.
        pulled: steps differentiated so far; one backward call counts once.
    """

    sim: revolute.Simulator
    model: revolute.ModelHandle
    qpos: np.ndarray
    ctrl: Callable[[np.ndarray], np.ndarray]
    pull: Callable[[np.ndarray, np.ndarray], np.ndarray]
    index: Sequence[int]
    target: Any
    weight: Any = 1.0
    params: Callable[[np.ndarray], dict[str, np.ndarray]] = lambda x: {}
    wrt: str = "ctrl"
    feedback: revolute.Feedback | None = None
    qvel: np.ndarray | None = None
    hold: int = 1
    bounds: tuple[float, float] = (-np.inf, np.inf)
    steps: int = 0
    pulled: int = 0

    def simulate(self, x: np.ndarray, **options: Any) -> revolute.Trajectory:
        """Simulate all rows of x [n, k] in one call."""
        ctrl, qvel = self.ctrl(x), self.model.qvel0 if self.qvel is None else self.qvel
        self.steps += len(x) * ctrl.shape[-2] * self.hold
        options |= {"hold": self.hold, "feedback": self.feedback, "params": self.params(x)}
        return self.sim.rollout(self.model, self.qpos, qvel, ctrl, **options)

    def residuals(self, end: np.ndarray) -> np.ndarray:
        """Return r for final configurations [n, nq]: [n, m]."""
        return self.weight * (end[:, list(self.index)] - self.target)

    def losses(self, x: np.ndarray) -> np.ndarray:
        """Return the loss of each row of x; infinite where the motion diverges."""
        end = self.simulate(x, checkpoints="none", states="final").final_qpos
        return np.nan_to_num(np.linalg.norm(self.residuals(end), axis=1), nan=np.inf)

    def linearize(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return r [m] and its Jacobian [m, k] at one x [k]."""
        rows = np.arange(len(self.index))
        with self.simulate(x[None]) as trajectory:
            r = self.residuals(trajectory.qpos[:, -1])[0]
            cotangents = np.zeros((len(rows), 1, 1, self.model.nq))
            cotangents[rows, 0, 0, list(self.index)] = self.weight
            gradient = trajectory.backward(cotangents, times=[-1], wrt=[self.wrt])
        self.pulled += trajectory.ctrl.shape[-2] * self.hold
        return r, self.pull(gradient[self.wrt], x)


@dataclass
class Search:
    """The best loss after each iteration, and what it took until then: steps and seconds."""

    method: str
    goal: float
    x: np.ndarray
    losses: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    pulled: int = 0

    @property
    def done(self) -> bool:
        """Whether the goal is reached."""
        return bool(self.losses) and self.losses[-1] < self.goal

    def add(self, other: Search) -> None:
        """Append a search that began where this one ended."""
        self.x = other.x
        self.losses += other.losses[1:]
        self.steps += [self.steps[-1] + each for each in other.steps[1:]]
        self.seconds += [self.seconds[-1] + each for each in other.seconds[1:]]
        self.pulled += other.pulled

    def note(self, x: np.ndarray, loss: float, task: Task, begin: float) -> None:
        """Add a point of the curve."""
        if not self.losses or loss < self.losses[-1]:
            self.x = np.array(x)
        self.losses.append(min([float(loss), *self.losses[-1:]]))
        self.steps.append(task.steps)
        self.seconds.append(time.perf_counter() - begin)
        self.pulled = task.pulled


def by_gradient(
    task: Task,
    x: np.ndarray,
    goal: float,
    iterations: int,
    spread: float,
    seed: int = 0,
    scaled: bool = False,
) -> Search:
    """Search with the gradient, equation (2).

    Args:
        task: the task.
        x: the start, [k].
        goal: loss below which it ends.
        iterations: most iterations.
        spread: first standard deviation of the random changes; 0 for none.
        seed: of the random changes.
        scaled: measure each entry of x by the length of its column of the Jacobian.
    """
    width, random, search = spread, np.random.default_rng(seed), Search("gradient", goal, x)
    begin, task.steps, task.pulled = time.perf_counter(), 0, 0
    r, jacobian = task.linearize(x)
    search.note(x, np.linalg.norm(r), task, begin)
    for _ in range(iterations):
        if search.done:
            break
        unit = 1 / np.maximum(np.linalg.norm(jacobian, axis=0), 1e-12) if scaled else np.ones(len(x))
        u, s, v = np.linalg.svd(jacobian * unit, full_matrices=False)
        damped = s / (s**2 + LENGTHS[:, None] * max(s[0] ** 2, 1e-12))
        tried = x - (damped * (u.T @ r)) @ v * unit
        if spread:
            tried = np.concatenate([tried, tried + width * random.normal(size=tried.shape)])
        tried = np.clip(tried, *task.bounds)
        losses = task.losses(tried)
        best = int(np.argmin(losses))
        width = spread if losses[best] < 0.9 * search.losses[-1] else min(2 * width, WIDEST * spread)
        if losses[best] < search.losses[-1]:
            x = tried[best]
            r, jacobian = task.linearize(x)
        search.note(x, np.linalg.norm(r), task, begin)
    return search


def by_cma(task: Task, x: np.ndarray, goal: float, generations: int, spread: float, seed: int = 0) -> Search:
    """Search with CMA-ES, a generation in one call.

    Args:
        task: the task.
        x: the start, [k].
        goal: loss below which it ends.
        generations: most generations.
        spread: first standard deviation.
        seed: of the random numbers.
    """
    search = Search("CMA-ES", goal, x)
    begin, task.steps, task.pulled = time.perf_counter(), 0, 0
    options = {"seed": seed + 1, "verbose": -9, "CMA_diagonal": len(x) > FULL_COVARIANCE}
    strategy = cma.CMAEvolutionStrategy(x, spread, options)
    search.note(x, task.losses(x[None])[0], task, begin)
    for _ in range(generations):
        if search.done:
            break
        tried = np.array(strategy.ask())
        losses = task.losses(tried)
        strategy.tell(list(tried), list(np.minimum(losses, 1e9)))
        best = int(np.argmin(losses))
        search.note(tried[best], losses[best], task, begin)
    return search


def arguments(description: str | None, iterations: int, generations: int) -> argparse.ArgumentParser:
    """Return the options that all scripts have."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--address", help="a server, e.g. grpc://127.0.0.1:50051; default: this process")
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="one or several, default 0")
    parser.add_argument(
        "--contact-model",
        nargs="+",
        default=["mujoco", "hard"],
        choices=["mujoco", "hard"],
        help="default both",
    )
    parser.add_argument("--iterations", type=int, default=iterations, help="default %(default)s")
    parser.add_argument(
        "--generations",
        type=int,
        default=generations,
        help="of the search without gradient, 0 for none; %(default)s",
    )
    parser.add_argument("--save", type=Path, help="folder for curves (.json, .svg) and a film strip (.png)")
    return parser


HEADER = ["case", "search", "iterations", "loss", "goal reached", "steps", "differentiated", "seconds"]


class Report:
    """A table that grows row by row, and the curves of its searches."""

    def __init__(self, name: str, save: Path | None) -> None:
        self._name, self._save = name, save
        self._curves: dict[str, Search] = {}
        self._row(HEADER)
        self._row(["---"] * len(HEADER))

    def add(self, case: str, search: Search) -> None:
        """Print a row."""
        self._curves[f"{case}, {search.method}"] = search
        reached = "yes" if search.done else "no"
        counts = [f"{number:,}" for number in (search.steps[-1], search.pulled)]
        iterations, loss = len(search.losses) - 1, f"{search.losses[-1]:.2g}"
        self._row([case, search.method, iterations, loss, reached, *counts, f"{search.seconds[-1]:.1f}"])

    def compare(
        self, case: str, task: Task, x: np.ndarray, given: argparse.Namespace, *, spread: float, seed: int
    ) -> Search:
        """Search with and, unless `given.generations` is 0, without the gradient; return the first search.

        Args:
            case: name of the rows.
            task: the task.
            x: the start, [k].
            given: goal, iterations and generations.
            spread: as for `by_gradient`; CMA-ES begins with 1.
            seed: of the random numbers.
        """
        found = by_gradient(task, x, given.goal, given.iterations, spread, seed)
        self.add(case, found)
        if given.generations:
            self.add(case, by_cma(task, x, given.goal, given.generations, 1.0, seed))
        return found

    @staticmethod
    def _row(cells: Sequence[Any]) -> None:
        print("|", " | ".join(map(str, cells)), "|", flush=True)

    def finish(self, motion: revolute.Trajectory | None = None, **options: Any) -> None:
        """Write curves and film strip, if a folder was given."""
        if self._save is None:
            return
        self._save.mkdir(parents=True, exist_ok=True)
        curves = {
            case: {
                "loss": np.round(search.losses, 6).tolist(),
                "steps": search.steps,
                "seconds": search.seconds,
            }
            for case, search in self._curves.items()
        }
        (self._save / f"{self._name}.json").write_text(json.dumps(curves))
        self._plot(self._save / f"{self._name}.svg")
        if motion is not None:
            motion.render(self._save / f"{self._name}.png", **options)

    def _plot(self, path: Path) -> None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5, 3), layout="constrained")
        axes = figure.subplots()
        for case, search in self._curves.items():
            style = "-" if search.method == "gradient" else "--"
            axes.plot(search.steps, search.losses, style, linewidth=1, label=case.partition(", seed")[0])
        axes.set(xscale="log", yscale="log", xlabel="simulated steps", ylabel="loss")
        handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        axes.legend(handles.values(), handles.keys(), fontsize=6)
        figure.savefig(path)
