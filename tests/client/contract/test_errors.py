"""The error table: one class, one reason, one code, one status; texts and classes survive every trip."""

from __future__ import annotations

import pickle

import pytest

from revolute.contract import errors
from revolute.contract.codec import status


@pytest.mark.parametrize("kind", errors.KINDS, ids=lambda kind: kind.reason)
def test_kind_survives_the_wire(kind: errors.Kind) -> None:
    error = kind.error("model: expected a number, got 'x'", argument="model")
    received = status.decode_status(status.encode_status(error))
    assert type(received) is kind.error
    assert str(received) == str(error)
    assert received.argument == "model"
    assert errors.kind_of(received) is kind


@pytest.mark.parametrize("kind", errors.KINDS, ids=lambda kind: kind.reason)
def test_error_survives_pickling(kind: errors.Kind) -> None:
    copy = pickle.loads(pickle.dumps(kind.error("model: b", argument="model")))
    assert (type(copy), str(copy), copy.argument) == (kind.error, "model: b", "model")


def test_classes_are_what_python_users_catch() -> None:
    assert issubclass(errors.ArgumentError, ValueError)
    assert issubclass(errors.ModelError, ValueError)
    assert issubclass(errors.NotFoundError, LookupError)
    assert issubclass(errors.DeadlineError, TimeoutError)
    assert issubclass(errors.DeadlineError, errors.UnavailableError)


def test_expected_builds_the_one_line_form() -> None:
    error = errors.ArgumentError.expected("ctrl", "finite values", "nan", at="[3, 1]", advice="remove it")
    assert str(error) == "ctrl: expected finite values, got nan at [3, 1]; remove it"
    assert error.argument == "ctrl"


def test_long_values_are_cut_and_the_rest_stays() -> None:
    error = errors.ArgumentError.expected("n" * 10**6, "x", "v" * 10**6, at="p" * 10**6, advice="remove it")
    assert len(str(error)) < 1000 and str(error).endswith("; remove it")
    assert error.argument == "n" * 117 + "..."
    assert f"got {'v' * 297}... at {'p' * 297}...;" in str(error)
    assert len(str(errors.ModelError("m" * 10**6))) == 1000


def test_model_errors_have_the_argument_model() -> None:
    assert errors.ModelError("robot.xml: expected a joint").argument == "model"
    assert errors.ModelError.expected("robot.xml", "a joint", "none").argument == "model"


def test_message_can_be_sent_whatever_it_quotes() -> None:
    assert str(errors.ArgumentError("name: got \ud800")) == "name: got \\ud800"


def test_message_is_one_line() -> None:
    assert str(errors.ModelError("robot.xml: first\nsecond")) == "robot.xml: first second"


def test_unknown_reason_becomes_internal() -> None:
    assert type(errors.error_from("BRAND_NEW", "text")) is errors.InternalError


def test_foreign_status_is_not_taken_for_ours() -> None:
    assert status.decode_status(b"\xff\xff") is None
    assert status.decode_status(b"") is None
