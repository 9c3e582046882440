"""The client's model handle (sizes, names, parameters), and checks of the options of `load_model`."""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .contract.arrays import Float64Array, as_float64, named_float64
from .contract.errors import ArgumentError, UnavailableError
from .contract.load_options import OPTIONS
from .contract.measures import as_elements, find_elements
from .local_engine import local_engine

_MAX_COUNT = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Source:
    """The text, files and options that define a model.

    Attributes:
        name: name for messages, e.g. the file's name; empty for a built-in model.
        text: URDF or MJCF text; empty for a built-in model.
        builtin: name of a built-in model; empty for a text.
        assets: files that the text refers to, by the reference as written.
        options: options that the user gave, by name.
        missing: paths tried for each missing file, by the reference as written; never sent to a server.
    """

    name: str = ""
    text: str = ""
    builtin: str = ""
    assets: Mapping[str, bytes] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def for_engine(self) -> tuple[str | bytes, Mapping[str, bytes], Mapping[str, Any]]:
        """Return the text as bytes or the name of a built-in model, the files and the options."""
        return self.text.encode() or self.builtin, self.assets, self.options


@dataclass(frozen=True, eq=False)
class ModelHandle:
    """A model that a simulator has loaded; orders and conventions are MuJoCo's.

    Attributes:
        id: SHA-256 of text, assets and options.
        name: name of the model.
        nq: numbers per environment in qpos.
        nv: degrees of freedom: velocities per environment in qvel.
        nu: numbers per environment in ctrl.
        nbody: bodies, the world included.
        njnt: joints.
        ngeom: collision shapes.
        timestep: length of a step in s.
        qpos0: default configuration, [nq].
        qvel0: default velocity, and behind it the activations, [nv + na].
        body_names: unique names, by index like all lists of names; an unnamed body is `body_<number>`.
        joint_names: an unnamed joint is `<body>/<number among the body's joints>`.
        geom_names: an unnamed shape is `<body>/<number among the body's shapes>`.
        actuator_names: an unnamed actuator has the name of its joint.
        dof_names: one per entry of qvel.
        joint_types: "free", "ball", "slide" or "hinge".
        site_names: an unnamed site is `<body>/<number among the body's sites>`.
        sensor_names: an unnamed sensor is `sensor_<number>`.
        sensor_types: MuJoCo's types in lower case, e.g. "gyro".
        sensor_dims: numbers that each sensor gives.
        mocap_names: names of the mocap bodies, in the order of mocap_pos and mocap_quat.
        mocap_pos: where the file has them, [nmocap, 3].
        mocap_quat: their quaternions (w x y z), [nmocap, 4].
        jnt_range: range of each joint in m or rad, [njnt, 2]; infinite for a joint without limits.
        ctrlrange: range of each control, [nu, 2].
        body_mass: mass of each body in kg, [nbody].
        geom_friction: sliding, torsional and rolling friction of each shape, [ngeom, 3].
        options: all options in effect, defaults included.
        notes: decisions of the loader, one sentence each.
        source: text and assets that were sent; empty text for a built-in model, and for one opened by its id.
        warnings: the notes that `Simulator.load_model` issues as Python warnings.
        params: the model's value of every parameter that a rollout can replace, by name.
        keyframes: configurations from the file, [nq], by name; an unnamed one is listed by its number.
        geom_bodyid: body of each shape, by index.
        fetch: asks the engine or server that has the model for its files; None after unpickling.
    """

    id: str
    name: str
    nq: int
    nv: int
    nu: int
    nbody: int
    njnt: int
    ngeom: int
    timestep: float
    qpos0: Float64Array
    qvel0: Float64Array
    body_names: Sequence[str]
    joint_names: Sequence[str]
    geom_names: Sequence[str]
    actuator_names: Sequence[str]
    dof_names: Sequence[str]
    ctrlrange: Float64Array
    body_mass: Float64Array
    geom_friction: Float64Array
    options: Mapping[str, Any]
    notes: Sequence[str]
    source: Source
    warnings: Sequence[str] = ()
    params: Mapping[str, Float64Array] = field(default_factory=dict)
    keyframes: Mapping[str, Float64Array] = field(default_factory=dict)
    joint_types: Sequence[str] = ()
    site_names: Sequence[str] = ()
    sensor_names: Sequence[str] = ()
    sensor_types: Sequence[str] = ()
    sensor_dims: Sequence[int] = ()
    jnt_range: Float64Array = field(default_factory=lambda: np.zeros((0, 2)))
    geom_bodyid: Sequence[int] = ()
    mocap_names: Sequence[str] = ()
    mocap_pos: Float64Array = field(default_factory=lambda: np.zeros((0, 3)))
    mocap_quat: Float64Array = field(default_factory=lambda: np.zeros((0, 4)))
    fetch: Callable[[], Mapping[str, Any]] | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds; another process has other connections."""
        return {**self.__dict__, "fetch": None}

    def qpos_index(self, joint: str) -> list[int]:
        """Return the entries of qpos of a joint: one of a hinge or slide, 4 of a ball, 7 of a free joint.

        Raises:
            ArgumentError: there is no such joint.
        """
        return self._entries(joint, {"free": 7, "ball": 4})

    def qvel_index(self, joint: str) -> list[int]:
        """Return the entries of qvel of a joint: one of a hinge or slide, 3 of a ball, 6 of a free joint.

        Raises:
            ArgumentError: there is no such joint.
        """
        return self._entries(joint, {"free": 6, "ball": 3})

    def _entries(self, joint: str, counts: Mapping[str, int]) -> list[int]:
        place = find_elements("joint", "joint", self.joint_names, as_elements("joint", joint))[0]
        sizes = [counts.get(kind, 1) for kind in self.joint_types]
        first = sum(sizes[:place])
        return list(range(first, first + sizes[place]))

    @property
    def na(self) -> int:
        """Activations (states of actuators, MuJoCo's act) per environment, behind the velocities in qvel."""
        return len(self.qvel0) - self.nv

    @classmethod
    def from_document(
        cls,
        document: Mapping[str, Any],
        source: Source,
        fetch: Callable[[], Mapping[str, Any]] | None = None,
    ) -> ModelHandle:
        """Build a handle from a ModelInfo document.

        Args:
            document: values by the field names of ModelInfo.
            source: the text, files and options that were sent.
            fetch: returns a ModelFiles document.
        """
        frames = {frame["name"]: frame["qpos"] for frame in document.get("keyframes", ())}
        known = {
            **document,
            "keyframes": {name: np.asarray(qpos) for name, qpos in frames.items()},
            # a map has no order on the wire
            "params": dict(sorted(document.get("params", {}).items())),
        }
        values = {name: _copied(known[name]) for name in cls.__dataclass_fields__ if name in known}
        return cls(id=document["model_id"], source=source, fetch=fetch, **values)

    def files(self) -> tuple[str, dict[str, bytes]]:
        """Return MJCF text of the model as MuJoCo compiles it, and the mesh files that it names.

        The text has what the options of `load_model` change, with about six digits. The engine or server
        that has the model writes it: `mujoco.MjModel.from_xml_string(*model.files())` needs no engine here.

        Raises:
            UnavailableError: the model has no connection, e.g. after unpickling.
            PermissionDeniedError: another caller of the server registered the model first.
        """
        if self.fetch is None:
            raise UnavailableError(
                "model: expected a connection to ask for its files, got none; load it with a simulator",
                argument="model",
            )
        found = self.fetch()
        text = found["mjcf"] if isinstance(found["mjcf"], str) else bytes(found["mjcf"]).decode()
        return text, {name: bytes(content) for name, content in found.get("assets", {}).items()}

    def to_mjcf(self) -> str:
        """Return the text of `files`."""
        return self.files()[0]

    def mujoco(self) -> Any:
        """Return the model as a `mujoco.MjModel`, e.g. to render it. States and controls have the same order.

        The engine in this process gives its own model; without it, MuJoCo (extra `revolute[render]`) compiles
        `files`.

        Raises:
            UnavailableError: as `files`.
            ImportError: MuJoCo is not installed.
        """
        if self.source.text or self.source.builtin:
            with contextlib.suppress(UnavailableError):
                return local_engine().mujoco_model(*self.source.for_engine())
        try:
            import mujoco
        except ImportError as error:
            raise ImportError(
                "model.mujoco needs mujoco; install it with: pip install 'revolute[render]'", name=error.name
            ) from error
        return mujoco.MjModel.from_xml_string(*self.files())

    def __repr__(self) -> str:
        return f"<revolute model '{self.name}': nq={self.nq}, nv={self.nv}, nu={self.nu}, id={self.id[:12]}>"


def check_model(model: Any) -> ModelHandle:
    """Return `model` if it is a ModelHandle.

    Raises:
        ArgumentError: `model` is anything else, e.g. a file name.
    """
    if isinstance(model, ModelHandle):
        return model
    raise ArgumentError.expected(
        "model", "a model", type(model).__name__, advice="load it first: model = sim.load_model(...)"
    )


def check_params(model: ModelHandle, params: Mapping[str, Any] | None) -> dict[str, Float64Array]:
    """Return parameters as arrays by name; values by element are put into the model's own.

    Args:
        model: the model.
        params: arrays by name, or mappings of names of elements to values, e.g.
            {"body_mass": {"chassis": 5.1}}. A value with a leading batch axis gives each environment its own.

    Raises:
        ArgumentError: a value is not an array of numbers, or there is no such element.
    """
    return named_float64("params", whole_params(model, params, _by_element))


def whole_params(
    model: ModelHandle,
    params: Mapping[str, Any] | None,
    by_element: Callable[[ModelHandle, str, Mapping[str, Any]], Any],
) -> dict[str, Any]:
    """Return parameters whose values by element are put into the model's own.

    Args:
        model: the model.
        params: arrays by name, or mappings of names of elements to values.
        by_element: what puts them there, for a model, a parameter and the values of its elements.

    Raises:
        ArgumentError: `params` is not a mapping.
    """
    if params is not None and not isinstance(params, Mapping):
        raise ArgumentError.expected("params", "a mapping from names to arrays", type(params).__name__)
    return {
        name: by_element(model, name, value) if isinstance(value, Mapping) else value
        for name, value in (params or {}).items()
    }


def _by_element(model: ModelHandle, name: str, values: Mapping[str, Any]) -> Float64Array:
    """Return a parameter with the values of some elements replaced."""
    arrays = {element: as_float64(f"params.{name}.{element}", value) for element, value in values.items()}
    given, batch = numbered_elements(model, name, arrays)
    own = model.params[name]
    out = np.array(np.broadcast_to(own, (*batch, *own.shape)))
    rows = np.moveaxis(out, len(batch), 0)
    for index, array in given.items():
        rows[index] = array
    return out


def numbered_elements(
    model: ModelHandle, name: str, values: Mapping[str, Any]
) -> tuple[dict[int, Any], tuple[int, ...]]:
    """Return the values of a parameter's elements by their numbers, and the batch axis that values have.

    Args:
        model: the model.
        name: the parameter.
        values: arrays by the names of their elements, of any library: what counts is their `shape`.

    Raises:
        ArgumentError: there is no such element, or a shape does not fit it.
    """
    lists = {
        "body": model.body_names,
        "geom": model.geom_names,
        "jnt": model.joint_names,
        "dof": model.dof_names,
        "actuator": model.actuator_names,
    }
    kind = name.partition("_")[0]
    if name not in model.params or kind not in lists:
        known = [each for each in model.params if each.partition("_")[0] in lists]
        raise ArgumentError.expected(
            "params", f"a parameter of elements among {', '.join(known)}", repr(name)
        )
    own = model.params[name].shape
    given: dict[int, Any] = {}
    for element, value in values.items():
        label, shape = f"params.{name}.{element}", tuple(value.shape)
        wanted = as_elements(label, element)
        index = find_elements(label, "joint" if kind == "jnt" else kind, lists[kind], wanted)[0]
        if shape[len(shape) - len(own) + 1 :] != own[1:] or len(shape) > len(own):
            raise ArgumentError.expected(
                label, f"shape {list(own[1:])}, or with a batch axis in front", list(shape)
            )
        given[index] = value
    batches = {value.shape[0] for value in given.values() if len(value.shape) == len(own)}
    if len(batches) > 1:
        raise ArgumentError.expected(f"params.{name}", "the same batch for all elements", sorted(batches))
    return given, tuple(batches)


def check_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given (not None) as plain str, bool, int and float.

    Types are checked here, for every transport; values are judged by the engine.

    Raises:
        ArgumentError: an unknown name or a wrong type.
    """
    checked: dict[str, Any] = {}
    for name, value in options.items():
        if name not in OPTIONS:
            raise ArgumentError.expected("options", f"names among {', '.join(OPTIONS)}", repr(name))
        if value is not None:
            checked[name] = _check_option(name, value)
    return checked


def _check_option(name: str, value: Any) -> Any:
    kind = OPTIONS[name].kind
    if kind is str:
        if isinstance(value, str):
            return value
        raise ArgumentError.expected(name, "a word", repr(value))
    if kind is bool:
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        raise ArgumentError.expected(name, "True or False", repr(value))
    if isinstance(value, (bool, np.bool_)):
        raise ArgumentError.expected(name, "a finite number", repr(value))
    if kind is int:
        if isinstance(value, numbers.Integral) and abs(int(value)) <= _MAX_COUNT:
            return int(value)
        raise ArgumentError.expected(name, f"a whole number up to {_MAX_COUNT}", repr(value))
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    raise ArgumentError.expected(name, "a finite number", repr(value))


def _copied(value: Any) -> Any:
    """Return a copy of a document's value; arrays become read-only, lists become tuples."""
    if isinstance(value, dict):
        return {name: _copied(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray):
        copy = np.array(value, dtype=np.float64)
        copy.flags.writeable = False
        return copy
    return tuple(value) if isinstance(value, list) else value
