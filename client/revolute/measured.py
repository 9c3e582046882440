"""Measurements at states: poses, velocities, sensors and contacts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .contract.arrays import Float64Array, as_float64
from .contract.errors import ArgumentError
from .contract.measures import MEASURES
from .link import Link
from .model import ModelHandle
from .named_arrays import NamedArrays

_POSES = tuple(name for name, each in MEASURES.items() if each.elements == 1 and not each.of_velocity)
_MOTIONS = tuple(
    name
    for name, each in MEASURES.items()
    if each.elements == 1 and each.of_velocity and each.kind != "sensor"
)


class Kinematics(NamedArrays):
    """Quantities in the task space, as attributes or by key, and their derivatives.

    Each has a row per element, [..., elements, n] with the leading axes of the states; the orders are those
    of the model's lists of names. A quantity of one element, "site_pos:hand", is [..., n].
    """

    _advice = "name it in quantities"

    def __init__(
        self, link: Link, model: ModelHandle, states: Mapping[str, Any], quantities: Iterable[str]
    ) -> None:
        self._link = link
        self._states = dict(states)
        self.model = model
        self._arrays = self._measure({"quantities": list(quantities)})["arrays"]
        for array in self._arrays.values():
            array.flags.writeable = False

    def backward(
        self, cotangents: Mapping[str, Any], *, wrt: Sequence[str] = ("qpos", "qvel")
    ) -> dict[str, Float64Array]:
        """Pull cotangents of quantities back to the states.

        Args:
            cotangents: d loss / d quantity by name, shaped like the quantity, e.g. {"site_pos:hand": bar};
                with a leading axis K, the call returns K gradients.
            wrt: what to differentiate by: "qpos", "qvel", "ctrl", "qfrc_applied", "xfrc_applied",
                "mocap_pos", "mocap_quat", and names of parameters.

        Returns:
            One array per name in `wrt`, with the leading axes of qpos, even if the input was given without
            them; of a parameter shaped like it and summed over the states.

        Raises:
            ArgumentError: a name is unknown, or a shape does not fit.
        """
        bars = {name: as_float64(f"cotangents.{name}", bar) for name, bar in cotangents.items()}
        found: dict[str, Float64Array] = self._measure({"cotangents": bars, "wrt": list(wrt)})["gradient"]
        return found

    def jacobian(self, quantity: str) -> Float64Array:
        """Differentiate a quantity by the tangent of qpos, in MuJoCo's order: [..., n, nv].

        Args:
            quantity: e.g. "site_pos:hand"; without an element, all of them: [..., elements, n, nv].

        Raises:
            ArgumentError: the name is unknown.
        """
        found: Float64Array = self._measure({"jacobians": [quantity]})["jacobians"][quantity]
        return found

    def _measure(self, document: Mapping[str, Any]) -> dict[str, Any]:
        return self._link.call("Measure", {"states": self._states, **document})

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in self._arrays.items())
        return f"<revolute kinematics: {shapes}>"


def default_quantities(model: ModelHandle, with_velocity: bool) -> list[str]:
    """Return all quantities of the configuration, and of the velocity if there is one.

    A model without sites has none of theirs; sums over subtrees are left out of a model without mass.
    """
    has = {
        "body": True,
        "subtree": bool(np.all(model.body_mass[1:] > 0)),
        "geom": model.ngeom > 0,
        "site": len(model.site_names) > 0,
    }
    names = (*_POSES, *_MOTIONS) if with_velocity else _POSES
    return [name for name in names if has[name.partition("_")[0]]]


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts, one row of each array per contact.

    Attributes:
        environment: place in the batch, [n].
        time: index of the state, [n].
        geoms: names of the two shapes of each contact.
        distance: in m, negative where the shapes overlap, [n].
        position: point of contact in the world, [n, 3].
        frame: [n, 3, 3]; rows: the normal from the first shape to the second, and two tangents.
        force: on the second shape in N along these axes, then the torque about them, [n, 6]. With
            contact_model="hard" the mean over the step.
    """

    environment: npt.NDArray[np.int64]
    time: npt.NDArray[np.int64]
    geoms: Sequence[tuple[str, str]]
    distance: Float64Array
    position: Float64Array
    frame: Float64Array
    force: Float64Array

    @classmethod
    def find(
        cls, link: Link, model: ModelHandle, states: Mapping[str, Any], times: Sequence[int]
    ) -> Contacts:
        """Ask for the contacts at states.

        Args:
            link: the link to the engine.
            model: the model.
            states: the message MeasuredStates.
            times: indices of the states of each environment.
        """
        found = link.call("FindContacts", states)
        names = model.geom_names
        pairs = [(names[first], names[second]) for first, second in found["geom"].tolist()]
        environment, place = np.divmod(found["state"], len(times))
        arrays = {name: found[name] for name in ("distance", "position", "frame", "force")}
        return cls(environment, np.asarray(times, np.int64)[place], pairs, **arrays)

    def __len__(self) -> int:
        return len(self.geoms)


def sensor_quantities(model: ModelHandle, sensors: Any) -> list[str]:
    """Return the quantities of the sensors that were asked for.

    Args:
        model: the model.
        sensors: True for all sensors of the file, or names.

    Raises:
        ArgumentError: `sensors` is anything else, or the file has none.
    """
    names = [sensors] if isinstance(sensors, str) else sensors
    if names is True:
        if not model.sensor_names:
            raise ArgumentError.expected("sensors", "a model with sensors", f"'{model.name}' without any")
        return ["sensor"]
    if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) for name in names):
        raise ArgumentError.expected("sensors", "True or names of sensors", repr(sensors)[:60])
    return [f"sensor:{name}" for name in names]


def read_sensors(link: Link, states: Mapping[str, Any], quantities: Sequence[str]) -> Float64Array:
    """Return the readings [..., numbers] of sensors, one sensor after the other."""
    found = link.call("Measure", {"states": states, "quantities": list(quantities)})["arrays"]
    return joined_sensors(found, quantities)


def joined_sensors(measured: Mapping[str, Float64Array], quantities: Sequence[str]) -> Float64Array:
    """Return measured sensors as one array [..., numbers], one sensor after the other."""
    data: Float64Array = np.concatenate([measured[name] for name in quantities], axis=-1)
    data.flags.writeable = False
    return data
