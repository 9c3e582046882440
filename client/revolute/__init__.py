"""Rollouts and gradients of articulated bodies, in this process or over the network, through one API.

    import revolute

    sim = revolute.connect()                       # or "grpc://host:50051", "http://host:8000"
    model = sim.load_model("robot.urdf", base="free", ground=True)
    trajectory = sim.rollout(model, qpos, qvel, ctrl)
    gradient = trajectory.backward(qpos_bar)

Names are loaded on first use, so that `import revolute` costs a few milliseconds.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .errors import (
    ArgumentError,
    CancelledError,
    DeadlineError,
    DivergedError,
    InternalError,
    LimitError,
    ModelError,
    NotFoundError,
    RevoluteError,
    UnavailableError,
)

if TYPE_CHECKING:
    from .loss import Loss, Term

__version__ = "0.1.0"

_HOME = {"Loss": "loss", "Term": "loss"}

__all__ = [
    "ArgumentError",
    "CancelledError",
    "DeadlineError",
    "DivergedError",
    "InternalError",
    "LimitError",
    "Loss",
    "ModelError",
    "NotFoundError",
    "RevoluteError",
    "Term",
    "UnavailableError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'revolute' has no attribute '{name}'")
    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
