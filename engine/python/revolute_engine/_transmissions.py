"""Arrays of what actuators act on and how: tendons, paths, sites, activations, muscles.

Names and conventions are those of `engine/include/revolute/model/mujoco_arrays.hpp`. An actuator on a hinge
or slide has its degree of freedom only.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from ._native_arrays import Arrays, integer, real

_JOINT, _PULLEY = int(mujoco.mjtWrap.mjWRAP_JOINT), int(mujoco.mjtWrap.mjWRAP_PULLEY)
_SITE, _CYLINDER = int(mujoco.mjtWrap.mjWRAP_SITE), int(mujoco.mjtWrap.mjWRAP_CYLINDER)
_BALL, _FREE_JOINT = int(mujoco.mjtJoint.mjJNT_BALL), int(mujoco.mjtJoint.mjJNT_FREE)
BALL, FREE, AT_SITE, SLIDER_CRANK, BODY = 2, 3, 4, 5, 6
"""The compiled engine's numbers of transmissions (TransmissionType)."""

DYNAMICS = {
    int(mujoco.mjtDyn.mjDYN_NONE): 0,
    int(mujoco.mjtDyn.mjDYN_INTEGRATOR): 1,
    int(mujoco.mjtDyn.mjDYN_FILTER): 2,
    int(mujoco.mjtDyn.mjDYN_FILTEREXACT): 3,
    int(mujoco.mjtDyn.mjDYN_MUSCLE): 4,
}
"""The compiled engine's number of each kind of activation (ActivationType)."""

_TENDON_REAL = {
    "ten_stiffness": "tendon_stiffness",
    "ten_damping": "tendon_damping",
    "ten_armature": "tendon_armature",
    "ten_lengthspring": "tendon_lengthspring",
    "ten_range": "tendon_range",
    "ten_margin": "tendon_margin",
    "ten_frictionloss": "tendon_frictionloss",
    "ten_actfrcrange": "tendon_actfrcrange",
    "ten_length0": "tendon_length0",
    "ten_solref_lim": "tendon_solref_lim",
    "ten_solimp_lim": "tendon_solimp_lim",
    "ten_solref_fri": "tendon_solref_fri",
    "ten_solimp_fri": "tendon_solimp_fri",
    "ten_invweight0": "tendon_invweight0",
}


def transmission_arrays(model: mujoco.MjModel, enabled: npt.NDArray[np.bool_]) -> Arrays:
    """Return the arrays by the compiled engine's names.

    Args:
        model: a compiled model that has passed `check_support`.
        enabled: which actuators act.
    """
    arrays: Arrays = {name: real(getattr(model, theirs)) for name, theirs in _TENDON_REAL.items()}
    arrays["ten_limited"] = integer(model.tendon_limited)
    arrays["ten_actfrclimited"] = integer(model.tendon_actfrclimited)
    arrays.update(tendon_routes(model))
    arrays.update(_transmissions(model))
    arrays.update(_activations(model, enabled))
    for name in ("jnt_actfrclimited", "jnt_actgravcomp"):
        arrays[name] = integer(getattr(model, name))
    for name in ("jnt_actfrcrange", "body_gravcomp"):
        arrays[name] = real(getattr(model, name))
    arrays.update(density=float(model.opt.density), viscosity=float(model.opt.viscosity), na=int(model.na))
    arrays["wind"] = real(model.opt.wind)
    return arrays


