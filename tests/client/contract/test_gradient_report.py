"""The report of a check of gradients: as a table, as plain data, and back."""

from __future__ import annotations

import json
import math

import pytest

from revolute.contract.codec.json_text import from_json, to_json
from revolute.contract.gradient_report import EntryCheck, GradientReport, InputCheck

QPOS = InputCheck(
    "qpos", "right", "differences agree to 2.0e-11", 2e-11, 1e-16, 1e-6, (0.5, -0.25), (0.5, -0.25), (), None
)
CTRL = InputCheck(
    name="ctrl",
    verdict="wrong",
    reason="backward and forward derivatives differ by 1.0e-02",
    error=math.inf,
    dot_error=1e-2,
    step=None,
    gradients=(1.0, -0.0),
    differences=(math.nan, 5e-324),
    switching_steps=(3, 7),
    worst=EntryCheck("ctrl[3, push]", 1.0, math.nan, 0.25),
)


def _report(*inputs: InputCheck) -> GradientReport:
    return GradientReport("cart", 20, 2, 0, 1e-5, math.inf, inputs)


def test_plain_data_and_back() -> None:
    report = _report(QPOS, CTRL)
    data = report.to_dict()
    assert data["passed"] is False and data["worst"] == "ctrl[3, push]"
    # NaN is not equal to itself, its text is
    assert repr(GradientReport.from_dict(data)) == repr(report)


def test_json_and_back() -> None:
    """JSON has words for what is not finite; no bit is lost."""
    report = _report(QPOS, CTRL)
    text = to_json(report.to_dict())
    json.loads(text, parse_constant=pytest.fail)
    assert repr(GradientReport.from_dict(from_json(text))) == repr(report)


def test_what_is_none_may_be_left_out() -> None:
    data = _report(QPOS).to_dict()
    for check in data["inputs"]:
        del check["worst"]
    assert GradientReport.from_dict(data) == _report(QPOS)


def test_a_wrong_input_is_the_worst() -> None:
    assert _report(QPOS).passed and _report(QPOS).worst == "qpos"
    report = _report(QPOS, CTRL)
    assert not report.passed and report.worst == "ctrl[3, push]"
    assert report["ctrl"] is CTRL and not CTRL.passed
    with pytest.raises(KeyError):
        report["qvel"]


def test_the_table_names_verdicts_and_the_worst() -> None:
    lines = str(_report(QPOS, CTRL)).splitlines()
    assert lines[0].startswith("cart: 20 steps, 2 directions, seed 0, tolerance 1e-05")
    assert [line.split()[:2] for line in lines[3:5]] == [["qpos", "right"], ["ctrl", "wrong"]]
    assert "ctrl: backward and forward derivatives differ by 1.0e-02" in lines
    assert lines[-1] == "failed; worst: ctrl[3, push]"
