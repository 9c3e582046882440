"""Losses as data. A request can carry them, and every transport computes the same bits.

A loss is a sum of terms. With x the selected entries of one environment, w the weight and x* the target:

    squared:  value = sum w (x - x*)^2     cotangent = 2 w (x - x*)     (1)
    linear:   value = sum w (x - x*)       cotangent = w                (2)

and of an orientation (`body_quat`, `geom_quat`, `site_quat`), with e = log(x*^-1 x) the rotation vector from
the target to x:  value = sum w |e|^2  (3).

Terms are summed over the selected entries and times. An environment with a
non-finite trajectory has value NaN and zero cotangents; its status reports the divergence. Sums run over
time, then over entries, one number after the other. The engine (engine/include/revolute/loss.hpp), which
evaluates the loss during the simulation, uses the same order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from .arrays import Float64Array, as_float64, finite_float64
from .errors import ArgumentError
from .measures import KINDS, MEASURES, as_elements, check_relative, measure_of

Moment = Literal["final", "running"]
Form = Literal["squared", "linear"]

QUANTITIES = ("qpos", "qvel", "ctrl", *MEASURES)
STATE_KINDS = {"qpos": "joint", "qvel": "joint", "ctrl": "actuator"}
"""Kind of element by whose name entries of a state or control are selected."""
MOMENTS = get_args(Moment)
FORMS = get_args(Form)


class LossValue(NamedTuple):
    """A loss and its cotangents.

    Attributes:
        value: loss of each environment, [batch]; 0-d without a batch axis.
        qpos_bar: d value / d qpos, shaped like qpos.
        qvel_bar: d value / d qvel, shaped like qvel.
        ctrl_bar: d value / d ctrl at fixed states, shaped like ctrl.
    """

    value: Float64Array
    qpos_bar: Float64Array
    qvel_bar: Float64Array
    ctrl_bar: Float64Array


class BoundTerm(NamedTuple):
    """A term broadcast to the shapes of a trajectory.

    Attributes:
        quantity: "qpos", "qvel", "ctrl" or a measured quantity.
        running: whether the term is summed over all times.
        times: chosen times, ascending; empty for all (running) or the last one.
        form: "squared", "linear" or "rotation" (3).
        entries: selected entries.
        weight: broadcast to [batch, time, entries]; a final term has one time.
        target: broadcast like `weight`.
    """

    quantity: str
    running: bool
    times: tuple[int, ...]
    form: str
    entries: list[int]
    weight: Float64Array
    target: Float64Array

    def add_to(self, total: LossValue, x: Float64Array) -> None:
        """Add value and cotangent for x [batch, time, n] to `total`."""
        rows: Any = slice(None) if self.running else slice(-1, None)
        if self.times:
            rows = np.array(self.times)[:, None]
        selected = x[:, self.times] if self.times else x[:, rows]
        error = selected[..., self.entries] - self.target

        # value and cotangent, (1) and (2)
        contribution = self.weight * error * error if self.form == "squared" else self.weight * error
        cotangent = 2.0 * self.weight * error if self.form == "squared" else np.array(self.weight)
        numbers = contribution.reshape(len(x), contribution.shape[1] * contribution.shape[2])
        if numbers.shape[1]:
            total.value[...] += np.add.accumulate(numbers, axis=1)[:, -1]
        bar: Float64Array = getattr(total, f"{self.quantity}_bar")
        bar[:, rows, self.entries] += cotangent


@dataclass(frozen=True, eq=False)
class Term:
    """One term of a loss, equations (1) and (2).

    Args:
        quantity: "qpos", "qvel", "ctrl", or a quantity measured in the world frame: "body_pos", "body_quat",
            "body_linvel", "body_angvel", the same of "geom" and "site", "site_distance" of two sites,
            "body_com", "subtree_com", "sensor", … (`measures.MEASURES`).
        weight: factor per entry, a number or an array that broadcasts to the selected numbers; per element
            for an orientation.
        target: value to reach, a number or an array that broadcasts to the selected numbers.
        when: "final" (last state, or last control) or "running" (sum over the states 0 … T, or the controls
            0 … T - 1); without `times`.
        index: selected entries of the last axis, from 0; None for all.
        form: "squared" or "linear"; for an orientation "squared", the squared angle to the target.
        times: chosen times, ascending; negative ones count from the end, -1 is the last.
        elements: names, or numbers, of the elements to take; also as `joint` (of qpos and qvel), `actuator`
            (of ctrl), `body`, `geom`, `site` or `sensor`.
        relative_to: measure in the frame of a body, geom or site, e.g. "body:chassis".

    The selected numbers have shape [batch, entries] for a final term, else [batch, time, entries].

    Raises:
        ArgumentError: `quantity`, `when` or `form` is unknown; weight or target is not finite; an index is
            negative or repeated; elements are of another kind than the quantity's.
    """

    quantity: str
    weight: Any = 1.0
    target: Any = 0.0
    when: Moment = "final"
    index: Sequence[int] | None = None
    form: Form = "squared"
    times: Sequence[int] | None = None
    elements: Sequence[str] | None = None
    relative_to: str | None = None
    joint: InitVar[Any] = None
    body: InitVar[Any] = None
    geom: InitVar[Any] = None
    site: InitVar[Any] = None
    sensor: InitVar[Any] = None
    actuator: InitVar[Any] = None

    def __post_init__(self, joint: Any, body: Any, geom: Any, site: Any, sensor: Any, actuator: Any) -> None:
        _check_word("quantity", self.quantity, QUANTITIES, advice=_split_name(self.quantity))
        _check_word("when", self.when, MOMENTS)
        _check_word("form", self.form, FORMS)
        object.__setattr__(self, "weight", finite_float64("weight", self.weight))
        object.__setattr__(self, "target", finite_float64("target", self.target))
        object.__setattr__(self, "index", _checked_index(self.index))
        object.__setattr__(self, "times", _checked_times(self.times))
        if self.times is not None and self.when == "running":
            raise ArgumentError.expected("when", "'final' beside chosen times", "'running'")
        given = dict(zip(KINDS, (joint, body, geom, site, sensor, actuator), strict=True))
        object.__setattr__(self, "elements", self._checked_elements(given))
        check_relative("relative_to", self.quantity, self.relative_to)

    @property
    def kind(self) -> str:
        """Kind of the elements that the quantity is of."""
        return STATE_KINDS.get(self.quantity) or MEASURES[self.quantity].kind

    @property
    def is_rotation(self) -> bool:
        """Whether the term measures an orientation, equation (3)."""
        return self.quantity in MEASURES and MEASURES[self.quantity].probe == "quaternion"

    def _checked_elements(self, given: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the elements, from `elements` or the keyword of their kind."""
        named = {kind: value for kind, value in given.items() if value is not None}
        for kind in named:
            if kind != self.kind:
                raise ArgumentError.expected(
                    kind,
                    f"the {self.kind} that {self.quantity} is of",
                    f"a {kind}",
                    advice=f"give {self.kind}=…",
                )
        is_empty = isinstance(self.elements, (list, tuple)) and not self.elements
        own = None if is_empty else self.elements
        if named and own is not None:
            raise ArgumentError.expected("elements", f"either these or {self.kind}", "both")
        value = named.get(self.kind, own)
        elements = None if value is None else as_elements(self.kind if named else "elements", value)
        count = MEASURES[self.quantity].elements if self.quantity in MEASURES else 1
        if count > 1 and (elements is None or len(elements) != count):
            raise ArgumentError.expected(self.kind, f"{count} elements", _shown(value))
        if self.is_rotation and self.form != "squared":
            raise ArgumentError.expected("form", f"'squared' for {self.quantity}", repr(self.form))
        if self.is_rotation and self.index is not None:
            raise ArgumentError.expected("index", f"none for {self.quantity}", _shown(self.index))
        return elements

    def bind(
        self, batch: int, shape: tuple[int, ...], name: str, selection: Sequence[int] | None = None
    ) -> BoundTerm:
        """Broadcast the term to the shapes of a trajectory.

        Args:
            batch: number of environments.
            shape: (times, entries) of the term's quantity.
            name: name of this term in error texts, e.g. "loss.terms.0".
            selection: entries of the quantity that `elements` stand for, among which `index` selects; None
                for all.

        Raises:
            ArgumentError: index, times, weight or target do not fit the trajectory.
        """
        entries = self._entries(range(shape[1]) if selection is None else selection, name)
        times = self._times(shape[0], name)
        running = self.when == "running"
        count = [len(times) or shape[0]] if running or times else []
        weight = _broadcast(
            f"{name}.weight", self.weight, (batch, *count, len(entries) // (4 if self.is_rotation else 1))
        )
        target = _broadcast(f"{name}.target", self.target, (batch, *count, len(entries)))
        if self.is_rotation:
            weight = np.repeat(weight, 4, axis=-1)
            target = _unit_quaternions(f"{name}.target", target)
        if not count:
            weight, target = weight[:, None], target[:, None]
        form = "rotation" if self.is_rotation else self.form
        return BoundTerm(self.quantity, running, times, form, entries, weight, target)

    def _entries(self, selection: Sequence[int], name: str) -> list[int]:
        """Return the selected entries, checked against the size of the last axis."""
        if self.index is None:
            return list(selection)
        size, largest = len(selection), max(self.index, default=-1)
        if largest >= size:
            of = f"{self.quantity} of {', '.join(self.elements)}" if self.elements else self.quantity
            raise ArgumentError.expected(
                f"{name}.index",
                f"entries from 0 to {size - 1}",
                largest,
                advice=f"{of} has {size} entries",
            )
        return [selection[entry] for entry in self.index]

    def _times(self, count: int, name: str) -> tuple[int, ...]:
        """Return the chosen times from 0, checked against the number of times; empty if none are chosen."""
        if self.times is None:
            return ()
        times = [time + count if time < 0 else time for time in self.times]
        ascending = all(before < after for before, after in itertools.pairwise(times))
        if not ascending or times[0] < 0 or times[-1] >= count:
            raise ArgumentError.expected(
                f"{name}.times",
                f"times from {-count} to {count - 1}, ascending, each once",
                _shown(list(self.times)),
                advice=f"{self.quantity} has {count} times",
            )
        return tuple(times)

    def to_dict(self) -> dict[str, Any]:
        """Return the term as a document; weight and target are arrays."""
        return {
            "quantity": self.quantity,
            "weight": self.weight,
            "target": self.target,
            "when": self.when,
            "index": None if self.index is None else list(self.index),
            "form": self.form,
            "times": None if self.times is None else list(self.times),
            "elements": None if self.elements is None else list(self.elements),
            "relative_to": self.relative_to,
        }


@dataclass(frozen=True, eq=False)
class Loss:
    """A sum of terms, e.g. `Loss([Term("qpos", target=[0.05, 0, 0.45], index=[0, 1, 2])])`.

    Args:
        terms: the terms, at least one.

    Raises:
        ArgumentError: no terms, or an entry that is not a Term.
    """

    terms: Sequence[Term] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        if not isinstance(self.terms, Term | Iterable):
            raise ArgumentError.expected("loss.terms", "a list of revolute.Term", type(self.terms).__name__)
        terms = (self.terms,) if isinstance(self.terms, Term) else tuple(self.terms)
        if not terms:
            raise ArgumentError.expected("loss.terms", "at least one term", "none")
        for position, term in enumerate(terms):
            if not isinstance(term, Term):
                raise ArgumentError.expected(f"loss.terms.{position}", "a revolute.Term", type(term).__name__)
        object.__setattr__(self, "terms", terms)

    def evaluate(self, qpos: Any, qvel: Any, ctrl: Any) -> LossValue:
        """Return the loss of a trajectory and its cotangents.

        Args:
            qpos: [batch, T + 1, nq], or [T + 1, nq].
            qvel: [batch, T + 1, nv], or [T + 1, nv].
            ctrl: [batch, T, nu], or [T, nu].

        Returns:
            LossValue in new arrays, with a batch axis if the input has one.

        Raises:
            ArgumentError: a term does not fit the trajectory.
        """
        arrays = {
            "qpos": as_float64("qpos", qpos),
            "qvel": as_float64("qvel", qvel),
            "ctrl": as_float64("ctrl", ctrl),
        }
        batched = arrays["qpos"].ndim == 3
        if not batched:
            arrays = {name: array[None] for name, array in arrays.items()}

        batch = len(arrays["qpos"])
        self.check_needs_no_model()
        total = LossValue(np.zeros(batch), *(np.zeros_like(array) for array in arrays.values()))
        with np.errstate(invalid="ignore", over="ignore"):
            for term in self.bind(batch, {name: array.shape[1:] for name, array in arrays.items()}):
                term.add_to(total, arrays[term.quantity])
        _mark_diverged(total, arrays)
        _check_overflow(total, arrays)
        return total if batched else LossValue(*(part[0, ...] for part in total))

    def check_needs_no_model(self) -> None:
        """Check that the loss can be evaluated without the model.

        Raises:
            ArgumentError: a term measures, or names elements.
        """
        for position, term in enumerate(self.terms):
            if term.quantity in MEASURES or term.elements is not None:
                raise ArgumentError.expected(
                    f"loss.terms.{position}",
                    "qpos, qvel or ctrl without names of elements",
                    term.quantity,
                    advice="only value_and_gradient, which has the model, evaluates it",
                )

    def bind(self, batch: int, shapes: Mapping[str, tuple[int, ...]]) -> list[BoundTerm]:
        """Broadcast the terms to the shapes of a trajectory. Terms of an empty ctrl (T = 0) are dropped.

        Args:
            batch: number of environments.
            shapes: (times, entries) of each quantity.

        Raises:
            ArgumentError: a term does not fit the trajectory.
        """
        return [
            term.bind(batch, shapes[term.quantity], f"loss.terms.{position}")
            for position, term in enumerate(self.terms)
            if shapes[term.quantity][0]
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the loss as a document for `Loss.from_dict`."""
        return {"terms": [term.to_dict() for term in self.terms]}

    @classmethod
    def from_dict(cls, data: Any) -> Loss:
        """Build a loss from the output of `to_dict`, or from the same data with lists for arrays.

        Args:
            data: mapping with a list `terms` of mappings with the fields of Term.

        Raises:
            ArgumentError: the data has a wrong structure or unknown fields.
        """
        if not isinstance(data, Mapping) or set(data) != {"terms"} or not isinstance(data["terms"], Sequence):
            raise ArgumentError.expected("loss", "an object with a list 'terms'", _shown(data))
        return cls(
            [_term_from_dict(entry, f"loss.terms.{position}") for position, entry in enumerate(data["terms"])]
        )


def check_loss(loss: Any, *, or_function: bool = False) -> Loss:
    """Return a Loss or Term as a Loss.

    Args:
        loss: the loss.
        or_function: whether the error text should mention that functions are accepted too.

    Raises:
        ArgumentError: `loss` is neither, e.g. a list of terms.
    """
    if isinstance(loss, Term):
        return Loss([loss])
    if isinstance(loss, Loss):
        return loss
    raise ArgumentError.expected(
        "loss",
        "a revolute.Term, a revolute.Loss or a function"
        if or_function
        else "a revolute.Term or a revolute.Loss",
        _shown(loss),
        advice="several terms are revolute.Loss([...])"
        + (", a function returns (value, qpos_bar, qvel_bar)" if or_function else ""),
    )


def _term_from_dict(data: Any, name: str) -> Term:
    fields = set(Term.__dataclass_fields__) - set(KINDS)
    if not isinstance(data, Mapping) or "quantity" not in data:
        raise ArgumentError.expected(name, "an object with a field 'quantity'", _shown(data))
    unknown = sorted(set(data) - fields)
    if unknown:
        raise ArgumentError.expected(
            f"{name}.{unknown[0]}", f"a field among {', '.join(sorted(fields))}", unknown[0]
        )
    try:
        return Term(**data)
    except ArgumentError as error:
        raise ArgumentError(f"{name}.{error.message}", argument=f"{name}.{error.argument}") from None


def _check_overflow(total: LossValue, arrays: Mapping[str, Float64Array]) -> None:
    """Raise an error if a loss overflows on a finite trajectory."""
    ended = np.all([np.isfinite(array).all(axis=(1, 2)) for array in arrays.values()], axis=0)
    counted = np.all([np.isfinite(part.reshape(len(part), -1)).all(axis=1) for part in total], axis=0)
    check_within_float64(total.value, ended & ~counted)


def check_within_float64(value: Float64Array | float, overflown: npt.NDArray[np.bool_]) -> None:
    """Raise an error if the loss of an environment overflowed.

    Args:
        value: the loss, [batch], or one number for all.
        overflown: [batch], True where the trajectory is finite, but the loss or a derivative is not.

    Raises:
        ArgumentError: an entry of `overflown` is True.
    """
    if np.count_nonzero(overflown):
        first = np.flatnonzero(overflown)[0]
        raise ArgumentError.expected(
            "loss",
            "a value and derivatives within float64",
            str(np.broadcast_to(value, overflown.shape)[first]),
            at=f"environment {first}",
            advice="use smaller weights or targets",
        )


def _mark_diverged(total: LossValue, arrays: Mapping[str, Float64Array]) -> None:
    """Set value to NaN and cotangents to zero for environments with non-finite states."""
    finite = np.isfinite(arrays["qpos"]).all(axis=(1, 2)) & np.isfinite(arrays["qvel"]).all(axis=(1, 2))
    total.value[~finite] = np.nan
    for bar in (total.qpos_bar, total.qvel_bar, total.ctrl_bar):
        bar[~finite] = 0.0


def _check_word(argument: str, word: Any, allowed: Sequence[str], *, advice: str = "") -> None:
    if not isinstance(word, str) or word not in allowed:
        raise ArgumentError.expected(argument, f"one of {', '.join(allowed)}", _shown(word), advice=advice)


def _split_name(word: Any) -> str:
    """Return how a term writes the name of one element's measure, such as "site_pos:hand@body:chassis"."""
    quantity, colon, _ = word.partition(":") if isinstance(word, str) else ("", "", "")
    if not colon or quantity not in MEASURES:
        return ""
    named = measure_of("quantity", word)
    keywords = {MEASURES[quantity].kind: named.element, "relative_to": named.relative_to}
    shown = ", ".join(f"{key}={_shown(value)}" for key, value in keywords.items() if value)
    return f"write Term({quantity!r}, {shown})"


def _checked_index(index: Any) -> tuple[int, ...] | None:
    """Return an index as a tuple of distinct non-negative integers."""
    if index is None:
        return None
    try:
        array = np.atleast_1d(np.asarray(index))
    except ValueError:  # rows of different lengths
        raise ArgumentError.expected("index", "whole numbers from 0", _shown(index)) from None
    if array.ndim != 1 or (array.size and (array.dtype.kind not in "iu" or array.min() < 0)):
        raise ArgumentError.expected("index", "whole numbers from 0", _shown(index))
    entries = tuple(int(entry) for entry in array)
    if len(set(entries)) != len(entries):
        raise ArgumentError.expected("index", "each entry once", list(entries))
    return entries


def _checked_times(times: Any) -> tuple[int, ...] | None:
    """Return times as a tuple of integers."""
    if times is None:
        return None
    try:
        array = np.atleast_1d(np.asarray(times))
    except ValueError:  # rows of different lengths
        array = np.zeros(0)
    if not array.size or array.dtype.kind not in "iu" or array.ndim != 1:
        raise ArgumentError.expected("times", "at least one whole number", _shown(times))
    return tuple(int(time) for time in array)


def _unit_quaternions(argument: str, target: Float64Array) -> Float64Array:
    """Return targets [..., 4 n] with each quaternion normalised."""
    quaternions = target.reshape(*target.shape[:-1], -1, 4)
    lengths = np.linalg.norm(quaternions, axis=-1, keepdims=True)
    if (lengths < 1e-8).any():
        raise ArgumentError.expected(
            argument, "a quaternion (w x y z) of non-zero length", "zeros", advice="at rest it is [1 0 0 0]"
        )
    return (quaternions / lengths).reshape(target.shape)


def _broadcast(argument: str, array: Float64Array, shape: tuple[int, ...]) -> Float64Array:
    """Broadcast `array` to `shape`; an error if it does not fit."""
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ArgumentError.expected(
            argument, f"a number or a shape that broadcasts to {list(shape)}", list(array.shape)
        ) from None


def _shown(value: Any) -> str:
    """Format a value for an error text."""
    if callable(value):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
