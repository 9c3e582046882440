"""Compiles a self-contained document with MuJoCo, and converts MuJoCo's errors to one-line ModelErrors.

It also adds what a URDF cannot express: a free or fixed base (`base`), a ground plane (`ground`), and
actuators (one motor per movable joint, with the joint's effort as force limit).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import mujoco
import numpy as np

from revolute.contract.errors import ModelError

from ._floating import Floating, add_free_joints, floating_joints, without_joints
from ._inertia import replace_invalid_inertia, restore_inertia
from ._massless import add_placeholder_inertia, check_inertia, massless_notes, remove_placeholder_inertia
from ._mimic import add_held_joints, set_follower_starts
from ._names import all_joints, joint_name
from ._source import Source
from ._urdf_tree import MAX_CHAIN, too_long
from ._xml import Element, name_of, write

FREE_JOINT = "floating_base"
"""Name of the free joint that `base="free"` adds."""

GROUND = "ground"
"""Name of the plane that `ground=True` adds."""

_ALL_BITS = 0x7FFFFFFF
_SCALAR_JOINTS = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
_LONGEST_LENGTH_SEARCH = 100_000


def compile_source(
    source: Source, *, base: str | None, ground: bool, fuse_fixed: bool
) -> tuple[mujoco.MjModel, mujoco.MjSpec]:
    """Compile a document.

    Args:
        source: the document with its files.
        base: "free" gives the base body a free joint, "fixed" removes its free joint; None leaves an MJCF
            unchanged and fixes a URDF.
        ground: add a plane at z = 0 that collides with every shape.
        fuse_fixed: merge bodies without joints into their parents.

    Returns:
        The compiled model, and MuJoCo's description from which it was compiled.

    Raises:
        ModelError: the model does not compile.
    """
    try:
        spec, floating = _read(source, base)
        _configure(spec, source, fuse_fixed)
        _check_depth(spec, source.label)
        joints = all_joints(spec)
        _check_axes(joints, source.label)
        _check_ranges(joints, source.label)
        if base is not None:
            _set_base(spec, source.label, base, {link.link for link in floating})
        add_free_joints(spec, floating)
        if ground:
            _add_ground(spec, source.label)
        if source.is_urdf:
            add_held_joints(spec, source.held_joints)
            set_follower_starts(spec)
            _add_motors(spec)
        placeholders = add_placeholder_inertia(spec) if source.is_urdf else []
        originals = replace_invalid_inertia(spec, source.label) if source.is_urdf else []
        source.notes += massless_notes(placeholders)
        compiled = spec.compile()
        _share_frames(compiled)
        source.warnings += restore_inertia(compiled, originals)
        remove_placeholder_inertia(compiled, placeholders)
        if placeholders or originals:
            check_inertia(compiled, source.label)
            mujoco.mj_setConst(compiled, mujoco.MjData(compiled))
        return compiled, spec
    except ModelError:
        raise
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise _model_error(source, str(error)) from None


def _share_frames(model: mujoco.MjModel) -> None:
    """Write the poses of geoms and sites that MuJoCo uses.

    It treats a frame within 1e-6 of the body's own or inertial frame as equal to it (`mjtSameFrame`).
    """
    same = mujoco.mjtSameFrame
    for kind in ("geom", "site"):
        body = getattr(model, f"{kind}_bodyid")
        shared, pos, quat = (getattr(model, f"{kind}_{name}") for name in ("sameframe", "pos", "quat"))
        of_body, turned_as_body = (
            shared == int(same.mjSAMEFRAME_BODY),
            shared == int(same.mjSAMEFRAME_BODYROT),
        )
        of_inertia = shared == int(same.mjSAMEFRAME_INERTIA)
        turned_as_inertia = of_inertia | (shared == int(same.mjSAMEFRAME_INERTIAROT))
        pos[of_body] = 0
        pos[of_inertia] = model.body_ipos[body[of_inertia]]
        quat[of_body | turned_as_body] = [1, 0, 0, 0]
        quat[turned_as_inertia] = model.body_iquat[body[turned_as_inertia]]


def _read(source: Source, base: str | None) -> tuple[mujoco.MjSpec, list[Floating]]:
    """Read the document. Floating joints that MuJoCo does not allow are removed and returned."""
    # attached models are passed to MuJoCo like included files
    spec = mujoco.MjSpec.from_string(write(source.root), include=source.models, assets=source.files)
    floating = floating_joints(spec, source.label, base) if source.is_urdf else []
    if floating:
        rest = without_joints(source.root, floating)
        spec = mujoco.MjSpec.from_string(write(rest), assets=source.files)
    return spec, floating


def _configure(spec: mujoco.MjSpec, source: Source, fuse_fixed: bool) -> None:
    """Set the compiler's switches."""
    _check_length_search(spec, source.label)
    if source.is_urdf:
        spec.compiler.fusestatic = fuse_fixed
        spec.compiler.discardvisual = True
        if spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO:
            # a link without <inertial> weighs nothing, whatever its shapes
            spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
            # shapes weigh nothing: thin or open ones need no volume
            for mesh in spec.meshes:
                mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    elif fuse_fixed:
        spec.compiler.fusestatic = True


def _check_length_search(spec: mujoco.MjSpec, label: str) -> None:
    """Raise an error if the search for the lengths of muscles, a simulation, would take very many steps."""
    search = spec.compiler.LRopt
    steps = search.inttotal / search.timestep if search.timestep > 0 else np.inf
    if not steps <= _LONGEST_LENGTH_SEARCH:
        raise ModelError(
            f"{label}: compiler/lengthrange: expected at most {_LONGEST_LENGTH_SEARCH} steps, inttotal by "
            f"timestep, got {steps:g}; give each muscle its lengthrange"
        )


