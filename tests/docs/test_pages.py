"""algorithm.md, adjoint.md and gradients.md name what there is: files, options, parameters, headings."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from pathlib import Path

import pytest

from revolute.gradient_report import VERDICTS
from revolute_engine._options import Options

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "engine/include/revolute"
PAGES = {
    name: (ROOT / "docs" / f"{name}.md").read_text()
    for name in ("algorithm", "adjoint", "gradients", "checkpoints")
}
FORMULAE = (ROOT / "tests/docs/test_adjoint_formulae.py").read_text()
TABLE = PAGES["algorithm"].partition("## Options")[2]


def headings(page: str) -> list[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", PAGES[name]):
        path, _, anchor = target.partition("#")
        page = ROOT / "docs" / (path or f"{name}.md")
        assert page.exists(), target
        assert not anchor or anchor in headings(page.read_text()), target


@pytest.mark.parametrize("name", PAGES)
def test_files_exist(name: str) -> None:
    roots = (ROOT, ENGINE, ROOT / "engine", ROOT / "engine/python", ROOT / "docs")
    for path in re.findall(r"`((?:[\w]+/)+[\w]+\.(?:hpp|cpp|py|md))`", PAGES[name]):
        assert any((root / path).exists() for root in roots), path


@pytest.mark.parametrize("name", PAGES)
def test_names_of_the_code_exist(name: str) -> None:
    folders = [ROOT / folder for folder in ("engine", "client/revolute", "tests/docs")]
    files = [
        path for folder in folders for path in folder.rglob("*") if path.suffix in (".hpp", ".cpp", ".py")
    ]
    sources = "".join(path.read_text() for path in files)
    for word in re.findall(r"`([a-z]+_[a-z_]+)`", PAGES[name]):
        assert re.search(rf"\b{word}\b", sources), word


def test_each_stage_has_its_section() -> None:
    sections = set(re.findall(r"^###? (\S+)$", PAGES["algorithm"], re.MULTILINE))
    parts = {"link_points", "convex_contacts"}  # of collision_detection, in whose section they are named
    stages = {path.stem for path in (ENGINE / "stages").glob("*.hpp")} - parts
    stages |= {f"rows/{path.stem}" for path in (ENGINE / "stages/rows").glob("*.hpp")}
    stages |= {path.stem for path in (ENGINE / "solvers").glob("*.hpp")}
    assert stages <= sections
    assert all(f"`stages/{part}.hpp`" in PAGES["algorithm"] for part in parts)


def test_equations_are_numbered_as_in_the_files() -> None:
    for path in (*(ENGINE / "stages").rglob("*.hpp"), *(ENGINE / "solvers").glob("*.hpp")):
        for number in re.findall(rf"{path.name} ((?:\(\d+\)(?:, )?)+)", PAGES["adjoint"]):
            for one in re.findall(r"\(\d+\)", number):
                assert one in path.read_text().partition("#pragma once")[0], (path.name, one)


def test_the_table_of_options_has_the_defaults() -> None:
    loading = {"base", "ground", "fuse_fixed", "timestep"}
    for field in fields(Options):
        row = re.search(rf"^\| `{field.name}` \| (.*?) \|", TABLE, re.MULTILINE)
        if field.name in loading:
            continue
        assert row is not None, field.name
        assert row.group(1).strip("`").strip('"') == str(field.default), field.name


def test_every_pair_of_shapes_is_described() -> None:
    enumerators = re.search(
        r"enum class Pair : int \{(.*?)\}", (ENGINE / "model/model.hpp").read_text(), re.DOTALL
    )
    assert enumerators is not None
    for pair in re.findall(r"\w+", enumerators.group(1)):
        assert f"`{pair}`" in PAGES["algorithm"], pair


@pytest.mark.parametrize("name", ["adjoint", "gradients"])
def test_every_parameter_is_described(name: str) -> None:
    names = re.search(
        r"parameter_names\[.*?\{(.*?)\};", (ENGINE / "model/parameter_map.hpp").read_text(), re.DOTALL
    )
    assert names is not None
    for parameter in re.findall(r'"(\w+)"', names.group(1)):
        assert f"`{parameter}`" in PAGES[name], parameter


def test_every_row_of_the_corrections_has_its_test() -> None:
    rows = [int(number) for number in re.findall(r"^\| (\d+) \|", PAGES["adjoint"], re.MULTILINE)]
    assert rows == list(range(1, 21))
    tested = {int(number) for number in re.findall(r"def test_row_(\d+)_", FORMULAE)}
    assert tested == set(rows) - {20}  # no formula


def test_the_page_says_how_its_figures_are_made() -> None:
    commands = re.findall(r"python -m benchmarks\.gradients (\w+)", PAGES["gradients"])
    assert set(commands) == {"standing", "horizon", "sliding", "impact", "kink"}


def test_every_verdict_of_a_check_is_explained() -> None:
    for verdict in VERDICTS:
        assert f"*{verdict}*" in PAGES["gradients"], verdict


def test_the_reach_of_slots_is_as_stated() -> None:
    for steps, most in ((6_545, 3), (58_905, 4)):
        assert math.comb(32 + most, most) == steps and f"{steps:,} " in PAGES["checkpoints"]
    assert round(math.comb(38, 6) / 1e6, 1) == 2.8 and "2.8 million" in PAGES["checkpoints"]
