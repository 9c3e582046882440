"""The composition names settings, files and secrets that there are; `docker/check.sh` runs the images."""

from __future__ import annotations

import dataclasses
import os
import stat
import subprocess
import sys
from pathlib import Path

import yaml

from revolute_server.access.tokens import TokenFile
from revolute_server.settings import Settings

FOLDER = Path(__file__).resolve().parents[2] / "docker"
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
SETTINGS = {f"REVOLUTE_{field.name.upper()}" for field in dataclasses.fields(Settings)}


def test_the_composition_sets_what_the_server_knows() -> None:
    services = COMPOSE["services"]
    assert set(services) == {"server", "worker", "redis", "prometheus", "grafana"}
    assert services["worker"]["deploy"]["replicas"] == 2
    assert set(services["server"]["environment"]) <= SETTINGS
    text = (FOLDER / "worker.py").read_text(encoding="utf-8")
    assert all(name in text for name in services["worker"]["environment"])
    for service in services.values():
        if "build" in service:
            assert (FOLDER.parent / service["build"]["dockerfile"]).exists()


def test_secrets_are_those_that_are_made(tmp_path: Path) -> None:
    script = tmp_path / "secrets.sh"
    script.write_bytes((FOLDER / "secrets.sh").read_bytes())
    command = ["bash", str(script), sys.executable, "-m", "revolute"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    made = tmp_path / "secrets"
    assert {path.name for path in made.iterdir()} == {
        Path(secret["file"]).name for secret in COMPOSE["secrets"].values()
    }
    assert stat.S_IMODE(os.stat(made).st_mode) == 0o700
    tokens = TokenFile(made / "tokens")
    roles = {}
    for name in ("worker", "metrics"):
        found = tokens.find((made / f"{name}_token").read_text().strip())
        assert found is not None
        roles[name] = found.caller.role.name
    assert roles == {"worker": "RUN", "metrics": "READ"}
    again = subprocess.run(command, check=False, capture_output=True, timeout=60, text=True)
    assert again.returncode == 1
    assert "is there" in again.stderr


def test_prometheus_reads_the_metrics_with_its_token() -> None:
    config = yaml.safe_load((FOLDER / "prometheus.yaml").read_text(encoding="utf-8"))
    (job,) = config["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["server:8000"]}]
    (secret,) = COMPOSE["services"]["prometheus"]["secrets"]
    (rules,) = config["rule_files"]
    mounts = dict(mount.split(":")[:2] for mount in COMPOSE["services"]["prometheus"]["volumes"])
    mounted = [place for place, inside in mounts.items() if inside == rules]
    assert (FOLDER / mounted[0]).is_file()
    assert job["authorization"]["credentials_file"] == f"/run/secrets/{secret}"
