"""Checks that the engine can simulate a compiled MuJoCo model.

`check_support` goes through mjModel group by group. An unsupported element that affects the motion is an
error. Numerical methods that the engine replaces, and elements that only measure, become notes. `_pairs.py`
checks the contact pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import numpy.typing as npt

from revolute.contract.errors import ModelError

from ._equalities import check_equalities
from ._kinds import check_kinds
from ._names import JOINT_TYPES, element_name
from ._sensors import sensor_fault

_FREE = 0


def check_support(
    model: mujoco.MjModel, label: str, *, limits: bool, dry_friction: bool, contact_model: str
) -> list[str]:
    """Raise an error if the model contains an unsupported element.

    Args:
        model: the compiled model.
        label: name of the file in messages.
        limits: whether limits are simulated; otherwise tendon limits are ignored.
        dry_friction: whether dry friction is simulated; otherwise that of tendons is ignored.
        contact_model: "hard" or "mujoco".

    Returns:
        Notes on differences between MuJoCo's and the engine's methods.

    Raises:
        ModelError: an element is not supported; the text names the first one.
    """
    check = _Checker(model, label)
    check.sizes()
    check.tendons(limits, dry_friction, contact_model)
    check.options(contact_model)
    check.joints()
    check.actuators()
    check.geoms()
    check.observers()
    check_equalities(model, label)
    check.finite()
    check.signs()
    method = _soft_method_notes if contact_model == "mujoco" else _method_notes
    return [*method(model), *_observer_notes(model, contact_model)]


class _Checker:
    """The checks, one method per group of mjModel."""

    def __init__(self, model: mujoco.MjModel, label: str) -> None:
        self.model = model
        self.label = label

    def refuse(self, element: str, what: str, advice: str) -> None:
        """Raise the error for one element."""
        raise ModelError(f"{self.label}: {element}: {what} is not supported; {advice}")

    def _refuse_where(
        self, kind: str, values: npt.ArrayLike, what: str, advice: str, default: float = 0.0
    ) -> None:
        """Raise an error for the first element whose row of `values` differs from the default."""
        rows = np.asarray(values, dtype=float)
        odd = np.flatnonzero((rows != default).any(axis=tuple(range(1, rows.ndim))))
        if odd.size:
            self.refuse(element_name(self.model, kind, int(odd[0])), what, advice)

    def _kinds(self, kind: str, enumeration: str, types: npt.ArrayLike) -> None:
        check_kinds(self.model, self.label, kind, enumeration, types)

    def sizes(self) -> None:
        """Check for groups of elements that are not supported at all."""
        model = self.model
        groups: Sequence[tuple[int, str, str, str]] = (
            (model.nplugin, "plugin", "a plugin", "remove it"),
            (model.nflex, "flex", "a deformable body", "use rigid bodies"),
        )
        for count, kind, what, advice in groups:
            if count:
                named = hasattr(type(model), kind)
                self.refuse(element_name(model, kind, 0) if named else f"{kind} 0", what, advice)
        if model.nv == 0:
            raise ModelError(f"{self.label}: expected at least one joint, got none; nothing could move")

    def tendons(self, limits: bool, dry_friction: bool, contact_model: str) -> None:
        """Check what tendons do besides springs, dampers and actuators."""
        model = self.model
        refused: dict[str, npt.ArrayLike] = {
            "nonlinear spring": model.tendon_stiffnesspoly,
            "nonlinear damping": model.tendon_dampingpoly,
            "plastic spring": getattr(model, "tendon_springyield", np.zeros(model.ntendon)),
        }
        for what, values in refused.items():
            self._refuse_where("tendon", values, f"a tendon with {_article(what)}", "set it to 0")
        armature = np.ravel(model.tendon_armature)
        if contact_model == "mujoco":
            return
        self._refuse_where("tendon", armature, 'armature of a tendon in contact_model="hard"', _MUJOCO)
        adhesion = model.actuator_trntype == int(mujoco.mjtTrn.mjTRN_BODY)
        self._refuse_where("actuator", adhesion, 'adhesion in contact_model="hard"', _MUJOCO)
        constraints = {
            "limit": np.asarray(model.tendon_limited, bool) & limits,
            "friction loss": (model.tendon_frictionloss != 0) & dry_friction,
        }
        for what, has in constraints.items():
            self._refuse_where("tendon", has, f'a tendon with a {what} in contact_model="hard"', _MUJOCO)
        self._refuse_where(
            "equality",
            model.eq_type == int(mujoco.mjtEq.mjEQ_TENDON),
            'an equality of tendons in contact_model="hard"',
            _MUJOCO,
        )
        if model.opt.integrator == int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST):
            where = 'with the integrator implicitfast in contact_model="hard"'
            self._refuse_where("tendon", model.tendon_damping, f"damping of a tendon {where}", _MUJOCO)
            slope = (model.actuator_gainprm[:, 2] != 0) | (model.actuator_biasprm[:, 2] != 0)
            other = ~np.isin(model.actuator_trntype, _JOINT_TRANSMISSIONS)
            self._refuse_where("actuator", slope & other, f"damping of what is no joint {where}", _MUJOCO)

    def options(self, contact_model: str) -> None:
        """Check the physical options."""
        option = self.model.opt
        medium = option.density > 0 or option.viscosity > 0
        fast = option.integrator == int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
        if contact_model == "hard" and medium and fast:
            what = 'a medium with the integrator implicitfast in contact_model="hard"'
            self.refuse("option", what, "use the integrator Euler")
        if option.enableflags & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE):
            self.refuse("flag 'override'", "overriding contact parameters", "set friction on the geoms")
        if not option.timestep > 0:
            raise ModelError(
                f"{self.label}: option 'timestep': expected seconds > 0, got {option.timestep:g}"
            )

    def joints(self) -> None:
        """Check the properties of joints and degrees of freedom."""
        model = self.model
        self._kinds("joint", "mjtJoint", model.jnt_type)
        types = model.jnt_type
        self._refuse_where("joint", model.jnt_stiffnesspoly, "a nonlinear spring", "give one stiffness")
        springyield = getattr(model, "jnt_springyield", np.zeros(model.njnt))  # MuJoCo 3 has none
        self._refuse_where("joint", springyield, "a plastic spring (springyield)", "set it to 0")
        free_spring = np.where(types == _FREE, model.jnt_stiffness, 0.0)
        self._refuse_where("joint", free_spring, "stiffness of a free joint", "set it to 0")
        nonlinear = np.zeros(model.njnt)
        nonlinear[model.dof_jntid[np.flatnonzero(np.any(model.dof_dampingpoly != 0, axis=1))]] = 1
        self._refuse_where("joint", nonlinear, "nonlinear damping", "give one damping coefficient")

    def actuators(self) -> None:
        """Check what actuators drive, and how their force follows from the control."""
        model = self.model
        kinds: Sequence[tuple[npt.ArrayLike, str, str, float]] = (
            (model.actuator_plugin, "an actuator plugin", "use a motor", -1),
            (model.actuator_delay, "an actuator delay", "set it to 0", 0),
            (model.actuator_history, "an actuator history", "remove nsample", 0),
            (model.actuator_damping, "damping of an actuator", "give the joint damping", 0),
            (model.actuator_dampingpoly, "damping of an actuator", "give the joint damping", 0),
            (model.actuator_armature, "armature of an actuator", "give the joint armature", 0),
            (model.actuator_ctrlnum, "an actuator of several controls", "use one actuator per control", 1),
            (np.maximum(model.actuator_actnum, 1), "an actuator of several activations", "use one", 1),
            (model.actuator_outnum, "an actuator of several outputs", "use one actuator per joint", 1),
        )
        self._kinds("actuator", "mjtDyn", model.actuator_dyntype)
        for values, what, advice, default in kinds:
            self._refuse_where("actuator", values, what, advice, default)
        self._kinds("actuator", "mjtTrn", model.actuator_trntype)
        off = bool(model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_ACTUATION))
        stopped = [
            float(off or model.opt.disableactuator >> int(group) & 1) for group in model.actuator_group
        ]
        self._refuse_where(
            "actuator",
            np.array(stopped) * (model.actuator_actnum > 0),
            "activation of an actuator that is disabled",
            "remove the actuator",
        )
        self._kinds("actuator", "mjtGain", model.actuator_gaintype)
        self._kinds("actuator", "mjtBias", model.actuator_biastype)

    def observers(self) -> None:
        """Check the types of sensors and tendon wraps."""
        self._kinds("sensor", "mjtSensor", self.model.sensor_type)
        self._kinds("tendon wrap", "mjtWrap", self.model.wrap_type)

    def geoms(self) -> None:
        """Check the types of shapes, and the surface properties of shapes that can touch others."""
        model = self.model
        self._kinds("geom", "mjtGeom", model.geom_type)
        moves = model.body_weldid[model.geom_bodyid] != 0
        is_field = model.geom_type == int(mujoco.mjtGeom.mjGEOM_HFIELD)
        what, advice = "a height field on a body that moves", "attach it to the world"
        self._refuse_where("geom", moves & is_field, what, advice)
        touches = ((model.geom_contype != 0) | (model.geom_conaffinity != 0)).astype(float)
        self._refuse_where("geom", model.geom_adhesion * touches, "adhesion", "set it to 0")
        moving_surface = np.any(model.geom_surfacevel != 0, axis=1) * touches
        self._refuse_where("geom", moving_surface, "a moving surface (surfacevel)", "set it to 0")
        self._refuse_where("geom", model.geom_plugin, "a shape made by a plugin", "use a mesh", default=-1)
        adhesive = np.flatnonzero(np.asarray(model.pair_adhesion).reshape(-1))
        if adhesive.size:
            self.refuse(element_name(model, "pair", int(adhesive[0])), "adhesion", "set it to 0")

    def finite(self) -> None:
        """Check for NaN and infinity, which MuJoCo's compiler accepts."""
        model = self.model
        for kind, prefix in (
            ("body", "body_"),
            ("joint", "jnt_"),
            ("geom", "geom_"),
            ("site", "site_"),
            ("actuator", "actuator_"),
            ("tendon", "tendon_"),
            ("site", "site_"),
        ):
            for field in _REAL_FIELDS[kind]:
                values = np.asarray(getattr(model, prefix + field), dtype=float)
                bad = np.flatnonzero(~np.isfinite(values).all(axis=tuple(range(1, values.ndim))))
                if bad.size:
                    element = element_name(model, kind, int(bad[0]))
                    got = values[bad[0]]
                    raise ModelError(
                        f"{self.label}: {element}: expected finite numbers, got {got} in {field}"
                    )
        for field in ("dof_armature", "dof_damping", "dof_frictionloss", "qpos0", "qpos_spring"):
            if not np.isfinite(getattr(model, field)).all():
                raise ModelError(f"{self.label}: expected finite numbers, got nan or inf in {field}")
        if not (np.isfinite(model.opt.gravity).all() and np.isfinite(model.opt.timestep)):
            raise ModelError(
                f"{self.label}: option: expected finite numbers, got nan or inf in gravity or timestep"
            )

    def signs(self) -> None:
        """Check for negative values that are physically impossible; MuJoCo's compiler accepts them."""
        model = self.model
        of_dofs = {name: getattr(model, f"dof_{name}") for name in ("armature", "damping", "frictionloss")}
        fields: list[tuple[str, str, npt.NDArray, npt.NDArray]] = [
            ("joint", name, values, model.dof_jntid) for name, values in of_dofs.items()
        ]
        for name in ("stiffness", "damping", "frictionloss"):
            values = np.ravel(getattr(model, f"tendon_{name}"))
            fields.append(("tendon", name, values, np.arange(model.ntendon)))
        fields.append(("joint", "stiffness", np.ravel(model.jnt_stiffness), np.arange(model.njnt)))
        for kind, values in (("geom", model.geom_friction), ("pair", model.pair_friction)):
            fields.append((kind, "friction", np.min(values, axis=1, initial=0.0), np.arange(len(values))))
        for kind, name, values, owners in fields:
            negative = np.flatnonzero(values < 0)
            if negative.size:
                element = element_name(model, kind, int(owners[negative[0]]))
                raise ModelError(
                    f"{self.label}: {element}: expected {name} >= 0, got {values[negative[0]]:g}; "
                    "give a number that is not negative"
                )


