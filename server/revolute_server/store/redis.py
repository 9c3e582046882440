"""`redis://host:port/db`: records in a Redis server, which several replicas can share.

A transaction is one Lua script, which Redis runs atomically. All names have the hash tag `{revolute}`, so
that a cluster keeps them on one node. Durability depends on the settings of the Redis server;
`durability=disk` requires `appendonly yes` and `appendfsync always`.

    {revolute}:<kind>:<key>     hash of the fields of a record, its checksum and its payload
    {revolute}:index:<kind>     sorted set of keys by sequence
    {revolute}:expires          sorted set of "<kind> <key>" by expiry
    {revolute}:children         hash: number of records by parent
    {revolute}:usage            hash: "count <kind> <client>" and "bytes <kind> <client>"
    {revolute}:done:<token>     marks a transaction as carried out; kept for a while
    {revolute}:sequence, {revolute}:schema

After a broken connection it is unknown whether a transaction was carried out. It is sent once more; its token
shows whether it was carried out before. So clients do not notice a restart of the Redis server.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from typing import Any

import redis.asyncio
import redis.exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import OutOfMemoryError, RedisError, ResponseError

from revolute.contract.errors import ArgumentError, RevoluteError, UnavailableError

from ..time_limit import within
from .codec import checksum
from .interface import (
    Conflict,
    Delete,
    Entry,
    Limits,
    Put,
    Record,
    Store,
    Touch,
    Write,
    damaged,
    disk_full,
    joined,
    read_summary,
    silent,
    unanswered,
    unwritable,
)

SCHEMA = 1
_TAG = "{revolute}"
_FIELDS = ("version", "sequence", "created", "expires", "size", "summary", "parent", "client")
_SECONDS, _BYTES_PER_SECOND = 4.0, 10 * 1024**2
"""Time limit of an answer, so that a hanging Redis server does not block calls; large payloads get more."""

_CONNECT_SECONDS = 2.0

_TOKEN_SECONDS = 600
"""Time for which the token of a transaction is kept; the second attempt comes much earlier."""

_UNKNOWN_ENDS = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, asyncio.TimeoutError)
"""Errors after which a transaction may have been carried out."""

_COMMIT = """
-- ARGV: the tag; the plan in JSON; a token; seconds for which it is kept; the payload of each write, empty
-- where it has none
local tag, plan, done = ARGV[1], cjson.decode(ARGV[2]), ARGV[1] .. ':done:' .. ARGV[3]
if redis.call('EXISTS', done) == 1 then return {'done', redis.call('HGETALL', tag .. ':usage')} end
local counted = {model = true, session = true, trajectory = true}
local function place(kind, key) return tag .. ':' .. kind .. ':' .. key end

local usage, list = {}, redis.call('HGETALL', tag .. ':usage')
for number = 1, #list, 2 do usage[list[number]] = tonumber(list[number + 1]) end
local changed, children = {}, {}
local function count(what, kind, client, change)
  local field = what .. ' ' .. kind .. ' ' .. client
  usage[field] = (usage[field] or 0) + change
  changed[field] = (changed[field] or 0) + change
end
-- sums over what fits all words that are given
local function sum(what, kind, client)
  local total = 0
  for field, value in pairs(usage) do
    local w, k, c = string.match(field, '^(%S+) (%S+) (.*)$')
    if w == what and counted[k] and (kind == nil or k == kind) and (client == nil or c == client) then
      total = total + value
    end
  end
  return total
end
local function over(limit, value) return limit ~= nil and limit ~= cjson.null and value > limit end

-- the records as earlier writes of this transaction leave them
local records = {}
local function record(kind, key)
  local name = place(kind, key)
  if records[name] == nil then
    local fields = redis.call('HMGET', name, 'version', 'size', 'expires', 'parent', 'client')
    records[name] = {version = tonumber(fields[1] or '0'), size = tonumber(fields[2] or '0'),
                     expires = fields[3] or '', parent = fields[4] or '', client = fields[5] or ''}
  end
  return records[name]
end

