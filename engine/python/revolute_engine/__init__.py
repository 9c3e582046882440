"""The engine in this process: load a model, roll out trajectories, pull gradients back."""

from ._engine import Engine
from ._load import load_model, models
from ._model import Model
from ._native import CancelToken
from ._results import Cancelled, Gradient, Jvp, Rollout, StepJacobian

__all__ = [
    "CancelToken",
    "Cancelled",
    "Engine",
    "Gradient",
    "Jvp",
    "Model",
    "Rollout",
    "StepJacobian",
    "load_model",
    "models",
]
