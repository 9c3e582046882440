"""Divides the batch of a call into shards, and puts the shards' answers together.

The shards follow from the batch and its length alone, and sums over environments add theirs in order.
So bits depend neither on the number of workers nor on which worker computes a shard, and when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..contract.controllers import STEP_INPUTS

Document = dict[str, Any]

_MOST_SHARDS = 16
"""A call has at most this many shards."""

_LEAST_STEPS = 4096
"""A shard has at least this many steps of environments: several ms, so that Ray's 1 ms a call is small."""

_MULTIPLE = 16
"""Environments of a shard are a multiple of this, so that shards fill the engine's packs."""

_AXES = {
    "qpos": 1,
    "qvel": 1,
    "ctrl": 2,
    "qfrc_applied": 2,
    "xfrc_applied": 3,
    "mocap_pos": 3,
    "mocap_quat": 3,
    "feedback.gain": 3,
    "feedback.qpos": 2,
    "feedback.qvel": 2,
    "policy.weights": 1,
    "policy.goal": 2,
}
"""Axes of an input of one environment, by its name in `wrt`."""

_BY_ENVIRONMENT = ("qpos", "qvel", "ctrl")
"""Inputs whose gradient is never summed over environments."""


def shard_slices(batch: int, steps: int) -> list[slice]:
    """Divide a batch.

    Args:
        batch: number of environments.
        steps: steps of each.
    """
    size = max(-(-batch // _MOST_SHARDS), -(-_LEAST_STEPS // max(1, steps)))
    size = -(-size // _MULTIPLE) * _MULTIPLE
    return [slice(first, min(first + size, batch)) for first in range(0, batch, size)]


class Inputs:
    """The inputs of a call, whose arrays may have a batch axis.

    Args:
        document: the message RolloutInputs or JacobianInputs.
        params_axes: axes of each parameter of the model.
        ctrl_axes: axes of the controls of one environment.

    Attributes:
        batch: number of environments; None if no array has a batch axis.
        steps: steps of each environment.
    """

    def __init__(self, document: Mapping[str, Any], params_axes: Mapping[str, int], ctrl_axes: int) -> None:
        # those of one step have no axis of time
        of_step = {name: _AXES[name] + ctrl_axes - _AXES["ctrl"] for name in STEP_INPUTS}
        self._axes = {**_AXES, **params_axes, **of_step, "ctrl": ctrl_axes}
        self._given = {name: value for name, value in document.items() if value is not None}
        self.batch: int | None = None
        if np.ndim(document["ctrl"]) > ctrl_axes:
            self.batch = max(len(array) for array in self._batched().values())
        rows = np.shape(document["ctrl"])[-2] if ctrl_axes == 2 else 1
        self.steps = rows * (document.get("hold") or 1)

    def part(self, rows: slice) -> Document:
        """Return the message for some environments."""

        def divided(name: str, value: Any) -> Any:
            if name not in self._axes or np.ndim(value) <= self._axes[name]:
                return value
            # an axis of length 1 repeats; start and controls of each environment have a gradient of their own
            if len(value) == 1 and name in _BY_ENVIRONMENT:
                return np.repeat(value, rows.stop - rows.start, axis=0)
            return value if len(value) == 1 else value[rows]

        return _mapped(self._given, divided)

    def is_shared(self, name: str) -> bool:
        """Tell whether the gradient by an input is a sum over environments."""
        value = self._flat().get(name)
        if name in _BY_ENVIRONMENT:
            return False
        return value is None or np.ndim(value) <= self._axes[name] or len(value) == 1

    def _batched(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in self._flat().items()
            if name in self._axes and np.ndim(value) > self._axes[name]
        }

    def _flat(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        _mapped(self._given, lambda name, value: found.setdefault(name, value))
        return found


def _mapped(given: Mapping[str, Any], change: Callable[[str, Any], Any]) -> Document:
    """Apply a function to each named array of RolloutInputs."""
    result = {name: change(name, value) for name, value in given.items()}
    if "params" in given:
        result["params"] = {name: change(name, value) for name, value in given["params"].items()}
    for group in ("feedback", "policy"):
        if group in given:
            result[group] = {
                name: value if value is None else change(f"{group}.{name}", value)
                for name, value in given[group].items()
            }
    return result


def part_of_loss(loss: Mapping[str, Any], batch: int, rows: slice) -> Document:
    """Return the message Loss for some of the environments."""

    def part(term: Mapping[str, Any]) -> Document:
        # [batch, numbers] at the final state, else [batch, time, numbers]
        axes = 3 if term["when"] == "running" or term["times"] else 2
        arrays = {
            name: term[name][rows] if np.ndim(term[name]) == axes and len(term[name]) == batch else term[name]
            for name in ("weight", "target")
        }
        return {**term, **arrays}

    return {**loss, "terms": [part(term) for term in loss["terms"]]}


def part_of_bars(document: Mapping[str, Any], rows: slice) -> Document:
    """Return cotangents [..., batch, time, n] of some of the environments."""
    names = ("qpos_bar", "qvel_bar", "ctrl_bar")
    bars = {name: document[name][..., rows, :, :] for name in names if document.get(name) is not None}
    return {**document, **bars}


def joined(answers: Sequence[Document]) -> Document:
    """Put messages together whose arrays all begin with the batch axis: Trajectory, for example."""
    first = answers[0]
    found = dict(first)
    for name, value in first.items():
        if isinstance(value, np.ndarray):
            found[name] = np.concatenate([answer[name] for answer in answers])
        elif name == "measured":
            found[name] = joined([answer[name] for answer in answers])
    if "report" in first:
        found["report"] = _total_report(answers)
    return found


def joined_gradients(gradients: Sequence[Document], inputs: Inputs, *, stacked: bool = False) -> Document:
    """Put messages Gradient together.

    Args:
        gradients: the shards' messages.
        inputs: the inputs of the rollout.
        stacked: whether the arrays have a leading axis K of cotangents.
    """
    first = gradients[0]
    found = dict(first)
    # where every environment diverged, a sum is NaN; as in one call, the others have a sum without them
    counted = [gradient for gradient in gradients if not gradient["status"].all()] or gradients
    found["arrays"] = {
        name: _sum(gradient["arrays"][name] for gradient in counted)
        if inputs.is_shared(name)
        else np.concatenate([gradient["arrays"][name] for gradient in gradients], int(stacked))
        for name in first["arrays"]
    }
    for name in ("status", "clipped"):
        if name in first:
            found[name] = np.concatenate([gradient[name] for gradient in gradients], axis=-1)
    found["report"] = _total_report(gradients)
    # remarks that all shards share
    found["notes"] = [note for note in first["notes"] if all(note in other["notes"] for other in gradients)]
    return found


def _sum(arrays: Iterable[np.ndarray]) -> np.ndarray:
    """Add arrays one after the other."""
    rest = iter(arrays)
    total = np.array(next(rest))
    for array in rest:
        total += array
    return total


def _total_report(answers: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    first = answers[0]["report"]
    return {name: sum(answer["report"][name] for answer in answers) for name in first}
