"""The engine in this process: load a model, roll out trajectories, pull gradients back."""

from revolute.contract.gradient_report import GradientReport

from . import _mujoco as _mujoco  # before anything else imports MuJoCo
from ._engine import Advance, Engine
from ._load import load_model, models, to_mjcf, to_mjcf_files
from ._model import Model
from ._results import Cancelled, Gradient, Jvp, Rollout, StepJacobian
from .gradient_check import check_gradient
from .native import CancelToken

__all__ = [
    "Advance",
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
    "to_mjcf",
    "to_mjcf_files",
]
