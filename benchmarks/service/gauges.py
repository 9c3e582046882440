"""What a server says of itself at /metrics, read often."""

from __future__ import annotations

import re
import time

import httpx

_LINE = re.compile(r"^(revolute_[a-z_]+) (\S+)$", re.MULTILINE)
_RESIDENT = re.compile(r"^process_resident_memory_bytes (\S+)$", re.MULTILINE)


class Gauges:
    """Reads the metrics without labels of one server.

    Args:
        address: its HTTP address.
    """

    def __init__(self, address: str) -> None:
        self._client = httpx.Client(base_url=address, timeout=60.0)

    def read(self) -> dict[str, float]:
        """Return all values by name; `resident` is the server's memory in bytes."""
        text = self._client.get("/metrics").text
        found = {name.removeprefix("revolute_"): float(value) for name, value in _LINE.findall(text)}
        if resident := _RESIDENT.search(text):
            found["resident"] = float(resident[1])
        return found

    def wait_idle(self, seconds: float) -> float:
        """Wait until no engine call runs or waits, and return how long that took.

        Raises:
            TimeoutError: it takes longer than `seconds`.
        """
        began = time.monotonic()
        while True:
            found = self.read()
            if found["workers_busy"] == 0 and found["queue_length"] == 0:
                return time.monotonic() - began
            if time.monotonic() - began > seconds:
                raise TimeoutError(f"the engine still works after {seconds} s")
            time.sleep(0.002)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
