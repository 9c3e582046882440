"""What the adapters for torch and JAX have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

OTHER_KINDS: list[tuple[dict[str, Any], str]] = [
    (
        {"feedback": np.zeros((1, 4))},
        "feedback: expected a Feedback, or gain, qpos, qvel by name, got ndarray",
    ),
    ({"feedback": {"gain": np.zeros((1, 4)), "qpos_ref": 0}}, "feedback: .*, got gain, qpos_ref"),
    ({"params": [1.0]}, "params: expected a mapping from names to arrays, got list"),
]


@pytest.fixture(params=OTHER_KINDS, ids=["feedback", "fields of feedback", "params"])
def of_another_kind(request: pytest.FixtureRequest) -> tuple[dict[str, Any], str]:
    """Return arguments of a rollout that are of another kind, and the error that both adapters raise."""
    found: tuple[dict[str, Any], str] = request.param
    return found
