"""Tests pipelines and transactions of several commands, and how clients are wrapped."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from redis_ways import LIBRARIES, Library, close, is_exactly

from rollcall_redis.redis import AsyncPipeline, AsyncRollcall, Pipeline, Rollcall, UnexpectedReply, replies_before


@pytest.fixture(params=LIBRARIES.values(), ids=list(LIBRARIES))
def library(request: pytest.FixtureRequest) -> Library:
    made: Library = request.param
    return made


@pytest.fixture(params=[2, 3])
def client(request: pytest.FixtureRequest, library: Library, server: Any) -> Iterator[Any]:
    with library.blocking(port=server.port, protocol=request.param) as client:
        client.flushall()
        yield client


@pytest.fixture(params=[2, 3])
def async_client(
    request: pytest.FixtureRequest, library: Library, server: Any, runner: asyncio.Runner
) -> Iterator[Any]:
    client = library.asyncio(port=server.port, protocol=request.param)
    runner.run(client.execute_command("FLUSHALL"))
    yield client
    close(client, runner)


@pytest.mark.parametrize("transaction", [False, True])
def test_replies_come_in_order_and_with_those_of_the_client(client: Any, transaction: bool) -> None:
    with Rollcall(client).pipeline(transaction=transaction) as pipe:
        added = pipe.lc.add("received", "ann", "ben")
        pipe.client.set("other", "value")
        members = pipe.lc.members("received")
        seen = pipe.bf.insert("seen", ["a", "a"])
        assert len(pipe) == 4
        replies = pipe.execute()
    is_exactly(replies[:2] + replies[3:], [2, True, [True, False]])
    assert sorted(replies[2]) == [b"ann", b"ben"]
    is_exactly((added.value, sorted(members.value), seen.value), (2, [b"ann", b"ben"], [True, False]))


@pytest.mark.parametrize("transaction", [False, True])
def test_the_first_error_is_raised_and_all_replies_are_kept(client: Any, library: Library, transaction: bool) -> None:
    pipe = Rollcall(client).pipeline(transaction=transaction)
    pipe.client.set("text", "value")
    rejected = pipe.lc.add("text", "ann")
    full = pipe.bf.insert("full", ["a", "b"], capacity=1, noScale=True)
    added = pipe.lc.add("received", "ann")
    with pytest.raises(library.ResponseError) as caught:
        pipe.execute()
    assert str(caught.value).startswith("WRONGTYPE")
    assert caught.value.__notes__ == ["This is the reply to command 2 of 4 in the pipeline."]
    with pytest.raises(library.ResponseError, match=r"^WRONGTYPE"):
        _ = rejected.value
    with pytest.raises(library.ResponseError, match="full") as caught:
        _ = full.value
    is_exactly(replies_before(caught.value), [True])
    is_exactly(added.value, 1)


@pytest.mark.parametrize("transaction", [False, True])
def test_errors_can_be_taken_as_replies(client: Any, library: Library, transaction: bool) -> None:
    pipe = Rollcall(client).pipeline(transaction=transaction)
    pipe.bf.insert("full", ["a", "b"], capacity=1, noScale=True)
    pipe.lc.clear("missing")
    pipe.lc.count("missing")
    full, missing, count = pipe.execute(raise_on_error=False)
    assert [str(error) for error in (full, missing)] == ["non scaling filter is full", "not found"]
    assert isinstance(full, library.ResponseError) and isinstance(missing, library.ResponseError)
    is_exactly(count, 0)


def test_a_pipeline_can_be_used_again(client: Any) -> None:
    pipe = Rollcall(client).pipeline()
    assert pipe.execute() == []
    for number in range(3):
        queued = pipe.lc.add("received", number)
        assert pipe.execute() == [1] and queued.value == 1
    forgotten = pipe.lc.add("received", "ann")
    pipe.reset()
    pipe.client.get("other")
    count = pipe.lc.count("received")
    assert pipe.execute() == [None, 3] and count.value == 3
    with pytest.raises(RuntimeError, match=r"LC.ADD has no reply yet"):
        _ = forgotten.value


def test_a_watched_key_makes_a_transaction_fail(client: Any, library: Library) -> None:
    rollcall = Rollcall(client)
    with rollcall.pipeline() as pipe:
        pipe.client.watch("received")
        with pytest.raises(RuntimeError, match=r"call client.multi\(\) first"):
            pipe.lc.count("received")
        count = rollcall.lc.count("received")
        pipe.client.multi()
        added = pipe.lc.add("received", f"member {count}")
        assert pipe.execute() == [1] and added.value == 1
        pipe.client.watch("received")
        rollcall.lc.add("received", "another")
        pipe.client.multi()
        pipe.lc.add("received", "not added")
        with pytest.raises(Exception, match="Watched variable changed") as caught:
            pipe.execute()
        assert type(caught.value).__name__ == "WatchError"
    assert rollcall.lc.count("received") == 2


def test_a_transaction_of_the_client_can_be_wrapped(client: Any) -> None:
    """The client's `transaction` repeats the call until no watched key has changed during it."""
    rollcall = Rollcall(client)

    def add_one(pipeline: Any) -> None:
        count = rollcall.lc.count("received")
        pipeline.multi()
        Pipeline(pipeline).lc.add("received", f"member {count}")

    client.transaction(add_one, "received")
    assert rollcall.lc.members("received") == [b"member 0"]


