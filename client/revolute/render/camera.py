"""Where a motion is seen from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError
from .motion import Motion
from .poses import Poses

_MOST_STATES = 20
"""States that are looked at to find a view that shows the whole motion."""

_SMALLEST_RADIUS = 0.05
"""In m, so that the camera keeps a distance from a model without shapes."""

_DISTANCE = 2.7
"""Distance of the camera per radius of what it shows."""


@dataclass(frozen=True)
class Camera:
    """A camera of the model's file, or one that looks at the motion.

    Attributes:
        name: camera of the file; the other attributes are then ignored.
        azimuth: direction of view in degrees, counterclockwise from the x axis.
        elevation: of the direction of view, in degrees; negative looks down.
        distance: from the point that it looks at, in m; None to fit the motion, or the tracked body.
        lookat: that point, in m; None for the middle of the motion.
        track: follow a body by its name; True follows the first body that moves.
    """

    name: str | None = None
    azimuth: float = 165.0
    elevation: float = -25.0
    distance: float | None = None
    lookat: tuple[float, float, float] | None = None
    track: bool | str = False


def chosen_camera(camera: Camera | str | None, model: mujoco.MjModel) -> Camera:
    """Return the camera that the argument `camera` means.

    Args:
        camera: a camera, the name of one in the file, "track", or None for a fixed view of the whole motion.
        model: the model.

    Raises:
        ArgumentError: the file has no such camera or body.
    """
    if isinstance(camera, str):
        camera = Camera(track=True) if camera == "track" else Camera(name=camera)
    camera = camera or Camera()
    if not isinstance(camera, Camera):
        raise ArgumentError.expected("camera", "a revolute.render.Camera or a name", type(camera).__name__)
    _check_name("camera", camera.name, [model.camera(index).name for index in range(model.ncam)], '"track"')
    if isinstance(camera.track, str):
        _check_name("camera.track", camera.track, [model.body(index).name for index in range(model.nbody)])
    if camera.distance is not None and not camera.distance > 0:
        raise ArgumentError.expected("camera.distance", "a positive number of metres", camera.distance)
    return camera


def placed_camera(camera: Camera, motion: Motion) -> dict[str, Any]:
    """Return the numbers of a camera, with the point and the distance that fit the motion.

    Returns:
        The attributes of `Camera`; `track` is the number of the body, or -1.
    """
    centre, radius = sphere_around(motion.model, motion.poses[:1] if camera.track else motion.poses)
    lookat = centre if camera.lookat is None else camera.lookat
    distance = _DISTANCE * radius if camera.distance is None else camera.distance
    body = -1
    if camera.track:
        model = motion.model
        body = model.body(camera.track).id if isinstance(camera.track, str) else first_moving_body(model)
    where = {"lookat": [float(each) for each in lookat], "distance": float(distance), "track": body}
    return {**asdict(camera), **where}


def first_moving_body(model: mujoco.MjModel) -> int:
    """Return the first body that is not welded to the world; the world if there is none."""
    moving = np.flatnonzero(model.body_weldid != 0)
    return int(moving[0]) if len(moving) else 0


def sphere_around(model: mujoco.MjModel, poses: Poses) -> tuple[npt.NDArray[np.float64], float]:
    """Return centre and radius of a sphere around the moving shapes.

    Args:
        model: the model.
        poses: with one leading axis; of many, some are looked at.
    """
    data = mujoco.MjData(model)
    moving = np.flatnonzero(model.body_weldid[model.geom_bodyid] != 0)
    centres = []
    shown = np.unique(np.linspace(0, len(poses) - 1, _MOST_STATES).round().astype(int))
    for index in shown:
        poses[index].put_into(data)
        mujoco.mj_kinematics(model, data)
        # a copy: the next pose overwrites the array
        centres.append(
            data.geom_xpos[moving] if len(moving) else data.xipos[min(1, model.nbody - 1) :].copy()
        )
    points = np.concatenate(centres)
    radii = np.tile(model.geom_rbound[moving], len(shown)) if len(moving) else np.zeros(len(points))
    centre = (points.min(axis=0) + points.max(axis=0)) / 2
    radius = float((np.linalg.norm(points - centre, axis=1) + radii).max())
    return centre, max(_SMALLEST_RADIUS, radius)


def _check_name(argument: str, name: str | None, known: list[str], other: str = "") -> None:
    if name is None or (name and name in known):
        return
    names = ", ".join([*filter(None, known), *([other] if other else [])])
    raise ArgumentError.expected(argument, f"a name among {names or 'none'}", repr(name))
