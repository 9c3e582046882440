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

from .contract.errors import (
    ArgumentError,
    CancelledError,
    DataLossError,
    DeadlineError,
    DivergedError,
    InternalError,
    LimitError,
    ModelError,
    NotFoundError,
    PermissionDeniedError,
    RevoluteError,
    UnauthenticatedError,
    UnavailableError,
)

if TYPE_CHECKING:
    from .connection import connect, models
    from .contract.controllers import MLP, Feedback
    from .contract.gradient_report import GradientReport
    from .contract.loss import Loss, Term
    from .contract.task import Task, Transition
    from .derivatives import Jvp, StepJacobian
    from .loss_function import States
    from .model import ModelHandle
    from .rollout_stream import RolloutStream, Segment
    from .session import Session, SessionInfo, State
    from .simulator import Simulator
    from .trajectory import CheckpointReport, Gradient, Trajectory
    from .unsettled import UnsettledWarning

__version__ = "0.1.0"

_HOME = {
    "CheckpointReport": "trajectory",
    "Feedback": "contract.controllers",
    "Gradient": "trajectory",
    "GradientReport": "contract.gradient_report",
    "Jvp": "derivatives",
    "Loss": "contract.loss",
    "MLP": "contract.controllers",
    "ModelHandle": "model",
    "RolloutStream": "rollout_stream",
    "Segment": "rollout_stream",
    "Session": "session",
    "SessionInfo": "session",
    "Simulator": "simulator",
    "State": "session",
    "States": "loss_function",
    "StepJacobian": "derivatives",
    "Task": "contract.task",
    "Term": "contract.loss",
    "Trajectory": "trajectory",
    "Transition": "contract.task",
    "UnsettledWarning": "unsettled",
    "connect": "connection",
    "models": "connection",
}

__all__ = [
    "MLP",
    "ArgumentError",
    "CancelledError",
    "CheckpointReport",
    "DataLossError",
    "DeadlineError",
    "DivergedError",
    "Feedback",
    "Gradient",
    "GradientReport",
    "InternalError",
    "Jvp",
    "LimitError",
    "Loss",
    "ModelError",
    "ModelHandle",
    "NotFoundError",
    "PermissionDeniedError",
    "RevoluteError",
    "RolloutStream",
    "Segment",
    "Session",
    "SessionInfo",
    "Simulator",
    "State",
    "States",
    "StepJacobian",
    "Task",
    "Term",
    "Trajectory",
    "Transition",
    "UnauthenticatedError",
    "UnavailableError",
    "UnsettledWarning",
    "__version__",
    "connect",
    "models",
]


def __getattr__(name: str) -> Any:
    if name == "aio":
        return importlib.import_module(".aio", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'revolute' has no attribute '{name}'")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
