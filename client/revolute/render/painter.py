"""Draws frames in a process of its own: `python -m revolute.render.painter JOB.npz`.

A missing or broken OpenGL can end a process without an exception, so the parent, `frames`, runs this as a
child. It writes the frames to stdout, height x width x 3 bytes each.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import fields
from typing import Any, BinaryIO

import mujoco
import numpy as np

from .poses import Poses

BONE_RGBA = np.array([0.25, 0.4, 0.6, 1.0], np.float32)

SKY_RGB = np.array([226, 230, 235], np.uint8)

_FAR = 0.99
"""Part of the greatest depth beyond which there is no shape."""

_SHOWN_GROUPS = 3
"""MuJoCo draws shapes of the groups 0, 1 and 2."""


def main(job: str, output: BinaryIO) -> None:
    """Draw the frames of a job.

    Args:
        job: .npz file that `frames` wrote.
        output: takes the frames.
    """
    with np.load(job, allow_pickle=False) as content:
        job_arrays = {name: content[name] for name in content.files}
    model = _model(job_arrays["model"])
    settings = json.loads(str(job_arrays["settings"]))
    width, height = settings["size"]
    _light(model)
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    camera = _camera(settings["camera"])
    bare = _bodies_without_shapes(model)
    has_sky = bool((model.tex_type == int(mujoco.mjtTexture.mjTEXTURE_SKYBOX)).any())
    poses = Poses(*(job_arrays[each.name] for each in fields(Poses)))
    data = mujoco.MjData(model)
    with mujoco.Renderer(model, height, width) as renderer:
        for index in range(len(poses)):
            poses[index].put_into(data)
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, camera)
            thick = 0.01 * settings["radius"]
            for first, second in _bones(model, data, bare):
                _add(renderer.scene, mujoco.mjtGeom.mjGEOM_CAPSULE, thick, first, second, BONE_RGBA)
            for kind in ("line", "arrow"):
                for row in job_arrays[f"{kind}s"][np.isin(job_arrays[f"{kind}_frames"], (index, -1))]:
                    shape = mujoco.mjtGeom.mjGEOM_ARROW if kind == "arrow" else mujoco.mjtGeom.mjGEOM_CAPSULE
                    _add(renderer.scene, shape, 2 * thick, row[:3], row[3:6], row[6:].astype(np.float32))
            picture = renderer.render()
            if not has_sky:
                picture = _with_sky(picture, renderer, model)
            output.write(picture.tobytes())


def _with_sky(picture: np.ndarray, renderer: Any, model: mujoco.MjModel) -> np.ndarray:
    """Paint where nothing is: MuJoCo leaves it black if the file has no texture of type skybox."""
    renderer.enable_depth_rendering()
    far = _FAR * model.vis.map.zfar * model.stat.extent
    empty = renderer.render() >= far
    renderer.disable_depth_rendering()
    return np.where(empty[..., None], SKY_RGB, picture)


def _model(binary: np.ndarray) -> mujoco.MjModel:
    with tempfile.NamedTemporaryFile(suffix=".mjb", delete=False) as file:
        file.write(binary.tobytes())
    try:
        return mujoco.MjModel.from_binary_path(file.name)
    finally:
        os.unlink(file.name)


def _camera(placed: dict[str, Any]) -> Any:
    """Return the camera that `placed_camera` describes, or its name."""
    if placed["name"]:
        return placed["name"]
    camera = mujoco.MjvCamera()
    camera.lookat[:] = placed["lookat"]
    camera.distance = placed["distance"]
    camera.azimuth, camera.elevation = placed["azimuth"], placed["elevation"]
    if placed["track"] >= 0:
        camera.type, camera.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, placed["track"]
    return camera


def _light(model: mujoco.MjModel) -> None:
    """Light the scene from the camera, brighter if the file has no lights; colour the ground."""
    model.vis.headlight.active = 1
    model.vis.headlight.ambient[:] = 0.25 if model.nlight else 0.5
    model.vis.headlight.diffuse[:] = 0.25 if model.nlight else 0.5
    plain = (model.geom_type == int(mujoco.mjtGeom.mjGEOM_PLANE)) & (model.geom_matid < 0)
    model.geom_rgba[plain] = (0.8, 0.82, 0.8, 1.0)


def _bodies_without_shapes(model: mujoco.MjModel) -> np.ndarray:
    """Return the moving bodies without any shape that MuJoCo draws."""
    drawn = (model.geom_group < _SHOWN_GROUPS) & (model.geom_rgba[:, 3] > 0)
    bare = np.ones(model.nbody, bool)
    bare[model.geom_bodyid[drawn]] = False
    return np.flatnonzero(bare & (model.body_weldid != 0))


def _bones(model: mujoco.MjModel, data: mujoco.MjData, bare: np.ndarray) -> np.ndarray:
    """Return lines from these bodies to their parents and children, [lines, 2 ends, xyz]."""
    children = [
        body
        for body in range(1, model.nbody)
        if model.body_parentid[body] != 0 and (body in bare or model.body_parentid[body] in bare)
    ]
    return np.stack([data.xpos[model.body_parentid[children]], data.xpos[children]], axis=1)


def _add(scene: Any, kind: Any, width: float, first: Any, second: Any, rgba: np.ndarray) -> None:
    """Draw a line or an arrow, up to the scene's limit of shapes."""
    if scene.ngeom >= scene.maxgeom or np.allclose(first, second, rtol=0, atol=1e-9):
        return
    shape = scene.geoms[scene.ngeom]
    mujoco.mjv_initGeom(shape, kind, np.zeros(3), np.zeros(3), np.zeros(9), rgba)
    mujoco.mjv_connector(shape, kind, width, first, second)
    scene.ngeom += 1


if __name__ == "__main__":
    # messages that MuJoCo or OpenGL print must not end up among the frames
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stream:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        main(sys.argv[1], stream)
