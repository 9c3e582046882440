"""Start, readiness, health under load, reflection, docs, and a clean stop."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import httpx
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from revolute.contract.verbs import VERBS
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.wire import GrpcWire, HttpWire

SERVICES = {f"revolute.v1.{name}Service" for name in ("Model", "Session", "Trajectory", "Server")}
HEALTH_SECONDS = 0.25
"""Health under load. Two busy cores are shared with other tests, so this is no measurement of latency."""


def test_the_start_line_and_the_port_file_name_both_addresses() -> None:
    with running_server("--threads", "1") as server:
        line = server.log.read_text().splitlines()[0]
        found = re.search(r"serves (grpc://127\.0\.0\.1:\d+) and (http://127\.0\.0\.1:\d+)", line)
        assert found
        assert found.groups() == (server.grpc, server.http)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(number: int) -> None:
    with running_server() as server:
        assert httpx.get(server.http + "/readyz").status_code == 200
        assert server.stop(number) == 0
        assert "Traceback" not in server.log.read_text()


def test_a_stop_lets_running_calls_finish_and_cancels_what_outlasts_the_grace_time() -> None:
    with running_server("--grace", "1", "--workers", "2") as server:
        wire = GrpcWire(server.grpc_target)
        cart = wire.call("RegisterModel", {"text": CART})["model_id"]
        short, endless = (
            wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"] for _ in range(2)
        )
        ends: dict[str, object] = {}

        def step(name: str, session_id: str, steps: int) -> None:
            try:
                ends[name] = wire.call("Step", {"session_id": session_id, "ctrl": np.ones(1), "steps": steps})
            except grpc.RpcError as error:
                ends[name] = error.code()

        calls = [
            threading.Thread(target=step, args=("short", short, 200_000)),
            threading.Thread(target=step, args=("endless", endless, 10**12)),
        ]
        for call in calls:
            call.start()
        time.sleep(0.1)
        assert server.stop() == 0
        for call in calls:
            call.join(10.0)
        assert isinstance(ends["short"], dict)
        assert ends["short"]["step_count"] == 200_000
        assert ends["endless"] is grpc.StatusCode.UNAVAILABLE


def test_a_stop_lets_a_running_http_request_finish() -> None:
    with running_server("--grace", "20") as server:
        wire = HttpWire(server.http, npz=False)
        cart = wire.call("RegisterModel", {"text": CART})["model_id"]
        session_id = wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]
        ends: list[dict[str, object]] = []
        document = {"session_id": session_id, "ctrl": np.ones(1), "steps": 500_000}
        call = threading.Thread(target=lambda: ends.append(wire.call("Step", document)))
        call.start()
        time.sleep(0.1)
        assert server.stop() == 0
        call.join(10.0)
        assert ends[0]["step_count"] == 500_000


def test_a_second_signal_ends_it_at_once() -> None:
    with running_server("--grace", "60") as server:
        wire = GrpcWire(server.grpc_target)
        cart = wire.call("RegisterModel", {"text": CART})["model_id"]
        session_id = wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]

        def endless() -> None:
            with pytest.raises(grpc.RpcError):
                wire.call("Step", {"session_id": session_id, "ctrl": np.ones(1), "steps": 10**12})

        call = threading.Thread(target=endless)
        call.start()
        time.sleep(0.2)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert server.process.poll() is None
        started = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - started < 10.0
        call.join(10.0)


def test_a_port_that_is_taken_is_one_clear_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for flag, other in (("--grpc-port", "--http-port"), ("--http-port", "--grpc-port")):
            command = [sys.executable, "-m", "revolute_server", flag, port, other, "0"]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert ended.returncode == 2
            lines = [line for line in ended.stderr.splitlines() if line.startswith("revolute serve:")]
            assert len(lines) == 1
            assert port in lines[0]


@pytest.mark.parametrize("kind", ["grpc", "http"])
def test_a_socket_in_a_folder_that_does_not_exist_is_one_clear_line(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "none" / "s")
    command = [sys.executable, "-m", "revolute_server", "--no-tcp", f"--{kind}-socket", path]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert (
        ended.stderr
        == f"revolute serve: {kind}_socket: expected a path in a folder that exists, got {path}\n"
    )


def test_without_the_package_of_a_store_the_server_says_what_to_install() -> None:
    hidden = "import sys; sys.modules['redis'] = None; from revolute_server.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", hidden, "--store", "redis://127.0.0.1:1/0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("revolute serve: store: expected the package redis, got none")
    assert "revolute-server[redis]" in ended.stderr and len(ended.stderr.splitlines()) == 1


def test_other_hosts_are_refused_without_insecure() -> None:
    command = [sys.executable, "-m", "revolute_server", "--host", "0.0.0.0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "--insecure" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_health_of_the_server_and_of_each_service(grpc_wire: GrpcWire) -> None:
    stub = health_pb2_grpc.HealthStub(grpc_wire.channel)
    for service in ("", *SERVICES):
        answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5.0)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_reflection_lists_the_services(grpc_wire: GrpcWire) -> None:
    database = ProtoReflectionDescriptorDatabase(grpc_wire.channel)
    assert set(database.get_services()) >= SERVICES | {"grpc.health.v1.Health"}
    assert database.FindFileContainingSymbol("revolute.v1.RolloutInputs").package == "revolute.v1"


def test_health_answers_while_every_worker_computes(
    server: ServerProcess, grpc_wire: GrpcWire, json_wire: HttpWire, cart: str
) -> None:
    stub = health_pb2_grpc.HealthStub(grpc_wire.channel)
    sessions = [
        grpc_wire.call("CreateSession", {"model_id": cart, "batch": 8})["session_id"] for _ in range(6)
    ]

    def compute(session_id: str) -> None:
        with pytest.raises(grpc.RpcError):
            grpc_wire.call(
                "Step", {"session_id": session_id, "ctrl": np.ones(1), "steps": 10**9}, timeout=1.5
            )

    threads = [threading.Thread(target=compute, args=(session_id,)) for session_id in sessions]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    waits = []
    for _ in range(20):
        started = time.monotonic()
        stub.Check(health_pb2.HealthCheckRequest(), timeout=5.0)
        assert json_wire.client.get("/livez").status_code == 200
        waits.append(time.monotonic() - started)
        time.sleep(0.02)
    for thread in threads:
        thread.join()
    assert sorted(waits)[len(waits) // 2] < HEALTH_SECONDS, waits


def test_docs_load_nothing_from_other_hosts(json_wire: HttpWire) -> None:
    page = json_wire.client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert not re.search(r"""(src|href|url)\s*[=:]\s*["'](https?:)?//""", page.text)
    for link in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        assert json_wire.client.get(link).is_success, link


