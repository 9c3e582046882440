"""The cost of loading grows with the file, not with its square."""

import time

import pytest

from revolute.contract.errors import ModelError
from revolute_engine import load_model
from revolute_engine._xml import MAX_ATTRIBUTES

PATIENCE = 6.0
"""Seconds of processor time that each of these may take; each took minutes, or a good part of one."""


def _rails(count: int) -> str:
    bodies = "".join(
        f'<body pos="{place} 0 0"><joint type="slide"/><geom size="0.1"/></body>' for place in range(count)
    )
    return f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"


def test_a_row_of_many_bodies_loads_at_once() -> None:
    start = time.process_time()
    assert load_model(_rails(3000)).nv == 3000
    assert time.process_time() - start < PATIENCE


def test_elements_of_many_attributes_are_refused() -> None:
    start = time.process_time()
    attributes = " ".join(f'a{number}="1"' for number in range(40_000))
    with pytest.raises(
        ModelError, match=f"body 'b': expected at most {MAX_ATTRIBUTES} attributes, got 40001"
    ):
        load_model(f'<mujoco><worldbody><body name="b" {attributes}/></worldbody></mujoco>')
    assert time.process_time() - start < PATIENCE
