"""Builds the answers of the verbs as documents: one dict per message, with the same field names.

Only this module knows which fields an answer has, so that all transports give the same answer.
`grpc.services` fills messages from the documents, `http.routes` writes them as JSON or NPZ.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np

from revolute.contract.gradient_report import GradientReport
from revolute.contract.load_options import OPTIONS
from revolute_engine import Gradient, Jvp, Model, Rollout, StepJacobian
from revolute_engine.parameters import default_parameter, parameters_of
from revolute_engine.segments import Segment

from .compute.compile_helper import ModelFiles
from .compute.stepping import State
from .domain.derivatives import ValueAndGradient
from .domain.measurements import Measured
from .domain.pagination import Page
from .domain.service import ServerInfo
from .domain.sessions import Session, SessionInfo
from .domain.trajectories import Trajectory

Document = dict[str, Any]

_KEYFRAME_BYTES = 1024**2
"""Limit on the keyframes in the description of a model, which is sent in one message."""


def document_bytes(document: Document) -> int:
    """Return the bytes of a document's arrays."""
    return sum(
        document_bytes(value)
        if isinstance(value, dict)
        else value.nbytes
        if isinstance(value, np.ndarray)
        else 0
        for value in document.values()
    )


def model_info(model: Model) -> Document:
    """Describe a model (message ModelInfo)."""
    options = {name: model.options[name] for name in OPTIONS if model.options.get(name) is not None}
    return {
        "model_id": model.id,
        "name": model.name,
        "nq": model.nq,
        "nv": model.nv,
        "nu": model.nu,
        "nbody": model.nbody,
        "njnt": model.njnt,
        "ngeom": model.ngeom,
        "timestep": model.timestep,
        "qpos0": model.qpos0,
        "qvel0": model.qvel0,
        "body_names": list(model.body_names),
        "joint_names": list(model.joint_names),
        "geom_names": list(model.geom_names),
        "actuator_names": list(model.actuator_names),
        "dof_names": list(model.dof_names),
        "ctrlrange": model.ctrlrange,
        "body_mass": model.body_mass,
        "geom_friction": model.geom_friction,
        "options": options,
        "notes": list(model.notes),
        "warnings": list(model.warnings),
        "params": {name: default_parameter(model, name) for name in parameters_of(model)},
        "keyframes": _keyframes(model),
        "joint_types": list(model.joint_types),
        "site_names": list(model.site_names),
        "sensor_names": list(model.sensor_names),
        "sensor_types": list(model.sensor_types),
        "sensor_dims": list(model.sensor_dims),
        "jnt_range": model.jnt_range,
        "geom_bodyid": model.geom_bodyid,
        "mocap_names": [model.body_names[body] for body in model.mocap_bodies],
        "mocap_pos": model.mocap_pos,
        "mocap_quat": model.mocap_quat,
    }


def _keyframes(model: Model) -> list[Document]:
    """Return the keyframes of the file, as many as fit into one message."""
    most = _KEYFRAME_BYTES // max(1, 8 * model.nq)
    return [{"name": name, "qpos": qpos} for name, qpos in itertools.islice(model.keyframes.items(), most)]


def model_files(files: ModelFiles) -> Document:
    """Return a model as MJCF with its files (message ModelFiles)."""
    assets = {name: np.frombuffer(content, np.uint8) for name, content in files.assets.items()}
    return {"mjcf": files.mjcf, "assets": assets}


def model_list(builtins: list[str], page: Page[tuple[str, str]]) -> Document:
    """List models (message ListModelsResponse)."""
    models = [{"model_id": model_id, "name": name} for model_id, name in page.entries]
    return {"builtin": builtins, "models": models, "next_page_token": page.next_token}


def session_handle(session: Session) -> Document:
    """Return the handle of a session (messages CreateSessionResponse and ForkSessionResponse)."""
    return {
        "session_id": session.id,
        "model_id": session.model.id,
        "batch": session.batch,
        "lease": session.lease,
        "durable": session.durable,
    }


def session_info(info: SessionInfo) -> Document:
    """Describe a session (message SessionInfo)."""
    document = dataclasses.asdict(info)
    return {"session_id": document.pop("id"), **document}


def session_list(page: Page[SessionInfo]) -> Document:
    """List sessions (message ListSessionsResponse)."""
    sessions = [session_info(info) for info in page.entries]
    return {"sessions": sessions, "next_page_token": page.next_token}


