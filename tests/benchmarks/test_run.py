"""`make bench` and its report: parts, failures, the page in docs. Figures are not judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import report, run
from benchmarks.script import Effort, read_report
from benchmarks.table import Table

ROOT = Path(__file__).resolve().parents[2]
QUICK_PARTS = [part for part in run.OURS if part != "instruction_sets"]  # a process for each


def test_a_quick_run_of_our_parts_gives_figures(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "--out", str(out), "--parts", *QUICK_PARTS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    host, tables = read_report(out)
    # a part may have several tables
    assert host["processor"] and {table.name for table in tables} >= set(QUICK_PARTS)
    for table in tables:
        assert table.rows and "note" not in table.columns, table
        for row in table.rows:
            times = [value for name, value in row.items() if name.endswith(("_us", "_ms"))]
            assert all(isinstance(value, float) and value > 0 for value in times), row
    assert out.with_suffix(".md").read_text("utf-8").strip() in done.stdout


def test_a_part_that_fails_is_a_table_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Effort) -> list[Table]:
        raise RuntimeError("no such\nlibrary")

    monkeypatch.setitem(run.PARTS, "peers", broken)
    (table,) = run.measure(["peers"], Effort(quick=True))
    assert table.rows == [{"note": "RuntimeError: no such library"}]


def test_merging_replaces_tables_of_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    host = {"processor": "here"}
    document = {"machine": host, "tables": [Table(name, "old", {}).to_dict() for name in "ab"]}
    path.write_text(json.dumps(document), "utf-8")
    merged = run.merged(path, host, [Table("b", "new", {}), Table("c", "new", {})])
    assert [(table.name, table.caption) for table in merged] == [("a", "old"), ("b", "new"), ("c", "new")]
    with pytest.raises(SystemExit, match="expected figures of this machine"):
        run.merged(path, {"processor": "elsewhere"}, [])


def test_a_table_prints_three_digits_and_dashes() -> None:
    table = Table("t", "caption", {"a": "A", "b": "B"}, [{"a": 1234.5, "b": None}, {"a": 0.00001, "b": 3}])
    assert table.markdown().splitlines() == [
        "caption",
        "",
        "| A | B |",
        "|---|---|",
        "| 1234 | – |",
        "| 1.0e-05 | 3 |",
    ]
    assert Table.from_dict(table.to_dict()) == table


def test_the_page_shows_the_results_that_are_checked_in() -> None:
    host, tables = read_report(report.RESULTS)
    page = report.PAGE.read_text("utf-8")
    assert report.rendered(page, host, tables) == page, "run python -m benchmarks.report"
    for table in tables:
        assert f"<!-- table {table.name} -->\n{table.markdown()}<!-- end -->" in page
