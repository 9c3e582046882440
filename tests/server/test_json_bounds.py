"""JSON is measured before it is parsed, and what is too much of it is refused, in nobody's way."""

from __future__ import annotations

import io
import json
import random
import threading
import time
import zipfile
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from revolute.contract.codec.npz import pack_npz
from revolute.contract.errors import LimitError
from revolute_server.http import json_bounds
from revolute_server.http.json_bounds import measure
from revolute_server.settings import Settings
from testbed.server_process import ServerProcess, running_server

from .test_http_connections import MIB, health_watched, resident_bytes

NPZ = {"content-type": "application/x-npz"}
JSON = {"content-type": "application/json"}


def count(value: Any, depth: int = 0) -> tuple[int, int, int, int, int]:
    """Count depth, containers, keys, words and values of a parsed text, one by one."""
    if isinstance(value, dict | list):
        entries = list(value.values()) if isinstance(value, dict) else value
        parts = [count(entry, depth + 1) for entry in entries]
        keys = len(value) if isinstance(value, dict) else 0
        deepest = max([depth + 1, *(part[0] for part in parts)])
        sums = [sum(part[place] for part in parts) for place in range(1, 5)]
        return deepest, sums[0] + 1, sums[1] + keys, sums[2] + keys, sums[3] + 1
    return depth, 0, 0, int(isinstance(value, str | bool) or value is None), 1


def random_value(source: random.Random, depth: int) -> Any:
    kind = source.randrange(7 if depth else 5)
    if kind == 5:
        return [random_value(source, depth - 1) for _ in range(source.randrange(5))]
    if kind == 6:
        return {random_word(source): random_value(source, depth - 1) for _ in range(source.randrange(5))}
    return [source.random() * 100, source.randrange(1000), random_word(source), None, True][kind]


