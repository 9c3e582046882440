"""The verbs of the protocol, once for every transport: a document in, a document out.

A document is what a message carries, whichever way it came: a dict under the field names of the proto files,
with arrays as NumPy arrays or nested lists. Transports only turn messages and bodies into documents and back.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from revolute.contract.verbs import VERBS, Verb

from ..answers import Document
from ..domain.service import Service
from .body import Body
from .models import ModelVerbs
from .server import ServerVerbs
from .sessions import SessionVerbs
from .trajectories import TrajectoryVerbs

__all__ = ["Body", "Document", "Verbs", "body_of", "method_name"]

Undo = Callable[[Document], None]


class Verbs(ModelVerbs, SessionVerbs, TrajectoryVerbs, ServerVerbs):
    """Every verb: checks the request's fields, calls the service, shapes the answer.

    Args:
        service: what is held.
        with_ctrl: whether Rollout answers with the controls, which the caller knows.
    """

    def __init__(self, service: Service, *, with_ctrl: bool = False) -> None:
        super().__init__(service, with_ctrl=with_ctrl)
        methods = {verb.name: getattr(self, method_name(verb)) for verb in VERBS.values()}
        self._methods = {name: (method, hasattr(method, "body")) for name, method in methods.items()}

    def call(self, verb: Verb, request: dict[str, Any]) -> Coroutine[Any, Any, Document]:
        """Carry out a verb with one answer.

        Args:
            verb: which.
            request: by the names of the protocol, ids included.
        """
        answer: Coroutine[Any, Any, Document] = self._called(verb, request)
        return answer

    def stream(self, verb: Verb, request: dict[str, Any]) -> AsyncGenerator[Document, None]:
        """Carry out a verb with many answers."""
        answers: AsyncGenerator[Document, None] = self._called(verb, request)
        return answers

    def undo(self, verb: Verb) -> Undo | None:
        """Return what forgets the effect of a verb whose caller did not get its answer; None for nothing."""
        return self.undo_rollout if verb.name in ("Rollout", "StreamRollout") else None

    def _called(self, verb: Verb, request: dict[str, Any]) -> Any:
        method, has_body = self._methods[verb.name]
        identifier = (request.pop(verb.id_field, ""),) if verb.id_field else ()
        return method(*identifier, request) if has_body else method(*identifier)


def method_name(verb: Verb) -> str:
    """Return the name of a verb's method: that of the verb in snake case."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", verb.name).lower()


def body_of(verb: Verb) -> type[Body] | None:
    """Return the body that a verb takes beside an id; None for no body."""
    body: type[Body] | None = getattr(getattr(Verbs, method_name(verb)), "body", None)
    return body
