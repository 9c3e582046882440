"""The robots as a fixture; those that cannot run here are skipped with the reason."""

from __future__ import annotations

from functools import cache

import pytest

from revolute.contract.errors import ModelError
from testbed.robot_catalogue import FREE_OF_CONSTRAINTS, ROBOTS, Robot


@cache
def reason_not_to_run(robot: Robot) -> str:
    """Return why a robot cannot run here, empty when it can."""
    if robot.file is None:
        return f"{robot.package} is not installed"
    try:
        robot.load(**FREE_OF_CONSTRAINTS)
    except ModelError as error:
        return f"refused: {error}"
    return ""


@pytest.fixture(params=ROBOTS, ids=lambda robot: robot.name, scope="module")
def robot(request: pytest.FixtureRequest) -> Robot:
    """Return one robot after the other; the tests of a module share what was loaded."""
    reason = reason_not_to_run(request.param)
    if reason:
        pytest.skip(reason)
    return request.param
