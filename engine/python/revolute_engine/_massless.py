"""Links of a URDF without mass, or with mass in a point, that move.

Between two joints they are common (planar bases, universal joints) and well defined: the articulated
body beyond them has inertia. MuJoCo's compiler refuses them, so they compile with a loan that is taken
back afterwards. What then has no inertia along a joint at the pose of the file is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from revolute.errors import ModelError

from ._names import element_name

_LEAST_PIVOT = 1e-10
"""Share of the inertia along a degree of freedom that must be left when all beyond it may follow; less is
rounding."""

_NAMED = 3
"""Of the links in a note, how many it names."""


@dataclass(frozen=True)
class Loan:
    """What a link was lent.

    Attributes:
        link: the link's name.
        mass: it has no mass.
        inertia: it has no rotational inertia.
    """

    link: str
    mass: bool
    inertia: bool


def lend_inertia(spec: mujoco.MjSpec) -> list[Loan]:
    """Give moving links without inertia a unit of it; return who was lent what.

    Where the file asks for more (bounds, inertia from shapes), that is left as it asks.
    """
    loans, settings = [], spec.compiler
    from_shapes = settings.inertiafromgeom != mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    for body in spec.bodies:
        if not list(body.joints) or (from_shapes and list(body.geoms)):
            continue
        if settings.fusestatic and _carries_mass(body):
            continue
        no_mass = not max(body.mass, settings.boundmass) > mujoco.mjMINVAL
        no_inertia = not settings.boundinertia > mujoco.mjMINVAL and _no_rotational_inertia(body)
        loan = Loan(body.name, no_mass, no_inertia)
        if not (loan.mass or loan.inertia):
            continue
        loans.append(loan)
        if not body.explicitinertial:
            body.ipos = np.zeros(3)
        body.explicitinertial = True
        if loan.mass:
            body.mass = 1.0
        if loan.inertia:
            body.fullinertia = np.full(6, np.nan)
            body.inertia = np.ones(3)
    return loans


def notes_on(loans: list[Loan]) -> list[str]:
    """Say which links move without mass or as a point, which MuJoCo and other simulators do not allow."""
    kinds = (
        ("links without mass that move", [loan.link for loan in loans if loan.mass]),
        ("links whose mass is in a point", [loan.link for loan in loans if not loan.mass]),
    )
    notes = []
    for what, links in kinds:
        more = f" and {len(links) - _NAMED} more" if len(links) > _NAMED else ""
        if links:
            notes.append(f"{what}, as the file says: {', '.join(links[:_NAMED])}{more}")
    return notes


def take_back(compiled: mujoco.MjModel, loans: list[Loan], label: str) -> None:
    """Take the loans out of the compiled model.

    Raises:
        ModelError: a joint has nothing left to move.
    """
    if not loans:
        return
    for loan in loans:
        body = compiled.body(loan.link).id
        if loan.mass:
            compiled.body_mass[body] = 0.0
        if loan.inertia:
            compiled.body_inertia[body] = 0.0
    _refuse_loose_ends(compiled, _mass_matrix(compiled), label)
    mujoco.mj_setConst(compiled, mujoco.MjData(compiled))


def _carries_mass(body: mujoco.MjsBody) -> bool:
    """Whether a link that is fixed to this one has mass."""
    fixed = [child for child in body.bodies if not list(child.joints)]
    return any(child.mass > mujoco.mjMINVAL or _carries_mass(child) for child in fixed)


def _no_rotational_inertia(body: mujoco.MjsBody) -> bool:
    """Whether a link's tensor is zero or was not given."""
    given = np.concatenate([body.inertia, np.nan_to_num(body.fullinertia)])
    return not np.abs(given).max() > mujoco.mjMINVAL


def _mass_matrix(compiled: mujoco.MjModel) -> np.ndarray:
    """Return the mass matrix, which is symmetric, at the pose of the file."""
    data = mujoco.MjData(compiled)
    mujoco.mj_kinematics(compiled, data)
    mujoco.mj_comPos(compiled, data)
    # bodies that MuJoCo calls simple take their entries from the compiler, which saw the loans
    simple = np.array(compiled.dof_simplenum)
    compiled.dof_simplenum[:] = 0
    mujoco.mj_crb(compiled, data)
    mass = np.zeros((compiled.nv, compiled.nv))
    for column, unit in zip(mass, np.eye(compiled.nv), strict=True):
        mujoco.mj_mulM(compiled, data, column, unit)
    compiled.dof_simplenum[:] = simple
    return mass


def _refuse_loose_ends(compiled: mujoco.MjModel, mass: np.ndarray, label: str) -> None:
    """Eliminate from the leaves to the root, as the simulation does; every pivot must be positive."""
    left = np.array(mass)
    for dof in reversed(range(compiled.nv)):
        if not left[dof, dof] > max(_LEAST_PIVOT * mass[dof, dof], mujoco.mjMINVAL):
            link = compiled.body(compiled.dof_bodyid[dof]).name
            joint = element_name(compiled, "joint", int(compiled.dof_jntid[dof]))
            raise ModelError(
                f"{label}: link '{link}': expected inertia along {joint}, got none beyond it; "
                "give the link or one that it carries an <inertial>, or fix the joint"
            )
        left[:dof, :dof] -= np.outer(left[:dof, dof], left[dof, :dof]) / left[dof, dof]
