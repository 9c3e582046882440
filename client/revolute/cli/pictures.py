"""`revolute render` and `revolute view`: a model, a trajectory or a session as pictures and in a browser."""

from __future__ import annotations

import argparse
import sys
import warnings
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contract.errors import ArgumentError
from ..simulator import Simulator
from ..trajectory import Trajectory
from .arguments import add_connection, add_model_options, load_model, open_simulator
from .simulate import read_loss

if TYPE_CHECKING:
    from ..view import Viewer


def add_render_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `revolute render`."""
    _add_source(parser)
    parser.add_argument("output", type=Path, help="hop.mp4, hop.gif, or hop.png for a film strip")
    parser.add_argument("--env", type=int, default=0, help="number of the environment (default: %(default)s)")
    parser.add_argument("--camera", help='name of a camera in the file, or "track" to follow the robot')
    parser.add_argument("--azimuth", type=float, help="direction of view in degrees")
    parser.add_argument(
        "--elevation", type=float, help="of the direction of view in degrees; negative looks down"
    )
    parser.add_argument("--distance", type=float, help="of the camera in m")
    parser.add_argument("--size", metavar="WIDTHxHEIGHT", help="of a picture in pixels, e.g. 640x480")
    parser.add_argument("--fps", type=float, help="pictures per second (default: 30, of .gif 20)")
    parser.add_argument(
        "--speed", type=float, default=1.0, help="1 is real time, 0.1 slow motion (default: %(default)g)"
    )
    parser.add_argument(
        "--frames", type=int, default=6, help="pictures of a film strip (default: %(default)s)"
    )
    parser.add_argument("--contacts", action="store_true", help="draw contact forces")
    _add_loss(parser)
    add_connection(parser)
    add_model_options(parser)


def run_render(arguments: argparse.Namespace) -> int:
    """Write a video, an animated picture or a film strip."""
    with open_simulator(arguments) as simulator:
        shown = _shown(simulator, arguments)
        try:
            from ..render import Camera, render
        except ImportError as error:
            return _not_installed("render", error)
        camera: Any = arguments.camera
        angles = {name: getattr(arguments, name) for name in ("azimuth", "elevation", "distance")}
        given = {name: value for name, value in angles.items() if value is not None}
        if given:
            if camera not in (None, "track"):
                raise ArgumentError.expected("--camera", '"track" beside ' + ", ".join(given), repr(camera))
            camera = Camera(track=camera == "track", **given)
        find_gradient = _gradient(simulator, shown, arguments.loss)
        path = render(
            shown,
            arguments.output,
            camera=camera,
            size=None if arguments.size is None else _size(arguments.size),
            fps=arguments.fps,
            speed=arguments.speed,
            frames=arguments.frames,
            env=arguments.env,
            contacts=arguments.contacts,
            gradient=find_gradient and find_gradient(),
        )
    print(f"written: {path}")
    return 0


def add_view_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `revolute view`."""
    _add_source(parser, nargs="?")
    parser.add_argument("--session", metavar="ID", help="follow a session on a server; needs no model")
    parser.add_argument(
        "--rate", type=float, default=20.0, help="states of a session per second (default: %(default)g)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="port to listen at (default: %(default)s)")
    parser.add_argument("--open", action="store_true", help="open the page in the browser of this machine")
    _add_loss(parser)
    add_connection(parser)
    add_model_options(parser)


def run_view(arguments: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    with open_simulator(arguments) as simulator:
        try:
            from .. import view  # noqa: F401
        except ImportError as error:
            return _not_installed("view", error)
        with _viewer(simulator, arguments) as viewer:
            print(f"{viewer.address}  (Ctrl-C ends)", flush=True)
            if arguments.open:
                webbrowser.open(viewer.address)
            viewer.wait()
    return 0


def _viewer(simulator: Simulator, arguments: argparse.Namespace) -> Viewer:
    """Return the viewer for what the arguments name."""
    from ..view import ModelViewer, SessionViewer, TrajectoryViewer

    place = {"host": arguments.host, "port": arguments.port}
    if arguments.session is not None:
        model = None if arguments.model is None else load_model(simulator, arguments)
        session = simulator.open_session(model, arguments.session)
        return SessionViewer(session, rate=arguments.rate, **place)
    if arguments.model is None:
        raise ArgumentError.expected("model", "a trajectory, a robot's file or a name, or --session", "none")
    if not _is_trajectory(arguments.model):
        return ModelViewer(load_model(simulator, arguments), **place)
    shown = _shown(simulator, arguments)
    return TrajectoryViewer(shown, gradient=_gradient(simulator, shown, arguments.loss), **place)


def _add_source(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    parser.add_argument(
        "model",
        nargs=nargs,
        help="the .npz of `revolute rollout --save` or Trajectory.save; a robot's file; or a built-in name",
    )


def _add_loss(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--loss", help="loss as JSON, or a file with it: show its gradient as arrows, along which it falls"
    )


def _is_trajectory(model: str) -> bool:
    return model.lower().endswith(".npz")


def _shown(simulator: Simulator, arguments: argparse.Namespace) -> Trajectory:
    """Return what the arguments name: a trajectory, or the default configuration of a model."""
    if _is_trajectory(arguments.model):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            trajectory = simulator.load_trajectory(arguments.model)
        for warning in caught:
            print(f"revolute: warning: {warning.message}", file=sys.stderr)
        return trajectory
    model = load_model(simulator, arguments)
    qpos = next(iter(model.keyframes.values()), model.qpos0)
    return simulator.rollout(model, qpos, model.qvel0, np.zeros((0, model.nu)))


def _gradient(simulator: Simulator, shown: Trajectory, loss: str | None) -> Callable[[], Any] | None:
    """Return a function that computes the gradient of the loss; None without a loss."""
    if loss is None:
        return None
    parsed = read_loss(loss)

    def compute() -> Any:
        return simulator.value_and_gradient(
            shown.model,
            shown.qpos[..., 0, :],
            shown.qvel[..., 0, :],
            shown.ctrl,
            parsed,
            hold=shown.hold,
            params=shown.params or None,
            wrt=("qpos", "ctrl"),
        )[1]

    return compute


def _size(text: str) -> tuple[int, int]:
    try:
        width, height = map(int, text.lower().split("x"))
    except ValueError:
        raise ArgumentError.expected("--size", "WIDTHxHEIGHT, e.g. 640x480", repr(text)) from None
    return width, height


def _not_installed(command: str, error: ImportError) -> int:
    print(f"revolute {command}: {error}", file=sys.stderr)
    return 1
