"""The README's code is that of `examples/`, and it runs, in process and over the network."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from revolute_server.demo.server_process import ServerProcess

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE_ADDRESS = "grpc://127.0.0.1:50051"


def source(name: str) -> str:
    return (ROOT / "examples" / name).read_text(encoding="utf-8")


def run(code: str) -> str:
    return run_command("-c", code)


def run_command(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_code_block_is_the_example() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL) == [source("hop.py")]


def test_the_robot_hops_in_process_and_over_the_network() -> None:
    code = source("hop.py")
    assert code.count("revolute.connect()") == 1
    with ServerProcess() as server:
        remote = run(code.replace("revolute.connect()", f"revolute.connect({server.grpc_address!r})"))
    local = run(code)
    assert local == remote
    (height,) = re.findall(r"at (\d\.\d+) m after", local)
    assert float(height) > 0.7


def test_a_mass_is_identified() -> None:
    assert run(source("identify.py")).startswith("mass 1.7000")


def test_a_trial_leaves_the_session_where_it_was() -> None:
    standing, trial = re.findall(r"\d\.\d+", run(source("session.py")))
    assert float(standing) > 0.4 > float(trial)


def test_a_policy_is_trained_with_torch() -> None:
    first, last = re.findall(r"\d+\.\d+", run(source("torch_policy.py")))
    assert float(last) < 0.5 * float(first)


def test_workers_find_the_same_in_process_and_on_a_server() -> None:
    script = str(ROOT / "examples" / "workers.py")
    with ServerProcess() as server:
        on_a_server = run_command(script, server.grpc_address)
    assert on_a_server == run_command(script) and on_a_server.startswith("8 gradients, mean norm ")


def test_the_clients_readme_runs_as_written() -> None:
    readme = (ROOT / "client/README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    with ServerProcess() as server:
        assert run(code.replace(EXAMPLE_ADDRESS, server.grpc_address)) == "(100, 12)\n"
