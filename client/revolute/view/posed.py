"""Shows a model that stands still, with a slider per joint."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from ..model import ModelHandle
from ..render.camera import sphere_around
from ..render.motion import compiled_model
from ..render.poses import Poses
from .viewer import PORT, Viewer

_MOST_SLIDERS = 60
_SCALAR_JOINTS = (int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE))


class ModelViewer(Viewer):
    """A page with a model in its default configuration; sliders move the joints, mocap bodies stand still.

    Args:
        model: the model.
        host: as for `Viewer`.
        port: as for `Viewer`.

    Attributes:
        sliders: handle of each slider by the joint's name.
    """

    def __init__(self, model: ModelHandle, *, host: str = "127.0.0.1", port: int = PORT) -> None:
        compiled = compiled_model(model)
        super().__init__(compiled, model.name, host=host, port=port)
        # a copy: the sliders change it
        qpos = np.array(next(iter(model.keyframes.values()), model.qpos0))
        self._pose = Poses.of(compiled, qpos)
        self.scene.look_at(*sphere_around(compiled, Poses.of(compiled, qpos[None])))
        self.scene.place(self._pose)
        self.sliders: dict[str, Any] = {}
        scalar = [joint for joint in range(model.njnt) if compiled.jnt_type[joint] in _SCALAR_JOINTS]
        for joint in scalar[:_MOST_SLIDERS]:
            self._add_slider(model.joint_names[joint], compiled, joint)
        self._start()

    def _add_slider(self, name: str, compiled: mujoco.MjModel, joint: int) -> None:
        at = compiled.jnt_qposadr[joint]
        hinge = compiled.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE
        reach = np.pi if hinge else 1.0
        low, high = compiled.jnt_range[joint] if compiled.jnt_limited[joint] else (-reach, reach)
        value = float(np.clip(self._pose.qpos[at], low, high))
        slider = self._server.gui.add_slider(
            f"{name} ({'rad' if hinge else 'm'})", float(low), float(high), float(high - low) / 1000, value
        )

        def move(_event: Any) -> None:
            self._pose.qpos[at] = slider.value
            self.scene.place(self._pose)

        slider.on_update(move)
        self.sliders[name] = slider
