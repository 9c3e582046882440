"""Plays a trajectory: play, scrub, speed, environment, contact forces, gradient."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..contract.errors import RevoluteError
from ..render import Arrows, contact_arrows, gradient_arrows, motion_of
from ..render.arrows import checked_gradient
from ..render.camera import sphere_around
from ..render.motion import Motion, Recorded, compiled_model
from .viewer import PORT, Viewer

SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4")


class TrajectoryViewer(Viewer):
    """A page that plays a trajectory; made by `Trajectory.view`.

    Args:
        trajectory: the trajectory, or anything with its model, qpos, qvel, ctrl, inputs and contacts.
        gradient: what `Trajectory.backward` returned, or a function that returns it, which is called when
            somebody first asks for the gradient; None for no gradient.
        host: as for `Viewer`.
        port: as for `Viewer`.
    """

    def __init__(
        self,
        trajectory: Recorded,
        *,
        gradient: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
        host: str = "127.0.0.1",
        port: int = PORT,
    ) -> None:
        self._trajectory = trajectory
        self._motion = motion_of(trajectory)
        super().__init__(compiled_model(trajectory.model), trajectory.model.name, host=host, port=port)
        self._gradient = gradient
        self._checked: Mapping[str, Any] | None = None
        self._lock = threading.Lock()
        self._shown: Any = None
        self._time = 0.0
        self._last = time.monotonic()
        centre, radius = sphere_around(self._motion.model, self._motion.poses)
        self._arrow_radius = sphere_around(self._motion.model, self._motion.poses[:1])[1]
        self.scene.look_at(centre, radius)
        self._add_controls()
        self._show()
        self._start()

    def _add_controls(self) -> None:
        motion = self._motion
        gui: Any = self._server.gui
        self._play = gui.add_checkbox("play", motion.steps > 0)
        self._slider = gui.add_slider(
            "time (s)", 0.0, max(motion.duration, motion.timestep), motion.timestep, 0.0
        )
        self._speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
        batch = 1 if np.ndim(self._trajectory.qpos) == 2 else len(self._trajectory.qpos)
        self._env = gui.add_slider("environment", 0, max(1, batch - 1), 1, 0, visible=batch > 1)
        self._contacts = gui.add_checkbox("contact forces", False)
        self._descent = gui.add_checkbox(
            "gradient",
            False,
            visible=self._gradient is not None,
            hint="arrows along which the loss falls",
        )
        self._message = gui.add_markdown("")
        self._slider.on_update(self._scrub)
        self._env.on_update(self._choose)

    @property
    def motion(self) -> Motion:
        """The environment that is shown."""
        return self._motion

    def _scrub(self, event: Any) -> None:
        """Go to the time that somebody chose; the thread's own changes have no client."""
        if event.client is not None:
            self._play.value = False
            self._time = float(self._slider.value)

    def _choose(self, _event: Any) -> None:
        with self._lock:
            self._motion = motion_of(self._trajectory, int(self._env.value))
            self._checked = None

    def _tick(self) -> None:
        now = time.monotonic()
        passed, self._last = now - self._last, now
        if self._play.value and self._motion.steps:
            self._time += passed * float(self._speed.value)
            if self._time > self._motion.duration:
                self._time = 0.0
            self._slider.value = round(self._time / self._motion.timestep) * self._motion.timestep
        self._show()

    def _show(self) -> None:
        """Show the state at the present time, if it is not yet shown."""
        with self._lock:
            motion, step = self._motion, self._motion.step_at(self._time)
            wanted = (motion, step, self._contacts.value, self._descent.value)
            if wanted == self._shown:
                return
            self._shown = wanted
            self.scene.place(motion.poses[step])
            radius = self._arrow_radius
            forces = self._wanted_forces(motion, step)
            self.scene.show_arrows("contacts", forces)
            gradient = self._wanted_gradient()
            descent = None if gradient is None else gradient_arrows(motion, gradient, step, radius)
            self.scene.show_arrows("gradient", descent)

    def _wanted_forces(self, motion: Motion, step: int) -> Arrows | None:
        """Return the contact forces, if somebody asks for them; an error is shown on the page."""
        if not self._contacts.value:
            return None
        try:
            return contact_arrows(motion, [step], self._arrow_radius)[0]
        except RevoluteError as error:
            self._message.content = f"**{error}**"
            self._contacts.value = False
            return None

    def _wanted_gradient(self) -> Mapping[str, Any] | None:
        """Return the gradient of the environment, if somebody asks for it; an error is shown on the page."""
        if not self._descent.value or self._gradient is None:
            return None
        if self._checked is None:
            try:
                found = self._gradient if isinstance(self._gradient, Mapping) else self._gradient()
                self._gradient = found
                self._checked = checked_gradient(self._motion, found)
            except Exception as error:
                self._message.content = f"**{error}**"
                self._descent.value = False
        return self._checked
