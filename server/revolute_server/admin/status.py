"""What a server holds and how busy it is, as one JSON document."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from ..service import Service
from ..sessions import Session
from ..trajectories import Trajectory

Entry = TypeVar("Entry")
Document = dict[str, Any]

_LONGEST = 200
"""Entries of a list; the newest, so that a server with thousands of sessions has a page that can be read."""

_STARTED = time.monotonic()


def status(service: Service, *, draining: bool) -> Document:
    """Describe a server's load and its newest models, sessions and trajectories.

    Ids are cut to eight characters: they name things to a reader and open none of them.

    Args:
        service: what the server holds.
        draining: whether new calls are refused.
    """
    verbs = _verbs(service)
    pool, budget = service.pool, service.budget
    return {
        "server": {
            "version": service.info.version,
            "isa": service.info.build["isa"],
            "state": "draining" if draining else "ready" if service.ready else "starting",
            "uptime_seconds": time.monotonic() - _STARTED,
        },
        "load": {
            "workers": pool.workers,
            "busy": pool.busy,
            "waiting": pool.waiting,
            "queue": pool.queue,
            "memory": budget.used,
            "memory_limit": budget.limit,
            "calls": sum(verb["count"] for verb in verbs),
            "errors": sum(verb["errors"] for verb in verbs),
        },
        "models": _list(service.models.registered(), _model),
        "sessions": _list(service.sessions.all(), _session),
        "trajectories": _list(service.trajectories.all(), _trajectory),
        "verbs": {"total": len(verbs), "items": verbs},
    }


def _list(entries: Collection[Entry], describe: Callable[[Entry], Document]) -> Document:
    newest = list(entries)[-_LONGEST:][::-1]
    return {"total": len(entries), "items": [describe(entry) for entry in newest]}


def _model(model: Any) -> Document:
    return {
        "id": model.id[:8],
        "name": model.name,
        "nq": model.nq,
        "nv": model.nv,
        "nu": model.nu,
        "timestep": model.timestep,
    }


def _session(session: Session) -> Document:
    return {
        "id": session.id[:8],
        "model": session.model.name,
        "owner": session.owner,
        "batch": session.batch,
        "step_count": session.state.step_count,
        "waiting": session.waiting,
    }


def _trajectory(kept: Trajectory) -> Document:
    rollout = kept.rollout
    return {
        "id": kept.id[:8],
        "model": kept.model.name,
        "owner": kept.owner,
        "batch": rollout.status.size,
        "steps": rollout.ctrl.shape[-2],
        "bytes": rollout.report.checkpoint_bytes,
    }


def _verbs(service: Service) -> list[Document]:
    """Count the rpcs that have ended, the most frequent first; asking for the status is none of them."""
    calls: dict[str, int] = defaultdict(int)
    errors: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    metrics = service.telemetry.metrics
    for sample in _samples(metrics.requests.collect(), "revolute_requests_total"):
        calls[sample.labels["verb"]] += int(sample.value)
        if sample.labels["reason"] != "OK":
            errors[sample.labels["verb"]] += int(sample.value)
    for sample in _samples(metrics.request_seconds.collect(), "revolute_request_seconds_sum"):
        seconds[sample.labels["verb"]] += sample.value
    return [
        {
            "verb": verb,
            "count": count,
            "errors": errors[verb],
            "milliseconds": round(1e3 * seconds[verb] / count, 3),
        }
        for verb, count in sorted(calls.items(), key=lambda item: -item[1])
        if "." in verb
    ]


def _samples(families: Iterable[Any], name: str) -> list[Any]:
    return [sample for family in families for sample in family.samples if sample.name == name]
