"""Case F19: everything works behind a proxy under a path, whether or not the server knows that path."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
import numpy as np
import pytest

import revolute
from revolute.contract.errors import UnavailableError
from testbed.case_files import case_file, expected
from testbed.server_process import ServerProcess, running_server
from tests.server.http.browser import CHROMIUM, Page, browser

PREFIX: str = expected("F19")["prefix"]
NAMES = re.compile(r"""(?:href|src)=["']([^"']+)["']|\burl: '([^']+)'""")


def _handler(backend: str, *, names_prefix: bool, strips: bool) -> type[http.server.BaseHTTPRequestHandler]:
    class Proxy(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            size = int(self.headers.get("content-length", 0))
            body = self.rfile.read(size)
            if not self.path.startswith(f"{PREFIX}/"):
                self._answer(404, b"<html>not here</html>", "text/html")
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            if names_prefix:
                headers["X-Forwarded-Prefix"] = PREFIX
            connection = http.client.HTTPConnection(urlsplit(backend).netloc, timeout=60)
            with contextlib.closing(connection):
                path = self.path.removeprefix(PREFIX) if strips else self.path
                connection.request(self.command, path, body, headers)
                answer = connection.getresponse()
                kind = answer.headers.get("content-type", "")
                self._answer(answer.status, answer.read(), kind, answer.headers)

        def _answer(self, status: int, body: bytes, kind: str, headers: Any = None) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                if name.lower() in ("x-request-id", "content-security-policy", "x-content-type-options"):
                    self.send_header(name, value)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815

        def log_message(self, *_: Any) -> None: ...

    return Proxy


@contextlib.contextmanager
def _proxy(backend: str, *, names_prefix: bool = False, strips: bool = True) -> Iterator[str]:
    """Pass what is below the prefix on; yields the proxy's address, without the prefix."""
    handler = _handler(backend, names_prefix=names_prefix, strips=strips)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def proxy(server: ServerProcess) -> Iterator[str]:
    with _proxy(server.http) as address:
        yield address


def _results(simulator: revolute.Simulator) -> dict[str, np.ndarray]:
    cart = simulator.load_model(str(case_file("F19", "cart.xml")))
    zero, ctrl = np.zeros(1), np.ones((1000, 1))
    trajectory = simulator.rollout(cart, zero, zero, ctrl)
    gradient = trajectory.backward(qpos_bar=np.ones((1001, 1)))
    with simulator.session(cart) as session:
        session.step(np.ones(1), steps=1000)
        state = session.state()
    segments = [
        np.asarray(part.qpos) for part in simulator.stream_rollout(cart, zero, zero, ctrl, segment_steps=100)
    ]
    return {
        "qpos": trajectory.qpos,
        "qvel": trajectory.qvel,
        "gradient": gradient.ctrl,
        "session": np.concatenate([state.qpos.ravel(), state.qvel.ravel()]),
        "stream": np.concatenate(segments),
    }


@pytest.mark.parametrize("end", ["", "/"])
def test_a_client_gets_what_it_gets_without_the_proxy(server: ServerProcess, proxy: str, end: str) -> None:
    with revolute.connect(server.http) as direct, revolute.connect(proxy + PREFIX + end) as behind:
        alone, found = _results(direct), _results(behind)
    for name, value in alone.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    numbers = expected("F19")
    np.testing.assert_allclose(found["qvel"][-1], numbers["v"], rtol=1e-12)
    np.testing.assert_allclose(found["qpos"][-1], numbers["x"], rtol=1e-12)


@pytest.mark.parametrize("end", ["", "/"])
def test_the_command_line(proxy: str, end: str) -> None:
    command = [sys.executable, "-m", "revolute", "info", "--address", proxy + PREFIX + end]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_a_wrong_prefix_is_one_clear_line(proxy: str) -> None:
    assert httpx.get(f"{proxy}/user/v1/server").status_code == expected("F19")["status_outside"]
    with pytest.raises(UnavailableError) as raised:
        revolute.connect(f"{proxy}/user/lab")
    assert "\n" not in str(raised.value) and f"{proxy}/user/lab" in str(raised.value)


@pytest.mark.parametrize("flags", [(), ("--trusted-proxies", "127.0.0.1"), ("--root-path", PREFIX)])
@pytest.mark.parametrize("strips", [True, False])
def test_pages_load_their_parts_from_below_the_prefix(flags: tuple[str, ...], strips: bool) -> None:
    """As a browser resolves them; a proxy that does not strip the prefix has to be known."""
    if not strips and not flags:
        pytest.skip("nobody told the server")
    with (
        running_server(*flags) as server,
        _proxy(server.http, names_prefix=bool(flags), strips=strips) as proxy,
    ):
        for path in ("/", "/docs"):
            address = proxy + PREFIX + path
            page = httpx.get(address)
            assert page.status_code == 200
            parts = [first or second for first, second in NAMES.findall(page.text)]
            parts = [part for part in parts if not part.startswith("data:")]
            assert len(parts) >= 2
            assert [part for part in parts if part.startswith("/")] == []
            for part in parts:
                whole = urljoin(address, part)
                assert urlsplit(whole).path.startswith(f"{PREFIX}/"), part
                assert httpx.get(whole).status_code == expected("F19")["status_of_parts"], part
        where = f"{proxy}{PREFIX}/openapi.json"
        (described,) = httpx.get(where).json()["servers"]
        base = urljoin(where, described["url"]).rstrip("/")
        assert base == proxy + PREFIX
        assert httpx.get(f"{base}/v1/server").status_code == 200


def test_only_a_trusted_proxy_is_believed() -> None:
    header = {"x-forwarded-prefix": PREFIX}
    for flags in ((), ("--trusted-proxies", "10.0.0.0/8,192.168.1.1")):
        with running_server(*flags) as server:
            found = httpx.get(f"{server.http}/openapi.json", headers=header).json()["servers"]
            assert found == [{"url": "."}]
    with running_server("--trusted-proxies", "127.0.0.0/8") as server:
        for given, url in (
            (f"{PREFIX}/", PREFIX),
            ('"><script>', "."),
            ("//evil.example", "."),
            ("/a/../b", "."),
            ("https://evil.example", "."),
        ):
            answer = httpx.get(f"{server.http}/openapi.json", headers={"x-forwarded-prefix": given})
            assert answer.json()["servers"] == [{"url": url}], given


@pytest.fixture(scope="module")
def tab() -> Iterator[Callable[[], Page]]:
    with browser() as new_tab:
        yield new_tab


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_a_browser_behind_the_proxy(tab: Callable[[], Page], proxy: str) -> None:
    """The page finds its status, the docs make their trial calls."""
    page = tab()
    page.open(f"{proxy}{PREFIX}/")
    page.wait("document.querySelector('#state') && document.querySelector('#state').innerText == 'ready'")
    links = page.evaluate("[...document.querySelectorAll('nav a')].map(link => link.href)")
    assert [urlsplit(link).path for link in links] == [f"{PREFIX}/docs", f"{PREFIX}/metrics"]
    page = tab()
    page.open(f"{proxy}{PREFIX}/docs")
    page.wait("document.querySelector('#operations-health-Live') !== null")
    page.evaluate("document.querySelector('#operations-health-Live .opblock-summary-control').click()")
    page.wait("document.querySelector('.try-out__btn') !== null")
    page.evaluate("document.querySelector('.try-out__btn').click()")
    page.wait("document.querySelector('.execute') !== null")
    page.evaluate("document.querySelector('.execute').click()")
    page.wait('document.body.innerText.includes(\'"status": "alive"\')')
    asked = [params["request"]["url"] for params in page.reported("Network.requestWillBeSent")]
    assert f"{proxy}{PREFIX}/livez" in asked
    assert all(url.startswith((f"{proxy}{PREFIX}/", "data:", "blob:")) for url in asked), asked
    codes = {params["issue"]["code"] for params in page.reported("Audits.issueAdded")}
    assert "ContentSecurityPolicyIssue" not in codes and not page.reported("Log.entryAdded")


def test_pages_have_a_policy(server: ServerProcess) -> None:
    for path in ("/", "/docs"):
        headers = httpx.get(server.http + path).headers
        assert headers["x-content-type-options"] == "nosniff"
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'") and "http" not in policy
        scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
        assert "unsafe" not in scripts
    asset = httpx.get(f"{server.http}/docs/assets/swagger-ui-bundle.js")
    assert asset.headers["x-content-type-options"] == "nosniff"
    assert json.loads(httpx.get(f"{server.http}/openapi.json").text)["openapi"].startswith("3.")
