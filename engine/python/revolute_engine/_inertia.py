"""Compiles URDF inertia tensors that MuJoCo rejects although their equations of motion are well defined.

The principal moments of a real body satisfy A + B >= C. Many published tensors violate this, and some have a
zero moment that rounding has made negative. The equations of motion only need non-negative moments of moving
links. Such links are compiled with a valid tensor, and the original tensor is restored afterwards. Pinocchio
and Bullet accept such tensors too.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import numpy.typing as npt

from revolute.contract.errors import ModelError

_ROUNDING = 1e-9
"""Relative tolerance of principal moments: a negative moment of at most this share of the largest is zero."""


@dataclass(frozen=True)
class OriginalInertia:
    """The inertia tensor of a link in the file.

    Attributes:
        link: name of the link.
        moments: principal moments in kg m^2.
        quaternion: principal axes in the link's frame, w x y z.
    """

    link: str
    moments: npt.NDArray[np.float64]
    quaternion: npt.NDArray[np.float64]


def replace_invalid_inertia(spec: mujoco.MjSpec, label: str) -> list[OriginalInertia]:
    """Replace tensors that violate A + B >= C or have rounded zeros; return the originals.

    Tensors of fixed links are not checked, because they only add to their parent's. With `fusestatic`,
    nothing is replaced, because MuJoCo sums the tensors.

    Raises:
        ModelError: a moving link has a negative moment, or a zero moment without being a rod.
    """
    if spec.compiler.fusestatic or spec.compiler.balanceinertia:
        return []
    originals = []
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
        originals.append(OriginalInertia(body.name, moments, quaternion))
        body.fullinertia = np.full(6, np.nan)
        # keep the real axes: the compiler has a special case for axes that equal the body frame
        body.iquat = quaternion
        body.inertia = np.full(3, np.abs(moments).max())
    return originals


def _check_moments(moments: npt.NDArray[np.float64], link: str) -> None:
    """Raise an error for non-positive moments. A rod (one zero moment, two equal ones) is allowed."""
    rod = moments[0] == 0 and moments[1] >= (1 - _ROUNDING) * moments[2]
    if not (moments[0] > 0 or rod):
        got = ", ".join(f"{moment:.3g}" for moment in moments)
        raise ModelError(
            f"{link}: expected positive moments of inertia, got the principal moments {got} kg m^2; "
            "correct its <inertia>"
        )


def restore_inertia(compiled: mujoco.MjModel, originals: list[OriginalInertia]) -> list[str]:
    """Restore the original tensors in the compiled model; return a warning that names impossible ones."""
    if not originals:
        return []
    for inertia in originals:
        body = compiled.body(inertia.link).id
        compiled.body_inertia[body] = inertia.moments
        compiled.body_iquat[body] = inertia.quaternion
    odd = [
        inertia.link
        for inertia in originals
        if inertia.moments[0] + inertia.moments[1] < (1 - _ROUNDING) * inertia.moments[2]
    ]
    if not odd:
        return []
    names = ", ".join(f"'{link}'" for link in odd)
    return [f"moments of inertia that no body has (A + B < C) are simulated as given: links {names}"]
