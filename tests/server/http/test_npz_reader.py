"""npz bodies from clients that are not trusted."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from typing import Any

import numpy as np
import pytest

from revolute.contract.errors import ArgumentError, LimitError, RevoluteError
from revolute_server.http import npz_reader, strict_json
from testbed.wire import HttpWire, problem_of

BOUNDS = npz_reader.Bounds(1024**2, "--max-request 1MiB")


def archive(**members: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **members)
    return stream.getvalue()


def raw(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as writer:
        for name, content in members.items():
            writer.writestr(f"{name}.npy", content)
    return stream.getvalue()


def header(shape: str, dtype: str = "<f8", version: bytes = b"\x01\x00") -> bytes:
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text


def read(body: bytes) -> dict[str, np.ndarray]:
    return npz_reader.Archive(body, BOUNDS).read()


def join(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    arrays = dict(arrays)
    header = strict_json.loads(npz_reader.take_header(arrays))
    return npz_reader.join(header, arrays, BOUNDS)


@pytest.mark.parametrize("compress", [False, True])
def test_arrays_come_back_as_they_were(compress: bool) -> None:
    stream = io.BytesIO()
    members = {
        "c": np.arange(12.0).reshape(3, 4),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big_endian": np.arange(3.0).astype(">f8"),
        "empty": np.zeros((0, 3)),
        "scalar": np.array(2.5),
    }
    (np.savez_compressed if compress else np.savez)(stream, **members)
    found = read(stream.getvalue())
    for name, array in members.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].shape == array.shape


def test_members_are_put_at_their_paths() -> None:
    members = {
        "header": np.frombuffer(b'{"model_id": "m", "inputs": {"x": 1}}', np.uint8),
        "inputs.ctrl": np.ones(2),
        "params.body_mass": np.ones(1),
        "assets.meshes/foot.stl": np.zeros(3, np.uint8),
    }
    found = join(members)
    assert found["model_id"] == "m"
    assert set(found["inputs"]) == {"x", "ctrl"}
    assert set(found["assets"]) == {"meshes/foot.stl"}
    with pytest.raises(ArgumentError, match="model_id"):
        join({**members, "model_id.x": np.ones(1)})


class Attack:
    """Writes a file when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, ("/nonexistent/attack", "w"))


ATTACKS = {
    "a pickled object": archive(ctrl=np.array([Attack()], dtype=object)),
    "a bare pickle": raw(ctrl=pickle.dumps(Attack())),
    "no archive": b"PK\x03\x04 nothing",
    "not even that": b"\x00" * 100,
    "a member that is no array": raw(ctrl=b"hello"),
    "a shape that claims terabytes": raw(ctrl=header("(1000000000000,)") + b"\x00" * 8),
    "a negative shape": raw(ctrl=header("(-1, -8)") + b"\x00" * 64),
    "no elements along axes that cannot be counted": raw(ctrl=header("(0, 1099511627776, 1099511627776)")),
    "more axes than arrays have": raw(ctrl=header(str((0,) * 70))),
    "a shape that is no shape": raw(ctrl=header("'abc'") + b"\x00" * 8),
    "a header that is code": raw(ctrl=header("__import__('os').getcwd()")),
    "an unknown version": raw(ctrl=header("(1,)", version=b"\x09\x00") + b"\x00" * 8),
    "a structured type with objects": raw(ctrl=header("(1,)", dtype="|O") + b"\x00" * 8),
    "an array of arrays": raw(ctrl=header("(1,)", dtype="(2,)<f8") + b"\x00" * 16),
    "an unbalanced header": raw(ctrl=header("(((((")),
    "a header that is too deep": raw(ctrl=header("(" * 3000)),
    "bytes that are missing": raw(ctrl=header("(4,)") + b"\x00" * 8),
    "bytes that are left over": raw(ctrl=header("(1,)") + b"\x00" * 32),
    "a header that is no JSON": archive(header=np.frombuffer(b"{", np.uint8)),
    "a header of numbers": archive(header=np.zeros(3)),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_are_refused(attack: str) -> None:
    with pytest.raises(ArgumentError):
        join(read(ATTACKS[attack]))


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_are_refused_by_the_server(npz_wire: HttpWire, attack: str) -> None:
    response = npz_wire.client.post("/v1/trajectories", content=ATTACKS[attack])
    assert response.status_code == 400
    problem_of(response)


def test_a_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = raw(ctrl=header("(8000000,)") + b"\x00" * 64_000_000)
    assert len(bomb) < BOUNDS.size
    with pytest.raises(LimitError, match="--max-request"):
        npz_reader.Archive(bomb, BOUNDS)


def test_a_directory_that_lies_about_sizes_is_refused() -> None:
    """The size in the directory is changed to 1: what unpacks must not be longer."""
    body = bytearray(raw(ctrl=header("(64,)") + b"\x00" * 512))
    entry = body.rindex(b"PK\x01\x02")
    body[entry + 24 : entry + 28] = (1).to_bytes(4, "little")
    with pytest.raises(RevoluteError):
        read(bytes(body))


def test_too_many_members_are_refused() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as writer:
        for number in range(5000):
            writer.writestr(f"{number}.npy", b"")
    # "more": found before zipfile has made objects of the entries, which takes long
    with pytest.raises(LimitError, match="at most 4096 arrays in an archive, got more"):
        npz_reader.Archive(stream.getvalue(), BOUNDS)


def test_numbers_of_other_types_are_refused_by_name(npz_wire: HttpWire, cart: str) -> None:
    fields = json.dumps({"model_id": cart}).encode()
    for dtype in ("c16", "S3", "M8[s]"):
        body = archive(
            header=np.frombuffer(fields, np.uint8),
            qpos=np.zeros(1),
            qvel=np.zeros(1),
            ctrl=np.zeros((2, 1), dtype),
        )
        response = npz_wire.client.post("/v1/trajectories", content=body)
        assert response.status_code == 400
        assert problem_of(response).argument == "ctrl"
