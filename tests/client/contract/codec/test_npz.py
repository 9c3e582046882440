"""NPZ bodies: documents come back exactly, NumPy reads and writes them too, pickles are never opened."""

from __future__ import annotations

import contextlib
import io
import struct
import zipfile
from typing import Any

import numpy as np
import pytest

from revolute import ArgumentError
from revolute.contract.codec.npz import npz_pieces, pack_npz, unpack_npz

DOCUMENT = {
    "model_id": "m",
    "qpos": np.array([np.nan, -0.0, 5e-324]),
    "params": {"body_mass": np.ones((2, 3), order="F")},
    "report": {"states_stored": 3},
    "status": np.array(0, dtype=np.int32),
    "loss": {"terms": [{"quantity": "qpos", "target": [0.1, 1 / 3]}]},
    "nothing": None,
}


def test_round_trip() -> None:
    again = unpack_npz(pack_npz(DOCUMENT))
    assert again["qpos"].tobytes() == DOCUMENT["qpos"].tobytes()
    assert again["params"]["body_mass"].shape == (2, 3)
    assert again["status"].shape == () and again["status"].dtype == np.int32
    assert again["report"] == {"states_stored": 3}
    assert again["loss"]["terms"][0]["target"] == [0.1, 1 / 3]
    assert "nothing" not in again


def test_numpy_reads_and_writes_it() -> None:
    with np.load(io.BytesIO(pack_npz(DOCUMENT)), allow_pickle=False) as archive:
        assert archive["params.body_mass"].shape == (2, 3)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{"ctrl": np.zeros((2, 1)), "params.geom_friction": np.ones(2)})
    document = unpack_npz(buffer.getvalue())
    assert document["params"]["geom_friction"].tolist() == [1.0, 1.0]


def _savez(**members: object) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    return buffer.getvalue()


MISTAKES = {
    "pickle": _savez(ctrl=np.array([None])),
    "text": b"hello",
    "nothing": b"",
    "cut": pack_npz(DOCUMENT)[:-30],
    "bad header": _savez(header=np.frombuffer(b"{", dtype=np.uint8)),
    "header is a list": _savez(header=np.frombuffer(b"[1]", dtype=np.uint8)),
    "path through a word": _savez(**{"header": np.frombuffer(b'{"a":1}', dtype=np.uint8), "a.b": np.ones(1)}),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_refused(mistake: str) -> None:
    with pytest.raises(ArgumentError):
        unpack_npz(MISTAKES[mistake])


def test_arrays_are_written_from_their_own_memory_and_lie_aligned() -> None:
    arrays = {"qpos": np.arange(1000.0), "params": {"ä": np.ones(3), "body_mass": np.arange(7.0)}}
    pieces = npz_pieces({"model_id": "m", **arrays})
    own = [np.frombuffer(piece, np.uint8) for piece in pieces if isinstance(piece, memoryview)]
    assert any(np.shares_memory(piece, arrays["qpos"]) for piece in own)
    content = b"".join(pieces)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            place = content.index(archive.read(name))
            assert place % 64 == 0, name
    # sizes and checksums are in the heads, for readers that go from the front
    mark, version, flags = struct.unpack_from("<4sHH", content)
    # Python before 3.11.4 names the older version of the format
    assert (mark, flags) == (b"PK\x03\x04", 0) and version in (20, 45)
    np.testing.assert_array_equal(unpack_npz(content)["params"]["ä"], np.ones(3))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damage_to_an_array_is_found(save: Any) -> None:
    buffer = io.BytesIO()
    save(buffer, ctrl=np.random.default_rng(0).normal(size=1000))
    content = buffer.getvalue()
    for place in range(200, len(content) - 300, len(content) // 20):
        changed = bytearray(content)
        changed[place] ^= 1
        with pytest.raises(ArgumentError, match="expected an NPZ file"):
            unpack_npz(bytes(changed))


def test_damage_to_any_bit_of_a_directory_is_an_argument_error() -> None:
    content = _savez(ctrl=np.zeros(3))
    place = content.index(b"PK\1\2")
    for bit in range(8 * (len(content) - place)):
        changed = bytearray(content)
        changed[place + bit // 8] ^= 1 << bit % 8
        with contextlib.suppress(ArgumentError):  # not every bit counts
            unpack_npz(bytes(changed))


def test_large_arrays_stay_in_writable_memory_and_small_ones_do_not() -> None:
    document = {"large": np.arange(10_000.0), "small": np.arange(10.0)}
    body = np.frombuffer(pack_npz(document), np.uint8).copy()
    for data, stays in ((body.data, True), (pack_npz(document), False)):
        found = unpack_npz(data)
        assert np.shares_memory(found["large"], body) is stays
        assert not np.shares_memory(found["small"], body)
        for name, array in document.items():
            np.testing.assert_array_equal(found[name], array, strict=True)
            assert found[name].flags.writeable and found[name].flags.aligned
