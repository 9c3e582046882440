"""The admin page, looked at in a real browser, and the status behind it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

import revolute
from revolute_server.access import tokens as auth
from revolute_server.http.pages import ADMIN_PAGE, page_headers
from testbed.cart import CART
from testbed.server_process import running_server

from .browser import CHROMIUM, Page, browser

NAME = "<img src=x onerror=\"document.title='broken in'\">&amp;"
CUT_OFF = """
[...document.querySelectorAll("body, .scroll, td, th")]
    .filter((node) => node.clientWidth > 0 && node.scrollWidth > node.clientWidth)
    .map((node) => node.outerHTML.slice(0, 80))
"""
LABELS = """
[...document.querySelectorAll("th, td")]
    .filter((node) => node.clientWidth > 0)
    .map((node) => node.tagName == "TH" ? node.innerText : getComputedStyle(node, "::before").content)
    .map((text) => text.replaceAll('"', ""))
    .filter((text) => text != "none")
"""
FURTHEST = """
Math.max(...[...document.querySelectorAll("td, a, .card")].map((node) => node.getBoundingClientRect().right))
"""
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")


@pytest.fixture(scope="module")
def tab() -> Iterator[Callable[[], Page]]:
    with browser() as new_tab:
        yield new_tab


def test_the_page_loads_nothing_and_its_policy_allows_nothing() -> None:
    own = ADMIN_PAGE.replace("xmlns='http://www.w3.org/2000/svg'", "")  # the name of a format, not an address
    assert "//" not in own.replace('<link rel="icon" href="data:', "")
    policy = page_headers(ADMIN_PAGE)["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy
    assert policy.count("sha256-") == 2
    assert " style=" not in ADMIN_PAGE and not re.search(r"\son\w+=", ADMIN_PAGE)
    assert "innerHTML" not in ADMIN_PAGE


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
        assert 0 < status["sessions"]["items"][0]["seconds_left"] <= 1.1 * 3600
        assert status["trajectories"]["items"][0]["seconds_left"] > 86400
        verbs = {verb["verb"]: verb["count"] for verb in status["verbs"]["items"]}
        assert verbs["TrajectoryService.Rollout"] == 1
        assert status["verbs"]["calls"] == status["load"]["calls"] == sum(verbs.values())
        load = status["load"]
        assert 0 < load["store"] < load["store_limit"] == 64 * 1024**3


def test_the_status_has_times_of_calls_and_the_last_errors() -> None:
    with running_server("--max-url", "1KiB") as server:
        for _ in range(20):
            assert httpx.get(server.http + "/v1/models").is_success
        assert httpx.get(server.http + "/v1/sessions/none", headers={"x-request-id": "mine"}).is_error
        assert httpx.get(server.http + "/v1/" + "a" * 2000).status_code == 414
        status = httpx.get(server.http + "/status").json()
    (listing,) = (verb for verb in status["verbs"]["items"] if verb["verb"] == "ModelService.ListModels")
    assert 0 < listing["p50"] <= listing["p99"] and listing["count"] == 20
    refused, missing = status["failures"]["items"]
    assert (missing["verb"], missing["reason"], missing["call"], missing["transport"]) == (
        *("SessionService.GetSession", "NOT_FOUND", "mine", "http"),
    )
    assert missing["message"].startswith("session_id: expected") and 0 <= missing["seconds_ago"] < 60
    assert refused["reason"] == "LIMIT_EXCEEDED" and "--max-url" in refused["message"]


@needs_browser
@pytest.mark.parametrize("width", [1280, 420])
def test_every_column_is_seen(tab: Callable[[], Page], width: int) -> None:
    with running_server() as server, revolute.connect(server.grpc) as simulator:
        cart = simulator.load_model(CART)
        kept = simulator.rollout(cart, np.zeros(1), np.zeros(1), np.ones((70_000, 1)))
        assert kept.id and httpx.get(server.http + "/v1/sessions/none").status_code == 404
        with simulator.session(cart):
            page = tab()
            page.open(server.http + "/", width, 1000)
            for name in ("models", "sessions", "trajectories", "verbs", "failures"):
                page.wait(f"document.querySelectorAll('#{name} tbody tr').length > 0")
            labels = set(page.evaluate(LABELS))
            assert labels == {
                *("id", "name", "model", "owner", "envs", "nq", "nv", "nu", "step", "steps", "waiting"),
                *("lease left", "kept for", "size", "verb", "calls", "errors", "mean ms", "p50 ms", "p99 ms"),
                *("ago", "reason", "over", "call", "message"),
            }
            assert "of 64.0 GiB" in page.text("#content")
            assert page.evaluate(CUT_OFF) == []
            assert page.evaluate(FURTHEST) <= width
            links = page.evaluate("[...document.querySelectorAll('nav a')].map(link => link.href)")
        assert links == [server.http + "/docs", server.http + "/metrics"]


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
