"""Forward derivatives: tangents of a trajectory, and the Jacobian of one step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .contract.arrays import Float64Array


@dataclass(frozen=True, eq=False)
class Jvp:
    """The derivative of a trajectory along one direction of its inputs, in tangent coordinates.

    Attributes:
        qpos: tangents of the configurations, [batch, T + 1, nv]. The tangent of a quaternion is a rotation
            vector in the moving frame. NaN for an environment that diverged.
        qvel: tangents of the velocities, and of the activations, [batch, T + 1, nv + na]. NaN for the same
            environments.
    """

    qpos: Float64Array
    qvel: Float64Array

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Jvp:
        """Build a Jvp from a TrajectoryTangent document."""
        return cls(document["qpos"], document["qvel"])


@dataclass(frozen=True, eq=False)
class StepJacobian:
    """The derivative of one step in tangent coordinates, in the order of MuJoCo's `mjd_transitionFD`.

    With x = (dq, v, act) and dq a tangent of the configuration: dx+ = A dx + B du; nx = 2 nv + na.

    Attributes:
        A: derivative by the state, [batch, nx, nx]. NaN for an environment whose step diverges.
        B: derivative by the controls, [batch, nx, nu]. NaN for an environment whose step diverges.
    """

    A: Float64Array
    B: Float64Array

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> StepJacobian:
        """Build a StepJacobian from its document."""
        return cls(document["A"], document["B"])
