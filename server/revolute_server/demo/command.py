"""`revolute demo`: from a robot file to a gradient over the network, checked and then used.

Starts a server in another process, connects the client over gRPC, simulates a robot, differentiates a loss by
all controls, checks the gradient against finite differences, minimises the loss with L-BFGS, and prints and
draws the results.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import revolute
from revolute.cli.array_files import check_writable
from revolute.contract.errors import RevoluteError

from .server_process import ServerProcess

if TYPE_CHECKING:
    from .gradient_check import GradientCheck
    from .job import Task
    from .optimize import Optimum

ITERATIONS = 60
FRAMES = 5
DEFAULT = "laikago"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `revolute demo`."""
    parser.add_argument(
        "model",
        nargs="?",
        default=argparse.SUPPRESS,  # otherwise it would overwrite the equivalent flag --model
        help="path of a URDF or MJCF file, or a built-in name (default: laikago)",
    )
    parser.add_argument("--model", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--base", choices=("free", "fixed"), help="how a URDF's base is held (default: free)")
    parser.add_argument(
        "--steps",
        type=_positive,
        help="control steps (default: 1000; 200 for a file, fewer when its finite differences are not sharp)",
    )
    parser.add_argument(
        "--iterations", type=_positive, default=ITERATIONS, help="L-BFGS iterations (default: %(default)s)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("demo.png"), help="the picture (default: %(default)s)"
    )
    parser.add_argument("--threads", type=_positive, help="engine threads (default: one per core)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo from the command line."""
    summary = "From a robot file to a gradient over the network, checked and then used."
    parser = argparse.ArgumentParser(prog="revolute demo", description=summary)
    add_arguments(parser)
    return run(parser.parse_args(argv))


def run(arguments: argparse.Namespace) -> int:
    """Run the demo with the flags of `add_arguments`.

    Returns:
        0 if the gradient agrees and the loss went down; 1 if not; 2 if the input cannot be used.
    """
    try:
        return _perform(arguments)
    except (RevoluteError, OSError) as error:
        print(f"revolute demo: {error}", file=sys.stderr)
    except ImportError as error:
        advice = (
            "pip install 'revolute-server[demo]' brings it (from a clone: pip install ./client '.[demo]')"
        )
        print(f"revolute demo: expected the package {error.name}, got none; {advice}", file=sys.stderr)
    return 2


def _perform(arguments: argparse.Namespace) -> int:
    """Run the whole demo on a new server; return the exit status."""
    from . import job
    from .optimize import optimize

    check_writable("--out", arguments.out)
    built_in = arguments.model in (None, DEFAULT)
    robot = job.Robot(None if built_in else arguments.model, arguments.base)
    with ServerProcess(arguments.threads) as server, revolute.connect(server.grpc_address) as simulator:
        task = job.prepare(simulator, robot, arguments.steps)
        print(f"{task.scene.model.name} at {server.grpc_address}", file=sys.stderr)
        over_grpc = job.measure(simulator, task)
        optimum = optimize(simulator, task.scene, task.loss, arguments.iterations)
        last = job.rollout(simulator, task.scene, optimum.ctrl)
    in_process, same_bits = job.repeat_in_process(robot, task, arguments.threads)
    drawn = _draw(arguments.out, task, optimum, last)
    _print_table(
        [
            ("server", f"{server.grpc_address} and {server.http_address}, a process of its own"),
            *_task_rows(task),
            ("forward", f"{over_grpc[0]:.1f} µs per step over gRPC, {in_process[0]:.1f} µs in process"),
            ("backward", f"{over_grpc[1]:.1f} µs per step over gRPC, {in_process[1]:.1f} µs in process"),
            ("same bits in process", "yes" if same_bits else "no"),
            *_optimum_rows(task, optimum, last),
            ("picture", drawn),
        ]
    )
    return _verdict(task.check, optimum, same_bits)


def _task_rows(task: Task) -> list[tuple[str, str]]:
    """Describe the model, its rollout and its gradient."""
    model, steps, report = task.scene.model, len(task.scene.ctrl), task.first.report
    return [
        ("model", f"{model.name}: nq {model.nq}, nv {model.nv}, nu {model.nu}"),
        *(("note", note) for note in model.notes),
        ("rollout", f"{steps} steps of {model.timestep * 1e3:g} ms, {task.scene.ctrl.size} controls"),
        ("checkpoints", f"{report.checkpoint_bytes:,} bytes in {report.states_stored:,} states"),
        ("gradient check", _check_text(task.check)),
    ]


def _optimum_rows(task: Task, optimum: Optimum, last: revolute.Trajectory) -> list[tuple[str, str]]:
    """Describe the result of the optimizer."""
    moved = task.scene.moved
    before, after = task.first.qpos[-1, moved], last.qpos[-1, moved]
    return [
        ("optimizer", f"L-BFGS, {optimum.evaluations} gradients in {optimum.seconds:.1f} s"),
        ("loss", f"{optimum.losses[0]:.4g} before, {optimum.losses[-1]:.3g} after"),
        (task.scene.label, f"{before:+.4f} before, {after:+.4f} after, target {task.target:+.4f}"),
    ]


def _check_text(check: GradientCheck) -> str:
    """Describe the gradient check in one line."""
    if not check.conclusive:
        return (
            f"inconclusive: {check.resolved} of {check.directions} directions have a sharp finite difference"
        )
    verdict = "agrees" if check.agrees else "DISAGREES"
    return (
        f"{verdict}: relative error {check.relative_error:.1e} along {check.resolved} of {check.directions} "
        f"random directions (differences sharp to {check.uncertainty:.1e})"
    )


def _draw(out: Path, task: Task, optimum: Optimum, last: revolute.Trajectory) -> str:
    """Write the picture and return its description."""
    from .picture import MovedPath, draw, film_strip

    scene, steps = task.scene, len(task.scene.ctrl)
    time = np.arange(steps + 1) * scene.model.timestep
    shown = np.linspace(0, steps, FRAMES).round().astype(int)
    film, failure = film_strip(last, shown.tolist(), scene.posts(task.first.qpos, task.target))
    path = MovedPath(
        scene.label, time, task.first.qpos[:, scene.moved], last.qpos[:, scene.moved], task.target
    )
    draw(
        out, f"{scene.model.name}: {scene.label} moved by gradients", optimum.losses, path, film, time[shown]
    )
    return str(out) if film else f"{out}, the plots alone: {failure}"


def _verdict(check: GradientCheck, optimum: Optimum, same_bits: bool) -> int:
    """Print the failures and return the exit status."""
    failures = []
    if not check.conclusive:
        failures.append(
            "the gradient could not be checked along most directions; "
            "use fewer --steps, or --base fixed for an arm"
        )
    elif not check.agrees:
        failures.append("the gradient does not agree with finite differences")
    if not optimum.losses[-1] < optimum.losses[0]:
        failures.append("the loss did not go down")
    if not same_bits:
        failures.append("the server's gradient differs from the engine's in this process")
    for failure in failures:
        print(f"revolute demo: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _print_table(rows: list[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    width = max(len(name) for name, _ in rows)
    print()
    for name, value in rows:
        print(f"  {name:<{width}}  {value}")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a positive number, got {number}")
    return number
