"""A thin driver of headless Chromium over its DevTools protocol: open a page, read it, take its picture."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_SECONDS = 90.0
"""Longest wait for a browser, which draws in software on a machine that may have other work."""


class Page:
    """A tab of a browser."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._number = 0
        self.messages: list[dict[str, Any]] = []
        """What the browser reported: requests, console lines, violations of the page's policy."""
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Carry out one command of the protocol."""
        self._number += 1
        self._connection.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._connection.recv(timeout=_SECONDS))
            if message.get("id") == self._number:
                assert "error" not in message, message["error"]
                return message["result"]
            self.messages.append(message)

    def open(self, address: str, width: int = 1240, height: int = 900) -> None:
        """Load an address."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.do("Emulation.setDeviceMetricsOverride", **size)
        self.do("Page.navigate", url=address)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression: str) -> Any:
        """Wait until an expression is true, and return its value."""
        deadline = time.monotonic() + _SECONDS
        while not (value := self.evaluate(expression)):
            assert time.monotonic() < deadline, f"{expression}; the page says: {self.text()}"
            time.sleep(0.05)
        return value

    def text(self, selector: str = "body") -> str:
        """Return the text that a reader sees."""
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def picture(self) -> bytes:
        """Return what the window shows, as a PNG."""
        return base64.b64decode(self.do("Page.captureScreenshot", format="png")["data"])

    def reported(self, method: str) -> list[dict[str, Any]]:
        """Return the parameters of all messages of a kind."""
        return [message["params"] for message in self.messages if message["method"] == method]


@contextlib.contextmanager
def browser(*more_flags: str) -> Iterator[Callable[[], Page]]:
    """Run Chromium, with further flags; yields a function that opens a new tab."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-dev-shm-usage",
        )
        quiet = ("--disable-background-networking", "--disable-component-update", "--disable-sync")
        process = subprocess.Popen(
            [
                CHROMIUM,
                *flags,
                *quiet,
                *more_flags,
                "--remote-debugging-port=0",
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with contextlib.ExitStack() as tabs:
            try:
                port = _port(Path(profile, "DevToolsActivePort"), process)

                def tab() -> Page:
                    made = httpx.put(f"http://127.0.0.1:{port}/json/new", trust_env=False, timeout=_SECONDS)
                    socket = made.json()["webSocketDebuggerUrl"]
                    return Page(tabs.enter_context(connect(socket, max_size=None, proxy=None)))

                yield tab
            finally:
                # first, for a tab waits ten seconds for a browser to say goodbye
                process.terminate()
                process.wait(_SECONDS)
                tabs.close()


def _port(file: Path, process: subprocess.Popen[bytes]) -> int:
    """Wait for the file in which the browser says its port."""
    deadline = time.monotonic() + _SECONDS
    while not (file.exists() and file.read_text().strip()):
        assert process.poll() is None, f"the browser ended with status {process.returncode}"
        assert time.monotonic() < deadline, "the browser did not start"
        time.sleep(0.05)
    return int(file.read_text().split()[0])
