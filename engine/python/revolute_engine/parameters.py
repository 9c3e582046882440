"""Model parameters that may be given to a rollout and differentiated by: names, shapes, units and bounds.

The compiled engine has the same list (engine/include/revolute/model/parameter_list.hpp). Names and shapes are
MuJoCo's, but for `actuator_gear` (its first entry)
and `restitution` (one coefficient for all contacts). Each may be given once for all environments, or per
environment with a leading batch axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from revolute.contract.arrays import Float64Array, owned_float64
from revolute.contract.errors import ArgumentError

from . import native
from ._model import Model
from ._names import JOINT_TYPES


def _largest_condim(model: Model) -> int:
    """Return the largest condim of all pairs that may touch, or 0."""
    arrays = model.arrays
    if not arrays["contact"]:
        return 0
    return max(arrays["pair_condim"].max(initial=0), arrays["geom_condim"].max(initial=0))


def _touch(model: Model) -> bool:
    return _largest_condim(model) > 0


def _have_springs(model: Model) -> bool:
    return bool((model.arrays["jnt_stiffness"] != 0).any())


def _have_limits(model: Model) -> bool:
    return bool(model.arrays["limits"]) and bool((model.arrays["jnt_limited"] != 0).any())


def _have_dry_friction(model: Model) -> bool:
    return bool(model.arrays["dry_friction"])


def _may_have_springs(model: Model) -> bool:
    return bool((model.arrays["jnt_type"] != JOINT_TYPES.index("free")).any())


def _are_driven(model: Model) -> bool:
    return model.nu > 0


@dataclass(frozen=True)
class Parameter:
    """One parameter of the model.

    Attributes:
        axes: sizes of its axes, names of the model's counts or numbers.
        unit: unit of its entries, for messages.
        text: what it is, in one line.
        at_least_zero: negative entries are refused.
        at_most: largest entry.
        positive: if given, entries that are positive in the model must stay positive; their text in messages.
        contact_model: the only contact model that reads it, None for all.
        columns: names of the entries of its second axis.
        array: name of the model's array with its own value, when it is another one.
        copied: the model's array is a copy of MuJoCo's array of this name.
        matters: whether it can have an influence on a model's motion.
        change: how much an entry is moved by a gradient check, at least.
    """

    axes: tuple[str | int, ...]
    unit: str
    text: str
    at_least_zero: bool = True
    at_most: float = math.inf
    positive: str = ""
    contact_model: str | None = None
    columns: tuple[str, ...] = ()
    array: str = ""
    copied: bool = True
    matters: Callable[[Model], bool] = lambda _model: True
    change: float = 0.0

    def shape(self, model: Model) -> tuple[int, ...]:
        """Return the parameter's shape without batch axis."""
        return tuple(axis if isinstance(axis, int) else getattr(model, axis) for axis in self.axes)


AXES = ("x", "y", "z")
_POLYNOMIAL = ("1", "length", "velocity")

