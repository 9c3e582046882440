"""Gymnasium environments on revolute; importing this module registers those of `NAMED_TASKS`.

    env = gymnasium.make("revolute/Ant-v0")
    envs = gymnasium.make_vec("revolute/Ant-v0", num_envs=64, vectorization_mode="vector_entry_point")

Both take `address` ("grpc://host:50051"; None for this process), `derivatives`, and fields of the task such
as `hold`. `Env` and `VectorEnv` make environments from any model and `Task`.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

try:
    import gymnasium
except ImportError as error:
    raise ImportError("revolute.gym needs gymnasium; install it with: pip install 'revolute[gym]'") from error

from ..connection import connect
from ..simulator import Simulator
from .env import Env, VectorEnv
from .task import Task, Transition
from .tasks import NAMED_TASKS, NamedTask, noise

__all__ = ["NAMED_TASKS", "Env", "NamedTask", "Task", "Transition", "VectorEnv", "noise"]


@functools.lru_cache(maxsize=16)
def _simulator(address: str | None) -> Simulator:
    """Return the simulator that registered environments share."""
    return connect(address) if address else connect()


def _make(kind: Any, name: str, address: str | None, fields: dict[str, Any], **arguments: Any) -> Any:
    named = NAMED_TASKS[name]
    known = {field.name for field in dataclasses.fields(Task)}
    task = dataclasses.replace(named.task, **{key: fields.pop(key) for key in known & fields.keys()})
    sim = _simulator(address)
    return kind(sim, sim.load_model(named.source, **named.options), task, **arguments, **fields)


def make_env(name: str, address: str | None = None, **options: Any) -> Env:
    """Make the environment of a named task, in process or on a server."""
    env: Env = _make(Env, name, address, options)
    return env


def make_vector_env(name: str, num_envs: int = 1, address: str | None = None, **options: Any) -> VectorEnv:
    """Make a vector of environments of a named task, in process or on a server."""
    envs: VectorEnv = _make(VectorEnv, name, address, options, num_envs=num_envs)
    return envs


for _name in NAMED_TASKS:
    gymnasium.register(
        f"revolute/{_name}",
        entry_point="revolute.gym:make_env",
        vector_entry_point="revolute.gym:make_vector_env",
        kwargs={"name": _name},
    )