def tendon_routes(model: mujoco.MjModel) -> Arrays:
    """Return the joints of fixed tendons, and the pieces of spatial ones with what they bend around."""
    joints: list[tuple[int, float]] = []
    segments: list[dict[str, Any]] = []
    wraps: list[dict[str, Any]] = []
    spans: dict[str, list[int]] = {
        name: [] for name in ("ten_jointadr", "ten_jointnum", "ten_segmentadr", "ten_segmentnum")
    }
    for tendon in range(model.ntendon):
        first = int(model.tendon_adr[tendon])
        route = range(first, first + int(model.tendon_num[tendon]))
        spans["ten_jointadr"].append(len(joints))
        spans["ten_segmentadr"].append(len(segments))
        if int(model.wrap_type[first]) == _JOINT:
            joints += [(int(model.wrap_objid[i]), float(model.wrap_prm[i])) for i in route]
        else:
            _add_path(model, route, segments, wraps)
        spans["ten_jointnum"].append(len(joints) - spans["ten_jointadr"][-1])
        spans["ten_segmentnum"].append(len(segments) - spans["ten_segmentadr"][-1])
    arrays: Arrays = {name: integer(values) for name, values in spans.items()}
    arrays["ten_joint"] = integer([joint for joint, _ in joints])
    arrays["ten_coef"] = real([coefficient for _, coefficient in joints])
    for name, row in (*_SEGMENT.items(), *_WRAP.items()):
        rows = segments if name.startswith("seg_") else wraps
        convert = integer if row is int else real
        arrays[name] = convert([each[name] for each in rows])
    return arrays


_SEGMENT = {
    **dict.fromkeys(("seg_body1", "seg_body2", "seg_wrap"), int),
    **dict.fromkeys(("seg_pos1", "seg_pos2", "seg_divisor"), float),
}
_WRAP = {
    **dict.fromkeys(("wrap_cylinder", "wrap_body", "wrap_sidebody"), int),
    **dict.fromkeys(("wrap_pos", "wrap_quat", "wrap_radius", "wrap_side"), float),
}


def _add_path(
    model: mujoco.MjModel, route: range, segments: list[dict[str, Any]], wraps: list[dict[str, Any]]
) -> None:
    """Add the pieces of one spatial tendon: from site to site, straight or around a shape between them."""
    divisor, last, around = 1.0, -1, -1
    for index in route:
        kind, target = int(model.wrap_type[index]), int(model.wrap_objid[index])
        if kind == _PULLEY:
            divisor, last, around = float(model.wrap_prm[index]), -1, -1
        elif kind == _SITE:
            if last >= 0:
                segments.append(
                    {
                        "seg_body1": model.site_bodyid[last],
                        "seg_body2": model.site_bodyid[target],
                        "seg_pos1": model.site_pos[last],
                        "seg_pos2": model.site_pos[target],
                        "seg_divisor": divisor,
                        "seg_wrap": around,
                    }
                )
            last, around = target, -1
        else:
            around = len(wraps)
            wraps.append(_wrap(model, kind, target, round(float(model.wrap_prm[index]))))


def _wrap(model: mujoco.MjModel, kind: int, geom: int, side: int) -> dict[str, Any]:
    """Return a shape that a path bends around, and its side site (-1: none)."""
    return {
        "wrap_cylinder": kind == _CYLINDER,
        "wrap_body": model.geom_bodyid[geom],
        "wrap_pos": model.geom_pos[geom],
        "wrap_quat": model.geom_quat[geom],
        "wrap_radius": model.geom_size[geom, 0],
        "wrap_sidebody": model.site_bodyid[side] if side >= 0 else -1,
        "wrap_side": model.site_pos[side] if side >= 0 else np.zeros(3),
    }


