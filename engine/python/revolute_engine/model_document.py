"""A loaded model as plain values, and back: one process compiles it, another simulates it.

The document has lists, numbers, texts and arrays only, so that reading one from an untrusted process runs
nothing. The compiled MuJoCo model travels as MuJoCo's own binary format (mjb). What the reader has anyway is
left out: the text and the files.
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
    """Return what `from_document` makes the model of."""
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
    """Return a model that equals the one that `to_document` got.

    Args:
        document: what it returned.
        source_text: the text that the model was compiled from.
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
