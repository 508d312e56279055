"""Contact limit: how many different people has a customer written to in this cycle, and would a list exceed the limit?

    pip install "$(ls target/python/wheels/rollcall_redis-*.whl)[redis]"
    ROLLCALL_URL=redis://127.0.0.1:6379 python contact_limit.py

Each customer has one filter, with two bytes per contact. It errs only in the customer's favour: a new contact may be
taken for a known one, at most at the error rate. The key expires at the end of the cycle.
"""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import redis

from rollcall_redis import BloomFilter
from rollcall_redis.redis import Admission, Rollcall

ERROR_RATE = 0.001
BATCH = 350


class Plan:
    """The contacts of a customer in a billing cycle, up to a limit."""

    def __init__(self, client: redis.Redis, customer: str, limit: int, end: datetime):
        self.client, self.rollcall = client, Rollcall(client)
        self.key, self.limit, self.end = f"rollcall-demo:contacts:{customer}", limit, end

    def has_room_for(self, contacts: Sequence[str]) -> bool:
        """Whether a list would stay within the limit. Changes nothing."""
        with self.rollcall.pipeline(transaction=False) as pipe:
            count = pipe.bf.card(self.key)
            known = [pipe.bf.mexists(self.key, *batch) for batch in in_batches(contacts)]
            pipe.execute()
        return count.value + sum(batch.value.count(False) for batch in known) <= self.limit

    def admit(self, batch: Sequence[str]) -> bool:
        """Admits a batch completely or not at all, in one atomic step. Returns whether it was admitted."""
        admissions = self.rollcall.bf.admit(
            self.key, batch, self.limit, all=True, capacity=self.limit, error_rate=ERROR_RATE, exat=self.end
        )
        return Admission.REJECTED not in admissions

    def download(self) -> BloomFilter:
        """Downloads the filter, so that lists can be checked in this process, without sending them to the server."""
        return BloomFilter.download(self.client, self.key, max_bytes=64 << 20)


def in_batches(contacts: Sequence[str]) -> Iterator[Sequence[str]]:
    different = list(dict.fromkeys(contacts))
    return (different[start : start + BATCH] for start in range(0, len(different), BATCH))


def main() -> None:
    client = redis.Redis.from_url(os.environ.get("ROLLCALL_URL", "redis://127.0.0.1:6379"))
    plan = Plan(client, "shop", limit=10_000, end=datetime.now(UTC) + timedelta(days=30))
    client.delete(plan.key)
    everybody = [f"contact-{number}@example.org" for number in range(12_000)]
    for name, contacts in (("spring", everybody[:8000]), ("summer", everybody[4000:9500]), ("autumn", everybody)):
        fits = plan.has_room_for(contacts)
        print(f"{name}: {len(contacts)} contacts {'fit' if fits else 'would go over the limit'}")
        assert fits == (name != "autumn")
        if fits:
            assert all(plan.admit(batch) for batch in in_batches(contacts))
    copy = plan.download()
    new = copy.contains_many(everybody).count(False)
    print(f"{len(copy)} contacts by now; of {len(everybody)} {new} are new, says a copy in this process")
    assert 9500 * (1 - 2 * ERROR_RATE) <= len(copy) <= 9500
    assert len(copy) == plan.rollcall.bf.card(plan.key) and len(copy) + new > plan.limit
    client.delete(plan.key)


if __name__ == "__main__":
    main()
