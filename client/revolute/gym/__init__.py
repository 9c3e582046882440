"""Gymnasium environments on revolute; importing this module registers those of `NAMED_TASKS`, and "Model-v0".

    env = gymnasium.make("revolute/Ant-v0")
    envs = gymnasium.make_vec("revolute/Ant-v0", num_envs=64, vectorization_mode="vector_entry_point")
    env = gymnasium.make("revolute/Model-v0", model="robot.urdf", task="task.json")

All take `address` ("grpc://host:50051"; None for this process), `threads` of the engine in this process,
`derivatives`, `load` (options of `Simulator.load_model`), and attributes of the task such as `hold`. `task`
is a `Task`, its document (`Task.from_dict`), or a JSON file with it. `Env` and `VectorEnv` make environments
of a simulator and a model.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

try:
    import gymnasium
except ImportError as error:
    raise ImportError("revolute.gym needs gymnasium; install it with: pip install 'revolute[gym]'") from error

from ..connection import connect
from ..contract.errors import ArgumentError, NotFoundError
from ..contract.task import Task, Transition
from ..simulator import Simulator
from .env import Env, VectorEnv
from .tasks import NAMED_TASKS, NamedTask, noise

__all__ = [
    "NAMED_TASKS",
    "Env",
    "NamedTask",
    "Task",
    "Transition",
    "UnknownArgumentError",
    "VectorEnv",
    "noise",
]


@functools.lru_cache(maxsize=16)
def _simulator(address: str | None, threads: int | None) -> Simulator:
    """Return the simulator that registered environments share."""
    return connect(address or None, threads=threads)


def _named(model: str, task: Task | Mapping[str, Any] | str | os.PathLike[str]) -> NamedTask:
    """Return a model and a task that the user names.

    Raises:
        ArgumentError: there is no model, the file is not JSON, or its content is not a task.
        NotFoundError: there is no such file.
    """
    if not model:
        raise ArgumentError.expected(
            "model", "a file or the name of a built-in model", "none", advice='give model="robot.urdf"'
        )
    if isinstance(task, Task):
        return NamedTask(model, task)
    if not isinstance(task, (str, os.PathLike)):
        return NamedTask(model, Task.from_dict(task))
    try:
        document = json.loads(Path(task).read_text(encoding="utf-8"))
    except OSError as error:
        raise NotFoundError.expected(
            "task", "a readable file with JSON", f"{task} ({error.strerror})"
        ) from None
    except ValueError as error:
        raise ArgumentError.expected("task", "a file with JSON", f"{task} ({error})") from None
    return NamedTask(model, Task.from_dict(document))


_OPTIONS: dict[Any, frozenset[str]] = {
    Env: frozenset({"derivatives"}),
    VectorEnv: frozenset({"derivatives", "autoreset_mode"}),
}
"""Arguments of `gymnasium.make` and `make_vec` that are neither of the task nor of `make_env`."""


class UnknownArgumentError(ArgumentError, TypeError):
    """An argument of `gymnasium.make` that no environment of revolute has.

    It is a TypeError, as of any function: after one, stable-baselines3 leaves out `render_mode`.
    """


def _make(
    kind: Any,
    named: NamedTask,
    fields: dict[str, Any],
    address: str | None,
    threads: int | None,
    load: Mapping[str, Any] | None,
    **arguments: Any,
) -> Any:
    known = {field.name for field in dataclasses.fields(Task)}
    if fields.pop("render_mode", None) is not None:
        raise UnknownArgumentError.expected(
            "render_mode", "none", "one", advice="draw rollouts with Trajectory.render"
        )
    taken = known | _OPTIONS[kind]
    if unknown := sorted(fields.keys() - taken):
        wanted = ", ".join(sorted({*taken, "address", "load", "threads"}))
        raise UnknownArgumentError.expected(unknown[0], f"an argument among {wanted}", repr(unknown[0]))
    task = dataclasses.replace(named.task, **{key: fields.pop(key) for key in known & fields.keys()})
    sim = _simulator(address, threads)
    model = sim.load_model(named.source, **{**named.options, **(load or {})})
    return kind(sim, model, task, **arguments, **fields)


def make_env(
    name: str | None = None,
    *,
    model: str = "",
    task: Task | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    address: str | None = None,
    threads: int | None = None,
    load: Mapping[str, Any] | None = None,
    **options: Any,
) -> Env:
    """Make the environment of a named task, or of a model and a task, in process or on a server."""
    named = _named(model, task or {}) if name is None else NAMED_TASKS[name]
    env: Env = _make(Env, named, options, address, threads, load)
    return env


def make_vector_env(
    name: str | None = None,
    num_envs: int = 1,
    *,
    model: str = "",
    task: Task | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    address: str | None = None,
    threads: int | None = None,
    load: Mapping[str, Any] | None = None,
    **options: Any,
) -> VectorEnv:
    """Make a vector of environments; see `make_env`."""
    named = _named(model, task or {}) if name is None else NAMED_TASKS[name]
    envs: VectorEnv = _make(VectorEnv, named, options, address, threads, load, num_envs=num_envs)
    return envs


for _name in (*NAMED_TASKS, None):
    gymnasium.register(
        f"revolute/{_name or 'Model-v0'}",
        entry_point="revolute.gym:make_env",
        vector_entry_point="revolute.gym:make_vector_env",
        kwargs={} if _name is None else {"name": _name},
    )
