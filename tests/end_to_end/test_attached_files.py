"""Models that a file attaches go along with it, as includes do: the same model on every transport."""

from __future__ import annotations

from pathlib import Path

import pytest

import revolute
from tests.revolute_engine.test_attached_models import FILES, MAIN


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """Return the path of a model of six files."""
    for name, text in {**FILES, "team.xml": MAIN}.items():
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return tmp_path / "team.xml"


def test_attached_models_and_their_meshes_are_sent(
    team: Path, simulators: dict[str, revolute.Simulator]
) -> None:
    found = set()
    for simulator in simulators.values():
        model = simulator.load_model(team)
        assert list(model.joint_names[1:]) == ["left_hip", "left_f_ankle", "right_hip", "right_f_ankle"]
        found.add((model.id, tuple(model.body_mass.tolist())))
    assert len(found) == 1


def test_a_model_that_is_not_there_is_named_with_the_places_tried(
    team: Path, simulators: dict[str, revolute.Simulator]
) -> None:
    (team.parent / "parts/feet/foot.xml").unlink()
    for simulator in simulators.values():
        with pytest.raises(
            revolute.ModelError, match=r"model 'feet/foot\.xml': expected a file, got none at"
        ):
            simulator.load_model(team)
