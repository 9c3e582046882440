"""What a server holds and how busy it is, as one JSON document."""

from __future__ import annotations

import functools
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ..pages import entry_bytes
from ..service import Service
from ..store import MODEL, SESSION, TRAJECTORY, Entry, Store

Document = dict[str, Any]

_LONGEST = 200
"""Entries of a list; the newest, so that a server with thousands of sessions has a page that can be read."""

_MOST_BYTES = 64 * 1024
"""Bytes of what a list says of its entries; the page asks for it once a second."""

_STARTED = time.monotonic()


async def status(service: Service, *, draining: bool) -> Document:
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
            "calls": sum(verb["count"] for verb in verbs),
            "errors": sum(verb["errors"] for verb in verbs),
        },
        "models": await _list(service.store, MODEL, _model),
        "sessions": await _list(service.store, SESSION, functools.partial(_session, service)),
        "trajectories": await _list(service.store, TRAJECTORY, _trajectory),
        "verbs": {"total": len(verbs), "items": verbs},
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
    return {"id": entry.key[:8], **known, "waiting": service.sessions.waiting(entry.key)}


def _trajectory(entry: Entry) -> Document:
    names = ("model", "owner", "batch", "steps")
    return {
        "id": entry.key[:8],
        **{name: entry.summary.get(name) for name in names},
        "bytes": entry.size,
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