PARAMETERS = {
    "geom_friction": Parameter(
        ("ngeom", 3),
        "coefficients",
        "sliding friction; torsional and rolling friction in metres",
        columns=("sliding", "torsional", "rolling"),
        matters=_touch,
    ),
    "body_mass": Parameter(("nbody",), "kg", "mass in kg", positive="masses > 0 for bodies with mass"),
    "body_ipos": Parameter(
        ("nbody", 3), "metres", "mass centre in the body's frame, metres", at_least_zero=False, columns=AXES
    ),
    "body_inertia": Parameter(
        ("nbody", 3),
        "kg m^2",
        "principal moments of inertia about the mass centre, kg m²",
        positive="moments of inertia > 0",
        columns=AXES,
    ),
    "dof_damping": Parameter(("nv",), "damping coefficients", "viscous damping"),
    "dof_armature": Parameter(("nv",), "rotor inertias", "inertia of the rotor that drives it"),
    "dof_frictionloss": Parameter(
        ("nv",), "friction losses", "force or torque of dry friction", matters=_have_dry_friction
    ),
    "jnt_stiffness": Parameter(
        ("njnt",), "stiffnesses", "stiffness of the joint's spring", matters=_may_have_springs
    ),
    "gravity": Parameter((3,), "m/s^2", "acceleration of gravity, m/s²", at_least_zero=False, copied=False),
    "actuator_gear": Parameter(
        ("nu",),
        "gears",
        "gear: its first entry, of a joint or tendon the one that drives it",
        at_least_zero=False,
        array="act_gear",
        matters=_are_driven,
        copied=False,
    ),
    "restitution": Parameter(
        (),
        "coefficients",
        "coefficient of restitution of all contacts",
        at_most=1.0,
        contact_model="hard",
        matters=_touch,
        copied=False,
    ),
    "actuator_gainprm": Parameter(
        ("nu", 3),
        "gains",
        "coefficients of the gain: of 1, length and velocity",
        at_least_zero=False,
        columns=_POLYNOMIAL,
        array="act_gain",
        matters=_are_driven,
        copied=False,
    ),
    "actuator_biasprm": Parameter(
        ("nu", 3),
        "biases",
        "coefficients of the bias force: of 1, length and velocity",
        at_least_zero=False,
        columns=_POLYNOMIAL,
        array="act_bias",
        matters=_are_driven,
        copied=False,
    ),
    "qpos_spring": Parameter(
        ("nq",),
        "positions",
        "positions at which the springs are at rest",
        at_least_zero=False,
        matters=_have_springs,
        change=0.02,
    ),
    "jnt_range": Parameter(
        ("njnt", 2),
        "positions",
        "lower and upper limit of the joint",
        at_least_zero=False,
        columns=("lower", "upper"),
        matters=_have_limits,
    ),
    "geom_solref": Parameter(
        ("ngeom", 2),
        "numbers",
        "MuJoCo's solref of contacts",
        at_least_zero=False,
        contact_model="mujoco",
        columns=("timeconst", "dampratio"),
        matters=_touch,
    ),
    "geom_solimp": Parameter(
        ("ngeom", 5),
        "numbers",
        "MuJoCo's solimp of contacts",
        at_least_zero=False,
        contact_model="mujoco",
        columns=("dmin", "dmax", "width", "midpoint", "power"),
        matters=_touch,
    ),
}
"""Parameters by name."""


def parameters_of(model: Model) -> list[str]:
    """Return the names of the parameters that a model's contact model reads."""
    return [name for name in PARAMETERS if has_parameter(model, name)]


def has_parameter(model: Model, name: Any) -> bool:
    """Tell whether a model's contact model reads a parameter of this name."""
    known = PARAMETERS.get(name) if isinstance(name, str) else None
    return known is not None and known.contact_model in (None, model.options["contact_model"])


def default_parameter(model: Model, name: str) -> Float64Array:
    """Return the model's own value of a parameter."""
    source = PARAMETERS[name].array or name
    return np.reshape(np.array(model.arrays[source], dtype=np.float64), PARAMETERS[name].shape(model))


def check_params(
    model: Model, params: Mapping[str, Any] | None, batch: int, batched: bool
) -> dict[str, Float64Array]:
    """Check the parameters of a call.

    Args:
        model: the model.
        params: values by name, without or with batch axis.
        batch: number of environments.
        batched: the call has a batch axis.

    Returns:
        The values as given, as float64 arrays that share no memory with the user's.

    Raises:
        ArgumentError: a name is unknown, or a shape or a number does not fit.
    """
    checked = _by_name(model, "params", params)
    for name, value in checked.items():
        _check_shape(model, name, name, value, batch, batched)
        check_finite(name, value)
        _check_bounds(model, name, value)
    return {name: _repeated(name, value, batch) for name, value in checked.items()}


def check_params_tan(
    model: Model, params_tan: Mapping[str, Any] | None, batch: int, batched: bool
) -> dict[str, Float64Array]:
    """Check tangents of parameters, which are shaped as the parameters and have no bounds.

    Args:
        model: the model.
        params_tan: tangents by name, without or with batch axis.
        batch: number of environments.
        batched: the call has a batch axis.

    Raises:
        ArgumentError: a name is unknown, or a shape or a number does not fit.
    """
    checked = _by_name(model, "params_tan", params_tan)
    for name, value in checked.items():
        _check_shape(model, name, f"params_tan.{name}", value, batch, batched)
        check_finite(f"params_tan.{name}", value)
    return {name: _repeated(name, value, batch) for name, value in checked.items()}


def _repeated(name: str, value: Float64Array, batch: int) -> Float64Array:
    """Return a parameter whose batch axis of length 1 is repeated."""
    repeats = is_per_environment(name, value) and len(value) < batch
    return np.repeat(value, batch, axis=0) if repeats else value


def is_per_environment(name: str, value: Float64Array) -> bool:
    """Whether a parameter was given with a batch axis."""
    return value.ndim > len(PARAMETERS[name].axes)


