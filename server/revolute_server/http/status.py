"""The status document of a server: its load, its newest records, and its last failures."""

from __future__ import annotations

import functools
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ..domain.leases import seconds_left
from ..domain.pagination import entry_bytes
from ..domain.service import Service
from ..store import MODEL, SESSION, TRAJECTORY, Entry, Store
from ..store.interface import COUNTED

Document = dict[str, Any]

_LONGEST = 200
"""Largest number of entries of a list; the newest are shown."""

_MOST_BYTES = 64 * 1024
"""Largest size of a list in bytes; the page requests it once a second."""

_STARTED = time.monotonic()


async def status(service: Service, *, draining: bool) -> Document:
    """Describe a server's load and its newest models, sessions and trajectories.

    Ids are cut to eight characters, so that a reader can tell records apart but not use them.

    Args:
        service: the service to describe.
        draining: whether the server refuses new calls.
    """
    verbs = _verbs(service)
    pool, budget = service.pool, service.budget
    return {
        "server": {
            "version": service.info.version,
            "isa": service.info.build["isa"],
            "state": "draining" if draining else _state(service),
            "uptime_seconds": time.monotonic() - _STARTED,
        },
        "load": {
            "workers": pool.workers,
            "busy": pool.busy,
            "waiting": pool.waiting,
            "queue": pool.queue,
            "memory": budget.used,
            "memory_limit": budget.limit,
            "store": sum(used for (kind, _), (_, used) in service.store.usage.items() if kind in COUNTED),
            "store_limit": service.settings.store_bytes,
            "calls": sum(verb["count"] for verb in verbs),
            "errors": sum(verb["errors"] for verb in verbs),
        },
        "models": await _list(service.store, MODEL, _model),
        "sessions": await _list(service.store, SESSION, functools.partial(_session, service)),
        "trajectories": await _list(service.store, TRAJECTORY, _trajectory),
        "verbs": {"total": len(verbs), "calls": sum(verb["count"] for verb in verbs), "items": verbs},
        "failures": _failures(service),
    }


def _state(service: Service) -> str:
    if service.ready:
        return "ready"
    return "waiting for the store" if service.serving else "starting"


async def _list(store: Store, kind: str, describe: Callable[[Entry], Document]) -> Document:
    items: list[Document] = []
    used = 0
    for entry in await store.newest(kind, _LONGEST):
        used += entry_bytes(entry)
        if used > _MOST_BYTES:
            break
        items.append(describe(entry))
    return {"total": store.count(kind), "items": items}


def _model(entry: Entry) -> Document:
    names = ("name", "nq", "nv", "nu", "timestep")
    return {"id": entry.key[:8], **{name: entry.summary.get(name) for name in names}}


def _session(service: Service, entry: Entry) -> Document:
    names = ("model", "owner", "batch", "step_count")
    known = {name: entry.summary.get(name) for name in names}
    return {
        "id": entry.key[:8],
        **known,
        "waiting": service.sessions.waiting(entry.key),
        "seconds_left": seconds_left(entry.expires),
    }


def _trajectory(entry: Entry) -> Document:
    names = ("model", "owner", "batch", "steps")
    return {
        "id": entry.key[:8],
        **{name: entry.summary.get(name) for name in names},
        "bytes": entry.size,
        "seconds_left": seconds_left(entry.expires),
    }


def _verbs(service: Service) -> list[Document]:
    """Return statistics of finished rpcs, most frequent first; requests of the status are not counted."""
    calls: dict[str, int] = defaultdict(int)
    errors: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    metrics, recent = service.telemetry.metrics, service.telemetry.recent_seconds
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
            "p50": _quantile(recent.get(verb, ()), 0.5),
            "p99": _quantile(recent.get(verb, ()), 0.99),
        }
        for verb, count in sorted(calls.items(), key=lambda item: -item[1])
        if "." in verb
    ]


def _quantile(seconds: Iterable[float], part: float) -> float | None:
    """Return a quantile in ms; None if there are no calls."""
    ordered = sorted(seconds)
    if not ordered:
        return None
    return round(1e3 * ordered[min(len(ordered) - 1, math.ceil(part * len(ordered)) - 1)], 3)


def _failures(service: Service) -> Document:
    """Describe the last failed calls, newest first."""
    now = time.monotonic()
    items = [
        {
            "seconds_ago": now - failure.ended,
            "verb": failure.verb,
            "reason": failure.reason,
            "transport": failure.transport,
            "call": failure.call_id,
            "message": failure.message,
        }
        for failure in reversed(service.telemetry.failures)
    ]
    return {"total": len(items), "items": items}


def _samples(families: Iterable[Any], name: str) -> list[Any]:
    return [sample for family in families for sample in family.samples if sample.name == name]
