"""`revolute rollout` and `revolute gradient`.

Inputs are read from .npy files or from an .npz file with members qpos, qvel, ctrl. Results are written to one
.npz file.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from ..contract.checkpoints import CheckpointReport
from ..contract.codec.json_text import from_json
from ..contract.errors import ArgumentError
from ..contract.loss import Loss
from ..model import ModelHandle
from .arguments import add_connection, add_model_options, load_model, open_simulator
from .array_files import check_writable, load_array, load_members, write_members


def add_rollout_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `revolute rollout`."""
    _add_inputs(parser)
    parser.add_argument(
        "--output",
        type=Path,
        help="write ctrl, status, diverged_step, final_qpos, final_qvel, qpos, qvel to this .npz",
    )
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="write an .npz for `revolute render` and `revolute view`"
    )
    parser.add_argument(
        "--states", choices=("all", "final"), help="states to write (default: all with every, else final)"
    )
    _add_checkpoints(parser, "every, interval=k, slots=s, or none where no gradient will be asked for")
    add_connection(parser)
    add_model_options(parser)


def run_rollout(arguments: argparse.Namespace) -> int:
    """Simulate, print the final state, and write the trajectory."""
    check_writable("--output", arguments.output)
    check_writable("--save", arguments.save)
    with open_simulator(arguments) as simulator:
        model = load_model(simulator, arguments)
        inputs = _read_inputs(model, arguments)
        began = time.perf_counter()
        options = {"checkpoints": arguments.checkpoints, "states": arguments.states}
        with simulator.rollout(model, **inputs, **options) as trajectory:
            seconds = time.perf_counter() - began
            names = ["ctrl", "status", "diverged_step", "final_qpos", "final_qvel"]
            if (arguments.states or ("all" if arguments.checkpoints == "every" else "final")) == "all":
                names += ["qpos", "qvel"]
            results = {name: np.asarray(getattr(trajectory, name)) for name in names}
            report = trajectory.report
            if arguments.save is not None:
                trajectory.save(arguments.save)
    steps = results["ctrl"].shape[-2]
    print(f"{model.name}: {steps} steps, {results['status'].size} environments, {seconds:.3g} s")
    print(f"diverged: {int(np.count_nonzero(results['status']))}")
    print(f"final qpos: {np.array2string(results['final_qpos'], precision=6, threshold=60)}")
    _print_report(report)
    write_members("--output", arguments.output, results)
    if arguments.save is not None:
        print(f"written: {arguments.save}")
    return 0


def add_gradient_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `revolute gradient`."""
    _add_inputs(parser)
    parser.add_argument(
        "--loss",
        required=True,
        help='loss as JSON, or a file with it: {"terms": [{"quantity": "qpos", "index": [0]}]}',
    )
    parser.add_argument("--wrt", default="qpos,qvel,ctrl", help="names, with commas (default: %(default)s)")
    parser.add_argument("--output", type=Path, help="write value, status and the gradients to this .npz")
    _add_checkpoints(parser, "every, interval=k or slots=s")
    add_connection(parser)
    add_model_options(parser)


def run_gradient(arguments: argparse.Namespace) -> int:
    """Differentiate a loss, print its value and the norms of the gradients, and write the gradients."""
    loss = read_loss(arguments.loss)
    check_writable("--output", arguments.output)
    with open_simulator(arguments) as simulator:
        model = load_model(simulator, arguments)
        inputs = _read_inputs(model, arguments)
        began = time.perf_counter()
        value, gradient = simulator.value_and_gradient(
            model,
            **inputs,
            loss=loss,
            wrt=[name.strip() for name in arguments.wrt.split(",")],
            checkpoints=arguments.checkpoints,
        )
        seconds = time.perf_counter() - began
    print(f"{model.name}: loss {np.array2string(np.asarray(value), threshold=20)}, {seconds:.3g} s")
    for name, array in gradient.items():
        print(f"d loss / d {name}: shape {list(array.shape)}, norm {np.linalg.norm(array):.6g}")
    _print_report(gradient.report)
    write_members(
        "--output", arguments.output, {"value": np.asarray(value), "status": gradient.status, **gradient}
    )
    return 0


def _add_checkpoints(parser: argparse.ArgumentParser, choices: str) -> None:
    parser.add_argument(
        "--checkpoints",
        default="every",
        help=f"states kept for the gradient: {choices} (default: %(default)s)",
    )


def _print_report(report: CheckpointReport) -> None:
    print(
        f"checkpoints: {report.states_stored} states, {report.checkpoint_bytes} bytes, "
        f"{report.replayed_steps} steps replayed by a gradient"
    )


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="path of a URDF or MJCF file, or a built-in name")
    parser.add_argument("--inputs", type=Path, help=".npz file with any of qpos, qvel, ctrl")
    parser.add_argument("--qpos", type=Path, help=".npy file (default: the model's)")
    parser.add_argument("--qvel", type=Path, help=".npy file (default: the model's)")
    parser.add_argument("--ctrl", type=Path, help=".npy file (default: zeros for --steps)")
    parser.add_argument("--steps", type=int, default=100, help="steps without --ctrl (default: %(default)s)")


def _read_inputs(model: ModelHandle, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return state and controls from files, with the model's defaults for missing ones."""
    if arguments.steps < 0:
        raise ArgumentError.expected("--steps", "a number of steps of at least 0", arguments.steps)
    inputs: dict[str, Any] = {
        "qpos": model.qpos0,
        "qvel": model.qvel0,
        "ctrl": np.zeros((arguments.steps, model.nu)),
    }
    if arguments.inputs is not None:
        inputs.update(load_members("--inputs", arguments.inputs, tuple(inputs)))
    for name in inputs:
        path = getattr(arguments, name)
        if path is not None:
            inputs[name] = load_array(f"--{name}", path)
    return inputs


def read_loss(text: str) -> Loss:
    """Read a loss from JSON text or from a JSON file.

    Raises:
        ArgumentError: it is neither.
    """
    if not text.lstrip().startswith("{"):
        try:
            text = Path(text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ArgumentError.expected("--loss", "JSON or a file with it", f"'{text}' ({error})") from error
    return Loss.from_dict(from_json(text, name="--loss"))