def parameter_rows(params: Mapping[str, Float64Array]) -> dict[str, Float64Array]:
    """Return parameters as the compiled engine reads them: [1, n] shared or [batch, n]."""
    if not params:
        return {}
    rows = {name: value if is_per_environment(name, value) else value[None] for name, value in params.items()}
    return {name: value.reshape(len(value), math.prod(value.shape[1:])) for name, value in rows.items()}


_LONG_ROW = 256
"""Numbers from which adding rows one by one in Python is faster than NumPy's accumulate."""


def summed_over_environments(rows: Float64Array, completed: npt.NDArray[np.bool_]) -> Float64Array:
    """Return the gradient by parameters that environments share, one environment added after the other.

    A sum in another order has other last digits, and NumPy's `sum` takes the order from the array's shape: a
    gradient would then depend on how many cotangents are pulled back beside its own.

    Args:
        rows: gradients of each environment, [K, batch, ...].
        completed: which environments count, [batch], at least one of them.
    """
    if rows[0, 0].size < _LONG_ROW:
        return np.array(np.add.accumulate(rows[:, completed], axis=1)[:, -1])
    # the same order without a copy of all rows
    first, *others = np.flatnonzero(completed)
    total = np.array(rows[:, first])
    for environment in others:
        total += rows[:, environment]
    return total


def _by_name(model: Model, argument: str, given: Mapping[str, Any] | None) -> dict[str, Float64Array]:
    """Return the arrays of a mapping whose names are known."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ArgumentError.expected(argument, "a mapping of names to arrays", type(given).__name__)
    for name in given:
        if not has_parameter(model, name):
            known = ", ".join(parameters_of(model))
            raise ArgumentError.expected(argument, f"names among {known}", repr(name), advice=_advice(name))
    prefix = "" if argument == "params" else f"{argument}."
    return {name: owned_float64(prefix + name, value) for name, value in given.items()}


def _advice(name: str) -> str | None:
    """Return how to load a model that reads a parameter, if another contact model has it."""
    known = PARAMETERS.get(name) if isinstance(name, str) else None
    return f'load the model with contact_model="{known.contact_model}"' if known else None


def _check_shape(model: Model, name: str, label: str, value: Float64Array, batch: int, batched: bool) -> None:
    """Refuse a shape that is neither the parameter's nor that with a batch axis."""
    parameter = PARAMETERS[name]
    shape = parameter.shape(model)
    if value.shape == shape or (batched and value.shape in ((batch, *shape), (1, *shape))):
        return
    axes = [
        f"{axis}={size}" if isinstance(axis, str) else f"{size}"
        for axis, size in zip(parameter.axes, shape, strict=True)
    ]
    per_environment = f" or [{', '.join([f'batch={batch}', *axes])}]" if batched else ""
    raise ArgumentError.expected(label, f"shape [{', '.join(axes)}]{per_environment}", list(value.shape))


def _check_bounds(model: Model, name: str, value: Float64Array) -> None:
    """Refuse values without physical sense."""
    parameter = PARAMETERS[name]
    if parameter.at_least_zero:
        own = default_parameter(model, name)
        # an entry with mass must keep some, or the equations of motion would be singular
        least = np.where(own > 0, np.finfo(float).tiny if parameter.positive else 0.0, 0.0)
        # a file may give a link that is fixed to another a negative moment
        least = np.where(own < 0, -np.inf, least)
        _refuse_where(name, value, value < least, parameter.positive or f"{parameter.unit} >= 0")
    _refuse_where(name, value, value > parameter.at_most, f"{parameter.unit} from 0 to {parameter.at_most:g}")
    if name == "jnt_stiffness":
        free = model.arrays["jnt_type"] == JOINT_TYPES.index("free")
        _refuse_where(name, value, (value != 0) & free, "0 for free joints, which have no springs")


def _refuse_where(name: str, value: Float64Array, bad: npt.NDArray[np.bool_], what: str) -> None:
    """Refuse the first entry that is bad."""
    places = np.argwhere(bad)
    if len(places):
        where = tuple(int(index) for index in places[0])
        raise ArgumentError.expected(name, what, value[where], at=str(list(where)) if where else None)


def check_finite(name: str, array: Float64Array) -> None:
    """Refuse NaN and infinity, with the place of the first one."""
    if not native.all_finite(array):
        finite = np.isfinite(array)
        where = tuple(int(index) for index in np.argwhere(~finite)[0])
        raise ArgumentError.expected(
            name,
            "finite values",
            array[where],
            at=str(list(where)) if where else None,
            advice="replace it before the call",
        )
