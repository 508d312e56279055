#!/usr/bin/env python3
"""Measures what README.md says under "How it compares": Rollcall beside RedisBloom, sets and HyperLogLog.

    scripts/compare.py [--server PROGRAM] [--module FILE] [--peer FILE] [PART...]

PART is memory, accuracy or speed; all three unless given. Each module gets a server of its own on a free port, in a
temporary folder, saving nothing. PROGRAM defaults to $ROLLCALL_SERVER, else redis-server; FILE to $ROLLCALL_MODULE, else
target/release/librollcall.so, and to $ROLLCALL_PEER, else the RedisBloom that `scripts/servers.py fetch` brings. What
needs a peer is left out without one.

Speed is the server's own time a call, from INFO commandstats. The two servers take turns, call by call in rounds, so that
whatever else the machine does slows both; quote the ratio, not the microseconds.
"""

import argparse
import math
import os
import random
import socket
import statistics
import tempfile
import time
from pathlib import Path

import servers
from with_server import ROOT, start, stop

ITEMS_A_CALL = 350
SEED = 20


class Client:
    """Just enough of RESP2: commands go out in one write, replies come back as Python values."""

    def __init__(self, port: int):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb")

    def __call__(self, *words):
        return self.pipeline([words])[0]

    def pipeline(self, commands):
        out = bytearray()
        for words in commands:
            out += b"*%d\r\n" % len(words)
            for word in words:
                word = word if isinstance(word, bytes) else str(word).encode()
                out += b"$%d\r\n%b\r\n" % (len(word), word)
        self.socket.sendall(out)
        return [self.reply() for _ in commands]

    def reply(self):
        line = self.reader.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.reader.read(int(rest) + 2)[:-2]
        return [self.reply() for _ in range(int(rest))]

    def add(self, command: str, key: str, items) -> None:
        """Adds items in calls of 1,000, some calls at a time."""
        items = iter(items)
        while True:
            calls = [call for call in ([item for _, item in zip(range(1000), items)] for _ in range(20)) if call]
            if not calls:
                return
            self.pipeline([(command, key, *call) for call in calls])


def table(title: str, head, rows) -> None:
    print(f"\n{title}\n")
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(str(cell).rjust(width) for cell, width in zip(row, widths)) + " |")


def used_memory(client: Client) -> int:
    return int(client("INFO", "memory").split(b"used_memory:")[1].split(b"\r")[0])


def settled_memory(client: Client) -> int:
    """used_memory once the background has freed what was deleted."""
    before = -1
    while (now := used_memory(client)) != before:
        before = now
        time.sleep(0.3)
    return now


def memory(ours: Client, peer: Client | None) -> None:
    for words in ([], ["NONSCALING"]):
        rows = []
        for rate in (0.01, 0.001):
            for capacity in (1_000, 100_000, 1_000_000):
                row = [rate, f"{capacity:,}"]
                for client in filter(None, (ours, peer)):
                    client("FLUSHALL")
                    before = settled_memory(client)
                    filters = 100
                    client.pipeline([("BF.RESERVE", f"f{i:02}", rate, capacity, *words) for i in range(filters)])
                    each = (used_memory(client) - before) // filters
                    row += [f"{client('BF.INFO', 'f00')[3]:,}", f"{client('MEMORY', 'USAGE', 'f00'):,}", f"{each:,}"]
                rows.append(row)
        head = ["p", "capacity"]
        for who in ("Rollcall", "RedisBloom") if peer else ("Rollcall",):
            head += [f"{who}: Size", "MEMORY USAGE", "used_memory"]
        table(f"Bytes of a filter {' '.join(words)}".rstrip(), head, rows)

    rows = []
    for members in (10, 240, 1_000, 10_000, 50_000):
        ours("FLUSHALL")
        items = [f"user:{i}" for i in range(members)]
        for command, key in (("LC.ADD", "lc"), ("SADD", "set"), ("PFADD", "hll")):
            ours.add(command, key, items)
        assert ours("SCARD", "set") == members
        # PFCOUNT first: some servers only then give the key its lasting form.
        ours("PFCOUNT", "hll")
        rows.append([f"{members:,}"] + [f"{ours('MEMORY', 'USAGE', key, 'SAMPLES', 0):,}" for key in ("lc", "set", "hll")])
    table("MEMORY USAGE of a count of user:0, user:1, ...", ["members", "LC (50,000 at 1 %)", "SET", "HyperLogLog"], rows)


