"""Inertia tensors of a URDF that MuJoCo's compiler refuses although the motion they give is well defined.

The moments of a real body obey A + B >= C; many published tensors break that by a little or by a lot, and
some have a moment of zero that rounding has made negative. The equations of motion need only that what
moves has no negative moment. Such links compile with a valid tensor and get their own back afterwards, as in
Pinocchio and Bullet.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import numpy.typing as npt

from revolute.contract.errors import ModelError

_ROUNDING = 1e-9
"""A negative moment of this share of the largest is zero."""


@dataclass(frozen=True)
class GivenInertia:
    """A link's own tensor.

    Attributes:
        link: the link's name.
        moments: principal moments.
        quaternion: axes in the link's frame, w x y z.
    """

    link: str
    moments: npt.NDArray[np.float64]
    quaternion: npt.NDArray[np.float64]


def lend_valid_inertia(spec: mujoco.MjSpec, label: str) -> list[GivenInertia]:
    """Replace tensors that break A + B >= C, or whose zeros were rounded; return what they were.

    A fixed link only adds to the one that carries it, so its moments may be anything. Where fixed links are
    merged their tensors are left for MuJoCo to judge: they enter sums.

    Raises:
        ModelError: a link that moves has a negative moment, or one of zero without being a rod.
    """
    if spec.compiler.fusestatic or spec.compiler.balanceinertia:
        return []
    given = []
    for body in spec.bodies:
        tensor = np.array(body.fullinertia)
        if not np.isfinite(tensor).all() or not np.abs(tensor).max() > 0:
            continue
        xx, yy, zz, xy, xz, yz = tensor
        moments, axes = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if moments[0] >= -_ROUNDING * moments[2]:
            moments = np.maximum(moments, 0.0)
        if list(body.joints):
            _check_moments(moments, f"{label}: link '{body.name}'")
        if moments[0] > 0 and moments[0] + moments[1] >= moments[2]:
            continue
        if np.linalg.det(axes) < 0:
            axes[:, 0] *= -1
        turned, quaternion = np.zeros(4), np.zeros(4)
        mujoco.mju_mat2Quat(turned, axes.ravel())
        mujoco.mju_mulQuat(quaternion, body.iquat, turned)
        given.append(GivenInertia(body.name, moments, quaternion))
        body.fullinertia = np.full(6, np.nan)
        # the compiler treats bodies whose axes are those of their frame apart, and must see the real ones
        body.iquat = quaternion
        body.inertia = np.full(3, np.abs(moments).max())
    return given


def _check_moments(moments: npt.NDArray[np.float64], link: str) -> None:
    """Refuse a tensor that is not positive: only a rod has a moment of zero, and its other two are equal."""
    rod = moments[0] == 0 and moments[1] >= (1 - _ROUNDING) * moments[2]
    if not (moments[0] > 0 or rod):
        got = ", ".join(f"{moment:.3g}" for moment in moments)
        raise ModelError(
            f"{link}: expected positive moments of inertia, got the principal moments {got} kg m^2; "
            "correct its <inertia>"
        )


def give_back_inertia(compiled: mujoco.MjModel, given: list[GivenInertia]) -> list[str]:
    """Put the links' own tensors into the compiled model; return a warning of those that no body has."""
    if not given:
        return []
    for inertia in given:
        body = compiled.body(inertia.link).id
        compiled.body_inertia[body] = inertia.moments
        compiled.body_iquat[body] = inertia.quaternion
    odd = [
        inertia.link
        for inertia in given
        if inertia.moments[0] + inertia.moments[1] < (1 - _ROUNDING) * inertia.moments[2]
    ]
    if not odd:
        return []
    names = ", ".join(f"'{link}'" for link in odd)
    return [f"moments of inertia that no body has (A + B < C) are simulated as given: links {names}"]
