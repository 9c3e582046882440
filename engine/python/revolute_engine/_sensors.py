"""The file's sensors as the compiled engine's probes, and why some sensors are not computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import mujoco
import numpy as np
import numpy.typing as npt

from ._kinds import members
from ._probe import ACCELERATION, NO_FRAME, Probe, probe_of
from ._static_bodies import static_bodies
from ._transmissions import tendon_routes

_CAMERA = int(mujoco.mjtObj.mjOBJ_CAMERA)
_GEOM = int(mujoco.mjtObj.mjOBJ_GEOM)
_SITE = int(mujoco.mjtObj.mjOBJ_SITE)
_BODY = int(mujoco.mjtObj.mjOBJ_BODY)
_BODY_FRAME = int(mujoco.mjtObj.mjOBJ_XBODY)
_FRAMES = (NO_FRAME, _BODY, _BODY_FRAME, _GEOM, _SITE, _CAMERA)

_PLANE, _FIELD = int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtGeom.mjGEOM_HFIELD)
_MESH = int(mujoco.mjtGeom.mjGEOM_MESH)
_ON_BODY = int(mujoco.mjtTrn.mjTRN_BODY)

Make = Callable[[mujoco.MjModel, int], Probe]


def _clock(model: mujoco.MjModel, sensor: int) -> Probe:
    return probe_of("clock")


def _joint(name: str, address: str) -> Make:
    return lambda model, sensor: probe_of(name, int(getattr(model, address)[model.sensor_objid[sensor]]))


def _element(name: str) -> Make:
    return lambda model, sensor: probe_of(name, int(model.sensor_objid[sensor]))


def _energy(name: str) -> Make:
    return lambda model, sensor: probe_of(name)


def _place(model: mujoco.MjModel, kind: int, index: int) -> tuple[int, int, tuple[float, ...]]:
    """Return the frame of an object, and its pose in that frame: a camera's is in its body's."""
    if kind != _CAMERA:
        return kind, index, ()
    offset = (*model.cam_pos[index].tolist(), *model.cam_quat[index].tolist())
    return _BODY_FRAME, int(model.cam_bodyid[index]), offset


def _frame(name: str) -> Make:
    def make(model: mujoco.MjModel, sensor: int) -> Probe:
        frame, frame_id, offset = _place(
            model, int(model.sensor_objtype[sensor]), int(model.sensor_objid[sensor])
        )
        probe = probe_of(name, frame=frame, frame_id=frame_id, offset=offset)
        if model.sensor_refid[sensor] < 0:
            return probe
        reference, reference_id, offset = _place(
            model, int(model.sensor_reftype[sensor]), int(model.sensor_refid[sensor])
        )
        return probe._replace(reference=reference, reference_id=reference_id, reference_offset=offset)

    return make


def _magnetometer(model: mujoco.MjModel, sensor: int) -> Probe:
    return _frame("local_field")(model, sensor)._replace(vector=tuple(model.opt.magnetic.tolist()))


def _with_zone(model: mujoco.MjModel, probe: Probe, site: int) -> Probe:
    return probe._replace(shape=int(model.site_type[site]), vector=tuple(model.site_size[site].tolist()))


def _touch(model: mujoco.MjModel, sensor: int) -> Probe:
    return _with_zone(model, _frame("touch")(model, sensor), int(model.sensor_objid[sensor]))


def _inside_site(model: mujoco.MjModel, sensor: int) -> Probe:
    return _with_zone(model, _frame("inside_site")(model, sensor), int(model.sensor_refid[sensor]))


def _camera_projection(model: mujoco.MjModel, sensor: int) -> Probe:
    """Return the probe, with the camera's focal lengths and the middle of its image, in pixels."""
    camera = int(model.sensor_refid[sensor])
    width, height = (int(number) for number in model.cam_resolution[camera])
    sizes, lens = model.cam_sensorsize[camera], model.cam_intrinsic[camera]
    if sizes.all():  # MuJoCo has these in float32
        focal = tuple((lens[:2] / sizes * np.array([width, height], np.float32)).tolist())
    else:
        focal = (0.5 / np.tan(model.cam_fovy[camera] * np.pi / 360) * height,) * 2
    numbers = (*focal, 0.5 * width, 0.5 * height)
    return _frame("camera_projection")(model, sensor)._replace(numbers=tuple(map(float, numbers)))