def accuracy(ours: Client) -> None:
    rows = []
    for members, trials in ((100, 200), (240, 200), (300, 200), (1_000, 200), (10_000, 200), (50_000, 100), (500_000, 20)):
        errors = {"LC": [], "HLL": []}
        for trial in range(trials):
            ours("FLUSHALL")
            items = [f"user:{trial}:{i}" for i in range(members)]
            ours.add("LC.ADD", "lc", items)
            ours.add("PFADD", "hll", items)
            errors["LC"].append(ours("LC.COUNT", "lc") / members - 1)
            errors["HLL"].append(ours("PFCOUNT", "hll") / members - 1)
        row = [f"{members:,}", trials]
        for each in errors.values():
            row += [f"{100 * math.sqrt(statistics.fmean(e * e for e in each)):.2f} %", f"{100 * max(map(abs, each)):.2f} %"]
        rows.append(row)
    table("Relative error on the same items, counters of 50,000 at 1 %", ["members", "trials", "LC.COUNT rms", "worst", "PFCOUNT rms", "worst"], rows)


def usec_per_call(client: Client, command: str) -> float:
    for line in client("INFO", "commandstats").decode().splitlines():
        if line.startswith(f"cmdstat_{command}:") or line.startswith(f"cmdstat_{command.upper()}:"):
            return float(line.split("usec_per_call=")[1].split(",")[0])
    raise KeyError(command)


def speed(ours: Client, peer: Client) -> None:
    rows = []
    generator = random.Random(SEED)
    # (rate, capacity, items to hold, rounds): the large ones are sampled, being the same however many items they hold.
    for rate, capacity, rounds in ((0.01, 100_000, 280), (0.001, 1_000_000, 2_800), (0.001, 100_000_000, 4_000)):
        for client in (ours, peer):
            client("FLUSHALL")
            client("BF.RESERVE", "f", rate, capacity)
        if capacity > 10_000_000:
            # Every page there, so that what is measured is not the kernel's first touch of it.
            for _ in range(1_200):
                calls = [("BF.MADD", "f", *(b"%016x" % generator.getrandbits(64) for _ in range(ITEMS_A_CALL))) for _ in range(8)]
                for client in (ours, peer):
                    client.pipeline(calls)
        for command in ("BF.MADD", "BF.MEXISTS"):
            ratios, times = [], ([], [])
            per_round = max(1, rounds // 7)
            for _ in range(7):
                for client in (ours, peer):
                    client("CONFIG", "RESETSTAT")
                for _ in range(per_round):
                    items = [b"user:%016x@example.com" % generator.getrandbits(64) for _ in range(ITEMS_A_CALL)]
                    for client in (ours, peer):
                        client(command, "f", *items)
                for client, each in zip((ours, peer), times):
                    each.append(usec_per_call(client, command.lower()))
                ratios.append(times[1][-1] / times[0][-1])
            row = [command, rate, f"{capacity:,}"] + [f"{statistics.median(each):.0f} us" for each in times]
            rows.append(row + [f"{statistics.median(ratios):.1f}", f"{min(ratios):.1f} to {max(ratios):.1f}"])
    head = ["command", "p", "capacity", "Rollcall", "RedisBloom", "ratio, median of 7", "range"]
    table(f"Server time a call of {ITEMS_A_CALL} items, new or absent", head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what README.md compares.")
    parser.add_argument("--server", default=os.environ.get("ROLLCALL_SERVER") or "redis-server")
    parser.add_argument("--module", type=Path, default=os.environ.get("ROLLCALL_MODULE") or ROOT / "target/release/librollcall.so")
    parser.add_argument("--peer", type=Path, default=os.environ.get("ROLLCALL_PEER") or servers.path("redisbloom-2.8.2"))
    parser.add_argument("parts", nargs="*", metavar="PART", help="memory, accuracy, speed")
    options = parser.parse_args()
    parts = options.parts or ["memory", "accuracy", "speed"]
    if unknown := set(parts) - {"memory", "accuracy", "speed"}:
        parser.error(f"no such part: {', '.join(unknown)}")
    modules = [options.module.resolve()]
    if options.peer.is_file():
        modules.append(options.peer.resolve())
    else:
        print(f"no RedisBloom at {options.peer} (scripts/servers.py fetch): left out")
    running = []
    with tempfile.TemporaryDirectory(prefix="rollcall-") as folder:
        try:
            for number, module in enumerate(modules):
                (home := Path(folder, str(number))).mkdir()
                running.append(start(options.server, module, str(home)))
            ours, *rest = [Client(port) for _, port in running]
            peer = rest[0] if rest else None
            if "memory" in parts:
                memory(ours, peer)
            if "accuracy" in parts:
                accuracy(ours)
            if "speed" in parts and peer:
                speed(ours, peer)
        finally:
            for server, _ in running:
                stop(server)


if __name__ == "__main__":
    main()
