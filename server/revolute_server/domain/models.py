"""The registered models: stored by content, looked up by id."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import math
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from revolute.contract.errors import ArgumentError, DataLossError, LimitError, NotFoundError, shortened
from revolute.contract.load_options import OPTIONS
from revolute.contract.names import LONGEST_NAME, check_file_names, check_name
from revolute_engine import Model
from revolute_engine import models as builtin_models

from ..access.call import current_client
from ..access.caller import caller_name, require_owner
from ..compute.compile_helper import Compiled, ModelFiles
from ..compute.compiler import Compiler
from ..compute.memory_budget import MemoryBudget
from ..compute.pool import EnginePool
from ..store import MODEL, Conflict, Delete, Put, Store
from ..store.codec import decode, encode
from .cache import Cache
from .pagination import Page, page
from .request_ids import Ticket
from .shielded import shielded

_TRUST_SECONDS = 1.0
"""Time for which the store is not asked again whether a model exists; another replica may delete it."""

_QUICK = 64 * 1024
"""Sources up to this many bytes are hashed on the event loop."""

_MOST_IDS = 1024
"""Number of sources whose model ids are remembered, to avoid compiling them again."""


@dataclasses.dataclass(frozen=True)
class Source:
    """Source of a model, as a client sends it: text and assets, or the name of a built-in model."""

    text: str = ""
    builtin: str = ""
    name: str = ""
    assets: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.text) + sum(len(content) for content in self.assets.values())


class Models:
    """RegisterModel, GetModel, GetModelFiles, ListModels and DeleteModel.

    The store keeps the source. It is compiled again when the model is first used after a restart, or on
    another replica.

    Models are shared: the id is a hash of the content, so that two callers who send the same content get the
    same model. Every caller may list, describe and simulate all models. A model belongs to the caller who
    registered it first: it counts towards that caller's limits, and only that caller and admins may read its
    files and delete it.
    """

    def __init__(self, compiler: Compiler, pool: EnginePool, budget: MemoryBudget, store: Store) -> None:
        self._compiler = compiler
        self._pool = pool
        self._budget = budget
        self._store = store
        self._compiled: Cache[Model] = Cache(budget)
        self._seen: dict[str, float] = {}
        self._ids: OrderedDict[str, str] = OrderedDict()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def register(self, source: Source, ticket: Ticket) -> Model:
        """Compile a model and keep it under the hash of its content; the same content gives the same model.

        Args:
            source: the source to compile.
            ticket: ticket of the request.

        Raises:
            ArgumentError: neither text nor a built-in name was given, or an option is unknown.
            ModelError: the text does not compile or uses an unsupported feature.
            LimitError: a limit leaves no room for another model.
        """
        check_source(source)
        digest = await self._digest(source)
        async with self._turn(digest):
            model = self._compiled.get(self._ids.get(digest, ""))
            if model is None:
                model = await self._compile(source)
                self._note_id(digest, model.id)
        await shielded(self._keep(model, source, ticket))
        return model

    async def get(self, model_id: str) -> Model:
        """Return a model by its id.

        Raises:
            NotFoundError: no such model is registered.
            DataLossError: its record is damaged.
        """
        model = self._compiled.get(model_id)
        if model is not None and time.monotonic() - self._seen.get(model_id, -math.inf) < _TRUST_SECONDS:
            return model
        if model is not None and await self._store.look(MODEL, model_id):
            self._seen[model_id] = time.monotonic()
            return model
        self.forget(model_id)
        async with self._turn(model_id):
            record = await self._store.get(MODEL, model_id)
            if record is None:
                raise NotFoundError.missing("model", model_id)
            model = self._compiled.get(model_id) or await self._compile(_kept_source(record.payload))
            self._seen[model_id] = time.monotonic()
            return model

    async def files(self, model_id: str) -> ModelFiles:
        """Return a model as MJCF text with its files; it is compiled again for that.

        Raises:
            NotFoundError: no such model is registered.
            PermissionDeniedError: it belongs to another caller, and is not built in.
            DataLossError: its record is damaged.
            LimitError: too many models compile.
        """
        record = await self._store.get(MODEL, model_id)
        if record is None:
            raise NotFoundError.missing("model", model_id)
        source = _kept_source(record.payload)
        if not source.builtin:
            require_owner("model", record.owner, "read its files")
        request = {**_request(source), "mjcf": True}
        with self._budget.reserve("the files of a model", source.size) as reservation:
            compiled = await self._compiler.compile(request, _label(source), reservation)
            return compiled.files()

    async def page(self, size: int, token: str) -> Page[tuple[str, str]]:
        """Return a page of ids and names of the models; see `pagination.page`.

        Names are shortened, because earlier releases did not limit their length.
        """
        found = await page(self._store, MODEL, size, token)
        names = [shortened(str(entry.summary.get("name", "")), LONGEST_NAME) for entry in found.entries]
        pairs = zip((entry.key for entry in found.entries), names, strict=True)
        return Page(list(pairs), found.next_token)

    async def delete(self, model_id: str, ticket: Ticket) -> None:
        """Delete a model.

        Raises:
            NotFoundError: the model was deleted or never existed.
            ArgumentError: a session or a trajectory uses it.
            PermissionDeniedError: it belongs to another caller.
        """
        entry = await self._store.look(MODEL, model_id)
        if entry is None:
            raise NotFoundError.missing("model", model_id)
        require_owner("model", entry.owner, "delete it")
        try:
            await shielded(self._store.commit(Delete(MODEL, model_id), *ticket.writes(None)))
        except Conflict as conflict:
            if conflict.kind != MODEL:
                raise
            if conflict.referenced:
                raise ArgumentError.expected(
                    "model_id",
                    "a model that nothing uses",
                    "one that sessions or trajectories use",
                    advice="delete these first",
                ) from None
            raise NotFoundError.missing("model", model_id) from None
        self.forget(model_id)

    def forget(self, model_id: str) -> None:
        """Drop a model from the cache, because the store no longer has it."""
        self._compiled.drop(model_id)
        self._seen.pop(model_id, None)

    def builtins(self) -> list[str]:
        """Return the names of the built-in models."""
        return list(builtin_models())

    def __len__(self) -> int:
        return self._store.count(MODEL)

    def _turn(self, key: str) -> asyncio.Lock:
        """Return a lock per model, so that concurrent calls compile it once."""
        return self._turns.setdefault(key, asyncio.Lock())

    async def _digest(self, source: Source) -> str:
        """Return the hash of a source; a large one is hashed on a worker."""
        if source.size <= _QUICK:
            return _digest(source)
        return await self._pool.run(lambda _token: _digest(source))

    def _note_id(self, digest: str, model_id: str) -> None:
        self._ids[digest] = model_id
        self._ids.move_to_end(digest)
        if len(self._ids) > _MOST_IDS:
            self._ids.popitem(last=False)

    async def _compile(self, source: Source) -> Model:
        """Compile a model and add it to the cache."""
        # do not compile if no worker will be free to load the result
        self._pool.check_room()
        with self._budget.reserve("a model", source.size) as reservation:
            compiled = await self._compiler.compile(_request(source), _label(source), reservation)
            # two copies: the binary, and MuJoCo's own copy
            with self._budget.reserve("a model that is taken over", 2 * len(compiled.binary)):
                model = await self._pool.run(lambda _token: _loaded(compiled, source))
            return self._compiled.add(model.id, model, reservation)

    async def _keep(self, model: Model, source: Source, ticket: Ticket) -> None:
        """Commit a model, unless the store has it, with the record of the request.

        Without room for that record, a model that the store has is still answered: a repeat of the request
        does no harm.
        """
        summary = {
            "name": model.name,
            "owner": caller_name(),
            "nq": model.nq,
            "nv": model.nv,
            "nu": model.nu,
            "timestep": model.timestep,
        }
        payload = _payload(source, model)
        put = Put(MODEL, model.id, payload, summary=summary, client=current_client())
        while True:
            try:
                known = await self._store.get(MODEL, model.id)
                puts = () if known else (dataclasses.replace(put, expect=0),)
            except DataLossError:
                # replace the damaged record
                puts = (put,)
            try:
                await self._store.commit(*puts, *ticket.writes(model))
            except Conflict as conflict:
                if conflict.kind != MODEL:
                    raise
                continue
            except LimitError:
                if puts:
                    raise
            self._seen[model.id] = time.monotonic()
            return


def check_source(source: Source) -> None:
    """Check names and options of a source, and that it has either a text or a built-in name.

    Raises:
        ArgumentError: one of them is wrong.
    """
    check_file_names(source.assets)
    check_name("name", source.name)
    if bool(source.text) == bool(source.builtin):
        raise ArgumentError.expected(
            "source",
            "either a model's text or the name of a built-in model",
            "both" if source.text else "neither",
        )
    for option in source.options:
        if option not in OPTIONS:
            raise ArgumentError.expected(
                "options", f"names among {', '.join(OPTIONS)}", repr(option[:80]), advice="check the spelling"
            )


_RECORDED = "contact_model"
"""The option that a record always names."""

_FORMER_CONTACT_MODEL = "hard"
"""Contact model of records that do not name one; earlier releases had this default."""


def _payload(source: Source, model: Model) -> tuple[Any, ...]:
    """Return the payload of a model's record, which names the contact model also if the source does not."""
    options = {**source.options, _RECORDED: model.options[_RECORDED]}
    return encode(vars(dataclasses.replace(source, options=options)))


def _kept_source(payload: Sequence[Any]) -> Source:
    """Return the source of a record."""
    source = Source(**decode(payload))
    return dataclasses.replace(source, options={_RECORDED: _FORMER_CONTACT_MODEL, **source.options})


def _request(source: Source) -> dict[str, Any]:
    """Return the request for a compile worker."""
    return {**vars(source), "text": source.text.encode()}


def _label(source: Source) -> str:
    """Return the name of a source in messages."""
    return source.name or source.builtin or "XML text"


def _digest(source: Source) -> str:
    digest = hashlib.sha256()
    for part in encode(vars(source)):
        digest.update(part)
    return digest.hexdigest()


def _loaded(compiled: Compiled, source: Source) -> Model:
    """Load a compiled model, and prepare its description."""
    model = compiled.model(source.text, source.assets)
    # the description is cached, so that answers on the event loop are fast
    model.info()
    return model
