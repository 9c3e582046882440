"""deploy/: the chart renders, and what it and the other files say is what tools and the server accept."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

import revolute
from revolute_server import settings
from testbed.server_process import ServerProcess

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


def rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the chart's objects for some values."""
    helm = pytest.importorskip("helm_python")
    with helm.Chart.load(str(DEPLOY / "helm/revolute")) as chart:
        chart.validate_schema(values)
        texts = chart.render(values, name="robots", namespace="lab").values()
    return [found for text in texts for found in yaml.safe_load_all(text) if found]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {
            "store": "rediss://redis.example:6380/0",
            "settings": {"REVOLUTE_MAX_BATCH": "4096"},
            "image": {"tag": "0.2"},
            "redis": {"storageClass": "fast"},
            "service": {"type": "LoadBalancer"},
        },
        {"redis": {"storageClass": "fast", "size": "1Gi"}, "replicas": 5, "memory": 1024},
    ],
)
def test_the_chart_renders_objects_that_kubernetes_accepts(values: dict[str, Any]) -> None:
    validate = pytest.importorskip("kubernetes_validate").validate
    found = rendered(values)
    for item in found:
        validate(item, "1.31", strict=True)
    kinds = [item["kind"] for item in found]
    assert kinds.count("StatefulSet") == ("store" not in values) and kinds.count("Deployment") == 1
    deployment = found[kinds.index("Deployment")]["spec"]
    (container,) = deployment["template"]["spec"]["containers"]
    environment = {variable["name"]: variable["value"] for variable in container["env"]}
    assert settings.unknown_variables(environment) == []
    grace = int(environment["REVOLUTE_GRACE"])
    assert deployment["template"]["spec"]["terminationGracePeriodSeconds"] > grace
    limit = int(container["resources"]["limits"]["memory"].removesuffix("Mi"))
    assert limit - int(environment["REVOLUTE_MEMORY"].removesuffix("MiB")) >= 256


def test_values_that_the_chart_does_not_know_are_refused() -> None:
    with pytest.raises(Exception, match="replica"):
        rendered({"replica": 3})


def test_the_ray_service_is_one_that_ray_serve_accepts() -> None:
    schema = pytest.importorskip("ray.serve.schema")
    (service,) = yaml.safe_load_all((DEPLOY / "kubernetes/rayservice.yaml").read_text(encoding="utf-8"))
    schema.ServeDeploySchema.parse_obj(yaml.safe_load(service["spec"]["serveConfigV2"]))
    (application,) = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"]
    assert settings.unknown_variables(application["runtime_env"]["env_vars"]) == []


def test_the_unit_is_one_that_systemd_accepts(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    text = (DEPLOY / "systemd/revolute.service").read_text(encoding="utf-8")
    command = Path(sys.executable).with_name("revolute")
    unit = tmp_path / "revolute.service"
    unit.write_text(text.replace("/opt/revolute/bin/revolute", str(command)), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    assert done.returncode == 0 and "revolute" not in done.stderr, done.stderr
    (line,) = re.findall(r"^Environment=(.*)$", text, re.MULTILINE)
    variables = dict(word.split("=", 1) for word in line.split())
    assert settings.unknown_variables(variables) == []
    assert float(variables["REVOLUTE_GRACE"]) < int(re.search(r"TimeoutStopSec=(\d+)", text)[1])  # type: ignore[index]


def test_alerts_fire_when_they_should() -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    for arguments in (("check", "rules", "alerts.yaml"), ("test", "rules", "alerts_test.yaml")):
        done = subprocess.run(
            ["promtool", *arguments], cwd=DEPLOY / "prometheus", capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_and_dashboard_use_metrics_that_there_are(server: ServerProcess) -> None:
    there = httpx.get(f"{server.http}/metrics", timeout=30.0).text
    known = set(re.findall(r"^# TYPE (\S+)", there, re.MULTILINE))
    rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text(encoding="utf-8"))
    expressions = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    board = json.loads((DEPLOY / "grafana/revolute.json").read_text(encoding="utf-8"))
    expressions += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    used = {name for text in expressions for name in re.findall(r"\b(?:revolute|process)_\w+", text)}
    assert len(used) > 15
    assert {name.removesuffix("_bucket") for name in used} <= known


def test_every_alert_is_explained() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text(encoding="utf-8"))
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        assert f"`{rule['alert']}`" in page


def test_the_cluster_file_is_one_that_ray_accepts() -> None:
    util = pytest.importorskip("ray.autoscaler._private.util")
    config = yaml.safe_load((DEPLOY / "ray/cluster.yaml").read_text(encoding="utf-8"))
    util.validate_config(util.prepare_config(config))
    with pytest.raises(Exception, match="misspelt"):
        util.validate_config(util.prepare_config({**config, "misspelt": 1}))
    # the versions that the file installs are those of this tree
    (packages,) = (line for line in config["setup_commands"] if "pip install" in line)
    assert f"revolute[ray,server]=={revolute.__version__}" in packages