def random_word(source: random.Random) -> str:
    return "".join(source.choice('a"\\{}[],:tnf\n ü') for _ in range(source.randrange(12)))


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64, 256 * 1024])
def test_the_measure_counts_what_the_parser_finds(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever blocks end: in a string, between backslash and quote, in the middle of a bracket's pair."""
    monkeypatch.setattr(json_bounds, "_BLOCK", block)
    source = random.Random(block)
    for _ in range(60):
        value = [random_value(source, 4) for _ in range(6)]
        text = json.dumps(value, ensure_ascii=source.random() < 0.5).encode()
        found = measure(text)
        depth, containers, keys, words, values = count(value)
        assert (found.depth, found.containers, found.keys, found.words) == (depth, containers, keys, words)
        assert values <= found.elements <= values + containers
        assert found.is_ascii == text.isascii() and found.size == len(text)


@pytest.mark.parametrize("text", [b"", b'"', b"\\" * 5, b']}"[', b"\xff\xfe{", b'{"a": [1, "'])
def test_any_bytes_can_be_measured(text: bytes) -> None:
    assert measure(text).size == len(text)


def test_the_estimate_of_memory_is_no_less_than_what_parsing_takes() -> None:
    import tracemalloc

    from revolute_server.http import strict_json

    for text in (
        b'{"a":[' + b"[]," * 50_000 + b"[]]}",
        b'{"a":[' + b"{}," * 50_000 + b"{}]}",
        b'{"a":[' + b"[0.25]," * 50_000 + b"[1]]}",
        b'{"a":[' + b"123456789," * 50_000 + b"1]}",
        b'{"a":[' + b'"x",' * 50_000 + b'""]}',
        b'{"a":[' + b'{"b":0},' * 50_000 + b"{}]}",
        b'{"a":{' + b",".join(b'"k%d":0.5' % number for number in range(50_000)) + b"}}",
        '{"a":"{}"}'.replace("{}", "\U0001f600" + "a" * 500_000).encode(),
    ):
        estimate = measure(text).parsed_bytes()
        tracemalloc.start()
        strict_json.loads_large(text)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak <= estimate, text[:20]


def test_limits_are_named() -> None:
    settings = Settings(max_json_depth=3, max_json_keys=4, max_json_values=5)
    json_bounds.check(measure(b'{"a":[[1,2,3,4,5,6,7,8]],"b":"x"}'), settings)
    for text, flag in (
        (b"[[[[1]]]]", "--max-json-depth 3"),
        (b'{"a":1,"b":1,"c":1,"d":1,"e":1}', "--max-json-keys 4"),
        (b'["","",null,true,false]', "--max-json-values 5"),
    ):
        with pytest.raises(LimitError, match=flag):
            json_bounds.check(measure(text), settings)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server("--memory", "512MiB") as running:
        yield running


ATTACKS = {
    "brackets": b'{"a":' + b"[" * (7 * MIB),
    "pairs of brackets": b'{"a":[' + b"[]," * (2 * MIB) + b"[]]}",
    "objects": b'{"a":[' + b"{}," * (2 * MIB) + b"{}]}",
    "keys": b"{" + b",".join(b'"k%d":0' % number for number in range(600_000)) + b"}",
    "objects with keys": b'{"a":[' + b'{"b":0},' * 800_000 + b"{}]}",
    "words": b'{"a":[' + b'"",' * (2 * MIB) + b'""]}',
    "nulls": b'{"a":[' + b"null," * MIB + b"null]}",
}


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("kind", ["json", "npz"])
def test_json_of_nothing_but_structure_is_refused(server: ServerProcess, name: str, kind: str) -> None:
    """Eight at once, beside somebody who asks for health; in a body and in the header of an archive."""
    body, headers = ATTACKS[name], JSON
    if kind == "npz":
        headers = NPZ
        stream = io.BytesIO()
        np.savez(stream, header=np.frombuffer(body, np.uint8))
        body = stream.getvalue()
    answers: list[httpx.Response] = []

    def send() -> None:
        answers.append(
            httpx.post(server.http + "/v1/value-and-gradient", content=body, headers=headers, timeout=60)
        )

    with health_watched(server):
        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [answer.status_code for answer in answers] == [429] * 8
    assert "--max-json-" in answers[0].json()["detail"]
    assert resident_bytes(server) < (512 + 150) * MIB


def test_a_short_body_has_the_same_limits(server: ServerProcess) -> None:
    body = b'{"model_id":' + b"[" * 40 + b"]" * 40 + b"}"
    answer = httpx.post(server.http + "/v1/sessions", content=body, headers=JSON)
    assert answer.status_code == 429 and "--max-json-depth" in answer.json()["detail"]


def test_the_memory_of_parsing_is_counted() -> None:
    """Numbers have no limit but that of memory: 8 MB of text are 2 million numbers."""
    body = b'{"ctrl":[' + b"0.5," * 2_000_000 + b"0]}"
    with running_server("--memory", "64MiB") as server:
        answer = httpx.post(server.http + "/v1/trajectories", content=body, headers=JSON, timeout=60)
        assert (answer.status_code, answer.json()["argument"]) == (429, "memory")
        assert server.metric("revolute_memory_bytes") < MIB


def test_rows_of_numbers_hold_nobody_up(server: ServerProcess) -> None:
    """However they are nested: a batch of one, few long rows, many short ones."""
    numbers = b",".join([b"0.5"] * 1_900_000)
    rows = {
        "one": b"[[" + numbers + b"]]",
        "few": b"[" + b",".join([b"[" + b",".join([b"0.5"] * 1000) + b"]"] * 1900) + b"]",
        "short": b"[" + b",".join([b"[0.5]"] * 1_000_000) + b"]",
    }
    with health_watched(server):
        for name, text in rows.items():
            body = b'{"model_id":"x","qpos":[0],"qvel":[0],"ctrl":' + text + b"}"
            answer = httpx.post(server.http + "/v1/trajectories", content=body, headers=JSON, timeout=60)
            assert answer.status_code in (400, 404, 429), name


def test_an_archive_with_a_long_directory_is_not_read(server: ServerProcess) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for number in range(300_000):
            archive.writestr(zipfile.ZipInfo(f"{number}.npy"), b"")
    began = time.monotonic()
    with health_watched(server):
        answer = httpx.post(
            server.http + "/v1/trajectories", content=stream.getvalue(), headers=NPZ, timeout=60
        )
    assert answer.status_code == 429 and "--max-npz-arrays" in answer.json()["detail"]
    assert time.monotonic() - began < 5


def test_an_archive_has_no_deep_paths_and_not_too_many_arrays() -> None:
    with running_server("--max-npz-arrays", "4", "--max-json-depth", "8") as server:
        for document, status, words in (
            ({f"a{number}": np.zeros(1) for number in range(5)}, 429, "--max-npz-arrays"),
            ({".".join("abcdefghij"): np.zeros(1)}, 400, "a path of at most 8 names"),
        ):
            answer = httpx.post(server.http + "/v1/trajectories", content=pack_npz(document), headers=NPZ)
            assert answer.status_code == status and words in answer.json()["detail"]
