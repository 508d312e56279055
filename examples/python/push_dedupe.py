"""Push dedupe: never send a notification to one device twice, with asyncio.

    pip install "$(ls target/python/wheels/rollcall_redis-*.whl)[redis]"
    ROLLCALL_URL=redis://127.0.0.1:6379 python push_dedupe.py

Tokens come from many lists, with repeats. A filter finds every token that was added. It takes a new token for a
repeated one at most at the error rate; this device is left out. The filter does not store tokens, so two bytes per
token are enough.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import islice

import redis.asyncio

from rollcall_redis.redis import AsyncRollcall

ERROR_RATE = 0.001
BATCH = 350
AT_ONCE = 8


async def send_once(
    rollcall: AsyncRollcall[bytes], campaign: str, tokens: Iterable[str], send: Callable[[list[str]], Awaitable[None]]
) -> None:
    """Sends to each token that has not been sent to in this campaign. Several batches are in flight at once."""
    batches = in_batches(tokens)

    async def work() -> None:
        for batch in batches:
            is_new = await rollcall.bf.madd(campaign, *batch)
            await send([token for token, new in zip(batch, is_new, strict=True) if new])

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())


def in_batches(tokens: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(tokens)
    return iter(lambda: list(islice(rest, BATCH)), [])


async def main(devices: int = 100_000) -> None:
    client = redis.asyncio.Redis.from_url(os.environ.get("ROLLCALL_URL", "redis://127.0.0.1:6379"))
    rollcall = AsyncRollcall(client)
    campaign = "rollcall-demo:push"
    await client.delete(campaign)
    # The number of devices is known, so the filter need not grow, which makes it smaller. The key expires after a
    # week.
    await rollcall.bf.reserve(campaign, ERROR_RATE, devices, noScale=True, ex=7 * 24 * 60 * 60)
    sent: list[str] = []

    async def send(tokens: list[str]) -> None:
        sent.extend(tokens)

    # Three lists. Each list starts in the middle of the one before.
    for start in (0, devices // 4, devices // 2):
        await send_once(rollcall, campaign, (f"token-{number}" for number in range(start, start + devices // 2)), send)
    size = await rollcall.bf.info(campaign, "SIZE")
    print(f"{len(sent)} of {devices} devices notified, by a filter of {size} bytes")
    assert len(set(sent)) == len(sent), "a device was notified twice"
    assert len(sent) >= devices * (1 - 2 * ERROR_RATE), "too many were left out"
    await client.delete(campaign)
    await client.aclose()


if __name__ == "__main__":
    asyncio.run(main())