def _range_finder(model: mujoco.MjModel, sensor: int) -> Probe:
    """Return the probe, with the shapes that can be seen and are not of the site's own body."""
    own = model.site_bodyid[model.sensor_objid[sensor]]
    seen = visible_geoms(model) & (model.geom_bodyid != own)
    return _frame("range_finder")(model, sensor)._replace(
        size=int(model.sensor_dim[sensor]),
        integers=(int(model.sensor_intprm[sensor, 0]), *np.flatnonzero(seen).tolist()),
    )


def visible_geoms(model: mujoco.MjModel) -> npt.NDArray[np.bool_]:
    """Return which shapes rays meet [ngeom]: those that are not wholly transparent."""
    material = model.geom_matid
    own = model.geom_rgba[:, 3] != 0
    if not model.nmat:
        return np.asarray(own)
    of_material = model.mat_rgba[np.maximum(material, 0), 3] != 0
    return np.asarray(np.where(material >= 0, of_material, own))


def has_range_finders(model: mujoco.MjModel) -> bool:
    """Return whether any sensor casts rays."""
    return bool(np.any(model.sensor_type == int(mujoco.mjtSensor.mjSENS_RANGEFINDER)))


def _geoms_of(model: mujoco.MjModel, kind: int, index: int) -> list[int]:
    """Return the shapes of an object: a shape, or a body with its shapes."""
    if kind == _GEOM:
        return [index]
    first, count = int(model.body_geomadr[index]), int(model.body_geomnum[index])
    return list(range(first, first + count))


def _distance(name: str) -> Make:
    def make(model: mujoco.MjModel, sensor: int) -> Probe:
        first = _geoms_of(model, int(model.sensor_objtype[sensor]), int(model.sensor_objid[sensor]))
        second = _geoms_of(model, int(model.sensor_reftype[sensor]), int(model.sensor_refid[sensor]))
        pairs = [geom for one in first for other in second for geom in (one, other)]
        return probe_of(name, integers=tuple(pairs), numbers=(float(model.sensor_cutoff[sensor]),))

    return make


def _contacts(model: mujoco.MjModel, sensor: int) -> Probe:
    kinds = int(model.sensor_objtype[sensor]), int(model.sensor_reftype[sensor])
    ids = int(model.sensor_objid[sensor]), int(model.sensor_refid[sensor])
    in_site = kinds[0] == _SITE and ids[0] >= 0
    sets = np.zeros(model.ngeom, int)
    for bit, kind, index in zip((1, 2), kinds, ids, strict=True):
        everything = index < 0 or (bit == 1 and in_site)
        sets[:] += bit * (np.ones(model.ngeom, int) if everything else _is_in(model, kind, index))
    probe = probe_of(
        "contacts",
        size=int(model.sensor_dim[sensor]),
        integers=(*model.sensor_intprm[sensor, :3].tolist(), int(in_site), *sets.tolist()),
    )
    if not in_site:
        return probe
    return _with_zone(model, probe._replace(frame=_SITE, frame_id=ids[0]), ids[0])


def _is_in(model: mujoco.MjModel, kind: int, index: int) -> npt.NDArray[np.int64]:
    """Return which shapes belong to an object: a shape, a body, or a body and all beyond it."""
    if kind == _GEOM:
        return (np.arange(model.ngeom) == index).astype(int)
    of_subtree = kind == _BODY_FRAME
    bodies = _bodies_beyond(model, index) if of_subtree else (np.arange(model.nbody) == index).astype(int)
    return np.asarray(bodies[model.geom_bodyid])


def _wrench(name: str) -> Make:
    """Return the probe, with the places where spatial tendons pull at the bodies beyond the site."""

    def make(model: mujoco.MjModel, sensor: int) -> Probe:
        probe = _frame(name)(model, sensor)
        inside = _bodies_beyond(model, int(model.site_bodyid[model.sensor_objid[sensor]]))
        of_paths = tendon_routes(model)
        wraps = [inside[of_paths["wrap_body"][wrap]] if wrap >= 0 else False for wrap in of_paths["seg_wrap"]]
        flags = inside[of_paths["seg_body1"]] + 2 * inside[of_paths["seg_body2"]] + 4 * np.array(wraps, int)
        return probe._replace(integers=tuple(flags.tolist()))

    return make


