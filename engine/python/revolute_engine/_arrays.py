"""Converts a compiled MuJoCo model to the plain arrays that the compiled engine reads.

Names and conventions are MuJoCo's. This module applies MuJoCo's disable flags: a disabled spring gets
stiffness 0, a disabled actuator gets gain 0. `_transmissions.py` has what actuators act on.
"""

from __future__ import annotations

import mujoco
import numpy as np
import numpy.typing as npt

from revolute.contract.errors import ModelError

from ._equalities import equality_arrays
from ._names import element_name
from ._native_arrays import Arrays, integer, real
from ._sensors import has_range_finders, visible_geoms
from ._transmissions import transmission_arrays
from .parameters import PARAMETERS

_COPIED_REAL = (
    *("body_pos", "body_quat", "body_iquat"),
    *("jnt_pos", "jnt_axis", "qpos0"),
    *("geom_pos", "geom_quat", "geom_size", "geom_rbound", "site_pos", "site_quat"),
    *(name for name, each in PARAMETERS.items() if each.copied and each.contact_model != "mujoco"),
)
_COPIED_INTEGER = (
    *("body_parentid", "body_weldid", "body_rootid", "body_mocapid"),
    *("jnt_type", "jnt_bodyid", "jnt_qposadr", "jnt_dofadr", "jnt_limited"),
    *("geom_type", "geom_bodyid", "site_bodyid"),
)
_SIZES = ("nq", "nv", "nu", "nbody", "njnt", "ngeom", "nsite")