def _transmissions(model: mujoco.MjModel) -> Arrays:
    """Return what each actuator acts on."""
    rows: list[dict[str, Any]] = []
    tendon, row_of = np.full(model.nu, -1), np.full(model.nu, -1)
    dof, qpos = np.full(model.nu, -1), np.full(model.nu, -1)
    for actuator in range(model.nu):
        kind = mujoco.mjtTrn(int(model.actuator_trntype[actuator]))
        target, other = (int(index) for index in model.actuator_trnid[actuator])
        if kind == mujoco.mjtTrn.mjTRN_TENDON:
            tendon[actuator] = target
        elif kind == mujoco.mjtTrn.mjTRN_SITE:
            row_of[actuator] = len(rows)
            rows.append(_site_row(model, actuator, AT_SITE, target, other))
        elif kind == mujoco.mjtTrn.mjTRN_SLIDERCRANK:
            row_of[actuator] = len(rows)
            rows.append(_site_row(model, actuator, SLIDER_CRANK, target, other))
        elif kind == mujoco.mjtTrn.mjTRN_BODY:
            row_of[actuator] = len(rows)
            rows.append({**_row(model, actuator, BODY), "trn_body": target})
        elif int(model.jnt_type[target]) in (_BALL, _FREE_JOINT):
            row_of[actuator] = len(rows)
            row = _row(model, actuator, BALL if model.jnt_type[target] == _BALL else FREE)
            row["trn_joint"] = target
            row["trn_inparent"] = kind == mujoco.mjtTrn.mjTRN_JOINTINPARENT
            rows.append(row)
        else:
            dof[actuator], qpos[actuator] = model.jnt_dofadr[target], model.jnt_qposadr[target]
    arrays: Arrays = {"act_tendon": integer(tendon), "act_trn": integer(row_of)}
    arrays.update(act_dof=integer(dof), act_qpos=integer(qpos))
    for name in ("trn_type", "trn_joint", "trn_inparent", "trn_body", "trn_refbody"):
        arrays[name] = integer([row[name] for row in rows])
    for name in ("trn_pos", "trn_quat", "trn_refpos", "trn_refquat", "trn_gear", "trn_rod"):
        arrays[name] = real([row[name] for row in rows])
    return arrays


def _row(model: mujoco.MjModel, actuator: int, kind: int) -> dict[str, Any]:
    unit = np.array([1.0, 0.0, 0.0, 0.0])
    return {
        "trn_type": kind,
        "trn_joint": -1,
        "trn_inparent": False,
        "trn_body": 0,
        "trn_refbody": -1,
        "trn_pos": np.zeros(3),
        "trn_quat": unit,
        "trn_refpos": np.zeros(3),
        "trn_refquat": unit,
        "trn_gear": model.actuator_gear[actuator],
        "trn_rod": model.actuator_cranklength[actuator],
    }


def _site_row(model: mujoco.MjModel, actuator: int, kind: int, site: int, other: int) -> dict[str, Any]:
    row = _row(model, actuator, kind)
    row.update(trn_body=model.site_bodyid[site], trn_pos=model.site_pos[site], trn_quat=model.site_quat[site])
    if other >= 0:
        row["trn_refbody"] = model.site_bodyid[other]
        row["trn_refpos"], row["trn_refquat"] = model.site_pos[other], model.site_quat[other]
    return row


def _activations(model: mujoco.MjModel, enabled: npt.NDArray[np.bool_]) -> Arrays:
    """Return the dynamics of activations, and the numbers of muscles."""
    acts = np.where(model.actuator_actnum > 0, model.actuator_actadr, 0)
    arrays: Arrays = {
        "act_dyn": integer([DYNAMICS[int(kind)] for kind in model.actuator_dyntype]),
        "act_adr": integer(acts),
        "act_early": integer(model.actuator_actearly),
        "act_actlimited": integer(model.actuator_actlimited),
        "act_dynprm": real(model.actuator_dynprm[:, :3]),
        "act_actrange": real(model.actuator_actrange),
        "act_lengthrange": real(model.actuator_lengthrange),
    }
    gains, biases = int(mujoco.mjtGain.mjGAIN_MUSCLE), int(mujoco.mjtBias.mjBIAS_MUSCLE)
    for name, kinds, kind, numbers in (
        ("gain", model.actuator_gaintype, gains, model.actuator_gainprm),
        ("bias", model.actuator_biastype, biases, model.actuator_biasprm),
    ):
        prm = real(numbers[:, :9])
        scaled = prm[:, 3] / np.maximum(mujoco.mjMINVAL, model.actuator_acc0)
        prm[:, 2] = np.where(prm[:, 2] < 0, scaled, prm[:, 2])
        arrays[f"act_muscle{name}"] = integer((kinds == kind) & enabled)
        arrays[f"act_muscle{name}prm"] = prm
    return arrays
