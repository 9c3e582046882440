"""The shapes of a model as a viser scene: one frame per body, which moves with it."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt
import trimesh

from ..render import Arrows, Poses

_SHOWN_GROUPS = 3
"""MuJoCo draws shapes of the groups 0, 1 and 2; a model with none there is shown whole."""

_GROUND_METRES = 40.0

Mesh = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]


class Scene:
    """Shapes in a browser.

    Args:
        server: the viewer's web server, a viser.ViserServer.
        model: the model.

    Attributes:
        data: the state that is shown, with the places of all bodies.
    """

    def __init__(self, server: Any, model: mujoco.MjModel) -> None:
        self._server, self._model = server, model
        self.data = mujoco.MjData(model)
        server.scene.set_up_direction("+z")
        self._frames = [
            server.scene.add_frame(f"/bodies/{body}", show_axes=False) for body in range(model.nbody)
        ]
        for geom in _shown(model):
            self._add_shape(geom)
        self._moving = np.flatnonzero(model.body_weldid != 0).tolist()
        self._arrows: dict[str, Any] = {}
        self.place(Poses.of(model, model.qpos0), bodies=range(model.nbody))

    def place(self, pose: Poses, *, bodies: Any = None) -> None:
        """Move bodies to a pose, without leading axes; by default all that are not welded to the world."""
        pose.put_into(self.data)
        mujoco.mj_kinematics(self._model, self.data)
        with self._server.atomic():
            for body in self._moving if bodies is None else bodies:
                self._frames[body].position = self.data.xpos[body]
                self._frames[body].wxyz = self.data.xquat[body]

    def show_arrows(self, name: str, arrows: Arrows | None) -> None:
        """Replace the arrows of a name."""
        old = self._arrows.pop(name, None)
        if old is not None:
            old.remove()
        if arrows is None:
            return
        lengths = np.linalg.norm(arrows.ends[:, 1] - arrows.ends[:, 0], axis=1)
        ends = arrows.ends[lengths > 1e-6]
        if len(ends):
            size = self.radius
            self._arrows[name] = self._server.scene.add_arrows(
                f"/arrows/{name}",
                ends.astype(np.float32),
                tuple(round(255 * part) for part in arrows.rgb),
                shaft_radius=0.012 * size,
                head_radius=0.03 * size,
                head_length=0.06 * size,
            )

    @property
    def radius(self) -> float:
        """Size of the model in m."""
        return float(self._model.stat.extent) / 2

    def look_at(self, centre: Any, radius: float) -> None:
        """Set the first view of a browser that connects."""
        camera = self._server.initial_camera
        camera.look_at = tuple(map(float, centre))
        camera.position = tuple(map(float, np.asarray(centre) + radius * np.array([2.0, -2.0, 1.2])))

    def _add_shape(self, geom: int) -> None:
        model, scene = self._model, self._server.scene
        name = f"/bodies/{model.geom_bodyid[geom]}/{geom}"
        place = {"position": model.geom_pos[geom], "wxyz": model.geom_quat[geom]}
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE:
            half = model.geom_size[geom, :2]
            width, height = (2 * side if side > 0 else _GROUND_METRES for side in half)
            scene.add_grid(name, width, height, plane_opacity=0.6, plane_color=(225, 228, 225), **place)
            return
        vertices, faces = shape_mesh(model, geom)
        rgba = model.geom_rgba[geom]
        if model.geom_matid[geom] >= 0:
            rgba = rgba * model.mat_rgba[model.geom_matid[geom]]
        scene.add_mesh_simple(
            name,
            vertices.astype(np.float32),
            faces.astype(np.uint32),
            color=tuple(round(255 * part) for part in rgba[:3].tolist()),
            opacity=None if rgba[3] >= 1 else float(rgba[3]),
            **place,
        )


def _shown(model: mujoco.MjModel) -> list[int]:
    """Return the shapes to show."""
    visible = model.geom_rgba[:, 3] > 0
    drawn = np.flatnonzero(visible & (model.geom_group < _SHOWN_GROUPS))
    return (drawn if len(drawn) else np.flatnonzero(visible)).tolist()


def _surface(model: mujoco.MjModel, field: int) -> Mesh:
    """Return vertices and faces of a height field, without its base."""
    rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    half_x, half_y, top, _ = model.hfield_size[field]
    first = model.hfield_adr[field]
    heights = top * model.hfield_data[first : first + rows * columns]
    x, y = np.meshgrid(np.linspace(-half_x, half_x, columns), np.linspace(-half_y, half_y, rows))
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    faces = np.concatenate(
        [corner[:, None] + [0, columns + 1, columns], corner[:, None] + [0, 1, columns + 1]]
    )
    return np.column_stack([x.ravel(), y.ravel(), heights]), faces


def shape_mesh(model: mujoco.MjModel, geom: int) -> Mesh:
    """Return vertices and faces of a shape in its own frame."""
    kind, size = mujoco.mjtGeom(int(model.geom_type[geom])), model.geom_size[geom]
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        first, face = model.mesh_vertadr[mesh], model.mesh_faceadr[mesh]
        return (
            model.mesh_vert[first : first + model.mesh_vertnum[mesh]],
            model.mesh_face[face : face + model.mesh_facenum[mesh]],
        )
    if kind == mujoco.mjtGeom.mjGEOM_HFIELD:
        return _surface(model, int(model.geom_dataid[geom]))
    made = _primitive(kind, size)
    return np.asarray(made.vertices), np.asarray(made.faces)


def _primitive(kind: mujoco.mjtGeom, size: Any) -> trimesh.Trimesh:
    """Return a shape of MuJoCo's sizes; unknown kinds as a box around them."""
    shape = mujoco.mjtGeom
    if kind == shape.mjGEOM_SPHERE:
        return trimesh.creation.icosphere(subdivisions=3, radius=size[0])
    if kind == shape.mjGEOM_ELLIPSOID:
        return trimesh.creation.icosphere(subdivisions=3).apply_scale(size)
    if kind == shape.mjGEOM_CYLINDER:
        return trimesh.creation.cylinder(radius=size[0], height=2 * size[1])
    if kind == shape.mjGEOM_CAPSULE:
        capsule = trimesh.creation.capsule(height=2 * size[1], radius=size[0])
        # its middle, and not an end, is the origin
        return capsule.apply_translation(-capsule.bounds.mean(axis=0))
    return trimesh.creation.box(extents=2 * np.asarray(size))
