"""`revolute check-gradient`: checks the gradients of a model.

Prints a verdict per input and names the worst one. The exit status is 0 if no input is wrong, else 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..contract.codec.json_text import to_json
from ..model import ModelHandle
from .arguments import add_connection, add_model_options, load_model, open_simulator
from .array_files import load_members

_CLEAR_LINE = "\r\x1b[K"
_STATE_AND_CONTROL = ("qpos", "qvel", "ctrl")


def add_check_gradient_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `revolute check-gradient`."""
    parser.add_argument("model", help="path of a URDF or MJCF file, or a built-in name")
    parser.add_argument(
        "--steps", type=int, default=200, help="length of the trajectory without ctrl (default: %(default)s)"
    )
    parser.add_argument(
        "--directions", type=int, default=3, help="random directions per input (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of everything random (default: %(default)s)"
    )
    parser.add_argument("--wrt", help="inputs to check, with commas (default: all that the model has)")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-5,
        help="largest relative error of a derivative that passes (default: %(default)g)",
    )
    parser.add_argument(
        "--inputs", type=Path, help=".npz file with any of qpos, qvel, ctrl and model parameters by name"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_connection(parser)
    add_model_options(parser)


def run_check_gradient(arguments: argparse.Namespace) -> int:
    """Check the gradients of a model and print the report."""
    wrt = None if arguments.wrt is None else [name.strip() for name in arguments.wrt.split(",")]
    with open_simulator(arguments) as simulator:
        model = load_model(simulator, arguments)
        report = simulator.check_gradient(
            model,
            **_read_inputs(model, arguments.inputs),
            steps=arguments.steps,
            wrt=wrt,
            directions=arguments.directions,
            seed=arguments.seed,
            tolerance=arguments.tolerance,
            progress=_show_progress if sys.stderr.isatty() else None,
        )
    if sys.stderr.isatty():
        print(_CLEAR_LINE, end="", file=sys.stderr, flush=True)
    print(to_json(report.to_dict()) if arguments.json else report)
    return 0 if report.passed else 1


def _show_progress(name: str, place: int, count: int) -> None:
    """Print the current input on one terminal line."""
    print(f"{_CLEAR_LINE}{place + 1} of {count}: {name}", end="", file=sys.stderr, flush=True)


def _read_inputs(model: ModelHandle, path: Path | None) -> dict[str, Any]:
    """Return the arrays of a file as arguments of `check_gradient`."""
    if path is None:
        return {}
    members = load_members("--inputs", path, (*_STATE_AND_CONTROL, *model.params))
    inputs = {name: members[name] for name in _STATE_AND_CONTROL if name in members}
    params = {name: members[name] for name in members if name not in inputs}
    return {**inputs, "params": params or None}
