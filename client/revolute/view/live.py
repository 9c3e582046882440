"""Follows a session that somebody else steps, in this process or on a server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

import mujoco
import numpy as np

from ..contract.errors import ArgumentError, RevoluteError
from ..model import ModelHandle
from ..render.arrows import FORCE_RGB, Arrows, force_ends
from ..render.camera import sphere_around
from ..render.motion import compiled_model
from ..render.poses import Poses
from .viewer import PORT, Viewer

if TYPE_CHECKING:
    from ..measured import Contacts


class Watched(Protocol):
    """A session."""

    batch: int
    model: ModelHandle

    def state(self) -> Any:
        """Return its state, with qpos, time, step_count, status, mocap_pos and mocap_quat."""

    def contacts(self) -> Contacts:
        """Return the contacts in its state."""


class SessionViewer(Viewer):
    """A page that follows a session; made by `Session.view`.

    It asks for the state `rate` times per second, which renews the session's lease. Mocap bodies are
    where the state has them.

    Args:
        session: the session.
        rate: states per second.
        host: as for `Viewer`.
        port: as for `Viewer`.
    """

    def __init__(
        self, session: Watched, *, rate: float = 20.0, host: str = "127.0.0.1", port: int = PORT
    ) -> None:
        if not 0 < rate <= 1000:
            raise ArgumentError.expected("rate", "a number of states per second up to 1000", repr(rate))
        compiled = compiled_model(session.model)
        super().__init__(compiled, session.model.name, host=host, port=port)
        self._session, self._pause = session, 1 / rate
        gui = self._server.gui
        self._env = gui.add_slider(
            "environment", 0, max(1, session.batch - 1), 1, 0, visible=session.batch > 1
        )
        self._contacts = gui.add_checkbox(
            "contact forces", False, hint="those of the state without controls, which a session does not keep"
        )
        self._status = gui.add_markdown("")
        self._due = time.monotonic()
        state = session.state()
        finite = np.isfinite(state.qpos[0]).all()
        seen = _poses(compiled, state)[:1] if finite else Poses.of(compiled, session.model.qpos0[None])
        centre, self._radius = sphere_around(compiled, seen)
        self.scene.look_at(centre, self._radius)
        self._show(state)
        self._start()

    @property
    def text(self) -> str:
        """What the page says about the session."""
        return str(self._status.content)

    def _tick(self) -> None:
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._pause
        try:
            self._show(self._session.state())
        except RevoluteError as error:
            self._status.content = f"**{error}**"
            # a session that has ended, or a server that is gone: ask seldom
            self._due = time.monotonic() + max(1.0, self._pause)

    def _show(self, state: Any) -> None:
        env = min(int(self._env.value), self._session.batch - 1)
        self._status.content = f"time {state.time:.3f} s, step {state.step_count}"
        if state.status[env] or not np.isfinite(state.qpos[env]).all():
            self._status.content += ", **diverged**"
            return
        self.scene.place(_poses(compiled_model(self._session.model), state)[env])
        self.scene.show_arrows("contacts", self._forces(env) if self._contacts.value else None)

    def _forces(self, env: int) -> Arrows:
        """Return the contact forces of an environment."""
        found = self._session.contacts()
        ends = force_ends(self._session.model, compiled_model(self._session.model), found, self._radius)
        return Arrows(ends[found.environment == env], FORCE_RGB)


def _poses(model: mujoco.MjModel, state: Any) -> Poses:
    """Return the poses of all environments of a session."""
    return Poses.of(model, state.qpos, state.mocap_pos, state.mocap_quat)
