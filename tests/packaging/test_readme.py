"""The README's code is that of `examples/`, and it runs, in process and over the network."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from revolute_server.demo.server_process import ServerProcess

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ("in_process.py", "over_network.py")
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


def test_code_blocks_are_the_examples() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    assert blocks == [source(name) for name in EXAMPLES]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_fifteen_lines(name: str) -> None:
    assert len(source(name).splitlines()) == 15


def test_examples_differ_only_where_they_connect() -> None:
    pairs = zip(*(source(name).splitlines() for name in EXAMPLES), strict=True)
    different = [pair for pair in pairs if pair[0] != pair[1]]
    assert [[line.split("(")[0] for line in pair] for pair in different] == [["sim = revolute.connect"] * 2]


def test_examples_print_the_same_in_process_and_over_the_network() -> None:
    with ServerProcess() as server:
        remote = source("over_network.py")
        assert EXAMPLE_ADDRESS in remote
        over_network = run(remote.replace(EXAMPLE_ADDRESS, server.grpc_address))
    in_process = run(source("in_process.py"))
    assert in_process == over_network
    assert "(16, 500, 12)" in in_process


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


def test_the_readme_names_every_example() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"examples/{path.name}" in readme for path in (ROOT / "examples").glob("*.py"))


def test_the_clients_readme_runs_as_written() -> None:
    readme = (ROOT / "client/README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    with ServerProcess() as server:
        assert run(code.replace(EXAMPLE_ADDRESS, server.grpc_address)) == "(100, 12)\n"


def test_readme_names_only_folders_that_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    folders = re.findall(r"^\| `(\w+)/` \|", readme, flags=re.MULTILINE)
    links = re.findall(r"\]\(([^)#:]+)\)", readme)
    assert len(folders) >= 8
    missing = [name for name in (*folders, *links) if not (ROOT / name).exists()]
    assert not missing
