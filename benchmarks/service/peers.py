"""The same engine behind three servers: ours, tesseract-core and UM-Bridge; same questions, one run.

    python -m benchmarks.service.peers [--seconds 5] [--out peers.json]

The peers are installed from PyPI into an environment of their own, below build/peers. All servers run on
loopback with one engine thread per call and two calls at a time, and are asked in turn by their own clients.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.peers.environment import Environment
from benchmarks.script import ROOT
from testbed.server_process import running_server

PACKAGES = ("tesseract-core[runtime]>=1.15,<2", "umbridge>=1.2.10,<2")
START_SECONDS = 60.0

QUALITIES = {
    "gradient of a kept trajectory, by its id": ("yes", "no: stateless", "no: stateless"),
    "kept trajectories and sessions survive a crash": (
        "yes (`--store`)",
        "nothing is kept",
        "nothing is kept",
    ),
    "a repeated request has one effect": ("yes (`request_id`)", "no", "no"),
    "cancelling or leaving stops the physics": ("within one step", "no", "no"),
    "overload": ("refused, with a hint when to retry", "queues without bound", "queues without bound"),
    "health while all workers compute": ("yes, gRPC and HTTP", "GET /health", "GET /Info"),
    "arrays on the wire": (
        "binary, streamed in parts; shared memory on one machine",
        "base64 or files by reference in JSON",
        "decimal JSON; shared memory on one machine",
    ),
    "errors": ("kind, argument, advice; same class in the client", "HTTP status and text", "type and text"),
    "login and encryption": ("tokens with roles, TLS, mutual TLS", "by a proxy", "by a proxy"),
    "checkpoint memory the caller can see": ("yes", "no", "no"),
    "schema of inputs and outputs": ("proto, OpenAPI", "OpenAPI from pydantic", "sizes only"),
    "any model, any language behind it": ("no: this engine", "yes, in a container", "yes, over HTTP"),
}
"""What each does: ours, tesseract-core, UM-Bridge."""


def environment() -> Path:
    """Return the interpreter of the peers' environment, made when it is not there."""
    python = Environment("services", PACKAGES).python()
    # after its own packages, those of this interpreter: the engine and the client
    (here,) = (path for path in sys.path if path.endswith("site-packages"))
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    (site / "zz_engine.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    return python


@contextlib.contextmanager
def serving(command: list[str], url: str, **variables: str) -> Iterator[None]:
    """Run a server until the end of the block; the block begins when `url` answers.

    It runs in a folder of its own, since a Tesseract leaves a log of each call where it was started.
    """
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    with tempfile.TemporaryFile() as log, tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(command, cwd=folder, env=variables, stdout=log, stderr=subprocess.STDOUT)
        try:
            end = time.monotonic() + START_SECONDS
            while not _answers(url):
                if process.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    raise RuntimeError(f"{command} does not serve: {log.read().decode()[-2000:]}")
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait(20)


def compare(python: Path, seconds: float) -> dict[str, Any]:
    """Start all servers, ask, and return the results by question and server."""
    tesseract, umbridge = _free_port(), _free_port()
    adapters = ROOT / "benchmarks/service/peer_adapters"
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(running_server("--threads", "1", "--workers", "2"))
        stack.enter_context(
            serving(
                [
                    str(python.parent / "tesseract-runtime"),
                    "serve",
                    "--port",
                    str(tesseract),
                    "--num-workers",
                    "2",
                ],
                f"http://127.0.0.1:{tesseract}/health",
                TESSERACT_API_PATH=str(adapters / "tesseract_api.py"),
            )
        )
        stack.enter_context(
            serving(
                [str(python), "-m", "benchmarks.service.peer_adapters.umbridge_server", str(umbridge)],
                f"http://127.0.0.1:{umbridge}/Info",
            )
        )
        places = {
            "revolute-grpc": ours.grpc,
            "revolute-http": ours.http,
            "tesseract": f"http://127.0.0.1:{tesseract}",
            "umbridge": f"http://127.0.0.1:{umbridge}",
        }
        done = subprocess.run(
            [str(python), "-m", "benchmarks.service.peer_adapters.ask", str(seconds)]
            + [f"{name}={address}" for name, address in places.items()],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            check=True,
            timeout=120 + 60 * seconds,
        )
    return json.loads(done.stdout)


def table(results: dict[str, Any]) -> str:
    """Write the results and the qualities as Markdown."""
    lines = [
        "| question | server | p50 ms | p99 ms | calls/s, 4 clients | same bits |",
        "|---|---|---|---|---|---|",
    ]
    for question, servers in results.items():
        for name, row in servers.items():
            if "failed" in row:
                lines.append(f"| {question} | {name} | failed: {row['failed']} | | | |")
                continue
            rate = f"{row['calls_per_second']:.3g}" if "calls_per_second" in row else ""
            same = "yes" if row["same bits"] else "no"
            lines.append(
                f"| {question} | {name} | {row['p50_ms']:.3g} | {row['p99_ms']:.3g} | {rate} | {same} |"
            )
    lines += ["", "| | revolute | tesseract-core | UM-Bridge |", "|---|---|---|---|"]
    lines += [f"| {quality} | {' | '.join(each)} |" for quality, each in QUALITIES.items()]
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Compare, print the table and write the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="time per question and server")
    parser.add_argument("--out", type=Path, help="file for the results as JSON")
    chosen = parser.parse_args(argv)
    results = compare(environment(), chosen.seconds)
    if chosen.out:
        chosen.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(table(results))
    return 0


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1.0):
            return True
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
