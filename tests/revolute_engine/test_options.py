"""Options of `load_model`: ranges and types."""

from typing import Any

import pytest

from revolute.contract.errors import ArgumentError
from revolute_engine import load_model


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("timestep", 0, "seconds > 0, got 0"),
        ("timestep", -0.001, "seconds > 0, got -0.001"),
        ("timestep", float("nan"), "seconds > 0, got nan"),
        ("timestep", "1e-3", "seconds > 0, got '1e-3'"),
        ("solver", "newton", "'pgs' or 'exact', got 'newton'"),
        ("iterations", 0, "an integer from 1 to 100000, got 0"),
        ("iterations", 2.5, "an integer from 1 to 100000, got 2.5"),
        ("iterations", True, "an integer from 1 to 100000, got True"),
        ("erp", 1.5, "a number from 0 to 1, got 1.5"),
        ("cfm", -1e-9, "a number >= 0, got -1e-09"),
        ("restitution", -0.1, "a number from 0 to 1, got -0.1"),
        ("margin", float("inf"), "metres >= 0, got inf"),
        ("contact", 1, "True or False, got 1"),
        ("limits", None, "True or False, got None"),
        ("base", "floating", "'fixed', 'free' or None, got 'floating'"),
    ],
)
def test_an_option_out_of_range_is_named(option: str, value: Any, expected: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        load_model("cartpole", **{option: value})
    assert str(caught.value) == f"{option}: expected {expected}"
    assert caught.value.argument == option


def test_options_reach_the_engine() -> None:
    options: dict[str, Any] = {
        "contact_model": "hard",
        "timestep": 1e-3,
        "iterations": 7,
        "erp": 0.1,
        "cfm": 1e-6,
        "restitution": 0.5,
        "margin": 0.02,
        "contact": False,
        "limits": False,
        "dry_friction": False,
    }
    model = load_model("cartpole", **options)
    for name, value in options.items():
        assert model.options[name] == value
        assert model.arrays[name] == (0 if name == "contact_model" else value)
    assert model.timestep == 1e-3
    assert load_model("cartpole").options["timestep"] == 0.01


def test_options_of_the_other_contact_model_are_refused() -> None:
    with pytest.raises(ArgumentError) as caught:
        load_model("laikago", restitution=0.5)
    assert str(caught.value) == (
        'restitution: expected contact_model="hard", the only one that reads it, got "mujoco"; '
        'pass contact_model="hard" or leave restitution out'
    )
    with pytest.raises(ArgumentError, match=r'^cone: expected contact_model="mujoco"'):
        load_model("laikago", contact_model="hard", cone="elliptic")
    # a model's own options load it again
    for contact_model in ("hard", "mujoco"):
        model = load_model("laikago", contact_model=contact_model)
        assert load_model("laikago", **model.options).arrays.keys() == model.arrays.keys()
