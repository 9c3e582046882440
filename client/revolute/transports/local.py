"""The in-process transport: the same verbs and documents, answered by revolute_engine in this process."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np

import revolute_engine
from revolute_engine._segments import SegmentedRollout
from revolute_server import answers, stepping
from revolute_server.service import API_VERSIONS, FEATURES

from ..errors import ArgumentError, NotFoundError
from ..loss import Loss
from . import IN_PROCESS

Document = dict[str, Any]
_Entry = TypeVar("_Entry")
_Result = TypeVar("_Result")

_LONG = 1000
"""Environment steps (some 10 ms) from which work is given to a thread of its own."""


@dataclass
class _Trajectory:
    """A kept rollout."""

    model: revolute_engine.Model
    rollout: revolute_engine.Rollout


@dataclass
class _Session:
    """A kept batch of environments; the lock lets one call at a time change it.

    In this process nothing ends by itself: the lease is what was asked for, and is not heeded.
    """

    id: str
    model: revolute_engine.Model
    state: stepping.State
    lease: float
    created: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)


class LocalTransport:
    """Carries out verbs in this process.

    Args:
        threads: threads of the engine, None for one per core.
    """

    address = IN_PROCESS

    def __init__(self, threads: int | None) -> None:
        self._engine = revolute_engine.Engine(threads=threads)
        self._models: dict[str, revolute_engine.Model] = {}
        self._trajectories: dict[str, _Trajectory] = {}
        self._sessions: dict[str, _Session] = {}
        self._verbs: dict[str, Callable[[Mapping[str, Any]], Document]] = {
            "RegisterModel": self._register_model,
            "GetModel": lambda request: answers.model_info(self._model(request)),
            "ListModels": self._list_models,
            "DeleteModel": self._delete_model,
            "CreateSession": self._create_session,
            "GetSession": lambda request: _info(_kept("session", self._sessions, request)),
            "ListSessions": self._list_sessions,
            "KeepAlive": lambda request: {"lease": _kept("session", self._sessions, request).lease},
            "ForkSession": self._fork_session,
            "SetState": self._set_state,
            "Reset": self._reset,
            "Step": self._step,
            "SessionJacobian": self._session_jacobian,
            "GetState": lambda request: _state(_kept("session", self._sessions, request).state),
            "DeleteSession": lambda request: _remove("session", self._sessions, request),
            "Rollout": self._rollout,
            "GetTrajectory": self._get_trajectory,
            "Backward": self._backward,
            "Jvp": self._jvp,
            "ValueAndGradient": self._value_and_gradient,
            "Jacobian": self._jacobian,
            "CheckGradient": self._check_gradient,
            "DeleteTrajectory": lambda request: _remove("trajectory", self._trajectories, request),
            "GetServerInfo": self._server_info,
        }

    def call(self, verb: str, document: Mapping[str, Any], *, timeout: float | None = None) -> Document:
        """Carry out one verb; see `Transport.call`. There is no network to wait for, so no limit of time."""
        return self._verbs[verb](document)

    def stream(self, verb: str, document: Mapping[str, Any]) -> Iterator[Document]:
        """Carry out StreamRollout; see `Transport.stream`."""
        assert verb == "StreamRollout"
        inputs, steps = document["inputs"], document["segment_steps"]
        model = self._model(inputs)
        pieces = SegmentedRollout(model, **_inputs(inputs))
        while not pieces.over:
            segment = _interruptible(_LONG, lambda token: pieces.compute(self._engine, steps, token))
            yield answers.rollout_segment(segment)
        identifier = _new_id()
        self._trajectories[identifier] = _Trajectory(model, pieces.result())
        yield _trajectory(identifier, model, self._trajectories[identifier].rollout, "final")

    def own_loss(
        self, document: Mapping[str, Any], respond: Callable[[Document], Mapping[str, Any]]
    ) -> Document:
        """Differentiate a loss of the caller's own; see `Transport.own_loss`."""
        trajectory = self._rollout({**document["inputs"], "states": "all"})
        handle = {"trajectory_id": trajectory["trajectory_id"]}
        try:
            gradient = self._backward(
                {**handle, **respond(trajectory), "wrt": document["wrt"], "times": None}
            )
        finally:
            self._trajectories.pop(trajectory["trajectory_id"], None)
        return {
            "gradient": gradient,
            "diverged_step": np.array(trajectory["diverged_step"]),
            "report": trajectory["report"],
        }

    def close(self) -> None:
        """Forget everything that is kept."""
        for kept in (self._models, self._trajectories, self._sessions):
            kept.clear()

    def _model(self, request: Mapping[str, Any]) -> revolute_engine.Model:
        return _kept("model", self._models, request)

    def _register_model(self, request: Mapping[str, Any]) -> Document:
        model = revolute_engine.load_model(
            request["text"].encode() if request["text"] else request["builtin"],
            assets=request["assets"],
            name=request["name"],
            allow_files=False,
            warn=False,
            **request["options"],
        )
        return answers.model_info(self._models.setdefault(model.id, model))

    def _list_models(self, request: Mapping[str, Any]) -> Document:
        models = [{"model_id": model.id, "name": model.name} for model in _entries(self._models)]
        return {"builtin": revolute_engine.models(), "models": models, "next_page_token": ""}

    def _delete_model(self, request: Mapping[str, Any]) -> Document:
        model = self._model(request)
        users = [session.model for session in _entries(self._sessions)]
        users += [trajectory.model for trajectory in _entries(self._trajectories)]
        if model in users:
            raise ArgumentError.expected(
                "model_id",
                "a model that nothing uses",
                "one that sessions or trajectories use",
                advice="delete these first",
            )
        return _remove("model", self._models, request)

    def _create_session(self, request: Mapping[str, Any]) -> Document:
        model = self._model(request)
        state = stepping.start_state(self._engine, model, request["batch"])
        return self._open(model, state, request["lease"] or math.inf)

    def _fork_session(self, request: Mapping[str, Any]) -> Document:
        session = _kept("session", self._sessions, request)
        return self._open(session.model, session.state, request["lease"] or session.lease)

    def _open(self, model: revolute_engine.Model, state: stepping.State, lease: float) -> Document:
        identifier = _new_id()
        self._sessions[identifier] = session = _Session(identifier, model, state, lease)
        names = ("session_id", "model_id", "batch", "lease")
        return {name: value for name, value in _info(session).items() if name in names}

    def _list_sessions(self, request: Mapping[str, Any]) -> Document:
        sessions = [_info(session) for session in _entries(self._sessions)]
        return {"sessions": sessions, "next_page_token": ""}

    def _set_state(self, request: Mapping[str, Any]) -> Document:
        session = _kept("session", self._sessions, request)
        with session.lock:
            arguments = (request[name] for name in ("qpos", "qvel", "step_count"))
            session.state = stepping.changed_state(self._engine, session.model, session.state, *arguments)
            return _state(session.state)

    def _reset(self, request: Mapping[str, Any]) -> Document:
        session = _kept("session", self._sessions, request)
        with session.lock:
            batch = len(session.state.status)
            session.state = stepping.start_state(
                self._engine, session.model, batch, request["qpos"], request["qvel"]
            )
            return _state(session.state)

    def _step(self, request: Mapping[str, Any]) -> Document:
        session = _kept("session", self._sessions, request)
        with session.lock:
            before, ctrl, steps = session.state, request["ctrl"], request["steps"]
            session.state = _interruptible(
                len(before.status) * steps,
                lambda token: stepping.advance(self._engine, session.model, before, ctrl, steps, token),
            )
            return _state(session.state)

    def _session_jacobian(self, request: Mapping[str, Any]) -> Document:
        session = _kept("session", self._sessions, request)
        state, ctrl = session.state, request["ctrl"]
        found = _interruptible(
            len(state.status) * 2 * session.model.nv,
            lambda token: stepping.jacobian(self._engine, session.model, state, ctrl, token),
        )
        return _step_jacobian(found)

    def _rollout(self, request: Mapping[str, Any]) -> Document:
        model = self._model(request)
        rollout = _interruptible(
            _environment_steps(request["ctrl"]),
            lambda token: self._engine.rollout(
                model,
                **_inputs(request),
                checkpoints=request["checkpoints"],
                states=request["states"],
                cancel=token,
            ),
        )
        if not rollout.checkpoints.differentiable:
            return _trajectory("", model, rollout, request["states"])
        identifier = _new_id()
        self._trajectories[identifier] = _Trajectory(model, rollout.without_states())
        return {**_trajectory(identifier, model, rollout, request["states"]), "ctrl": rollout.ctrl}

    def _get_trajectory(self, request: Mapping[str, Any]) -> Document:
        kept = _kept("trajectory", self._trajectories, request)
        rollout, states = kept.rollout, request["states"]
        if states == "all" and rollout.all_states is None:
            found = _interruptible(
                _environment_steps(rollout.ctrl),
                lambda token: self._engine.states(kept.model, rollout, cancel=token),
            )
            rollout = replace(rollout, all_states=found)
        document = _trajectory(request["trajectory_id"], kept.model, rollout, states)
        return {**document, "ctrl": rollout.ctrl}

    def _backward(self, request: Mapping[str, Any]) -> Document:
        kept = _kept("trajectory", self._trajectories, request)
        bars = request["qpos_bar"], request["qvel_bar"]
        gradient = _interruptible(
            _environment_steps(kept.rollout.ctrl),
            lambda token: self._engine.backward(
                kept.model, kept.rollout, *bars, times=request["times"], wrt=request["wrt"], cancel=token
            ),
        )
        return _gradient(gradient)

    def _jvp(self, request: Mapping[str, Any]) -> Document:
        kept = _kept("trajectory", self._trajectories, request)
        tangents = {name: request[name] for name in ("qpos_tan", "qvel_tan", "ctrl_tan")}
        found = _interruptible(
            _environment_steps(kept.rollout.ctrl),
            lambda token: self._engine.jvp(
                kept.model,
                kept.rollout,
                **tangents,
                params_tan=request["params_tan"] or None,
                cancel=token,
            ),
        )
        return {"qpos": np.array(found.qpos), "qvel": np.array(found.qvel)}

    def _jacobian(self, request: Mapping[str, Any]) -> Document:
        model = self._model(request)
        found = _interruptible(
            _environment_steps(request["ctrl"]) * 2 * model.nv,
            lambda token: self._engine.jacobian(model, **_inputs(request), cancel=token),
        )
        return _step_jacobian(found)

    def _check_gradient(self, request: Mapping[str, Any]) -> Document:
        model = self._model(request)
        names = ("qpos", "qvel", "ctrl", "steps", "directions", "seed", "tolerance")
        given = {name: request[name] for name in names}
        # hundreds of rollouts, which are long together
        report = _interruptible(
            _LONG,
            lambda token: revolute_engine.check_gradient(
                self._engine,
                model,
                **given,
                params=request["params"] or None,
                wrt=request["wrt"] or None,
                progress=request.get("progress"),
                cancel=token,
            ),
        )
        return report.to_dict()

    def _value_and_gradient(self, request: Mapping[str, Any]) -> Document:
        inputs, loss = request["inputs"], Loss.from_dict(request["loss"])
        model = self._model(inputs)
        value, gradient = _interruptible(
            _environment_steps(inputs["ctrl"]),
            lambda token: self._engine.value_and_gradient(
                model,
                **_inputs(inputs),
                loss=loss,
                wrt=request["wrt"],
                checkpoints=inputs["checkpoints"],
                cancel=token,
            ),
        )
        return {
            "value": np.asarray(value),
            "gradient": _gradient(gradient),
            "diverged_step": np.array(gradient.diverged_step),
            "report": gradient.report.to_dict(),
        }

    def _server_info(self, request: Mapping[str, Any]) -> Document:
        native = revolute_engine._native
        build = {"isa": native.isa, "lanes": native.lanes, "threads": self._engine.threads, "workers": 1}
        return {
            "version": version("revolute-server"),
            "api_versions": list(API_VERSIONS),
            "features": list(FEATURES),
            "limits": {},
            "build": build,
        }


