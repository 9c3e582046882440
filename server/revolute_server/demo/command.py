"""`revolute demo`: from a robot file to a gradient over the network, checked and then used.

Starts a server in a process of its own, connects the light client over gRPC, rolls a robot out,
differentiates a loss by every control, checks the gradient against finite differences, lets L-BFGS lower the
loss, and prints and draws what came out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

import revolute
from revolute.errors import DivergedError, RevoluteError

from .server_process import ServerProcess

if TYPE_CHECKING:
    import mujoco

    from .gradient_check import GradientCheck
    from .scene import Scene

STEPS = 1000
STEPS_OF_A_FILE = 200  # an unknown robot may fall over; the derivative of a long fall is true but of no use
ITERATIONS = 60
TIMESTEP = 2e-3
SWEEPS = 50
FRAMES = 5
REPEATS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `revolute demo`."""
    parser.add_argument("--model", metavar="PATH", help="URDF or MJCF file (default: the built-in laikago)")
    parser.add_argument("--base", choices=("free", "fixed"), help="how a URDF's base is held (default: free)")
    parser.add_argument(
        "--steps", type=_positive, help=f"control steps (default: {STEPS}, or {STEPS_OF_A_FILE} for a file)"
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
    parser = argparse.ArgumentParser(prog="revolute demo", description=__doc__.splitlines()[0])
    add_arguments(parser)
    return run(parser.parse_args(argv))


def run(arguments: argparse.Namespace) -> int:
    """Run the demo with the flags of `add_arguments`.

    Returns:
        0 when the gradient agrees and the loss went down; 1 when not; 2 when the input cannot be used.
    """
    try:
        return _perform(arguments)
    except RevoluteError as error:
        print(f"revolute demo: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(
            f"revolute demo: {error.name} is not installed; pip install 'revolute-server[demo]'",
            file=sys.stderr,
        )
        return 2


def _perform(arguments: argparse.Namespace) -> int:
    """Do the whole job on a server of its own; return the exit status."""
    from .gradient_check import check_gradient
    from .optimize import optimize

    with ServerProcess(arguments.threads) as server, revolute.connect(server.grpc_address) as simulator:
        scene, mj_model, options = _load(simulator, arguments)
        first = _rollout(simulator, scene, scene.ctrl)
        loss, target = scene.task(first.qpos[-1])
        _say(f"{scene.model.name} at {server.grpc_address}: {scene.ctrl.size} controls")
        seen = _time(simulator, scene, loss)
        value, gradient = simulator.value_and_gradient(
            scene.model, scene.qpos, scene.qvel, scene.ctrl, loss, wrt=("ctrl",)
        )
        check = check_gradient(simulator, scene, loss, gradient.ctrl)
        optimum = optimize(simulator, scene, loss, arguments.iterations)
        last = _rollout(simulator, scene, optimum.ctrl)

    alone, identical = _in_process(arguments, options, scene, loss, value, gradient.ctrl)
    rows = [
        ("server", f"{server.grpc_address}, in a process of its own; also {server.http_address}"),
        ("model", f"{scene.model.name}: nq {scene.model.nq}, nv {scene.model.nv}, nu {scene.model.nu}"),
        ("steps", f"{len(scene.ctrl)} of {scene.model.timestep * 1e3:g} ms, {scene.ctrl.size} controls"),
        ("forward", f"{seen[0]:.1f} µs per step over gRPC, {alone[0]:.1f} µs in process"),
        ("backward", f"{seen[1]:.1f} µs per step over gRPC, {alone[1]:.1f} µs in process"),
        ("checkpoints", f"{first.report.checkpoint_bytes:,} bytes in {first.report.states_stored:,} states"),
        ("gradient check", _check_text(check)),
        ("same bits in process", "yes" if identical else "no"),
        ("optimizer", f"L-BFGS, {optimum.evaluations} gradients in {optimum.seconds:.1f} s"),
        ("loss", f"{optimum.losses[0]:.4g} before, {optimum.losses[-1]:.3g} after"),
        (
            scene.label,
            f"{first.qpos[-1, scene.moved]:+.4f} before, {last.qpos[-1, scene.moved]:+.4f} after, "
            f"target {target:+.4f}",
        ),
        ("picture", _draw(arguments.out, scene, mj_model, first, last, target, optimum.losses)),
    ]
    _print_table(rows)
    return _verdict(check, optimum.losses, identical)


def _load(simulator: Any, arguments: argparse.Namespace) -> tuple[Scene, mujoco.MjModel, dict[str, Any]]:
    """Load the robot on the server; return its scene, MuJoCo's view of it, and how it was loaded."""
    import revolute_engine

    from . import scene

    source, options = _source(arguments)
    model = simulator.load_model(source, **options)
    mj_model = revolute_engine.load_model(source, **options).mujoco_model
    if arguments.model is None:
        return scene.laikago(model, arguments.steps or STEPS), mj_model, options
    return scene.any_robot(model, mj_model, arguments.steps or STEPS_OF_A_FILE), mj_model, options


def _source(arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Return what to load and with which options; a URDF gets a free base and a ground."""
    if arguments.model is None:
        return "laikago", {"timestep": TIMESTEP, "iterations": SWEEPS}
    path = str(arguments.model)
    urdf = path.lower().endswith(".urdf")
    base = arguments.base or ("free" if urdf else None)
    return path, {"base": base, "ground": urdf and base == "free", "iterations": SWEEPS}


def _rollout(simulator: Any, scene: Scene, ctrl: np.ndarray) -> Any:
    """Roll out one environment that must not diverge."""
    trajectory = simulator.rollout(scene.model, scene.qpos, scene.qvel, ctrl)
    if int(trajectory.status):
        raise DivergedError(
            f"rollout: the state was not finite from step {int(trajectory.diverged_step)} on; "
            "shorten with --steps"
        )
    return trajectory


def _time(simulator: Any, scene: Scene, loss: revolute.Loss) -> tuple[float, float]:
    """Return median microseconds per step of a rollout and of its backward pass, as this client sees them."""
    seconds = []
    for _ in range(REPEATS):
        start = perf_counter()
        trajectory = _rollout(simulator, scene, scene.ctrl)
        middle = perf_counter()
        bars = loss.evaluate(trajectory.qpos, trajectory.qvel, trajectory.ctrl)
        again = perf_counter()
        trajectory.backward(bars.qpos_bar, bars.qvel_bar, wrt=("qpos", "qvel", "ctrl"))
        seconds.append((middle - start, perf_counter() - again))
        trajectory.delete()
    forward, backward = np.median(seconds, axis=0) * 1e6 / len(scene.ctrl)
    return float(forward), float(backward)


def _in_process(
    arguments: argparse.Namespace,
    options: dict[str, Any],
    scene: Scene,
    loss: revolute.Loss,
    value: Any,
    gradient: np.ndarray,
) -> tuple[tuple[float, float], bool]:
    """Repeat rollout and gradient with the engine in this process.

    Returns:
        Microseconds per step, forward and backward, and whether value and gradient have the server's bits.
    """
    with revolute.connect(threads=arguments.threads) as simulator:
        model = simulator.load_model(_source(arguments)[0], **options)
        local = replace(scene, model=model)
        times = _time(simulator, local, loss)
        value_here, gradient_here = simulator.value_and_gradient(
            model, scene.qpos, scene.qvel, scene.ctrl, loss, wrt=("ctrl",)
        )
    same = np.array_equal(value_here, value) and np.array_equal(gradient_here.ctrl, gradient)
    return times, bool(same)


def _draw(
    out: Path,
    scene: Scene,
    mj_model: mujoco.MjModel,
    first: Any,
    last: Any,
    target: float,
    losses: list[float],
) -> str:
    """Write the picture and return a line about it."""
    from .film import render_frames
    from .picture import MovedPath, draw

    steps = len(scene.ctrl)
    time = np.arange(steps + 1) * scene.model.timestep
    shown = np.linspace(0, steps, FRAMES).round().astype(int)
    film, how = render_frames(mj_model, last.qpos[shown], scene.posts(first.qpos[-1], target))
    path = MovedPath(scene.label, time, first.qpos[:, scene.moved], last.qpos[:, scene.moved], target)
    draw(out, f"{scene.model.name}: {scene.label} moved by gradients", losses, path, film, time[shown])
    return f"{out}" if film is not None else f"{out}, plots alone: {how}"


def _check_text(check: GradientCheck) -> str:
    """Describe the gradient check in a line."""
    if not check.resolved:
        return f"none of {check.directions} directions has a sharp finite difference; use fewer --steps"
    verdict = "agrees" if check.passed else "DISAGREES"
    return (
        f"{verdict}: relative error {check.relative_error:.1e} along {check.resolved} of {check.directions} "
        f"random directions (finite differences are certain to {check.uncertainty:.1e})"
    )


def _verdict(check: GradientCheck, losses: list[float], identical: bool) -> int:
    """Return the exit status, and say what failed."""
    failures = []
    if not check.passed:
        failures.append("the gradient does not agree with finite differences")
    if not losses[-1] < losses[0]:
        failures.append("the loss did not go down")
    if not identical:
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


def _say(text: str) -> None:
    """Tell what is being done, before the table is there."""
    print(text, file=sys.stderr, flush=True)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a positive number, got {number}")
    return number


if __name__ == "__main__":
    sys.exit(main())
