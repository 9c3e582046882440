"""Thread pools whose threads are started early, so that a limit of the system is noticed at the start.

The pools of `concurrent.futures` start a thread when work arrives. If the system refuses the thread then, the
work stays in the pool's queue although `submit` raised an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from revolute.contract.errors import LimitError


def started_executor(
    count: int, name: str, initializer: Callable[..., object] | None = None, arguments: tuple[Any, ...] = ()
) -> ThreadPoolExecutor:
    """Return a thread pool whose threads are all running.

    Args:
        count: number of threads.
        name: prefix of the threads' names.
        initializer: called first in each thread.
        arguments: arguments of `initializer`.

    Raises:
        LimitError: the system refuses to start a thread.
    """
    executor = ThreadPoolExecutor(count, name, initializer, arguments)
    # the barrier keeps threads busy until all have started, so each task starts a new one
    together = threading.Barrier(count)
    try:
        for task in [executor.submit(together.wait) for _ in range(count)]:
            task.result()
    except RuntimeError as error:
        together.abort()
        executor.shutdown(wait=False, cancel_futures=True)
        raise no_thread(f"{count} threads of {name}") from error
    return executor


def start(thread: threading.Thread) -> None:
    """Start a thread.

    Raises:
        LimitError: the system refuses to start it.
    """
    try:
        thread.start()
    except RuntimeError as error:
        raise no_thread(f"the thread {thread.name}") from error


def no_thread(what: str) -> LimitError:
    """Return the error for a thread that the system refuses to start."""
    return LimitError.expected(
        "threads",
        what,
        "fewer: the system starts no more",
        advice="raise its limit of processes or of memory, or start the server with fewer --workers",
    )
