"""School messenger: how many received a message and read it, who has not read it, and who came back this week.

    pip install "$(ls target/python/wheels/rollcall_redis-*.whl)[redis]"
    ROLLCALL_URL=redis://127.0.0.1:6379 python message_summary.py

One kind of counter serves a class and a district. Up to 250 people it is exact and lists them. Beyond that it
estimates with a standard error of 1 %, in 5 KB. Receipts may come twice, late and in batches.
"""

import os
from collections.abc import Iterable
from datetime import timedelta

import redis

from rollcall_redis.redis import Estimate, Rollcall

YEAR = timedelta(days=365)
MONTH = timedelta(days=28)
WEEK = timedelta(days=7, seconds=-1)
"""The time from the first second of the first of seven days to the last second of the last day."""


class Message:
    """The counters of a message, and the counter of the people who open the messenger."""

    def __init__(self, rollcall: Rollcall[str], name: str):
        self.rollcall = rollcall
        # The braces put both keys into one slot of a cluster, because commands compare them.
        self.received, self.read = f"rollcall-demo:{{{name}}}:received", f"rollcall-demo:{{{name}}}:read"
        self.seen = f"rollcall-demo:{{{name}}}:seen"
        # Here `advance` moves the window from day to day. Without `manual` the system clock does.
        rollcall.lc.reserve(self.seen, error_rate=0.01, exact=250, window=MONTH, slices=28, manual=True)

    def note(self, key: str, people: Iterable[str]) -> None:
        self.rollcall.lc.insert(key, people, error_rate=0.01, exact=250, ex=YEAR)

    def open(self, day: int, people: Iterable[str]) -> None:
        """Records the people who open the messenger on a day."""
        self.rollcall.lc.advance(self.seen, day)
        self.rollcall.lc.add(self.seen, *people)

    def summary(self) -> tuple[int, int, Estimate, Estimate]:
        """The number of people who received the message, who read it, who did not read it, and of readers who came back
        this week, in one round trip."""
        with self.rollcall.pipeline(transaction=False) as pipe:
            received, read = pipe.lc.count(self.received), pipe.lc.count(self.read)
            unread = pipe.lc.diffcard(self.received, self.read)
            back = pipe.lc.intercard(self.read, self.seen, since=[None, WEEK])
            pipe.execute()
        return received.value, read.value, unread.value, back.value

    def to_remind(self) -> list[str]:
        """The names of people who received the message and have not read it. Works while the counters are exact."""
        return sorted(self.rollcall.lc.diff(self.received, self.read))

    def came_back(self) -> list[str]:
        """The names of readers who opened the messenger in the last week."""
        return sorted(self.rollcall.lc.inter(self.read, self.seen, since=[None, WEEK]))


def main() -> None:
    client = redis.Redis.from_url(os.environ.get("ROLLCALL_URL", "redis://127.0.0.1:6379"))
    rollcall = Rollcall(client, decode_responses=True)
    for name, size in (("class", 240), ("district", 50_000)):
        message = Message(rollcall, name)
        people = [f"{name}-{number}" for number in range(size)]
        readers = [person for person in people if hash_of(person) % 10]
        for start in range(0, size, 350):
            batch = people[start : start + 350]
            message.note(message.received, batch)
            message.note(message.read, [person for person in batch if hash_of(person) % 10])
        # Readers open the messenger on the day of the message. Some people open it weeks later too, readers or not.
        for day, who in ((0, readers), (12, people[::2]), (24, people[::3])):
            message.open(day, who)
        rollcall.lc.advance(message.seen, 27)
        received, read, unread, back = message.summary()
        print(f"{name}: {received} received it, {read} read it")
        print(f"{name}: who has not read it? {unread.count} +- {unread.standard_error:.0f}")
        print(f"{name}: who came back this week? {back.count} +- {back.standard_error:.0f}")
        missing = sorted(set(people) - set(readers))
        returned = sorted(set(people[::3]) & set(readers))
        assert abs(unread.count - len(missing)) <= 3 * unread.standard_error, f"expected {len(missing)}"
        assert abs(back.count - len(returned)) <= 3 * back.standard_error, f"expected {len(returned)}"
        if size <= 250:
            assert (message.to_remind(), message.came_back()) == (missing, returned)
            print(f"{name}: to remind: {', '.join(missing[:3])}, ...")
            print(f"{name}: came back: {', '.join(returned[:3])}, ...")
        client.delete(message.received, message.read, message.seen)


def hash_of(person: str) -> int:
    """Decides which people read the message, in the same way in every run."""
    return int(person.rsplit("-", 1)[1]) * 7919 % 104_729


if __name__ == "__main__":
    main()
