"""The site: every Python block of its pages runs, and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trustme

import revolute
from testbed.server_process import running_server
from testbed.token_files import write_tokens

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
FILE = re.compile(r'```\w+ title="([\w.]+)"\n(.*?)```', re.DOTALL)
PRINTED = re.compile(r"^print\((\w+|\[\w+\])\)  # ([-\d.e, ]+)$", re.MULTILINE)

MOST_WORDS = 20_000
"""Of all pages of docs/ together, as CONTRIBUTING.md promises."""
ELSEWHERE = {
    "python.md": "docs/test_python_page.py",
    "dm_env_rpc.md": "server/dm_env_rpc/test_worlds.py",
    "service.md": "docs/test_site.py",
    "ray.md": "client/ray_pool/test_page.py",
}
"""Pages whose blocks need a test of their own."""

BEFORE = {
    "checkpoints.md": """
import numpy as np
import revolute

sim = revolute.connect()
model = sim.load_model("cartpole")
qpos, qvel, ctrl = model.qpos0, model.qvel0, np.zeros((700, 1))
loss, qpos_bar = revolute.Loss([revolute.Term("qpos")]), np.ones((1, 2))
""",
}
"""What a page takes for granted."""

PAGES = [path.name for path in sorted(DOCS.glob("*.md")) if BLOCK.search(path.read_text(encoding="utf-8"))]


def run(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[str, Any]]:
    """Run the blocks of a page one after the other, beside the files that it shows; skip without OpenGL."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for name, content in FILE.findall(text):
        (folder / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(folder)
    code = BEFORE.get(page, "") + "".join(BLOCK.findall(text))
    names: dict[str, Any] = {}
    try:
        exec(compile(code, f"docs/{page}", "exec"), names)
    except revolute.UnavailableError as error:
        if "OpenGL" in str(error):
            pytest.skip(str(error))
        raise
    return text, names


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE])
def test_the_blocks_run_and_print_what_the_page_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, names = run(page, tmp_path, monkeypatch)
    for name, said in PRINTED.findall(text):
        numbers = [float(number) for number in said.split(",")]
        np.testing.assert_allclose(np.ravel(eval(name, names)), numbers, rtol=0.05)


def test_the_page_on_exploding_gradients_has_figures() -> None:
    assert len(PRINTED.findall((DOCS / "exploding.md").read_text(encoding="utf-8"))) == 3


def test_the_first_page_reaches_its_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, names = run("start.md", tmp_path, monkeypatch)
    hand = names["trajectory"].kinematics(times=[-1]).geom_pos[-1, -1]
    np.testing.assert_allclose(hand, names["reach"].target, atol=2e-3)
    assert names["report"].passed and (tmp_path / "arm.png").stat().st_size > 1000
    # the gradient by the mass of the hand, by central differences
    model, change = names["model"], np.array([0, 0, 0, 1e-5])
    states = names["qpos"], names["qvel"], np.zeros((50, 2)), names["loss"]
    values = [
        names["sim"].value_and_gradient(
            model, *states, hold=4, params={"body_mass": model.body_mass + sign * change}
        )[0]
        for sign in (1, -1)
    ]
    by_mass = names["gradient"].body_mass[3]
    assert abs(by_mass) > 1e-4
    np.testing.assert_allclose(by_mass, (values[0] - values[1]) / 2e-5, rtol=1e-5)


def test_docs_service_md_connects_with_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block of docs/service.md, on a server with TLS and tokens."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    own = authority.issue_cert("127.0.0.1")
    own.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    own.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    token = write_tokens(tmp_path / "tokens", {"ann": "run"})["ann"]
    flags = ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    (code,) = BLOCK.findall((DOCS / "service.md").read_text(encoding="utf-8"))
    assert "grpcs://robots.example:50051" in code
    monkeypatch.chdir(tmp_path)
    with running_server(*flags, "--tokens", str(tmp_path / "tokens")) as server:
        names = {"revolute": revolute, "token": token}
        exec(code.replace("grpcs://robots.example:50051", server.grpc), names)
        with names["sim"] as sim:
            assert "laikago" in sim.models()


def test_pages_with_a_test_of_their_own_are_run_there() -> None:
    for page, test in ELSEWHERE.items():
        assert page in PAGES and f"docs/{page}" in (DOCS.parent / "tests" / test).read_text(encoding="utf-8")


def test_the_pages_are_short_enough_to_be_read() -> None:
    words = {path: len(path.read_text(encoding="utf-8").split()) for path in DOCS.rglob("*.md")}
    assert len(words) > 30
    assert sum(words.values()) <= MOST_WORDS
    assert f"at most {MOST_WORDS:,} words" in (DOCS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