def _bodies_beyond(model: mujoco.MjModel, body: int) -> npt.NDArray[np.int64]:
    """Return 1 for a body and all bodies that it carries, else 0 [nbody]."""
    inside = (np.arange(model.nbody) == body).astype(int)
    for each in range(body + 1, model.nbody):
        inside[each] |= inside[model.body_parentid[each]]
    return inside


_SENSORS: dict[str, Make] = {
    "CLOCK": _clock,
    "JOINTPOS": _joint("joint_position", "jnt_qposadr"),
    "JOINTVEL": _joint("joint_velocity", "jnt_dofadr"),
    "BALLQUAT": _joint("ball_quaternion", "jnt_qposadr"),
    "BALLANGVEL": _joint("ball_velocity", "jnt_dofadr"),
    "JOINTLIMITPOS": _joint("limit_position", "jnt_dofadr"),
    "JOINTLIMITVEL": _joint("limit_velocity", "jnt_dofadr"),
    "JOINTLIMITFRC": _joint("limit_force", "jnt_dofadr"),
    "JOINTACTFRC": _joint("actuator_force_on_joint", "jnt_dofadr"),
    "ACTUATORPOS": _element("actuator_position"),
    "ACTUATORVEL": _element("actuator_velocity"),
    "ACTUATORFRC": _element("force_of_actuator"),
    "TENDONPOS": _element("tendon_position"),
    "TENDONVEL": _element("tendon_velocity"),
    "TENDONACTFRC": _element("actuator_force_on_tendon"),
    "TENDONLIMITPOS": _element("tendon_limit_position"),
    "TENDONLIMITVEL": _element("tendon_limit_velocity"),
    "TENDONLIMITFRC": _element("tendon_limit_force"),
    "FRAMEPOS": _frame("position"),
    "FRAMEQUAT": _frame("quaternion"),
    "FRAMEXAXIS": _frame("x_axis"),
    "FRAMEYAXIS": _frame("y_axis"),
    "FRAMEZAXIS": _frame("z_axis"),
    "FRAMELINVEL": _frame("linear_velocity"),
    "FRAMEANGVEL": _frame("angular_velocity"),
    "FRAMELINACC": _frame("linear_acceleration"),
    "FRAMEANGACC": _frame("angular_acceleration"),
    "VELOCIMETER": _frame("local_linear_velocity"),
    "GYRO": _frame("local_angular_velocity"),
    "ACCELEROMETER": _frame("local_acceleration"),
    "MAGNETOMETER": _magnetometer,
    "FORCE": _wrench("force"),
    "TORQUE": _wrench("torque"),
    "TOUCH": _touch,
    "SUBTREECOM": _element("subtree_com"),
    "SUBTREELINVEL": _element("subtree_linear_velocity"),
    "SUBTREEANGMOM": _element("subtree_angular_momentum"),
    "RANGEFINDER": _range_finder,
    "CAMPROJECTION": _camera_projection,
    "INSIDESITE": _inside_site,
    "GEOMDIST": _distance("geom_distance"),
    "GEOMNORMAL": _distance("geom_normal"),
    "GEOMFROMTO": _distance("geom_points"),
    "CONTACT": _contacts,
    "E_POTENTIAL": _energy("potential_energy"),
    "E_KINETIC": _energy("kinetic_energy"),
}
"""Probes of sensors, by MuJoCo's mjtSensor."""

_DISTANCES = ("GEOMDIST", "GEOMNORMAL", "GEOMFROMTO")
_WITHOUT_CUTOFF = (*_DISTANCES, "CONTACT")
"""Kinds whose numbers MuJoCo does not cut off."""