def test_asyncio(async_client: Any, library: Library, runner: asyncio.Runner) -> None:
    async def work() -> None:
        rollcall = AsyncRollcall(async_client)
        assert await asyncio.gather(*(rollcall.lc.add("received", number) for number in range(20))) == [1] * 20
        for transaction in (False, True):
            async with rollcall.pipeline(transaction=transaction) as pipe:
                count = pipe.lc.count("received")
                pipe.client.get("other")
                pipe.bf.insert("full", ["a", "b"], capacity=1, noScale=True)
                with pytest.raises(library.ResponseError) as caught:
                    await pipe.execute()
                assert str(caught.value) == "non scaling filter is full"
                assert count.value == 20
                assert (await pipe.execute(), len(pipe)) == ([], 0)
                pipe.lc.count("received")
                assert await pipe.execute(raise_on_error=False) == [20]
        wrapped = AsyncPipeline(async_client.pipeline(), decode_responses=True)
        wrapped.lc.members("missing")
        assert await wrapped.execute() == [[]]

    runner.run(work())


def test_a_wrong_client_is_rejected(client: Any, async_client: Any) -> None:
    with pytest.raises(TypeError, match="got an asyncio client: use AsyncRollcall"):
        Rollcall(async_client)
    with pytest.raises(TypeError, match="got a blocking client: use Rollcall"):
        AsyncRollcall(client)
    for wrap, made in ((Rollcall, client), (AsyncRollcall, async_client)):
        with pytest.raises(TypeError, match="got a pipeline, expected a client"):
            wrap(made.pipeline())
        others: tuple[Any, ...] = (wrap(made), "redis://127.0.0.1:6379")
        for other in others:
            with pytest.raises(TypeError, match=f"got {type(other).__name__}, expected a client of redis-py"):
                wrap(other)
    for pipe in (Pipeline, AsyncPipeline):
        with pytest.raises(TypeError, match="got a client, expected a pipeline"):
            pipe(client)
    with pytest.raises(ValueError, match="family must be 'BF' or 'RF', got 'CF'"):
        Rollcall(client, family="CF")  # type: ignore[call-overload]


def test_the_other_family_of_names(client: Any, async_client: Any, runner: asyncio.Runner) -> None:
    """The prefix RF works next to another module's BF.*, and ACL rules treat it separately."""
    client.execute_command("ACL", "SETUSER", "default", "-bf.add", "-bf.info")
    try:
        with pytest.raises(Exception, match=r"(?i)no permissions"):
            Rollcall(client).bf.add("seen", "a")
        assert Rollcall(client, family="RF").bf.add("seen", "a") is True
        assert Rollcall(client, family="RF").bf.info("seen").number_of_items_inserted == 1
        pipe = Rollcall(client, family="RF").pipeline()
        pipe.bf.add("seen", "b")
        assert pipe.execute() == [True]
        assert runner.run(AsyncRollcall(async_client, family="RF").bf.add("seen", "c")) is True
    finally:
        client.execute_command("ACL", "SETUSER", "default", "+@all")


def test_the_client_stays_as_it_was(client: Any) -> None:
    """The client's own methods and callbacks still work as before."""
    client.bf()
    callbacks = dict(client.response_callbacks)
    rollcall = Rollcall(client)
    rollcall.bf.reserve("seen", 0.01, 1000)
    assert rollcall.bf.info("seen", "FILL") == 0.0
    assert dict(client.response_callbacks) == callbacks
    info: Any = client.bf().info("seen")
    # The client's own class, or a dict with the labels as the server sent them.
    rows: dict[Any, Any] = {"Capacity": info.capacity} if hasattr(info, "capacity") else dict(info)
    assert 1000 in (rows.get("Capacity"), rows.get(b"Capacity"))


def test_rows_that_come_later_are_kept() -> None:
    """Rows that only a later version of the server sends are kept."""
    replies: list[Any] = []

    class Answers:
        def execute_command(self, *words: Any) -> Any:
            return replies.pop()

        def pipeline(self) -> Any: ...

    bf = Rollcall(Answers()).bf
    rows: list[Any] = [b"Capacity", 1, b"Size", 2, b"Number of filters", 3, b"Number of items inserted", 4]
    rows += [b"Expansion rate", None, b"Colour", b"blue", b"Weight", 5]
    replies.append(rows)
    info = bf.info("key")
    assert (info.capacity, info.expansion_rate, info.others) == (1, None, {"Colour": "blue", "Weight": 5})
    replies += [[b"blue"], {"Colour": "blue"}]
    assert [bf.info("key", "COLOUR"), bf.info("key", "COLOUR")] == ["blue", "blue"]  # type: ignore[call-overload]
    no_info: tuple[Any, ...] = (None, b"QUEUED", 7, [1, 2, 3], {}, [b"Capacity"], rows[2:])
    for wrong in no_info:
        replies.append(wrong)
        with pytest.raises(UnexpectedReply, match="unexpected reply"):
            bf.info("key")
    no_flag: tuple[Any, ...] = (2, b"1", None, "QUEUED")
    for wrong in no_flag:
        replies.append(wrong)
        with pytest.raises(UnexpectedReply, match="expected 0 or 1, got"):
            bf.add("key", "item")


def test_commands_that_the_client_reset_get_no_reply(client: Any) -> None:
    pipe = Rollcall(client).pipeline()
    lost = pipe.lc.count("a")
    pipe.client.reset()
    kept = pipe.lc.add("x", "m", "n")
    assert pipe.execute() == [2]
    assert kept.value == 2
    with pytest.raises(RuntimeError, match="no reply"):
        _ = lost.value
    lost = pipe.lc.count("a")
    pipe.client.reset()
    assert pipe.execute() == []


def test_replies_of_a_failed_transaction_raise_its_error(client: Any, library: Library) -> None:
    with Rollcall(client).pipeline(transaction=True) as pipe:
        pipe.client.watch("key")
        client.set("key", "other")
        pipe.client.multi()
        count = pipe.lc.count("a")
        with pytest.raises(Exception) as caught:
            pipe.execute()
        with pytest.raises(type(caught.value)):
            _ = count.value