def test_the_description_has_every_verb_and_body(json_wire: HttpWire) -> None:
    description = json.loads(json_wire.client.get("/openapi.json").content)
    operations = [(path, method) for path, methods in description["paths"].items() for method in methods]
    assert len([path for path, _ in operations if path.startswith("/v1")]) == len(VERBS)
    body = description["paths"]["/v1/trajectories"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/json", "application/x-npz"}
    name = body["application/json"]["schema"]["$ref"].rpartition("/")[2]
    assert "ctrl" in description["components"]["schemas"][name]["properties"]
    answer = description["paths"]["/v1/trajectories"]["post"]["responses"]["201"]["content"][
        "application/json"
    ]
    assert answer["schema"] == {"$ref": "#/components/schemas/Trajectory"}
    assert set(description["components"]["schemas"]["Trajectory"]["properties"]) >= {"trajectory_id", "qpos"}
    text = json.dumps(description)
    for reference in set(re.findall(r'"#/components/schemas/(\w+)"', text)):
        assert reference in description["components"]["schemas"]


def test_a_draining_server_refuses_new_calls_on_both_transports_and_finishes_those_that_run() -> None:
    with running_server("--grace", "60", "--workers", "2") as server:
        wire, web = GrpcWire(server.grpc_target), HttpWire(server.http, npz=False)
        cart = wire.call("RegisterModel", {"text": CART})["model_id"]
        session_id = wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]
        health = health_pb2_grpc.HealthStub(wire.channel)
        ends: list[object] = []
        release = threading.Event()

        def step() -> None:
            document = {"session_id": session_id, "ctrl": np.ones(1), "steps": 10**12}
            call = wire.start("Step", document)
            release.wait(30.0)
            call.cancel()
            ends.append(call.code())

        running = threading.Thread(target=step)
        running.start()
        _wait_until(lambda: _sample(web, "revolute_workers_busy") == 1)
        server.process.send_signal(signal.SIGTERM)
        _wait_until(lambda: web.client.get("/readyz").status_code == 503)
        answer = health.Check(health_pb2.HealthCheckRequest(), timeout=5.0)
        assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
        # on the connections that are open, and on new ones
        fresh, fresh_web = GrpcWire(server.grpc_target), HttpWire(server.http, npz=True)
        for way in (wire, web, fresh, fresh_web):
            error, code = way.error("GetServerInfo", {})
            assert code in ("UNAVAILABLE", "503") and "draining" in str(error)
        assert web.client.get("/livez").status_code == 200
        assert _sample(web, "revolute_ready") == 0
        assert server.process.poll() is None
        release.set()
        running.join(30.0)
        # the last call has ended, so nothing is waited for any more
        assert server.process.wait(30.0) == 0
        assert ends == [grpc.StatusCode.CANCELLED]


def _sample(wire: HttpWire, name: str) -> float:
    text = wire.client.get("/metrics").text
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")))


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30.0
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
