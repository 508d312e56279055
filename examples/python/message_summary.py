"""School messenger: how many received a message and read it, and whom to remind.

    pip install "$(ls target/python/wheels/rollcall_redis-*.whl)[redis]"
    ROLLCALL_URL=redis://127.0.0.1:6379 python message_summary.py

One kind of counter does for a class and for a district: to 250 people it is exact and lists them, beyond that it
estimates at a standard error of 1 %, in 5 KB. Receipts may come twice, late and in batches.
"""

import os
from collections.abc import Iterable

import redis

from rollcall_redis.redis import Estimate, Rollcall

YEAR = 365 * 24 * 60 * 60


class Message:
    """What became of a message."""

    def __init__(self, rollcall: Rollcall[str], name: str):
        self.rollcall = rollcall
        # In one slot of a cluster, since they are compared.
        self.received, self.read = f"rollcall-demo:{{{name}}}:received", f"rollcall-demo:{{{name}}}:read"

    def note(self, key: str, people: Iterable[str]) -> None:
        self.rollcall.lc.insert(key, people, capacity=50_000, error=0.01, exact=250, ex=YEAR)

    def summary(self) -> tuple[int, int, Estimate]:
        """Those who received it, who read it, and who received it and did not read it: one round trip."""
        with self.rollcall.pipeline(transaction=False) as pipe:
            received, read = pipe.lc.count(self.received), pipe.lc.count(self.read)
            unread = pipe.lc.diffcard(self.received, self.read)
            pipe.execute()
        return received.value, read.value, unread.value

    def to_remind(self) -> list[str]:
        """By name, as long as the counters are exact."""
        return sorted(self.rollcall.lc.diff(self.received, self.read))


def main() -> None:
    client = redis.Redis.from_url(os.environ.get("ROLLCALL_URL", "redis://127.0.0.1:6379"))
    rollcall = Rollcall(client, decode_responses=True)
    for name, size in (("class", 240), ("district", 50_000)):
        message = Message(rollcall, name)
        people = [f"{name}-{number}" for number in range(size)]
        for start in range(0, size, 350):
            batch = people[start : start + 350]
            message.note(message.received, batch)
            message.note(message.read, [person for person in batch if hash_of(person) % 10])
        received, read, unread = message.summary()
        truth = sum(not hash_of(person) % 10 for person in people)
        print(f"{name}: {received} received it, {read} read it, {unread.count} +- {unread.standard_error:.0f} did not")
        assert abs(unread.count - truth) <= 3 * unread.standard_error, f"expected {truth}"
        if size <= 250:
            assert message.to_remind() == sorted(person for person in people if not hash_of(person) % 10)
            print(f"{name}: to remind: {', '.join(message.to_remind()[:3])}, ...")
        client.delete(message.received, message.read)


def hash_of(person: str) -> int:
    """Decides who reads: the same in every run."""
    return int(person.rsplit("-", 1)[1]) * 7919 % 104_729


if __name__ == "__main__":
    main()
