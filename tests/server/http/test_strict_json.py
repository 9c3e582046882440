"""JSON in and out: exact doubles, always RFC 8259, non-finite numbers refused by name or written as words."""

from __future__ import annotations

import json
import struct
import threading
import time
from typing import Any

import numpy as np
import pytest

from revolute.contract.errors import ArgumentError, NotFoundError
from revolute_server.http import strict_json
from testbed.wire import HttpWire, numbers, problem_of, strict

EXACT = [-0.0, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3, 9007199254740993, 2**70, 123456789012345]


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def test_finite_doubles_come_back_bit_for_bit() -> None:
    text = strict_json.dumps({"x": np.array(EXACT, dtype=np.float64)})
    back = strict_json.loads(text)["x"]
    assert [bits(value) for value in back] == [bits(float(value)) for value in EXACT]
    assert struct.pack(">d", back[4]).hex() == "3fd5555555555555"


def test_whole_numbers_beyond_2_53_and_minus_zero_are_the_doubles_they_denote() -> None:
    found = strict_json.loads(b'{"x": [9007199254740993, -0, 3]}')["x"]
    assert np.asarray(found)[0] == 9007199254740992.0
    assert bits(found[1]) == bits(-0.0)
    assert isinstance(found[2], int)


def test_what_is_not_finite_becomes_words() -> None:
    text = strict_json.dumps({"x": np.array([np.nan, np.inf, -np.inf, 1.0]), "y": float("nan")})
    assert strict(text) == {"x": ["nan", "inf", "-inf", 1.0], "y": "nan"}


@pytest.mark.parametrize(
    "shape",
    [
        (),
        (0,),
        (3,),
        (2, 3),
        (100_000,),
        (3, 30_000),
        (30_000, 3),
        (5000, 1),
        (2, 5000, 1),
        (2, 2, 5000),
        (0, 3),
        (2, 0, 3),
    ],
)
def test_arrays_of_every_shape(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(1).normal(size=shape)
    assert strict(strict_json.dumps({"x": array}))["x"] == array.tolist()


def test_empty_and_nested_documents() -> None:
    document = {
        "a": {},
        "b": [],
        "c": [1, {"d": None}],
        "e": True,
        "f": 'quote " and \n',
        "g": np.float64(0.5),
    }
    assert strict(strict_json.dumps(document)) == {**document, "g": 0.5}


@pytest.mark.parametrize("body", [b"", b"nul", b"{'a': 1}", b'{"a": 1,}', b'{"a": 01}', b"3", b"null"])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(ArgumentError, match="body"):
        strict_json.loads(body)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", '"nan"', "null", '"abc"'])
def test_non_finite_numbers_in_requests_are_refused_by_name(
    json_wire: HttpWire, cart: str, word: str
) -> None:
    body = f'{{"model_id": "{cart}", "qpos": [0], "qvel": [0], "ctrl": [[0.0], [{word}]]}}'
    response = json_wire.client.post("/v1/trajectories", content=body)
    assert response.status_code == 400
    assert problem_of(response).argument == "ctrl"


def test_doubles_survive_a_session(json_wire: HttpWire, cart: str) -> None:
    """Sent as a state and asked back: the bits are the same over JSON, both ways."""
    session_id = json_wire.call("CreateSession", {"model_id": cart, "batch": len(EXACT)})["session_id"]
    body = json.dumps({"qpos": [[value] for value in EXACT]})
    assert json_wire.client.post(f"/v1/sessions/{session_id}/reset", content=body).is_success
    raw = json_wire.client.get(f"/v1/sessions/{session_id}/state").content
    found = strict(raw)["qpos"]
    assert [bits(row[0]) for row in found] == [bits(float(value)) for value in EXACT]


def test_a_diverged_run_says_so_in_a_field(json_wire: HttpWire, cart: str) -> None:
    document = {
        "model_id": cart,
        "qpos": np.zeros(1),
        "qvel": np.zeros(1),
        "ctrl": np.array([[[0.0]] * 3, [[1.7e308]] * 3]),
    }
    # 1.7e308 N on 1 g: the speed is infinite after the first step
    document["params"] = {"body_mass": np.array([0.0, 1e-3])}
    found = json_wire.call("Rollout", document)
    assert found["status"] == [0, 1]
    assert found["diverged_step"] == [-1, 0]
    assert np.isnan(numbers(found["qpos"])[1, -1]).all()
    assert found["qpos"][1][-1] == ["nan"]


def test_large_bodies_are_read_the_same_way() -> None:
    numbers = np.random.default_rng(0).normal(size=(10_000, 2))
    text = {"ctrl": numbers.tolist(), "params": {"gravity": list(range(9000))}, "wrt": ["ctrl"], "steps": 3}
    found = strict_json.loads_large(json.dumps(text).encode())
    np.testing.assert_array_equal(found["ctrl"], numbers, strict=True)
    np.testing.assert_array_equal(found["params"]["gravity"], np.arange(9000.0), strict=True)
    assert (found["wrt"], found["steps"]) == (["ctrl"], 3)


@pytest.mark.parametrize(
    "wrong",
    [
        ["a"] * 9000,
        [[1.0]] * 8999 + [[1.0, 2.0]],
        [True] * 9000,
        [[1.0]] * 5000 + [2.0] * 4000,
        [None] * 9000,
    ],
)
def test_large_lists_that_are_no_array_are_left_to_the_check_of_their_field(wrong: list[Any]) -> None:
    body = json.dumps({"ctrl": wrong}).encode()
    assert strict_json.loads_large(body) == strict_json.loads(body) == {"ctrl": wrong}


def _longest_silence(body: bytes) -> float:
    """Return the longest silence of another thread while a body is read, as a part of the whole time."""
    reader = threading.Thread(target=strict_json.loads_large, args=(body,))
    moments = [time.monotonic()]
    reader.start()
    while reader.is_alive():
        time.sleep(0.001)
        moments.append(time.monotonic())
    return float(np.diff(moments).max() / (moments[-1] - moments[0]))


def test_a_thread_that_reads_leaves_time_for_others() -> None:
    """A reader that kept the interpreter would silence others each time, a busy machine only now and then."""
    body = json.dumps({"ctrl": np.random.default_rng(0).normal(size=(300_000, 1)).tolist()}).encode()
    assert any(_longest_silence(body) < 0.5 for _ in range(20))


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1, -(2**63)])
def test_whole_numbers_of_64_bits_are_kept(number: int) -> None:
    found = strict_json.loads(b'{"seed": %d}' % number)["seed"]
    assert (type(found), found) == (int, number)


def test_larger_whole_numbers_are_the_double_they_denote() -> None:
    found = strict_json.loads(b'{"x": [1, %d, -1%s]}' % (2**63, b"0" * 5000))["x"]
    assert found == [1, float(2**63), -np.inf]
    assert np.asarray(found).dtype == np.float64


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^name: expected Unicode text, got half a surrogate pair at"):
        strict_json.loads(rb'{"name": "a\ud800"}')
    with pytest.raises(NotFoundError, match=r"^model_id: expected the id of a model that is kept"):
        strict_json.loads(rb'{"inputs": {"model_id": "\uDFFF"}}')
    assert strict_json.loads(rb'{"name": "\ud83e\udd16"}') == {"name": "\U0001f916"}
