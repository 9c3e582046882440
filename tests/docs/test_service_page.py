"""service.md and protocol.md name what there is: every setting with its default, every metric, every file."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from revolute_server.metrics import Metrics
from revolute_server.service import Service
from revolute_server.settings import Settings, format_bytes, parse_bytes

ROOT = Path(__file__).parents[2]
SERVICE = (ROOT / "docs/service.md").read_text()
SERVER = ROOT / "server/revolute_server"


def test_every_flag_is_in_the_table_with_its_default() -> None:
    table = SERVICE.partition("## Settings")[2].partition("\n## ")[0]
    rows = {}
    for flags, default in re.findall(r"^\| (`--[^|]*) \| ([^|]*)\|", table, re.MULTILINE):
        names = re.findall(r"`--([\w-]+)`", flags)
        values = [value.strip() for value in default.split(",")]
        rows.update(dict(zip(names, values * len(names) if len(values) == 1 else values, strict=True)))
    settings = {field.name.replace("_", "-"): field for field in dataclasses.fields(Settings)}
    assert set(rows) == set(settings)
    for name, field in settings.items():
        default = field.default
        if default is None or default is False or rows[name] == "one per core":
            assert rows[name] in ("", "off", "one per core"), name
        else:
            shown = format_bytes(default) if field.metadata["parse"] is parse_bytes else default
            assert rows[name] in (str(shown), f"{shown:g}" if isinstance(shown, float) else ""), name


def test_metrics_exist() -> None:
    metrics = Metrics()
    metrics.watch(Service(Settings(workers=1, threads=1)))
    names = {family.name for family in text_string_to_metric_families(metrics.text().decode())}
    named = set(re.findall(r"`(revolute_[a-z_]+)`", SERVICE.partition("## Seeing inside")[2]))
    assert len(named) > 10
    assert {name.removesuffix("_total") for name in named} <= names


def test_files_exist() -> None:
    table = SERVICE.partition("## Inside")[2]
    for row in re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE):
        for name in re.findall(r"`([\w/.]+)`", row):
            assert (SERVER / name).exists() or name == "server/revolute_server/", name