def _interruptible(environment_steps: int, work: Callable[[revolute_engine.CancelToken], _Result]) -> _Result:
    """Return what `work` gives; an interrupt (Ctrl-C) stops long work within one step.

    The engine does not return to Python while it computes, so the main thread leaves long work to another
    thread and waits, which an interrupt can end.
    """
    token = revolute_engine.CancelToken()
    if environment_steps < _LONG or threading.current_thread() is not threading.main_thread():
        return work(token)
    with ThreadPoolExecutor(1, "revolute") as worker:
        try:
            future = worker.submit(work, token)
        except RuntimeError:
            # the system has no thread to spare; an interrupt has to wait then
            return work(token)
        try:
            return future.result()
        except BaseException:
            token.cancel()
            raise


def _environment_steps(ctrl: np.ndarray) -> int:
    """Return batch times time of controls; their shape is not checked yet."""
    return ctrl.size // max(1, ctrl.shape[-1]) if ctrl.ndim else 0


def _new_id() -> str:
    return secrets.token_hex(16)


def _kept(noun: str, table: Mapping[str, _Entry], request: Mapping[str, Any]) -> _Entry:
    """Return the entry that a request names.

    Raises:
        NotFoundError: there is none.
    """
    identifier = request[f"{noun}_id"]
    found = table.get(identifier)
    if found is None:
        raise NotFoundError.missing(noun, identifier)
    return found


