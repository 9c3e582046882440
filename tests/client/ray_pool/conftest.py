"""A pool that several tests use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("ray")

from revolute.ray import RolloutPool


@pytest.fixture(scope="session")
def pool(ray_cluster: None) -> Iterator[RolloutPool]:
    with RolloutPool(2) as pool:
        yield pool
