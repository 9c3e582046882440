"""What /metrics says, against calls whose number, kind and end are known."""

from __future__ import annotations

import math

import httpx
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

import revolute
from revolute_server.observe.metrics import Metrics
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(server: ServerProcess) -> Samples:
    """Return all samples by name and labels, as Prometheus reads them."""
    answer = httpx.get(server.http + "/metrics")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def sample(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((name, frozenset(labels.items())), 0.0)


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_calls_are_counted_by_verb_and_reason_and_their_stages_timed(transport: str) -> None:
    with running_server("--workers", "3") as server:
        before = scrape(server)
        with revolute.connect(getattr(server, transport)) as simulator:
            cart = simulator.load_model(CART)
            for _ in range(3):
                kept = simulator.rollout(cart, np.zeros(1), np.zeros(1), np.ones((10, 1)))
            with pytest.raises(revolute.ArgumentError):
                simulator.rollout(cart, np.zeros(1), np.zeros(1), np.ones((10, 2)))
            session = simulator.session(cart, batch=2)
            during = scrape(server)
            session.close()
            del kept
        after = scrape(server)
    verb = "TrajectoryService.Rollout"
    for reason, count in (("OK", 3), ("INVALID_ARGUMENT", 1), ("NOT_FOUND", 0)):
        labels = {"verb": verb, "transport": transport, "reason": reason}
        assert sample(during, "revolute_requests_total", **labels) == count, reason
    assert sample(during, "revolute_request_seconds_count", verb=verb, transport=transport) == 4
    # a model and three rollouts (the fourth is refused by the engine, on a worker); the start of a small
    # session needs no worker
    for stage in ("queue_wait", "compute"):
        name = f"revolute_{stage}_seconds"
        assert sample(during, f"{name}_count") - sample(before, f"{name}_count") == 5
        assert 0 < sample(during, f"{name}_sum") < 60
    assert sample(during, "revolute_serialise_seconds_count", transport=transport) >= 3
    stored = {name: value for (name, _), value in during.items() if name == "revolute_store_seconds_count"}
    assert sum(stored.values()) > 0
    assert sample(during, "revolute_models") == 1 and sample(during, "revolute_sessions") == 1
    assert sample(during, "revolute_trajectories") >= 1
    assert sample(during, "revolute_memory_bytes") > sample(before, "revolute_memory_bytes") == 0
    assert sample(after, "revolute_sessions") == 0
    assert sample(after, "revolute_workers") == 3 and sample(after, "revolute_ready") == 1
    assert sample(after, "process_resident_memory_bytes") > 1e7


def test_methods_and_paths_of_clients_make_no_new_series() -> None:
    with running_server() as server:
        httpx.request("INVENTED", server.http + "/one")
        httpx.get(server.http + "/two?x=3")
        httpx.get(server.http + "/v1/models/three")
        samples = scrape(server)
    verbs = {dict(labels).get("verb") for name, labels in samples if name == "revolute_requests_total"}
    assert verbs <= {"unknown", "ModelService.GetModel", "Metrics", "Health"}


def test_two_servers_of_one_process_share_nothing() -> None:
    one, two = Metrics(), Metrics()
    one.requests.labels("v", "grpc", "OK").inc()
    assert b'verb="v"' in one.text() and b'verb="v"' not in two.text()


def test_times_are_in_seconds() -> None:
    metrics = Metrics()
    metrics.stage_seconds["store"].labels("put").observe(0.25)
    families = {family.name: family for family in text_string_to_metric_families(metrics.text().decode())}
    values = {sample.name: sample.value for sample in families["revolute_store_seconds"].samples}
    assert math.isclose(values["revolute_store_seconds_sum"], 0.25)