-- first see whether all of it can be done
for _, write in ipairs(plan.writes) do
  local found = record(write.kind, write.key)
  if write.op == 'put' then
    if write.expect ~= cjson.null and write.expect ~= found.version then
      return {'conflict', write.kind, write.key, '0'}
    end
    local new = found.version == 0
    if new then
      if write.parent ~= '' then
        if record('model', write.parent).version == 0 then return {'conflict', 'model', write.parent, '0'} end
        children[write.parent] = (children[write.parent] or 0) + 1
      end
      found.parent, found.client, found.size = write.parent, write.client, 0
      count('count', write.kind, found.client, 1)
    end
    local grown = write.size - found.size
    count('bytes', write.kind, found.client, grown)
    if counted[write.kind] then
      local client = found.client
      if (new and (over(plan.counts[write.kind], sum('count', write.kind))
                   or over(plan.client_counts[write.kind], sum('count', write.kind, client))))
          or (grown > 0 and (over(plan.total, sum('bytes'))
                             or over(plan.client_total, sum('bytes', nil, client)))) then
        return {'limit', write.kind, client, new and 1 or 0, grown}
      end
    end
    found.version, found.size = found.version + 1, write.size
  elseif found.version == 0 then
    return {'conflict', write.kind, write.key, '0'}
  elseif write.op == 'delete' then
    if write.expired_at ~= cjson.null
        and (found.expires == '' or tonumber(found.expires) > write.expired_at) then
      return {'conflict', write.kind, write.key, '0'}
    end
    local held = tonumber(redis.call('HGET', tag .. ':children', write.key) or '0')
    if write.kind == 'model' and held + (children[write.key] or 0) > 0 then
      return {'conflict', write.kind, write.key, '1'}
    end
    if found.parent ~= '' then children[found.parent] = (children[found.parent] or 0) - 1 end
    count('count', write.kind, found.client, -1)
    count('bytes', write.kind, found.client, -found.size)
    found.version = 0
  end
end

-- then do it
for number, write in ipairs(plan.writes) do
  local name, member = place(write.kind, write.key), write.kind .. ' ' .. write.key
  if write.op == 'delete' then
    redis.call('DEL', name)
    redis.call('ZREM', tag .. ':index:' .. write.kind, write.key)
    redis.call('ZREM', tag .. ':expires', member)
  else
    redis.call('HSET', name, 'expires', write.expires)
    if write.expires == '' then redis.call('ZREM', tag .. ':expires', member)
    else redis.call('ZADD', tag .. ':expires', write.expires, member) end
  end
  if write.op == 'put' then
    if redis.call('HEXISTS', name, 'sequence') == 0 then
      local sequence = redis.call('INCR', tag .. ':sequence')
      redis.call('HSET', name, 'sequence', sequence, 'created', write.created,
                 'parent', write.parent, 'client', write.client)
      redis.call('ZADD', tag .. ':index:' .. write.kind, sequence, write.key)
    end
    redis.call('HINCRBY', name, 'version', 1)
    redis.call('HSET', name, 'size', write.size, 'summary', write.summary, 'checksum', write.checksum,
               'payload', ARGV[4 + number])
  end
end
for field, change in pairs(changed) do
  if change ~= 0 and redis.call('HINCRBY', tag .. ':usage', field, change) == 0 then
    redis.call('HDEL', tag .. ':usage', field)
  end
end
for parent, change in pairs(children) do
  if change ~= 0 and redis.call('HINCRBY', tag .. ':children', parent, change) <= 0 then
    redis.call('HDEL', tag .. ':children', parent)
  end
