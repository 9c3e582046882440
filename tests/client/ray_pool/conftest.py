"""A Ray of this machine alone, and pools on it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

pytest.importorskip("ray")

import ray

from revolute.ray import RolloutPool


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        address="local",
        num_cpus=8,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=200 * 1024**2,
    )
    yield
    ray.shutdown()


@pytest.fixture(scope="session")
def pool(cluster: None) -> Iterator[RolloutPool]:
    with RolloutPool(2) as pool:
        yield pool
