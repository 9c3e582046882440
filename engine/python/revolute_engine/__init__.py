"""The engine in this process: load a model, roll out trajectories, pull gradients back."""

from revolute.gradient_report import GradientReport

from . import _mujoco as _mujoco  # before anything else imports MuJoCo
from ._engine import Engine
from ._gradient_check import check_gradient
from ._load import load_model, models
from ._model import Model
from ._native import CancelToken
from ._results import Cancelled, Gradient, Jvp, Rollout, StepJacobian

__all__ = [
    "CancelToken",
    "Cancelled",
    "Engine",
    "Gradient",
    "GradientReport",
    "Jvp",
    "Model",
    "Rollout",
    "StepJacobian",
    "check_gradient",
    "load_model",
    "models",
]
