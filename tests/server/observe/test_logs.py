"""Log lines: a JSON object each, with the call they belong to; nothing secret in any of them."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import httpx
import pytest

import revolute
from revolute_server.access import tokens
from revolute_server.access.admission import Calls
from revolute_server.observe import logs
from testbed.cart import CART
from testbed.server_process import running_server


def test_json_lines_name_call_caller_verb_and_reason() -> None:
    with running_server("--log-format", "json", "--log-level", "info") as server:
        for address in (server.grpc, server.http):
            with revolute.connect(address) as simulator:
                simulator.load_model(CART)
        httpx.get(server.http + "/v1/models/none", headers={"x-request-id": "abc"})
        httpx.get(server.http + "/no/such/path")
        assert server.stop() == 0
        lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    first = lines[0]
    assert first["message"] == "serving" and first["grpc"] == server.grpc
    assert first["settings"]["log_format"] == "json" and first["settings"]["max_json"] == "8MiB"
    calls = [line for line in lines if line.get("logger") == "revolute.access"]
    for transport in ("grpc", "http"):
        of_transport = [line for line in calls if line["transport"] == transport]
        registered = [line for line in of_transport if line["verb"] == "ModelService.RegisterModel"]
        assert [line["reason"] for line in registered] == ["OK"]
    missing = next(line for line in calls if line["call_id"] == "abc")
    assert missing["verb"] == "ModelService.GetModel" and missing["reason"] == "NOT_FOUND"
    assert {"time", "level", "message", "caller", "milliseconds"} <= set(missing)
    assert any(line["verb"] == "unknown" and line["reason"] == "NOT_FOUND" for line in calls)
    assert len({line["call_id"] for line in calls}) == len(calls)


@pytest.mark.parametrize("formatter", [logs.Text(), logs.JsonLines()], ids=["text", "json"])
def test_tokens_are_hidden_wherever_they_stand(formatter: logging.Formatter) -> None:
    token = tokens.new_token()
    try:
        raise ValueError(f"authorization: Bearer {token}")
    except ValueError:
        record = logging.makeLogRecord(
            {"msg": "metadata %s", "args": (f"Bearer {token}",), "exc_info": sys.exc_info()}
        )
    line = formatter.format(record)
    assert "metadata" in line and "Bearer ***" in line
    assert token not in line and token[20:] not in line


_PEER_LEFT = """
import logging, sys
from revolute_server.observe import logs
logs.configure(sys.argv[1], "text")
try:
    raise RuntimeError
except RuntimeError:
    log = logging.getLogger("grpc._cython.cygrpc")
    log.exception("ExecuteBatchError raised in core by servicer method [/revolute.v1.X/Y]")
    log.exception("Unexpected [/revolute.v1.X/Y]")
"""


@pytest.mark.parametrize("level", ["warning", "debug"])
def test_a_client_that_leaves_is_no_error(level: str) -> None:
    command = [sys.executable, "-c", _PEER_LEFT, level]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stderr
    assert ("DEBUG grpc._cython.cygrpc: ExecuteBatchError" in lines) == (level == "debug")
    assert lines.count("ExecuteBatchError") == (level == "debug")
    # what else grpc has to say is said, with its stack
    assert "ERROR grpc._cython.cygrpc: Unexpected" in lines and lines.count("Traceback") == 1


def test_a_fault_is_logged_with_a_stack_that_names_the_modules() -> None:
    try:
        Calls(tokens.Access(None)).admit(None, None)  # type: ignore[arg-type]
    except AttributeError:
        record = logging.makeLogRecord({"msg": "incident", "exc_info": sys.exc_info()})
    assert "/revolute_server/access/admission.py" in logs.Text().format(record)


def test_ids_of_clients_are_taken_only_if_harmless_in_a_log() -> None:
    calls = Calls(tokens.Access(None))
    for given, taken in (("a-1.b_2", True), ("x" * 65, False), ("a b", False), ('"', False), ("a\n", False)):
        with calls.open("grpc", {"x-request-id": given}) as call:
            assert (call.id == given) is taken