def _entries(table: Mapping[str, _Entry]) -> list[_Entry]:
    """Return the entries as they are now: other threads add and delete some meanwhile."""
    return list(table.values())


def _info(session: _Session) -> Document:
    """Return the document SessionInfo."""
    return {
        "session_id": session.id,
        "model_id": session.model.id,
        "batch": len(session.state.status),
        "step_count": session.state.step_count,
        "lease": session.lease,
        "expires_in": math.inf,
        "age": time.monotonic() - session.created,
    }


def _remove(noun: str, table: dict[str, Any], request: Mapping[str, Any]) -> Document:
    if table.pop(request[f"{noun}_id"], None) is None:
        raise NotFoundError.missing(noun, request[f"{noun}_id"])
    return {}


def _inputs(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return state, controls and parameters as arguments of the engine."""
    return {
        "qpos": request["qpos"],
        "qvel": request["qvel"],
        "ctrl": request["ctrl"],
        "params": request["params"] or None,
    }


def _trajectory(
    identifier: str, model: revolute_engine.Model, rollout: revolute_engine.Rollout, states: str | None
) -> Document:
    """Return the document Trajectory, as Rollout sends it."""
    names = ["final_qpos", "final_qvel", "status", "diverged_step"]
    if rollout.all_states is not None and states != "final":
        names += ["qpos", "qvel"]
    return {
        "trajectory_id": identifier,
        "model_id": model.id,
        **{name: getattr(rollout, name) for name in names},
        "checkpoints": str(rollout.checkpoints),
        "report": rollout.report.to_dict(),
    }


def _gradient(gradient: revolute_engine.Gradient) -> Document:
    """Return the document Gradient; the status is copied so that the caller may change it."""
    report = gradient.report.to_dict()
    return {"arrays": dict(gradient.arrays), "status": np.array(gradient.status), "report": report}


def _step_jacobian(found: revolute_engine.StepJacobian) -> Document:
    """Return the document StepJacobian; its arrays are new, so the caller may change them."""
    return {"A": found.A, "B": found.B}


def _state(state: stepping.State) -> Document:
    """Return the document SessionState; its arrays are copies, so the session's stay as they are."""
    arrays = {name: np.array(getattr(state, name)) for name in ("qpos", "qvel", "status")}
    return {**arrays, "time": state.time, "step_count": state.step_count}
