"""Files of trajectories: what a rollout began with, from which any engine simulates it again."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .contract.codec.npz import pack_npz, unpack_npz
from .contract.errors import ArgumentError, NotFoundError, RevoluteError
from .model import Source

if TYPE_CHECKING:
    from .trajectory import Trajectory

_FORMAT = 1


def write(trajectory: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write the inputs of a trajectory, its model's source and its final state as an NPZ file.

    Raises:
        ArgumentError: the file cannot be written.
    """
    source = trajectory.model.source
    document = {
        "revolute_trajectory": _FORMAT,
        "model": {
            "name": source.name,
            "text": source.text,
            "builtin": source.builtin,
            "options": dict(source.options),
            "assets": [[name, base64.b64encode(content).decode()] for name, content in source.assets.items()],
        },
        "checkpoints": str(trajectory.checkpoints),
        "hold": trajectory.hold,
        "inputs": {
            "qpos": np.array(trajectory.qpos[..., 0, :]),
            "qvel": np.array(trajectory.qvel[..., 0, :]),
            "ctrl": np.array(trajectory.ctrl),
        },
        "params": {name: np.asarray(value) for name, value in trajectory.params.items()},
        "final": {"qpos": np.array(trajectory.final_qpos), "qvel": np.array(trajectory.final_qvel)},
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
            "params": document.get("params") or None,
            "checkpoints": document["checkpoints"],
            "hold": document["hold"],
        }
        return source, arguments, document["final"]
    except (RevoluteError, KeyError, TypeError, ValueError):
        raise ArgumentError.expected("path", "a file of Trajectory.save", f"another one at {path}") from None