end
redis.call('SET', done, '', 'EX', ARGV[4])
return {'done', redis.call('HGETALL', tag .. ':usage')}
"""


class RedisStore(Store):
    """Records in a Redis server.

    Args:
        address: `redis://`, `rediss://` or `unix://`, in the form of redis-py.
        shown: the address without its password, for messages.
        limits: limits on the records.
        sync: whether the Redis server must sync to disk before it answers.
    """

    def __init__(self, address: str, shown: str, limits: Limits, *, sync: bool) -> None:
        self._shown = shown
        self.limits = limits
        self._sync = sync
        try:
            self._redis = redis.asyncio.Redis.from_url(
                address,
                # `_ask` bounds the time for each answer
                socket_timeout=None,
                socket_connect_timeout=_CONNECT_SECONDS,
                # retry once over a new connection: reads change nothing, and transactions have tokens
                retry=Retry(NoBackoff(), 1, (redis.exceptions.ConnectionError,)),
            )
        except ValueError as error:
            raise ArgumentError.expected("store", "a Redis address", f"{shown} ({error})") from None
        self._commit = self._redis.register_script(_COMMIT)
        self.usage: dict[tuple[str, str], tuple[int, int]] = {}

    async def open(self) -> None:
        try:
            found = await self._ask(self._redis.set(f"{_TAG}:schema", SCHEMA, nx=True, get=True))
            if found is not None and int(found) != SCHEMA:
                raise ArgumentError.expected(
                    "store",
                    f"records of format {SCHEMA}",
                    f"format {int(found)} at {self._shown}",
                    advice="a newer release wrote them: start that one, or choose another place with --store",
                )
            if self._sync:
                await self._check_sync()
            self._note(await self._ask(self._redis.hgetall(f"{_TAG}:usage")))
        except UnavailableError as error:
            cause = str(error.__cause__) or type(error.__cause__).__name__
            raise ArgumentError.expected(
                "store",
                "a Redis server that answers",
                f"{cause} at {self._shown}",
                advice="start it, or choose another place with --store",
            ) from error

    async def check(self) -> None:
        await self._ask(self._redis.ping())

    async def get(self, kind: str, key: str) -> Record | None:
        size = await self._ask(self._redis.hget(_name(kind, key), "size"))
        # most lookups are of new requests and find nothing
        if size is None:
            return None
        names = (*_FIELDS, "checksum", "payload")
        question = self._redis.hmget(_name(kind, key), names)
        *plain, digest, payload = await self._ask(question, int(size))
        if plain[0] is None:
            return None
        content = payload if isinstance(payload, bytes) else b""
        if checksum(kind, key, (content,)) != bytes.fromhex((digest or b"").decode("ascii", "replace")):
            raise damaged(kind, key)
        entry = _entry(kind, key, plain)
        return Record(**vars(entry), payload=(content,))

    async def look(self, kind: str, key: str) -> Entry | None:
        found = await self._ask(self._redis.hmget(_name(kind, key), _FIELDS))
        return None if found[0] is None else _entry(kind, key, found)

    async def commit(self, *writes: Write) -> None:
        plan = {
            "writes": [_plain(write) for write in writes],
            "counts": dict(self.limits.counts),
            "total": self.limits.total,
            "client_counts": dict(self.limits.client_counts),
            "client_total": self.limits.client_total,
        }
        payloads = [joined(write.payload) if isinstance(write, Put) else b"" for write in writes]
        arguments: list[str | int | bytes] = [
            _TAG,
            json.dumps(plan),
            secrets.token_hex(16),
            _TOKEN_SECONDS,
            *payloads,
        ]
        try:
            question = self._commit(keys=[f"{_TAG}:usage"], args=arguments)
            answer = await self._ask(question, sum(map(len, payloads)))
        except UnavailableError as error:
            if isinstance(error.__cause__, _UNKNOWN_ENDS):
                raise unanswered(self._shown) from error.__cause__
            raise
        if answer[0] == b"conflict":
            raise Conflict(answer[1].decode(), answer[2].decode(), referenced=answer[3] == b"1")
        if answer[0] == b"limit":
            self._note(await self._ask(self._redis.hgetall(f"{_TAG}:usage")))
            kind, client = answer[1].decode(), answer[2].decode()
            self.limits.check(self.usage, kind, client, int(answer[3]), int(answer[4]))
            raise unwritable("a limit that was met and is not any more")
        self._note(dict(zip(answer[1][::2], answer[1][1::2], strict=True)))

    async def scan(self, kind: str, after: int = 0, limit: int = 1000) -> list[Entry]:
        index = f"{_TAG}:index:{kind}"
        keys = await self._ask(
            self._redis.zrange(index, f"({after}", "+inf", byscore=True, offset=0, num=limit)
        )
        return await self._entries([(kind, key.decode()) for key in keys])

    async def newest(self, kind: str, limit: int) -> list[Entry]:
        keys = await self._ask(self._redis.zrevrange(f"{_TAG}:index:{kind}", 0, limit - 1))
        return await self._entries([(kind, key.decode()) for key in keys])

    async def expired(self, now: float, limit: int = 1000) -> list[Entry]:
        members = await self._ask(
            self._redis.zrange(f"{_TAG}:expires", "-inf", now, byscore=True, offset=0, num=limit)
        )
        places = [member.decode().partition(" ") for member in members]
        return await self._entries([(kind, key) for kind, _, key in places])

    async def close(self) -> None:
        await self._redis.aclose()

    async def _entries(self, places: list[tuple[str, str]]) -> list[Entry]:
        if not places:
            return []
        pipeline = self._redis.pipeline(transaction=False)
        for kind, key in places:
            pipeline.hmget(_name(kind, key), _FIELDS)
        found = await self._ask(pipeline.execute())
        return [
            _entry(kind, key, fields)
            for (kind, key), fields in zip(places, found, strict=True)
            if fields[0] is not None
        ]

    async def _ask(self, question: Any, size: int = 0) -> Any:
        """Await an answer of the Redis server and translate its errors; `size` is that of the payload."""
        try:
            return await within(_SECONDS + size / _BYTES_PER_SECOND, question)
        except RevoluteError:
            raise
        except ResponseError as error:
            if isinstance(error, OutOfMemoryError) or "MISCONF" in str(error):
                raise disk_full("the Redis server has no room") from error
            raise unwritable(str(error)) from error
        except (RedisError, OSError, asyncio.TimeoutError) as error:
            raise silent(f"{self._shown} ({str(error) or type(error).__name__})") from error

    async def _check_sync(self) -> None:
        found = await self._ask(self._redis.config_get("append*"))
        found = {_text(name): _text(value) for name, value in found.items()}
        if (found.get("appendonly"), found.get("appendfsync")) != ("yes", "always"):
            raise ArgumentError.expected(
                "durability",
                "a Redis server with appendonly yes and appendfsync always",
                f"appendonly {found.get('appendonly')}, appendfsync {found.get('appendfsync')}",
                advice="set both in redis.conf, or start with --durability process",
            )

    def _note(self, usage: dict[bytes, bytes]) -> None:
        """Update `usage` from the hash in Redis."""
        numbers: dict[tuple[str, str], list[int]] = {}
        for name, value in usage.items():
            what, kind, client = name.decode().split(" ", 2)
            numbers.setdefault((kind, client), [0, 0])[what == "bytes"] = int(value)
        self.usage = {name: (count, size) for name, (count, size) in numbers.items()}


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _name(kind: str, key: str) -> str:
    return f"{_TAG}:{kind}:{key}"


def _plain(write: Write) -> dict[str, Any]:
    """Return a write in the form that the script reads."""
    plain: dict[str, Any] = {"kind": write.kind, "key": write.key}
    if isinstance(write, Delete):
        return {**plain, "op": "delete", "expired_at": write.expired_at}
    plain["expires"] = "" if write.expires is None else repr(float(write.expires))
    if isinstance(write, Touch):
        return {**plain, "op": "touch"}
    return {
        **plain,
        "op": "put",
        "created": repr(time.time()),
        "size": write.size,
        "summary": json.dumps(dict(write.summary)),
        "parent": write.parent,
        "expect": write.expect,
        "client": write.client,
        "checksum": checksum(write.kind, write.key, write.payload).hex(),
    }


def _entry(kind: str, key: str, fields: list[bytes | None]) -> Entry:
    version, sequence, created, expires, size, summary, parent, client = (field or b"" for field in fields)
    return Entry(
        kind,
        key,
        version=int(version),
        sequence=int(sequence),
        created=float(created),
        expires=float(expires) if expires else None,
        size=int(size),
        summary=read_summary(summary),
        parent=parent.decode(errors="replace"),
        client=client.decode(errors="replace"),
    )
