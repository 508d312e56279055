"""The entry points: `bf` has the filter commands, `lc` the counter commands."""

from typing import Any, Generic, Literal, overload

from ._counters_asyncio import AsyncCounters
from ._counters_blocking import Counters
from ._filters_asyncio import AsyncFilters
from ._filters_blocking import Filters
from ._pipeline import AsyncPipeline, Pipeline
from ._reply import Member, binary, text
from ._run import AsyncClient, Client, Family, Sender


class Rollcall(Generic[Member]):
    """Filters and counters on a blocking client.

    Members of counters are `bytes`, or `str` with `decode_responses=True`, whether or not the client decodes
    replies. The names of filter commands begin with BF. Use RF on a server where another module owns BF.
    """

    bf: Filters
    lc: Counters[Member]

    @overload
    def __init__(self: "Rollcall[bytes]", client: Client, *, family: Family = "BF") -> None: ...
    @overload
    def __init__(
        self: "Rollcall[bytes]", client: Client, *, decode_responses: Literal[False], family: Family = "BF"
    ) -> None: ...
    @overload
    def __init__(
        self: "Rollcall[str]", client: Client, *, decode_responses: Literal[True], family: Family = "BF"
    ) -> None: ...
    def __init__(self, client: Client, *, decode_responses: bool = False, family: Family = "BF") -> None:
        sender = Sender(client, family, wants_async=False)
        self.client = client
        self._decode_responses: Any = decode_responses
        self._family: Family = family
        member: Any = text if decode_responses else binary
        self.bf = Filters(sender.run)
        self.lc = Counters(sender.run, member)

    def pipeline(self, transaction: bool | None = None) -> Pipeline[Member]:
        """A pipeline of the client. `transaction` is passed on to the client, which has its own default."""
        options = {} if transaction is None else {"transaction": transaction}
        pipeline = self.client.pipeline(**options)
        queued: Pipeline[Any] = Pipeline(pipeline, decode_responses=self._decode_responses, family=self._family)
        return queued


class AsyncRollcall(Generic[Member]):
    """Filters and counters on an asyncio client. Each command is a coroutine; otherwise like `Rollcall`."""

    bf: AsyncFilters
    lc: AsyncCounters[Member]

    @overload
    def __init__(self: "AsyncRollcall[bytes]", client: AsyncClient, *, family: Family = "BF") -> None: ...
    @overload
    def __init__(
        self: "AsyncRollcall[bytes]", client: AsyncClient, *, decode_responses: Literal[False], family: Family = "BF"
    ) -> None: ...
    @overload
    def __init__(
        self: "AsyncRollcall[str]", client: AsyncClient, *, decode_responses: Literal[True], family: Family = "BF"
    ) -> None: ...
    def __init__(self, client: AsyncClient, *, decode_responses: bool = False, family: Family = "BF") -> None:
        sender = Sender(client, family, wants_async=True)
        self.client = client
        self._decode_responses: Any = decode_responses
        self._family: Family = family
        member: Any = text if decode_responses else binary
        self.bf = AsyncFilters(sender.run_async)
        self.lc = AsyncCounters(sender.run_async, member)

    def pipeline(self, transaction: bool | None = None) -> AsyncPipeline[Member]:
        """A pipeline of the client. `transaction` is passed on to the client, which has its own default."""
        options = {} if transaction is None else {"transaction": transaction}
        pipeline = self.client.pipeline(**options)
        queued: AsyncPipeline[Any] = AsyncPipeline(
            pipeline, decode_responses=self._decode_responses, family=self._family
        )
        return queued