def session_state(state: State) -> Document:
    """Return a session's state (message SessionState)."""
    last = {} if state.ctrl is None else {"ctrl": state.ctrl}
    return {
        "qpos": state.qpos,
        "qvel": state.qvel,
        "time": state.time,
        "step_count": state.step_count,
        "status": state.status,
        "unsettled_step": state.unsettled_step,
        "residual": state.residual,
        "step_counts": state.step_counts,
        **state.mocap,
        **last,
        "measured": {},
    }


def trajectory(kept: Trajectory, *, with_ctrl: bool) -> Document:
    """Return a trajectory (message Trajectory)."""
    rollout = kept.rollout
    arrays: Document = {"ctrl": rollout.ctrl} if with_ctrl or rollout.control.has_controller else {}
    arrays["params"] = dict(rollout.params) if with_ctrl else {}
    arrays["inputs"] = dict(rollout.control.inputs) if with_ctrl else {}
    if rollout.all_states is not None:
        arrays["qpos"], arrays["qvel"] = rollout.all_states
    return {
        "trajectory_id": kept.id,
        "model_id": kept.model.id,
        **arrays,
        "final_qpos": rollout.final_qpos,
        "final_qvel": rollout.final_qvel,
        "checkpoints": str(rollout.checkpoints),
        "status": rollout.status,
        "diverged_step": rollout.diverged_step,
        **_solved(rollout),
        "report": rollout.report.to_dict(),
        "hold": rollout.control.hold,
        "measured": {},
    }


def _solved(found: Rollout | Gradient) -> Document:
    """Tell how well the constraints are solved; empty for trajectories of earlier releases."""
    arrays = {"unsettled_step": found.unsettled_step, "residual": found.residual}
    return {name: array for name, array in arrays.items() if array is not None}


def rollout_segment(segment: Segment) -> Document:
    """Return a segment of a trajectory (message RolloutSegment)."""
    document = {"first": segment.first, "qpos": segment.qpos, "qvel": segment.qvel}
    return document if segment.ctrl is None else {**document, "ctrl": segment.ctrl}


def rollout_end(kept: Trajectory) -> Document:
    """Return the end of a streamed trajectory (message RolloutEnd)."""
    states = {"qpos", "qvel", "final_qpos", "final_qvel", "checkpoints"}
    known = states | {"ctrl", "hold", "params", "inputs", "measured"}
    return {name: value for name, value in trajectory(kept, with_ctrl=False).items() if name not in known}


def client_loss_gradient(simulated: Trajectory, found: Gradient) -> Document:
    """Return the gradient of a loss that the client evaluates (message ValueAndGradientResult, no value)."""
    return {
        "gradient": gradient(found),
        "diverged_step": simulated.rollout.diverged_step,
        **_solved(simulated.rollout),
        "report": found.report.to_dict(),
    }


def gradient(found: Gradient) -> Document:
    """Return a gradient (message Gradient)."""
    clipped = {} if found.clipped is None else {"clipped": found.clipped}
    return {
        "arrays": dict(found.arrays),
        "status": found.status,
        "report": found.report.to_dict(),
        "method": found.method,
        **clipped,
        "notes": list(found.notes),
    }


def trajectory_tangent(found: Jvp) -> Document:
    """Return the tangents of a trajectory (message TrajectoryTangent)."""
    return {"qpos": found.qpos, "qvel": found.qvel}


def step_jacobian(found: StepJacobian) -> Document:
    """Return the derivative of a step (message StepJacobian)."""
    return {"A": found.A, "B": found.B}


def measured(found: Measured) -> Document:
    """Return what was measured (message Measured)."""
    return {"arrays": found.arrays, "jacobians": found.jacobians, "gradient": found.gradient}


def contact_list(found: dict[str, np.ndarray]) -> Document:
    """Return contacts (message ContactList)."""
    return dict(found)


def gradient_report(found: GradientReport) -> Document:
    """Return the report of a gradient check (message GradientReport)."""
    document = found.to_dict()
    checks = [
        {name: value for name, value in check.items() if value is not None} for check in document["inputs"]
    ]
    return {**document, "inputs": checks}


def value_and_gradient(found: ValueAndGradient) -> Document:
    """Return a loss and its gradient (message ValueAndGradientResult)."""
    return {
        "value": np.asarray(found.value),
        "gradient": gradient(found.gradient),
        "diverged_step": found.gradient.diverged_step,
        **_solved(found.gradient),
        "report": found.gradient.report.to_dict(),
    }


def server_info(info: ServerInfo) -> Document:
    """Describe the server (message GetServerInfoResponse)."""
    return {
        "version": info.version,
        "api_versions": list(info.api_versions),
        "features": list(info.features),
        "limits": dict(info.limits),
        "build": dict(info.build),
    }
