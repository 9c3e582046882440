"""Conversion of rollouts to documents for the store, and back.

The store keeps the data that a gradient needs: checkpoints, final state, controls, controller and parameters.
If every state is a checkpoint, the checkpoints are all states; they are stored once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from revolute.contract.checkpoints import Checkpoints
from revolute.contract.controllers import Control
from revolute_engine import Rollout

_CONVERTED = ("checkpoints", "all_states", "control")


def to_document(rollout: Rollout) -> dict[str, Any]:
    """Return the document of a rollout; its arrays are not copied."""
    names = (field.name for field in dataclasses.fields(rollout) if field.name not in _CONVERTED)
    return {
        "checkpoints": str(rollout.checkpoints),
        "control": rollout.control.to_dict(),
        **{name: getattr(rollout, name) for name in names},
    }


def from_document(document: Mapping[str, Any]) -> Rollout:
    """Return the rollout of a document; its arrays are read-only views."""
    checkpoints = Checkpoints.parse(document["checkpoints"])
    every = checkpoints.policy == "every"
    states = (document["kept_qpos"], document["kept_qvel"]) if every else None
    control = Control.from_dict(document.get("control", {}))
    return Rollout(**{**document, "checkpoints": checkpoints, "all_states": states, "control": control})
