"""docs/protocol.md against the server."""

from __future__ import annotations

from pathlib import Path

from revolute_server.service import Service
from revolute_server.settings import Settings

PAGE = Path(__file__).parents[2].joinpath("docs", "protocol.md").read_text(encoding="utf-8")


def test_every_feature_is_described() -> None:
    features = Service(Settings(workers=1, threads=1)).info.features
    parameters = {name.removeprefix("rollout.params.") for name in features if "rollout.params." in name}
    assert len(parameters) >= 10
    of_parameters = {f"{prefix}.{name}" for prefix in ("rollout.params", "backward") for name in parameters}
    assert of_parameters <= set(features)
    missing = [name for name in set(features) - of_parameters if f"`{name}`" not in PAGE]
    assert not missing