def _check_depth(spec: mujoco.MjSpec, label: str) -> None:
    """Raise an error for chains that are too long for MuJoCo; MuJoCo itself takes minutes to report it."""
    level, depth = list(spec.worldbody.bodies), 0
    while level:
        depth += 1
        if depth > MAX_CHAIN:
            raise too_long(label, "body", level[0].name)
        level = [child for body in level for child in body.bodies]


def _check_axes(joints: Sequence[mujoco.MjsJoint], label: str) -> None:
    """Raise an error for a joint axis of zero length."""
    for index, joint in enumerate(joints):
        if joint.type in _SCALAR_JOINTS and not np.linalg.norm(joint.axis) > mujoco.mjMINVAL:
            axis = " ".join(f"{value:g}" for value in joint.axis)
            raise ModelError(
                f"{label}: {joint_name(joint, index)}: expected an axis of non-zero length, got [{axis}]; "
                "give the axis in the joint frame"
            )


def _check_ranges(joints: Sequence[mujoco.MjsJoint], label: str) -> None:
    """Raise an error for a descending range; MuJoCo would ignore it."""
    for index, joint in enumerate(joints):
        lower, upper = joint.range
        if joint.limited != mujoco.mjtLimited.mjLIMITED_FALSE and lower > upper:
            raise ModelError(
                f"{label}: {joint_name(joint, index)}: expected a range that ascends, "
                f"got [{lower:g}, {upper:g}]; "
                "exchange its ends, or set limited to false"
            )


def _set_base(spec: mujoco.MjSpec, label: str, base: str, floating: set[str]) -> None:
    """Add a free joint to the base, or remove it. Links with a floating joint are not the base."""
    bodies = [body for body in spec.worldbody.bodies if body.name not in floating]
    if len(bodies) != 1:
        names = (
            f" ('{bodies[0].name}', '{bodies[1].name}'{', …' if len(bodies) > 2 else ''})" if bodies else ""
        )
        raise ModelError(
            f"{label}: base='{base}': expected one body attached to the world, got {len(bodies)}{names}; "
            "leave base out and write the joints into the file"
        )
    joints = list(bodies[0].joints)
    free = [joint for joint in joints if joint.type == mujoco.mjtJoint.mjJNT_FREE]
    if base == "fixed":
        for joint in free:
            spec.delete(joint)
    elif joints and not free:
        raise ModelError(
            f"{label}: base='free': expected a base without joints, got body '{bodies[0].name}' with joint "
            f"'{joints[0].name}'; leave base out"
        )
    elif not free:
        taken = {joint.name for joint in all_joints(spec)}
        bodies[0].add_freejoint(name="" if FREE_JOINT in taken else FREE_JOINT)


def _add_ground(spec: mujoco.MjSpec, label: str) -> None:
    """Add a plane at z = 0 with MuJoCo's default friction."""
    if any(geom.name == GROUND for body in spec.bodies for geom in body.geoms):
        raise ModelError(f"{label}: ground=True: expected no geom '{GROUND}', got one; leave ground out")
    spec.worldbody.add_geom(
        name=GROUND,
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0, 0, 1],
        contype=_ALL_BITS,
        conaffinity=_ALL_BITS,
    )


def _add_motors(spec: mujoco.MjSpec) -> None:
    """Add a motor to every movable joint of a URDF that mimics no other; ctrl is the joint's torque or force.

    MuJoCo stores the joint's effort as a limit on its total actuator force, which is the force of this motor.
    """
    followers = {equality.name1 for equality in spec.equalities}
    for joint in all_joints(spec):
        if joint.type not in _SCALAR_JOINTS or joint.name in followers:
            continue
        motor = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.set_to_motor()


def _model_error(source: Source, text: str) -> ModelError:
    """Convert MuJoCo's message to a one-line error that names file and element."""
    lines = [line.strip() for line in text.strip().splitlines()]
    complaint = re.sub(r"^(XML Error: |Error: |XML parse error \d+:|Schema violation: )+", "", lines[0])
    where = " ".join(lines[1:])
    element = _element_at_fault(source.root, complaint, where)
    kind = f" {element.tag} {name_of(element)}:" if element is not None else ""
    line = re.search(r"line (\d+)", where)
    at_line = ""
    if line and not source.has_includes and "at line" not in kind:
        at_line = f" at line {line.group(1)}"
    message = f"{source.label}:{kind} {complaint}{at_line}{_advice(complaint)}"
    for key, reference in source.references.items():
        message = message.replace(key, reference)
    return ModelError(message)


def _element_at_fault(root: Element, complaint: str, where: str) -> Element | None:
    """Find the element that a message refers to by name, tag or line."""
    name = re.search(r"[Ee]lement name '([^']+)'", where)
    tag = re.search(r"Element '([^']*)'", where)
    line = re.search(r"line (\d+)", where)
    if not (name or tag or line):
        return None
    found = list(root.walk())
    if name:
        found = [element for element in found if element.attributes.get("name") == name.group(1)]
    elif tag:
        found = [element for element in found if element.tag == tag.group(1)]
    if line:
        found = [element for element in found if element.line == int(line.group(1))] or found
    words = set(re.findall(r"\w+", complaint.replace("bodies", "body link")))
    hinted = [element for element in found if element.tag in words]
    if hinted:
        return hinted[0]
    return found[0] if found and (name or tag or len(found) == 1) else None


def _advice(complaint: str) -> str:
    """Return advice for MuJoCo's most frequent errors."""
    if "mass and inertia of moving bodies" in complaint:
        return "; give it an <inertial> with positive mass and inertia, or fix its joint"
    if "must have positive eigenvalues" in complaint:
        return "; give the link positive moments of inertia"
    if "must satisfy A + B >= C" in complaint:
        return "; the three moments of inertia are not those of a body"
    return ""