def compiled_arrays(model: mujoco.MjModel, label: str) -> Arrays:
    """Return the engine's arrays, without contact pairs and options.

    Args:
        model: a compiled model that has passed `check_support`.
        label: name of the file in messages.

    Raises:
        ModelError: a mesh has a hull without volume.
    """
    arrays: Arrays = {name: int(getattr(model, name)) for name in _SIZES}
    arrays.update({name: real(getattr(model, name)) for name in _COPIED_REAL})
    arrays.update({name: integer(getattr(model, name)) for name in _COPIED_INTEGER})
    arrays["timestep"] = float(model.opt.timestep)
    arrays["gravity"] = real(model.opt.gravity)
    arrays.update(_height_fields(model))
    arrays["geom_fluid"] = real(model.geom_fluid)
    arrays["geom_semiaxes"] = _semiaxes(model)
    arrays.update(_hulls(model, label))
    arrays.update(_ray_meshes(model))
    arrays.update(_actuators(model))
    arrays.update(equality_arrays(model))
    arrays["integrator"] = int(model.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
    _apply_disable_flags(model, arrays)
    return arrays


def is_disabled(model: mujoco.MjModel, name: str) -> bool:
    """Return whether an MJCF flag is set to "disable"."""
    return bool(model.opt.disableflags & int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}")))


def disabled_switches(model: mujoco.MjModel) -> dict[str, bool]:
    """Return for each of the engine's switches whether MuJoCo's flags turn it off."""
    everything = is_disabled(model, "CONSTRAINT")
    flags = {"contact": "CONTACT", "limits": "LIMIT", "dry_friction": "FRICTIONLOSS"}
    return {switch: everything or is_disabled(model, flag) for switch, flag in flags.items()}


def _apply_disable_flags(model: mujoco.MjModel, arrays: Arrays) -> None:
    """Apply the flags that remove a term from the equations of motion."""
    zeroed = {
        "GRAVITY": ("gravity",),
        "SPRING": ("jnt_stiffness", "ten_stiffness"),
        "DAMPER": ("dof_damping", "ten_damping"),
        "CLAMPCTRL": ("act_ctrllimited",),
    }
    for flag, names in zeroed.items():
        if is_disabled(model, flag):
            for name in names:
                arrays[name][...] = 0
    if is_disabled(model, "SPRING") and is_disabled(model, "DAMPER"):
        # MuJoCo then computes no passive force at all
        arrays["body_gravcomp"][...] = 0
        arrays.update(density=0.0, viscosity=0.0)


def _semiaxes(model: mujoco.MjModel) -> npt.NDArray[np.float64]:
    """Return the half axes of the ellipsoid that stands for each shape in a medium [ngeom, 3]."""
    half = real(model.geom_size)
    kinds = mujoco.mjtGeom
    for kind, axes in (
        (kinds.mjGEOM_SPHERE, half[:, [0, 0, 0]]),
        (kinds.mjGEOM_CAPSULE, np.column_stack([half[:, [0, 0]], half[:, 0] + half[:, 1]])),
        (kinds.mjGEOM_CYLINDER, half[:, [0, 0, 1]]),
    ):
        half = np.where((model.geom_type == int(kind))[:, None], axes, half)
    return real(half)


def _height_fields(model: mujoco.MjModel) -> Arrays:
    """Return the height fields, and which of them each shape is (-1: none)."""
    is_field = model.geom_type == int(mujoco.mjtGeom.mjGEOM_HFIELD)
    return {
        "hfield_nrow": integer(model.hfield_nrow),
        "hfield_ncol": integer(model.hfield_ncol),
        "hfield_size": real(model.hfield_size),
        "hfield_data": real(model.hfield_data),
        "geom_field": integer(np.where(is_field, model.geom_dataid, -1)),
    }


def _ray_meshes(model: mujoco.MjModel) -> Arrays:
    """Return the triangles of the meshes that range finders may meet; nothing without range finders."""
    if not has_range_finders(model):
        return {"ray_adr": integer([]), "ray_num": integer([]), "ray_triangles": real([])}
    first, count = np.zeros(model.ngeom, np.int32), np.zeros(model.ngeom, np.int32)
    triangles: list[npt.NDArray[np.float64]] = [np.zeros((0, 9))]
    places: dict[int, int] = {}
    met = visible_geoms(model) & (model.geom_type == int(mujoco.mjtGeom.mjGEOM_MESH))
    for geom in np.flatnonzero(met):
        mesh = int(model.geom_dataid[geom])
        begin, number = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
        if mesh not in places:
            places[mesh] = sum(map(len, triangles))
            corners = model.mesh_vertadr[mesh] + model.mesh_face[begin : begin + number]
            triangles.append(model.mesh_vert[corners].astype(np.float64).reshape(-1, 9))
        first[geom], count[geom] = places[mesh], number
    return {"ray_adr": first, "ray_num": count, "ray_triangles": real(np.concatenate(triangles))}


def _hulls(model: mujoco.MjModel, label: str) -> Arrays:
    """Return the vertices and faces of each mesh shape's convex hull, in the shape's frame."""
    vertices: list[npt.NDArray[np.float64]] = [np.zeros((0, 3))]
    sizes: list[npt.NDArray[np.int32]] = [np.zeros(0, np.int32)]
    corners: list[npt.NDArray[np.int32]] = [np.zeros(0, np.int32)]
    names = ("hull_adr", "hull_num", "hull_polyadr", "hull_polynum")
    arrays: Arrays = {name: np.zeros(model.ngeom, np.int32) for name in names}
    first_vertex = first_face = 0
    for geom in np.flatnonzero(model.geom_type == int(mujoco.mjtGeom.mjGEOM_MESH)):
        points, faces = _hull(
            model, int(model.geom_dataid[geom]), f"{label}: {element_name(model, 'geom', int(geom))}"
        )
        counts = (first_vertex, len(points), first_face, len(faces))
        for name, value in zip(names, counts, strict=True):
            arrays[name][geom] = value
        vertices.append(points)
        sizes.append(integer([len(face) for face in faces]))
        corners.extend(faces)
        first_vertex += len(points)
        first_face += len(faces)
    arrays["hull_vert"] = real(np.concatenate(vertices))
    arrays["hull_polyvertnum"] = integer(np.concatenate(sizes))
    arrays["hull_polyvert"] = integer(np.concatenate(corners))
    return arrays


def _hull(
    model: mujoco.MjModel, mesh: int, element: str
) -> tuple[npt.NDArray[np.float64], list[npt.NDArray[np.int32]]]:
    """Return one mesh's hull: its vertices, and for each face the vertex indices of its corners.

    The hull is empty for a mesh that cannot touch anything; MuJoCo computes none for it.
    """
    first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    vertices = np.asarray(model.mesh_vert[first : first + count], dtype=np.float64)
    graph = int(model.mesh_graphadr[mesh])
    if graph < 0:
        return np.zeros((0, 3)), []
    # mesh_graph: number of hull vertices, number of hull triangles, an edge address per vertex, vertex
    # indices
    hull_count = int(model.mesh_graph[graph])
    indices = np.asarray(model.mesh_graph[graph + 2 + hull_count : graph + 2 + 2 * hull_count])
    place = np.full(count, -1, np.int32)
    place[indices] = np.arange(hull_count, dtype=np.int32)
    faces = []
    for face in range(
        int(model.mesh_polyadr[mesh]), int(model.mesh_polyadr[mesh] + model.mesh_polynum[mesh])
    ):
        start = int(model.mesh_polyvertadr[face])
        corners = place[model.mesh_polyvert[start : start + int(model.mesh_polyvertnum[face])]]
        if (corners < 0).any():
            raise ModelError(f"{element}: expected a convex hull with faces; give the mesh a volume")
        faces.append(corners)
    return vertices[indices], faces


def _actuators(model: mujoco.MjModel) -> Arrays:
    """Return the actuators: force = gain . x * input + bias . x, x = (1, length, velocity) times the gear."""
    gain = np.array(model.actuator_gainprm[:, :3])
    gains, biases = mujoco.mjtGain, mujoco.mjtBias
    gain[model.actuator_gaintype != int(gains.mjGAIN_AFFINE), 1:] = 0
    polynomial = np.isin(model.actuator_gaintype, [int(gains.mjGAIN_FIXED), int(gains.mjGAIN_AFFINE)])
    affine = model.actuator_biastype == int(biases.mjBIAS_AFFINE)
    off = is_disabled(model, "ACTUATION")
    enabled = np.array(
        [not (off or model.opt.disableactuator >> int(group) & 1) for group in model.actuator_group], bool
    )
    transmissions = transmission_arrays(model, enabled)
    limited, forcerange = _force_limits(model, transmissions)
    return {
        **transmissions,
        "act_gear": real(model.actuator_gear[:, 0]),
        "act_gain": real(gain * (polynomial & enabled)[:, None]),
        "act_bias": real(model.actuator_biasprm[:, :3] * (affine & enabled)[:, None]),
        "act_ctrllimited": integer(model.actuator_ctrllimited),
        "act_ctrlrange": real(model.actuator_ctrlrange),
        "act_forcelimited": limited,
        "act_forcerange": forcerange,
    }


def _force_limits(
    model: mujoco.MjModel, transmissions: Arrays
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Return each actuator's force limits.

    A limit on the sum of a joint's actuator forces becomes the limit of its only actuator, which is cheaper,
    and leaves `jnt_actfrclimited`.
    """
    limited, ranges = integer(model.actuator_forcelimited), real(model.actuator_forcerange)
    dofs = transmissions["act_dof"]
    for joint in np.flatnonzero(model.jnt_actfrclimited):
        drivers = np.flatnonzero(dofs == model.jnt_dofadr[joint])
        if len(drivers) > 1 or (dofs < 0).any() or model.jnt_actgravcomp[joint]:
            continue
        transmissions["jnt_actfrclimited"][joint] = 0
        for actuator in drivers:
            gear = float(model.actuator_gear[actuator, 0])
            if gear == 0:
                continue
            low, high = sorted(model.jnt_actfrcrange[joint] / gear)
            if limited[actuator]:
                low, high = max(low, ranges[actuator, 0]), min(high, ranges[actuator, 1])
            limited[actuator], ranges[actuator] = 1, (low, high)
    return limited, ranges
