"""Rollouts as documents for the store, and back.

What is stored is what a gradient needs: the checkpoints, the final state, the controls and the parameters.
Where every state is a checkpoint, these are all states; they are not stored twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from revolute.contract.checkpoints import Checkpoints
from revolute_engine import Rollout

_ELSEWHERE = ("checkpoints", "all_states")


def to_document(rollout: Rollout) -> dict[str, Any]:
    """Return what a rollout keeps; arrays stay the rollout's own memory."""
    names = (field.name for field in dataclasses.fields(rollout) if field.name not in _ELSEWHERE)
    return {"checkpoints": str(rollout.checkpoints), **{name: getattr(rollout, name) for name in names}}


def from_document(document: Mapping[str, Any]) -> Rollout:
    """Return the rollout of a document; its arrays are read-only views."""
    checkpoints = Checkpoints.parse(document["checkpoints"])
    every = checkpoints.policy == "every"
    states = (document["kept_qpos"], document["kept_qvel"]) if every else None
    return Rollout(**{**document, "checkpoints": checkpoints, "all_states": states})
