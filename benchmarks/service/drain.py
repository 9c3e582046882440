"""SIGTERM under load: every call that the server took is answered, every other one is refused as draining.

    python -m benchmarks.service.drain [--rounds 200] [--seed 0] [--seconds 7200] [--out drain.json]

Each round starts a server, lets clients of both transports step sessions as fast as they can, ends the server
at a random moment, and compares what the clients got with what the server's log says it did: an answer that
the server gave and no client has would show as a difference.
"""

from __future__ import annotations

import dataclasses
import json
import random
import signal
import sys
import threading
import time
from collections import Counter

import numpy as np

import revolute
from testbed.server_process import running_server

from . import verdict

CART = """<mujoco model="cart"><option timestep="0.001" gravity="0 0 0"/><worldbody><body>
<joint name="x" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
</body></worldbody><actuator><motor joint="x"/></actuator></mujoco>"""
MOST_STEPS = 20_000
"""Steps of the longest call, some 10 ms: all calls fit the grace time."""


@dataclasses.dataclass
class Round:
    """What happened in one round.

    Attributes:
        status: exit status of the server.
        seconds: time from the signal to the end.
        answered: Step calls that clients got an answer to.
        logged: Step calls that the server says it answered.
        refused: clients whose last call was refused as draining.
        gone: clients whose last call no longer found a server.
        failed: any other end, in words.
    """

    status: int
    seconds: float
    answered: int
    logged: int
    refused: int
    gone: int
    failed: list[str]

    @property
    def good(self) -> bool:
        """Whether nothing was lost."""
        return self.status == 0 and not self.failed and self.answered == self.logged


class _Client(threading.Thread):
    """Steps a session of its own until the server refuses, and checks that no step is lost."""

    def __init__(self, address: str, seed: int) -> None:
        super().__init__()
        self._address, self._random = address, random.Random(seed)
        self.answered, self.end = 0, ""
        self.running = threading.Event()

    def run(self) -> None:
        # without retries, which would continue until the server is gone
        simulator = revolute.connect(self._address, retries=0)
        session = simulator.session(simulator.load_model(CART), batch=1)
        total = 0
        try:
            while True:
                steps = self._random.randint(1, MOST_STEPS)
                state = session.step(np.ones(1), steps=steps)
                total += steps
                self.answered += 1
                assert state.step_count == total, f"{state.step_count} steps instead of {total}"
                self.running.set()
        except revolute.UnavailableError as error:
            text = str(error)
            known = "draining" in text or "got no connection" in text
            self.end = ("refused" if "draining" in text else "gone") if known else text
        except BaseException as error:
            self.end = repr(error)
        finally:
            self.running.set()


def drain_once(seed: int, clients: int = 6) -> Round:
    """Run one round.

    Args:
        seed: of the calls' lengths and of the moment of the signal.
        clients: callers, half of them over gRPC, half over HTTP.
    """
    chance = random.Random(seed)
    with running_server("--log-level", "info", "--log-format", "json", "--grace", "30") as server:
        callers = [
            _Client((server.grpc, server.http)[number % 2], 1000 * seed + number) for number in range(clients)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.running.wait(60)
        time.sleep(chance.uniform(0.0, 0.2))
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        status = server.process.wait(60)
        seconds = time.monotonic() - began
        for caller in callers:
            caller.join(60)
        lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    logged = sum(line.get("verb") == "SessionService.Step" and line["reason"] == "OK" for line in lines)
    ends = Counter(caller.end for caller in callers)
    failed = [end for end in ends if end not in ("refused", "gone")]
    answered = sum(caller.answered for caller in callers)
    return Round(status, seconds, answered, logged, ends["refused"], ends["gone"], failed)


def main() -> int:
    """Run the rounds and say what was lost."""
    parser = verdict.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    began, rounds = time.monotonic(), []
    for number in range(chosen.rounds):
        if time.monotonic() - began > chosen.seconds:
            break
        rounds.append(drain_once(chosen.seed + number))
        if not rounds[-1].good or number % 20 == 19:
            print(f"round {number}: {rounds[-1]}", file=sys.stderr, flush=True)
    times = sorted(one.seconds for one in rounds)
    bad = [number for number, one in enumerate(rounds) if not one.good]
    summary = (
        f"{len(rounds)} SIGTERMs under load, {sum(one.answered for one in rounds)} calls answered, "
        f"{len(bad)} rounds with calls lost; {sum(one.refused for one in rounds)} clients refused as "
        f"draining, {sum(one.gone for one in rounds)} found no server; "
        f"end after {times[len(times) // 2]:.2f} s (median), {times[-1]:.2f} s (longest)"
    )
    found = {"rounds": [dataclasses.asdict(one) for one in rounds]}
    return verdict.finish(chosen.out, summary, found, [f"round {n}: {rounds[n]}" for n in bad])


if __name__ == "__main__":
    sys.exit(main())
