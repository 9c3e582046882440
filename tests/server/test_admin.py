"""The admin page, looked at in a real browser, and the status behind it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

import revolute
from revolute_server import auth
from revolute_server.admin.page import HEADERS, PAGE

from .browser import CHROMIUM, Page, browser
from .conftest import CART
from .processes import running_server

NAME = "<img src=x onerror=\"document.title='broken in'\">&amp;"
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")


@pytest.fixture(scope="module")
def tab() -> Iterator[Callable[[], Page]]:
    with browser() as new_tab:
        yield new_tab


def test_the_page_loads_nothing_and_its_policy_allows_nothing() -> None:
    own = PAGE.replace("xmlns='http://www.w3.org/2000/svg'", "")  # the name of a format, not an address
    assert "//" not in own.replace('<link rel="icon" href="data:', "")
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy
    assert policy.count("sha256-") == 2
    assert " style=" not in PAGE and not re.search(r"\son\w+=", PAGE)
    assert "innerHTML" not in PAGE


def test_the_status_counts_what_is_kept_and_opens_none_of_it() -> None:
    with running_server("--workers", "2") as server, revolute.connect(server.grpc) as simulator:
        cart = simulator.load_model(CART)
        kept = simulator.rollout(cart, np.zeros(1), np.zeros(1), np.ones((2, 7, 1)))
        with simulator.session(cart, batch=3) as session:
            session.step(np.ones(1), steps=5)
            status = httpx.get(server.http + "/status").json()
            for identifier in (kept.id, session.id, cart.id):
                assert identifier not in str(status)
        assert status["load"]["workers"] == 2 and status["load"]["busy"] == 0
        assert status["server"]["state"] == "ready"
        assert [model["name"] for model in status["models"]["items"]] == ["cart"]
        (one,) = status["sessions"]["items"]
        assert (one["batch"], one["step_count"], one["model"]) == (3, 5, "cart")
        (one,) = status["trajectories"]["items"]
        assert (one["batch"], one["steps"]) == (2, 7) and kept.id.startswith(one["id"])
        verbs = {verb["verb"]: verb["count"] for verb in status["verbs"]["items"]}
        assert verbs["TrajectoryService.Rollout"] == 1


@needs_browser
def test_the_page_shows_what_is_there_and_follows_what_changes(
    tab: Callable[[], Page], tmp_path: Path
) -> None:
    with running_server("--workers", "2") as server, revolute.connect(server.grpc) as simulator:
        cart = simulator.load_model(CART)
        trajectory = simulator.rollout(cart, np.zeros(1), np.zeros(1), np.ones((7, 1)))
        page = tab()
        page.open(server.http + "/")
        page.wait("document.querySelectorAll('#trajectories tbody tr').length == 1")
        assert page.text("#state") == "ready"
        assert page.text("#models tbody").split()[0] == "cart"
        assert trajectory.id[:8] in page.text("#trajectories")
        assert "none" in page.text("#sessions")
        # without loading the page again
        with simulator.session(cart, batch=4) as session:
            page.wait("document.querySelectorAll('#sessions tbody tr').length == 1")
            session.step(np.ones(1), steps=1234)
            page.wait("document.querySelector('#sessions tbody').innerText.includes('1234')")
            # names are text, whatever they are
            _register(server.http, NAME)
            page.wait("document.querySelectorAll('#models tbody tr').length == 2")
            assert NAME in page.text("#models")
        page.wait("document.querySelector('#sessions .none') !== null")
        assert page.evaluate("document.title") == "revolute"
        assert page.evaluate("document.querySelectorAll('img').length") == 0
        picture = page.picture()
        assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
        # nothing was refused by the policy, nothing failed, nothing went to another host
        assert not page.reported("Log.entryAdded") and not page.reported("Audits.issueAdded")
        assert not page.reported("Runtime.exceptionThrown")
        asked = {params["request"]["url"] for params in page.reported("Network.requestWillBeSent")}
        assert all(url.startswith((server.http, "data:")) for url in asked), asked
        assert server.stop() == 0
        page.wait("document.querySelector('#state').innerText == 'no answer'")


@needs_browser
def test_the_policy_stops_foreign_script(tab: Callable[[], Page]) -> None:
    with running_server() as server:
        page = tab()
        page.open(server.http + "/")
        page.wait("document.querySelector('#state') && document.querySelector('#state').innerText == 'ready'")
        page.evaluate(
            "{const s = document.createElement('script'); s.textContent = 'document.title = \"broken in\"';"
            "document.body.append(s);}"
        )
        assert page.evaluate("document.title") == "revolute"


@needs_browser
def test_the_page_asks_for_a_token_of_an_admin(tab: Callable[[], Page], tmp_path: Path) -> None:
    tokens = {role: auth.new_token() for role in ("run", "admin")}
    file = tmp_path / "tokens"
    file.write_text("".join(auth.token_line(role, role, token) + "\n" for role, token in tokens.items()))
    with running_server("--tokens", str(file)) as server:
        assert httpx.get(server.http + "/status").status_code == 401
        page = tab()
        page.open(server.http + "/")
        page.wait("document.querySelector('#login') && !document.querySelector('#login').hidden")
        _give(page, tokens["run"])
        page.wait("!document.querySelector('#refusal').innerText.startsWith('Its')")
        assert "expected the role admin for Status, got run" in page.text("#login")
        _give(page, tokens["admin"])
        page.wait("!document.querySelector('#content').hidden")
        assert page.text("#state") == "ready"
        assert tokens["admin"] not in page.evaluate("document.documentElement.outerHTML")


def _give(page: Page, token: str) -> None:
    page.evaluate(f"document.querySelector('#token').value = '{token}'")
    page.evaluate("document.querySelector('#login button').click()")


def _register(address: str, name: str) -> None:
    document = {"text": CART, "name": name, "options": {"timestep": 0.002}}
    assert httpx.post(address + "/v1/models", json=document).is_success
