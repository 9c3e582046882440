"""The models of the server: registered by content, looked up by id."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from revolute.errors import ArgumentError
from revolute_engine import Model, load_model
from revolute_engine import models as builtin_models

from .engine_pool import EnginePool
from .memory import MemoryBudget
from .registry import Registry

OPTIONS = (
    "base",
    "ground",
    "fuse_fixed",
    "timestep",
    "solver",
    "iterations",
    "contact",
    "limits",
    "dry_friction",
    "erp",
    "cfm",
    "restitution",
    "margin",
)
"""The options of `revolute_engine.load_model` that a client may set; none of them reaches the file system."""


@dataclasses.dataclass(frozen=True)
class Source:
    """What a client sends to have a model made: text and assets, or the name of a built-in model."""

    text: str = ""
    builtin: str = ""
    name: str = ""
    assets: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.text) + sum(len(content) for content in self.assets.values())


class Models:
    """RegisterModel, GetModel and ListModels."""

    def __init__(self, pool: EnginePool, budget: MemoryBudget, limit: int) -> None:
        self._pool = pool
        self._budget = budget
        self._models: Registry[Model] = Registry("model", limit)

    async def register(self, source: Source) -> Model:
        """Compile a model and keep it under the hash of its content; the same content gives the same model.

        Raises:
            ArgumentError: neither text nor a built-in name was given, or an option is unknown.
            ModelError: the text does not compile or asks for something unsupported.
            LimitError: there is no room for another model.
        """
        _check(source)
        with self._budget.reserve("a model", source.size) as reservation:
            model = await self._pool.run(lambda _token: _load(source))
            if model.id in self._models:
                return self._models.get(model.id)
            reservation.grow(sum(np.asarray(array).nbytes for array in model.arrays.values()))
            self._models.add(model.id, model, reservation)
            return model

    def get(self, model_id: str) -> Model:
        """Look a model up by its id.

        Raises:
            NotFoundError: it was not registered.
        """
        return self._models.get(model_id)

    def registered(self) -> list[Model]:
        """Return every registered model, oldest first."""
        return list(self._models)

    def builtins(self) -> list[str]:
        """Return the names that can be registered without a text."""
        return list(builtin_models())

    def __len__(self) -> int:
        return len(self._models)


def _check(source: Source) -> None:
    if bool(source.text) == bool(source.builtin):
        raise ArgumentError.expected(
            "source",
            "either a model's text or the name of a built-in model",
            "both" if source.text else "neither",
        )
    for option in source.options:
        if option not in OPTIONS:
            raise ArgumentError.expected(
                "options", f"names among {', '.join(OPTIONS)}", repr(option[:80]), advice="check the spelling"
            )


def _load(source: Source) -> Model:
    """Run MuJoCo's compiler on text and bytes only; no path that a client names is ever opened."""
    return load_model(
        # bytes are always a model's text, never a name or a path
        source.text.encode() if source.text else source.builtin,
        assets=source.assets or None,
        name=source.name or None,
        allow_files=False,
        # the client warns its user; this process has none
        warn=False,
        **source.options,
    )
