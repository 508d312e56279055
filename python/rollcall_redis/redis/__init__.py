"""Typed methods for every command of the module, on clients of redis-py and valkey-py.

    import redis
    from rollcall_redis.redis import Rollcall

    rollcall = Rollcall(redis.Redis())
    rollcall.lc.add("received:42", "ann", "ben")
    rollcall.bf.exists("seen", "token-1")

`AsyncRollcall` is the same for asyncio. Replies are the same Python values over RESP2 and RESP3, whether or not the
client decodes replies. Members are `bytes`, or `str` with `decode_responses=True`. Errors are the client's
`ResponseError`.
"""

from rollcall_redis._types import Admission, Admissions, Estimate

from ._command import Item, Key
from ._counters_asyncio import AsyncCounters
from ._counters_blocking import Counters
from ._counters_queued import QueuedCounters
from ._filters_asyncio import AsyncFilters
from ._filters_blocking import Filters
from ._filters_queued import QueuedFilters
from ._pipeline import AsyncPipeline, Pipeline
from ._reply import Chunk, CounterInfo, FilterInfo, Slice, UnexpectedReply, replies_before
from ._rollcall import AsyncRollcall, Rollcall
from ._run import AsyncClient, Client, Queued
from ._write_behind import AsyncWriteBehind, WriteBehind

__all__ = [
    "Admission",
    "Admissions",
    "AsyncClient",
    "AsyncCounters",
    "AsyncFilters",
    "AsyncPipeline",
    "AsyncRollcall",
    "AsyncWriteBehind",
    "Chunk",
    "Client",
    "CounterInfo",
    "Counters",
    "Estimate",
    "FilterInfo",
    "Filters",
    "Item",
    "Key",
    "Pipeline",
    "Queued",
    "QueuedCounters",
    "QueuedFilters",
    "Rollcall",
    "Slice",
    "UnexpectedReply",
    "WriteBehind",
    "replies_before",
]
