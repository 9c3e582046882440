"""Files of trajectories. They hold the inputs of a rollout, from which any engine simulates it again."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .contract.codec.npz import pack_npz, unpack_npz
from .contract.controllers import STEP_INPUTS
from .contract.errors import ArgumentError, NotFoundError, RevoluteError
from .model import Source

_FORMAT = 1


def write(source: Source, run: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a rollout as an NPZ file.

    Args:
        source: the model's.
        run: `checkpoints`, `hold`, `inputs` (qpos, qvel, ctrl, and those of `STEP_INPUTS` that were given),
            `params` and `final` (qpos, qvel).
        path: the file.

    Raises:
        ArgumentError: the file cannot be written.
    """
    document = {
        "revolute_trajectory": _FORMAT,
        "model": {
            "name": source.name,
            "text": source.text,
            "builtin": source.builtin,
            "options": dict(source.options),
            "assets": [[name, base64.b64encode(content).decode()] for name, content in source.assets.items()],
        },
        **run,
    }
    content = pack_npz(document)
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise ArgumentError.expected(
            "path", "a file that can be written", f"{path} ({error.strerror})"
        ) from None


def read(path: str | os.PathLike[str]) -> tuple[Source, dict[str, Any], Mapping[str, np.ndarray]]:
    """Read a file of `write`.

    Returns:
        The source of the model, the arguments of `Simulator.rollout`, and the final state.

    Raises:
        NotFoundError: there is no such file.
        ArgumentError: it is not a file of `Trajectory.save`.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"path: expected a file, got none at {path}", argument="path") from None
    except OSError as error:
        raise ArgumentError.expected(
            "path", "a file that can be read", f"{path} ({error.strerror})"
        ) from None
    try:
        document = unpack_npz(content)
        if document["revolute_trajectory"] != _FORMAT:
            raise KeyError
        model = document["model"]
        assets = {name: base64.b64decode(text) for name, text in model["assets"]}
        source = Source(model["name"], model["text"], model["builtin"], assets, model["options"])
        arguments = {
            **{name: document["inputs"][name] for name in ("qpos", "qvel", "ctrl")},
            **{name: array for name, array in document["inputs"].items() if name in STEP_INPUTS},
            "params": document.get("params") or None,
            "checkpoints": document["checkpoints"],
            "hold": document["hold"],
        }
        return source, arguments, document["final"]
    except (RevoluteError, KeyError, TypeError, ValueError):
        raise ArgumentError.expected("path", "a file of Trajectory.save", f"another one at {path}") from None
