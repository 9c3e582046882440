"""What all viewers share: the web server, the scene, and one thread that moves it."""

from __future__ import annotations

import contextlib
import io
import threading
from types import TracebackType
from typing import Any

import mujoco
import viser

from ..contract.errors import ArgumentError, UnavailableError
from .scene import Scene

PORT = 8080
"""First port that is tried; if it is taken, the next free one is used."""

TICK = 1 / 30
"""Time between two updates in s."""


class Viewer:
    """A page that shows a model, until `close` or the end of a `with` block.

    Args:
        model: the model, compiled by MuJoCo.
        title: title of the page.
        host: address to listen at; at any but the loopback, everyone who can reach it can watch.
        port: port to listen at; the next free one if it is taken.

    Attributes:
        address: of the page.
    """

    def __init__(
        self, model: mujoco.MjModel, title: str, *, host: str = "127.0.0.1", port: int = PORT
    ) -> None:
        if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
            raise ArgumentError.expected("port", "a number from 1 to 65535", repr(port))
        try:
            with _quiet():
                self._server = viser.ViserServer(host=host, port=port, label=title, verbose=False)
        except (OSError, RuntimeError) as error:
            raise UnavailableError(
                f"port: expected an address to listen at, got {host}:{port} ({error})"
            ) from error
        self._server.gui.configure_theme(show_logo=False, show_share_button=False)
        self.address = f"http://{host}:{self._server.get_port()}"
        self.scene = Scene(self._server, model)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="revolute-viewer", daemon=True)

    def close(self) -> None:
        """Stop the web server."""
        if self._closed.is_set():
            return
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()
        with _quiet():
            self._server.stop()

    def wait(self) -> None:
        """Wait until `close`, or a keyboard interrupt."""
        self._closed.wait()

    def _start(self) -> None:
        """Start the thread; the last line of a constructor."""
        self._thread.start()

    def _run(self) -> None:
        """Move the scene until `close`."""
        while not self._closed.wait(TICK):
            self._tick()

    def _tick(self) -> None:
        """Carry on for a moment; a viewer without motion has nothing to do."""

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<revolute viewer at {self.address}>"


def _quiet() -> contextlib.AbstractContextManager[object]:
    """Keep viser's banner from the terminal."""
    return contextlib.redirect_stdout(io.StringIO())
