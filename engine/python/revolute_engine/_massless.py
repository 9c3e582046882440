"""Compiles moving URDF links without mass or without rotational inertia.

Such links are common between two joints (planar bases, universal joints). Their motion is well defined,
because the articulated body beyond them has inertia. MuJoCo's compiler rejects them, so they are compiled
with placeholder values that are removed afterwards. A joint without any inertia along it is an error.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import numpy.typing as npt

from revolute.contract.errors import ModelError

from ._names import element_name

_LEAST_PIVOT = 1e-10
"""Smallest ratio of pivot to inertia of a degree of freedom; smaller pivots are rounding errors."""

_NAMED = 3
"""Largest number of links that a note names."""


@dataclass(frozen=True)
class Placeholder:
    """Placeholder values of a link.

    Attributes:
        link: name of the link.
        mass: whether the mass is a placeholder.
        inertia: whether the rotational inertia is a placeholder.
    """

    link: str
    mass: bool
    inertia: bool


def add_placeholder_inertia(spec: mujoco.MjSpec) -> list[Placeholder]:
    """Give moving links without mass or inertia unit values.

    Links whose values come from elsewhere (boundmass, boundinertia, inertia from shapes) are left unchanged.
    """
    placeholders, settings = [], spec.compiler
    from_shapes = settings.inertiafromgeom != mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    carrying = _carrying_mass(spec) if settings.fusestatic else set()
    for body in spec.bodies:
        if not list(body.joints) or (from_shapes and list(body.geoms)):
            continue
        if body.name in carrying:
            continue
        no_mass = not max(body.mass, settings.boundmass) > mujoco.mjMINVAL
        no_inertia = not settings.boundinertia > mujoco.mjMINVAL and _no_rotational_inertia(body)
        placeholder = Placeholder(body.name, no_mass, no_inertia)
        if not (placeholder.mass or placeholder.inertia):
            continue
        placeholders.append(placeholder)
        if not body.explicitinertial:
            body.ipos = np.zeros(3)
        body.explicitinertial = True
        if placeholder.mass:
            body.mass = 1.0
        if placeholder.inertia:
            body.fullinertia = np.full(6, np.nan)
            body.inertia = np.ones(3)
    return placeholders


def massless_notes(placeholders: list[Placeholder]) -> list[str]:
    """Return notes on links that move without mass or without rotational inertia."""
    kinds = (
        (
            "links without mass that move",
            [placeholder.link for placeholder in placeholders if placeholder.mass],
        ),
        (
            "links whose mass is in a point",
            [placeholder.link for placeholder in placeholders if not placeholder.mass],
        ),
    )
    notes = []
    for what, links in kinds:
        more = f" and {len(links) - _NAMED} more" if len(links) > _NAMED else ""
        if links:
            notes.append(f"{what}, as the file says: {', '.join(links[:_NAMED])}{more}")
    return notes


def remove_placeholder_inertia(compiled: mujoco.MjModel, placeholders: list[Placeholder]) -> None:
    """Set the placeholder values in the compiled model back to zero."""
    for placeholder in placeholders:
        body = compiled.body(placeholder.link).id
        if placeholder.mass:
            compiled.body_mass[body] = 0.0
        if placeholder.inertia:
            compiled.body_inertia[body] = 0.0


def _carrying_mass(spec: mujoco.MjSpec) -> set[str]:
    """Return the links that carry a fixed link with mass."""
    carrying: set[str] = set()
    # children come after their parents
    for body in reversed(spec.bodies[1:]):
        if not list(body.joints) and (body.mass > mujoco.mjMINVAL or body.name in carrying):
            carrying.add(body.parent.name)
    return carrying


def _no_rotational_inertia(body: mujoco.MjsBody) -> bool:
    """Return whether a link's inertia tensor is zero or missing."""
    given = np.concatenate([body.inertia, np.nan_to_num(body.fullinertia)])
    return not np.abs(given).max() > mujoco.mjMINVAL


def _inertia_and_pivots(compiled: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """Return the inertia and the pivot of each degree of freedom in the pose of the file.

    The pivots are those of an elimination from the leaves to the root: the inertia along a degree of freedom
    when all joints beyond it are free to move.
    """
    data = mujoco.MjData(compiled)
    mujoco.mj_kinematics(compiled, data)
    mujoco.mj_comPos(compiled, data)
    # do not use the compiler's entries of "simple" bodies: they include the placeholders
    simple = np.array(compiled.dof_simplenum)
    compiled.dof_simplenum[:] = 0
    mujoco.mj_crb(compiled, data)
    mujoco.mj_factorM(compiled, data)
    compiled.dof_simplenum[:] = simple
    diagonal = compiled.M_rowadr + compiled.M_rownnz - 1
    return np.array(data.M[diagonal]), np.array(data.qLD[diagonal])


def dofs_without_inertia(compiled: mujoco.MjModel) -> npt.NDArray[np.int64]:
    """Return the degrees of freedom without inertia along them."""
    mass, left = _inertia_and_pivots(compiled)
    return np.flatnonzero(~(left > np.maximum(_LEAST_PIVOT * mass, mujoco.mjMINVAL)))


def check_inertia(compiled: mujoco.MjModel, label: str) -> None:
    """Raise an error for joints without inertia along them.

    Raises:
        ModelError: a joint moves no inertia; the text names the outermost one.
    """
    bad = dofs_without_inertia(compiled)
    if bad.size:
        dof = int(bad[-1])
        link = compiled.body(compiled.dof_bodyid[dof]).name
        joint = element_name(compiled, "joint", int(compiled.dof_jntid[dof]))
        raise ModelError(
            f"{label}: link '{link}': expected inertia along {joint}, got none beyond it; "
            "give the link or one that it carries an <inertial>, or fix the joint"
        )
