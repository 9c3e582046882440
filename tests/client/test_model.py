"""Options of loading: types are checked by name before anything is sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from revolute import ArgumentError
from revolute.model import check_model, check_options

GOOD: dict[str, Any] = {
    "base": "free",
    "ground": np.True_,
    "timestep": np.float32(0.5),
    "iterations": np.int64(7),
    "erp": 1,
    "margin": None,
}


def test_good_options_become_plain() -> None:
    checked = check_options(GOOD)
    assert checked == {"base": "free", "ground": True, "timestep": 0.5, "iterations": 7, "erp": 1.0}
    assert [type(value) for value in checked.values()] == [str, bool, float, int, float]


BAD: dict[str, tuple[Any, str]] = {
    "base": (3, "base: expected a word, got 3"),
    "ground": (1, "ground: expected True or False, got 1"),
    "timestep": ("1e-3", "timestep: expected a finite number, got '1e-3'"),
    "erp": (True, "erp: expected a finite number, got True"),
    "restitution": (np.nan, "restitution: expected a finite number, got nan"),
    "cfm": (1j, "cfm: expected a finite number, got 1j"),
    "iterations": (1.5, "iterations: expected a whole number up to 2147483647, got 1.5"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_options_are_named(name: str) -> None:
    value, text = BAD[name]
    with pytest.raises(ArgumentError) as caught:
        check_options({name: value})
    assert str(caught.value) == text and caught.value.argument == name


def test_unknown_option() -> None:
    with pytest.raises(ArgumentError, match=r"^options: expected names among base, .*, got 'grund'"):
        check_options({"grund": True})


def test_model_must_be_a_handle() -> None:
    with pytest.raises(ArgumentError, match=r"^model: expected a model, got str; load it first"):
        check_model("laikago")