def _article(what: str) -> str:
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"


_MUJOCO = 'use contact_model="mujoco"'
_JOINT_TRANSMISSIONS = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))

_REAL_FIELDS = {
    "body": ("pos", "quat", "ipos", "iquat", "mass", "inertia"),
    "joint": ("pos", "axis", "stiffness", "range"),
    "geom": ("pos", "quat", "size", "friction"),
    "actuator": ("gear", "gainprm", "biasprm", "ctrlrange", "forcerange", "actrange"),
    "tendon": ("stiffness", "damping", "lengthspring", "range", "margin", "frictionloss", "actfrcrange"),
    "site": ("pos", "quat"),
}


def _method_notes(model: mujoco.MjModel) -> list[str]:
    """Return notes on MuJoCo's numerical methods that the engine replaces."""
    notes = []
    ours = (mujoco.mjtIntegrator.mjINT_EULER, mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
    if model.opt.integrator not in [int(integrator) for integrator in ours]:
        asked = mujoco.mjtIntegrator(int(model.opt.integrator)).name.removeprefix("mjINT_")
        notes.append(f"integrator {asked}: the engine steps by semi-implicit Euler (implicit joint damping)")
    elif model.opt.integrator == int(ours[1]) and _has_lone_free_body(model):
        notes.append("integrator IMPLICITFAST: gyroscopic derivatives of single free bodies are left out")
    plain = mujoco.MjOption()
    changed = [
        name for name in _METHOD_OPTIONS if not np.array_equal(getattr(model.opt, name), getattr(plain, name))
    ]
    changed += [
        f"{kind}_{name}" for kind, name, default in _SOFT_FIELDS if _differs(model, kind, name, default)
    ]
    disabled = [bit.name for bit in _METHOD_FLAGS_OFF if model.opt.disableflags & int(bit)]
    enabled = [bit.name for bit in _METHOD_FLAGS_ON if model.opt.enableflags & int(bit)]
    changed += [name.partition("_")[2].lower() for name in (*disabled, *enabled)]
    note = (
        "contacts, limits and dry friction are solved by projected Gauss-Seidel on velocities, "
        "not by MuJoCo's soft constraints"
    )
    notes.append(f"{note}; not used: {', '.join(changed)}" if changed else note)
    return notes


def _soft_method_notes(model: mujoco.MjModel) -> list[str]:
    """Return notes on differences between the contact model "mujoco" and MuJoCo."""
    plain = mujoco.MjOption()
    unused = [
        name for name in _SOLVER_OPTIONS if not np.array_equal(getattr(model.opt, name), getattr(plain, name))
    ]
    if model.opt.noslip_iterations:
        unused.append("noslip_iterations")
    if not unused:
        return []
    return [f"constraints are solved to convergence from a cold start; not used: {', '.join(unused)}"]


_SOLVER_OPTIONS = ("solver", "iterations", "tolerance", "ls_iterations", "ls_tolerance")


def _has_lone_free_body(model: mujoco.MjModel) -> bool:
    """Return whether a free joint is the only joint of its tree; MuJoCo has gyroscopic derivatives for
    these."""
    roots = model.body_rootid[model.jnt_bodyid]
    free = model.jnt_type == JOINT_TYPES.index("free")
    return any(np.count_nonzero(roots == root) == 1 for root in roots[free])


_METHOD_OPTIONS = (
    *("solver", "cone", "jacobian", "iterations", "tolerance", "ls_iterations", "ls_tolerance"),
    *(
        "noslip_iterations",
        "noslip_tolerance",
        "ccd_iterations",
        "ccd_tolerance",
        "impratio",
        "sleep_tolerance",
    ),
)
_SOFT_FIELDS: tuple[tuple[str, str, float | tuple[float, ...]], ...] = (
    *((kind, "solref", (0.02, 1.0)) for kind in ("jnt", "dof", "geom", "pair")),
    *((kind, "solimp", (0.9, 0.95, 0.001, 0.5, 2.0)) for kind in ("jnt", "dof", "geom", "pair")),
    *((kind, "margin", 0.0) for kind in ("jnt", "geom", "pair")),
    *((kind, "gap", 0.0) for kind in ("geom", "pair")),
    ("geom", "solmix", 1.0),
)
_METHOD_FLAGS_OFF = (
    *(mujoco.mjtDisableBit.mjDSBL_WARMSTART, mujoco.mjtDisableBit.mjDSBL_REFSAFE),
    *(mujoco.mjtDisableBit.mjDSBL_EULERDAMP, mujoco.mjtDisableBit.mjDSBL_NATIVECCD),
    *(mujoco.mjtDisableBit.mjDSBL_ISLAND, mujoco.mjtDisableBit.mjDSBL_MULTICCD),
)
# looked up by name: MuJoCo 3, the last version for Python 3.10, does not have all of them
_METHOD_FLAGS_ON = tuple(
    mujoco.mjtEnableBit.__members__[name]
    for name in (
        *("mjENBL_SLEEP", "mjENBL_DIAGEXACT", "mjENBL_IPC", "mjENBL_SPECULATIVE"),
        *("mjENBL_INVDISCRETE", "mjENBL_FWDINV"),
    )
    if name in mujoco.mjtEnableBit.__members__
)


def _differs(model: mujoco.MjModel, kind: str, name: str, default: float | tuple[float, ...]) -> bool:
    """Return whether any element changes a soft-constraint parameter."""
    return bool(np.any(getattr(model, f"{kind}_{name}") != np.asarray(default)))


def _observer_notes(model: mujoco.MjModel, contact_model: str) -> list[str]:
    """Return notes on elements that only measure and are not computed."""
    faults = {
        sensor: fault
        for sensor in range(model.nsensor)
        if (fault := sensor_fault(model, sensor, contact_model)) is not None
    }
    notes = []
    if faults:
        first, (why, advice) = next(iter(faults.items()))
        name = model.sensor(first).name or f"sensor_{first}"
        notes.append(f"sensors that are not computed ({len(faults)}), first '{name}' {why}; {advice}")
    asleep = int(np.count_nonzero(np.asarray(model.eq_active0) == 0))
    if asleep:
        notes.append(f"equality constraints that start inactive stay so ({asleep})")
    return notes