def sensor_probe(model: mujoco.MjModel, sensor: int) -> Probe:
    """Return the probe of a sensor that has no fault."""
    kind = _kind(model, sensor)
    probe = _SENSORS[kind](model, sensor)
    positive = int(model.sensor_datatype[sensor]) == int(mujoco.mjtDataType.mjDATATYPE_POSITIVE)
    real = positive or int(model.sensor_datatype[sensor]) == int(mujoco.mjtDataType.mjDATATYPE_REAL)
    cut = real and kind not in _WITHOUT_CUTOFF
    return probe._replace(cutoff=float(model.sensor_cutoff[sensor]) if cut else 0.0, positive=positive)


def sensor_fault(model: mujoco.MjModel, sensor: int, contact_model: str) -> tuple[str, str] | None:
    """Return why the engine does not compute a sensor, and what to do; None if it does."""
    kind = _kind(model, sensor)
    of_kind = f"of type {kind.lower()}"
    if kind not in _SENSORS:
        return of_kind, "leave it out"
    timing = (getattr(model, f"sensor_{name}", None) for name in ("delay", "interval"))
    if any(values is not None and np.any(values[sensor]) for values in timing):
        return f"{of_kind} with a delay or an interval", "set both to 0"
    if fault := _fault_of_frames(model, kind, sensor):
        return f"{of_kind} {fault[0]}", fault[1]
    probe = _SENSORS[kind](model, sensor)
    if kind in ("FORCE", "TORQUE") and _is_fixed(model, int(model.sensor_objid[sensor])):
        return f"{of_kind} on a body that does not move", "put its site on a body with a joint above it"
    on_body = model.actuator_trntype == _ON_BODY
    if (kind == "ACTUATORVEL" and on_body[probe.place]) or (kind == "JOINTACTFRC" and on_body.any()):
        return f"{of_kind} of an actuator of adhesion", "leave it out"
    if kind.startswith("SUBTREE") and model.body_subtreemass[probe.place] <= 0:
        return f"{of_kind} of a subtree without mass", "leave it out"
    if kind in _DISTANCES and (fault := _fault_of_pairs(model, probe.integers)):
        return f"{of_kind} {fault[0]}", fault[1]
    if probe.kind >= ACCELERATION and contact_model != "mujoco" and kind.startswith("TENDON"):
        return of_kind, "tendons have no limits there: load the model with contact_model='mujoco'"
    return None


def _fault_of_frames(model: mujoco.MjModel, kind: str, sensor: int) -> tuple[str, str] | None:
    frames = (
        (int(model.sensor_objtype[sensor]), int(model.sensor_objid[sensor])),
        (int(model.sensor_reftype[sensor]), int(model.sensor_refid[sensor])),
    )
    if kind == "RANGEFINDER" and frames[0][0] == _CAMERA:
        return "of a camera", "put sites in its place"
    if not _measures_frame(kind):
        return None
    for frame, index in frames:
        if index >= 0 and frame not in _FRAMES:
            return f"of {mujoco.mjtObj(frame).name[6:].lower()}", "measure a site in its place"
        if index >= 0 and frame == _CAMERA and model.cam_mode[index] != 0:
            return "of a camera that follows a body", "measure a camera of mode 'fixed'"
    return None


def _measures_frame(kind: str) -> bool:
    return kind.startswith("FRAME") or kind in ("INSIDESITE", "CAMPROJECTION")


def _fault_of_pairs(model: mujoco.MjModel, geoms: Iterable[int]) -> tuple[str, str] | None:
    """Return why the distance of some of the shapes is not known."""
    numbers = list(geoms)
    if not numbers:
        return "of a body without shapes", "leave it out"
    types = model.geom_type
    if np.any(types[numbers] == _FIELD):
        return "of a height field", "measure with a range finder"
    if any(
        types[one] == types[other] == _PLANE for one, other in zip(numbers[::2], numbers[1::2], strict=True)
    ):
        return "between two planes", "leave it out"
    for geom in numbers:
        if types[geom] == _MESH and model.mesh_graphadr[model.geom_dataid[geom]] < 0:
            return "of a mesh without a hull", "let the mesh collide, so that it gets a hull"
    return None


def _kind(model: mujoco.MjModel, sensor: int) -> str:
    return members("mjtSensor").get(int(model.sensor_type[sensor]), "unknown")


def _is_fixed(model: mujoco.MjModel, site: int) -> bool:
    """Return whether no joint moves the body of a site."""
    return bool(static_bodies(model)[model.site_bodyid[site]])
