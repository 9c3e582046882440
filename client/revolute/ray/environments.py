"""The environments of `revolute.gym` for RLlib, whose workers make them by name."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from ..gym import NAMED_TASKS, make_env, make_vector_env

PREFIX = "revolute/"


def create(name: str | None, config: Mapping[str, Any]) -> Any:
    """Make an environment as RLlib asks for it.

    Args:
        name: a name in `NAMED_TASKS`; None for the model and the task in `config`.
        config: RLlib's `env_config`: arguments of `gymnasium.make`. With `num_envs` it makes a VectorEnv,
            which takes its steps in one call.
    """
    # an engine for each worker: its threads would compete with the other workers'
    options = {"threads": None if config.get("address") else 1, **config}
    if "num_envs" in options:
        return make_vector_env(name, **options)
    return make_env(name, **options)


def register_envs() -> list[str]:
    """Register the environments with RLlib, under the names that Gymnasium has.

    `env_config` takes the arguments of `gymnasium.make`, such as `address`, and `threads` (default: one for
    each env runner). With `env_runners(gym_env_vectorize_mode="vector_entry_point")` the environments of an
    env runner take their steps in one call.

    Returns:
        The names: "revolute/Ant-v0", …, and "revolute/Model-v0".

    Raises:
        ImportError: RLlib is not installed.
    """
    try:
        from ray.tune import register_env
    except ImportError as error:
        raise ImportError(f"register_envs needs RLlib ({error}); pip install 'ray[rllib]'") from error
    names = {f"{PREFIX}{name or 'Model-v0'}": name for name in (*NAMED_TASKS, None)}
    for public, name in names.items():
        register_env(public, functools.partial(create, name))
    return list(names)
