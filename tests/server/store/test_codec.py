"""Payloads: what is encoded comes back bit for bit, without copies of the arrays."""

from __future__ import annotations

import numpy as np
import pytest

from revolute_server.store.codec import checksum, decode, encode, fingerprint

DOCUMENT = {
    "qpos": np.array([[np.nan, -0.0], [np.inf, 5e-324]]),
    "status": np.zeros((), np.int32),
    "empty": np.zeros((0, 3)),
    "params": {"body.mass": np.arange(3.0)},
    "text": "ä",
    "file": b"\x00\xff",
    "list": [1, None, True, {"x": np.arange(2)}],
    "number": float("inf"),
}


def test_a_document_comes_back_bit_for_bit() -> None:
    found = decode((b"".join(encode(DOCUMENT)),))
    for name in ("qpos", "status", "empty"):
        assert found[name].tobytes() == DOCUMENT[name].tobytes()  # type: ignore[attr-defined]
        assert (found[name].dtype, found[name].shape) == (DOCUMENT[name].dtype, DOCUMENT[name].shape)  # type: ignore[attr-defined]
        assert not found[name].flags.writeable
    assert found["params"]["body.mass"].tolist() == [0.0, 1.0, 2.0]
    assert (found["text"], found["file"], found["number"]) == ("ä", b"\x00\xff", float("inf"))
    assert found["list"][:3] == [1, None, True] and found["list"][3]["x"].tolist() == [0, 1]
    assert decode(encode(DOCUMENT))["params"]["body.mass"].tolist() == [0.0, 1.0, 2.0]


def test_arrays_are_not_copied() -> None:
    array = np.arange(1000.0)
    payload = encode({"a": array})
    assert any(
        np.shares_memory(np.frombuffer(part, np.uint8), array) for part in payload if len(part) == 8000
    )
    content = b"".join(payload)
    assert np.shares_memory(decode((content,))["a"], np.frombuffer(content, np.uint8))


def test_an_array_of_another_layout_keeps_its_values() -> None:
    array = np.arange(12.0).reshape(3, 4)
    for other in (np.asfortranarray(array), array[::-1], array.T):
        assert decode(encode({"a": other}))["a"].tolist() == other.tolist()


@pytest.mark.parametrize("place", [0, 5, 100, -1])
def test_a_changed_byte_changes_the_checksum(place: int) -> None:
    content = bytearray(b"".join(encode(DOCUMENT)))
    before = checksum("session", "a", (bytes(content),))
    content[place] ^= 1
    assert checksum("session", "a", (bytes(content),)) != before


def test_the_checksum_belongs_to_one_record_and_not_to_the_parts() -> None:
    payload = encode(DOCUMENT)
    whole = b"".join(payload)
    assert checksum("session", "a", payload) == checksum("session", "a", (whole,))
    assert checksum("session", "b", payload) != checksum("session", "a", payload)
    assert checksum("trajectory", "a", payload) != checksum("session", "a", payload)


def test_fingerprints_are_equal_for_equal_requests_only() -> None:
    first = fingerprint("Step", {"ctrl": np.ones(3), "steps": 1})
    assert fingerprint("Step", {"steps": 1, "ctrl": np.ones(3)}) == first
    for verb, arguments in (
        ("Reset", {"ctrl": np.ones(3), "steps": 1}),
        ("Step", {"ctrl": np.ones((1, 3)), "steps": 1}),
        ("Step", {"ctrl": np.ones(3), "steps": 2}),
    ):
        assert fingerprint(verb, arguments) != first
