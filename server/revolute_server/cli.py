"""`revolute serve` and `python -m revolute_server`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NoReturn

from revolute.contract.codec.heap import keep_freed_memory
from revolute.contract.errors import RevoluteError

from . import settings
from .observe import logs
from .settings import Settings

_log = logging.getLogger("revolute.server")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the server's flags to a parser, such as that of `revolute serve`."""
    settings.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT, with the flags of `add_arguments`.

    Returns:
        Exit status: 0 after a clean stop, 2 when the server could not start.
    """
    try:
        chosen = settings.from_arguments(arguments)
        logs.configure(chosen.log_level, chosen.log_format)
        for warning in settings.unknown_variables():
            _log.warning("%s", warning)
        serve = _serve()
        keep_freed_memory()
        _run(serve(chosen))
    except RevoluteError as error:
        print(f"revolute serve: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    return 0


def _serve() -> Callable[[Settings], Coroutine[Any, Any, None]]:
    """Import the server; `revolute serve --help` does not need it.

    Garbage collection is off during the import, which saves a tenth of the time, and the imported objects are
    excluded from later collections, because they stay alive anyway.
    """
    gc.disable()
    try:
        from .app import serve
    finally:
        gc.freeze()
        gc.enable()
    return serve


_TURN = 0.001
"""Seconds for which a thread that computes in Python keeps the event loop waiting; Python's default is 5 ms.
The loop takes turns with such threads once for each event, and needs about ten events to answer a call."""


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run the server on uvloop if it is installed; it answers 50 % more calls per second."""
    sys.setswitchinterval(_TURN)
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


class _Parser(argparse.ArgumentParser):
    """Reports errors in the flags in one line, like `run` for their values."""

    def error(self, message: str) -> NoReturn:
        """Print the line and exit with status 2."""
        self.exit(2, f"{self.prog}: {' '.join(message.split())}; see {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the server from the command line."""
    parser = _Parser(prog="revolute serve", description="Serve models, sessions and trajectories.")
    add_arguments(parser)
    return run(parser.parse_args(argv))
