"""The command `revolute`: demo, serve, token, backup, restore, info, models, rollout, gradient,
check-gradient, render, view.

Each command's module is imported only when the command runs, so help and errors appear at once.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from .. import __version__
from ..contract.errors import RevoluteError

_SERVER_COMMANDS = {
    "demo": ("revolute_server.demo", "show the main job on a real robot: rollout, gradient, optimisation"),
    "token": ("revolute_server.access.token_command", "make tokens that `revolute serve --tokens` asks for"),
    "backup": ("revolute_server.store.copy_command:backup", "copy a store that servers use to a new file"),
    "restore": ("revolute_server.store.copy_command:restore", "copy a backup to an empty store"),
    "serve": ("revolute_server.cli", "serve models, sessions and trajectories over gRPC and HTTP"),
}
_COMMANDS = {
    "info": ("describe", "describe a server or the engine in this process, or a model"),
    "models": ("describe", "list the built-in models"),
    "rollout": ("simulate", "simulate a model and write the trajectory to a file"),
    "gradient": ("simulate", "differentiate a loss of a trajectory and write the gradient to a file"),
    "render": ("pictures", "draw a trajectory or a model: video, animated picture or film strip"),
    "view": ("pictures", "show a trajectory, a model or a running session in a web browser"),
    "check-gradient": ("check", "check the gradients of a model against finite differences"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: arguments without the program's name; by default those of the process.

    Returns:
        Exit status: 0 for success, 1 if the command failed, 2 for a mistake in the arguments.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = arguments[0] if arguments else ""
    try:
        if command in _SERVER_COMMANDS:
            return _run_server_command(command, arguments[1:])
        parsed = _parser(command).parse_args(arguments)
        return parsed.run(parsed)
    except RevoluteError as error:
        print(f"revolute {command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # the reader of stdout, e.g. `head`, has exited
        sys.stderr.close()
        return 0


def _run_server_command(command: str, arguments: list[str]) -> int:
    """Run a command of the package revolute-server."""
    module, _, function = _SERVER_COMMANDS[command][0].partition(":")
    try:
        run = getattr(importlib.import_module(module), function or "main")
    except ImportError as error:
        print(
            f"revolute {command}: expected the package revolute-server, got none ({error}); "
            'install it with `pip install "revolute[server]"` (from a clone: `pip install ./client .`)',
            file=sys.stderr,
        )
        return 1
    return int(run(arguments))


def _parser(command: str) -> argparse.ArgumentParser:
    """Return the parser; only the given command gets its arguments."""
    parser = argparse.ArgumentParser(
        prog="revolute", description="Rollouts and gradients of articulated bodies."
    )
    parser.add_argument("--version", action="version", version=f"revolute {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (module, text) in (_SERVER_COMMANDS | _COMMANDS).items():
        inner = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name == command and name in _COMMANDS:
            chosen = importlib.import_module(f".{module}", __name__)
            function = name.replace("-", "_")
            getattr(chosen, f"add_{function}_arguments")(inner)
            inner.set_defaults(run=getattr(chosen, f"run_{function}"))
    return parser
