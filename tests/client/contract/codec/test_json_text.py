"""Strict JSON: exact doubles, words for what is not finite, no bare NaN either way."""

from __future__ import annotations

import json

import numpy as np
import pytest

from revolute import ArgumentError
from revolute.contract.codec.json_text import from_json, to_json

FINITE = [-0.0, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3, 9007199254740993.0]


def test_finite_doubles_keep_their_bits() -> None:
    again = from_json(to_json({"x": np.array(FINITE)}))["x"]
    assert np.array(again, dtype=np.float64).tobytes() == np.array(FINITE).tobytes()


def test_the_rest_are_words() -> None:
    text = to_json(
        {"x": np.array([[np.nan, np.inf], [-np.inf, 1.0]]), "y": float("nan"), "z": np.float64(2.0)}
    )
    assert json.loads(text, parse_constant=pytest.fail) == {
        "x": [["nan", "inf"], ["-inf", 1.0]],
        "y": "nan",
        "z": 2.0,
    }


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}', "{", "", b"\xff", "[1,]"])
def test_other_text_is_refused(text: str | bytes) -> None:
    with pytest.raises(ArgumentError, match=r"^ctrl: expected"):
        from_json(text, name="ctrl")
