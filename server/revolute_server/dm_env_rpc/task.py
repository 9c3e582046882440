"""What a world is made of, read from its settings: its model, its task, and what only dm_env knows."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from revolute.contract.errors import ArgumentError
from revolute.contract.task import DATA, Task
from revolute_engine import Model

MODEL_SETTINGS = ("model", "model_id", "text")
OPTION = "options."

START_SETTINGS = ("qpos", "qvel", "seed")
"""Settings that a reset may change."""

TASK_SETTINGS = tuple(name for name in DATA if name != "diverged_reward")
"""Attributes of a `Task`; a world that diverges answers with an error."""

WORLD_SETTINGS = (*TASK_SETTINGS, "seed", "discount")

_ACTION_LIMIT = 1000.0
"""Default of `action_limit`, because every action of dm_env has a range."""


@dataclasses.dataclass(frozen=True)
class WorldTask:
    """A task and what a world adds to it.

    Attributes:
        task: the task.
        seed: seed of the starts; None for a random one.
        discount: discount of each action that does not terminate the episode; None to leave it to the agent.
    """

    task: Task
    seed: int | None = None
    discount: float | None = None


def model_request(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the RegisterModel request for a world's settings, or {"model_id": …} for a registered model.

    Raises:
        ArgumentError: not exactly one of model, model_id and text is set, or a setting is unknown.
    """
    for name in settings:
        if name not in (*MODEL_SETTINGS, *WORLD_SETTINGS) and not name.startswith(OPTION):
            known = ", ".join((*MODEL_SETTINGS, f"{OPTION}NAME", *WORLD_SETTINGS))
            raise ArgumentError.expected("settings", f"names among {known}", repr(name[:80]))
    named = [name for name in MODEL_SETTINGS if name in settings]
    if len(named) != 1:
        raise ArgumentError.expected(
            "settings", f"one of {', '.join(MODEL_SETTINGS)}", ", ".join(named) or "none of them"
        )
    source = named[0]
    if not isinstance(settings[source], str):
        raise ArgumentError.expected(source, "text", type(settings[source]).__name__)
    options = {
        name.removeprefix(OPTION): _scalar(name, value)
        for name, value in settings.items()
        if name.startswith(OPTION)
    }
    if source != "model_id":
        return {"builtin" if source == "model" else "text": settings[source], "options": options}
    if options:
        raise ArgumentError.expected("options", "none with model_id", ", ".join(sorted(options)))
    return {"model_id": settings["model_id"]}


def read_task(model: Model, settings: Mapping[str, Any]) -> WorldTask:
    """Read the task from the settings of a world.

    Raises:
        ArgumentError: a setting has a wrong type, shape or range, or the reward does not fit the model.
    """
    document = {name: _plain(settings[name]) for name in TASK_SETTINGS if name in settings}
    if "reward" in document:
        document["reward"] = _parsed(document["reward"])
    task = Task.from_dict({"action_limit": _ACTION_LIMIT, **document})
    discount = _plain(settings.get("discount"))
    known = isinstance(discount, int | float) and not isinstance(discount, bool)
    if discount is not None and not (known and 0 <= discount <= 1):
        raise ArgumentError.expected("discount", "a number from 0 to 1", repr(discount)[:60])
    return restarted(WorldTask(task, discount=discount), model, settings)


def restarted(found: WorldTask, model: Model, settings: Mapping[str, Any]) -> WorldTask:
    """Return the task with the start settings replaced, checked against the model.

    Raises:
        ArgumentError: a setting has a wrong type or shape.
    """
    start = {name: settings[name] for name in ("qpos", "qvel") if name in settings}
    task = dataclasses.replace(found.task, **start)
    task.check(model)
    seed = _plain(settings["seed"]) if "seed" in settings else found.seed
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise ArgumentError.expected("seed", "a whole number of at least 0", repr(seed)[:60])
    return dataclasses.replace(found, task=task, seed=seed)


def check_names(settings: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Refuse unknown settings.

    Raises:
        ArgumentError: a setting is unknown.
    """
    for name in settings:
        if name not in known:
            raise ArgumentError.expected(
                "settings", f"names among {', '.join(known)}" if known else "none", repr(name[:80])
            )


def _plain(value: Any) -> Any:
    """Return a scalar as a Python number, bool or str, and an array of words as a list."""
    if isinstance(value, np.generic):
        return value.item()
    return value.tolist() if isinstance(value, np.ndarray) and value.dtype.kind in "UO" else value


def _scalar(name: str, value: Any) -> Any:
    if np.ndim(value):
        raise ArgumentError.expected(name, "a scalar", f"an array of shape {list(np.shape(value))}")
    return _plain(value)


def _parsed(value: Any) -> Any:
    """Return the document of a loss as JSON text."""
    if not isinstance(value, str):
        raise ArgumentError.expected("reward", "a loss as JSON text", type(value).__name__)
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ArgumentError.expected("reward", "a loss as JSON text", repr(value[:60])) from None
