"""docs/service.md against the server."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.server.processes import ServerProcess

PAGE = Path(__file__).parents[2].joinpath("docs", "service.md").read_text(encoding="utf-8")
MODULES = Path(__file__).parents[2] / "server" / "revolute_server"
_ROW = re.compile(r"^\| (`revolute_[^|]*) \| (\w+) \|", re.MULTILINE)


def test_every_metric_is_described(server: ServerProcess) -> None:
    # a counter's family has no _total, its samples have
    families = text_string_to_metric_families(httpx.get(f"{server.http}/metrics").text)
    kinds = {family.name + "_total" * (family.type == "counter"): family.type for family in families}
    served = {
        name: kind
        for name, kind in kinds.items()
        # when a counter or histogram began is the library's own addition
        if name.startswith("revolute_") and not name.endswith("_created")
    }
    described = {
        name: kind for names, kind in _ROW.findall(PAGE) for name in re.findall(r"revolute_\w+", names)
    }
    assert described == served


def test_every_module_has_its_place_in_the_table() -> None:
    table = PAGE[PAGE.index("## Inside") :]
    named = {
        name
        for row in re.findall(r"^\|(.*?)\|", table, re.MULTILINE)
        for name in re.findall(r"`(\w+\.py)`", row)
    }
    assert named == {path.name for path in MODULES.glob("*.py") if not path.name.startswith("__")}
