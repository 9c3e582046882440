"""Converts a loaded model to plain values and back, so one process can compile it and another simulate it.

The document contains only lists, numbers, strings and arrays, so reading one from an untrusted process runs
no code. The compiled MuJoCo model is stored in MuJoCo's binary format (mjb). The text and the files are left
out, because the reader has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from . import native
from ._model import Model

_PLAIN = ("id", "name", "options", "notes", "warnings")
_FILE = "model.mjb"


def to_document(model: Model) -> dict[str, Any]:
    """Return the model as a document for `from_document`."""
    binary = np.empty(mujoco.mj_sizeModel(model.mujoco_model), np.uint8)
    mujoco.mj_saveModel(model.mujoco_model, None, binary)
    return {
        **{name: getattr(model, name) for name in _PLAIN},
        # a list keeps the order of the file
        "keyframes": [[name, qpos] for name, qpos in model.keyframes.items()],
        "arrays": dict(model.arrays),
        "mujoco_model": binary,
    }


def from_document(document: Mapping[str, Any], source_text: str, assets: Mapping[str, bytes]) -> Model:
    """Rebuild the model that was passed to `to_document`.

    Args:
        document: the document.
        source_text: the model's text.
        assets: the files that the text names.
    """
    binary = document["mujoco_model"].tobytes()
    return Model(
        **{name: document[name] for name in _PLAIN},
        keyframes=dict(document["keyframes"]),
        source_text=source_text,
        assets=assets,
        arrays=document["arrays"],
        native=native.Model(document["arrays"]),
        mujoco_model=mujoco.MjModel.from_binary_path(_FILE, {_FILE: binary}),
    )
