#!/usr/bin/env python3
"""Runs a command beside a cluster of its own that has the module loaded, and stops that cluster whatever happens.

    scripts/with_cluster.py [--primaries N] [--move] [--server PROGRAM] [--module FILE] COMMAND [ARGUMENT...]

The nodes listen on free ports of this machine, keep their files in temporary folders and save nothing. The command finds
the cluster by ROLLCALL_URL, one of its nodes, and its exit status is ours. With --move, slots that have keys move from
node to node as long as the command runs, one after the other, by MIGRATE and CLUSTER SETSLOT. What moved is told at the
end. PROGRAM and FILE are found as scripts/with_server.py finds them.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Sequence, Union

from with_server import ROOT, StartError, exit_on_signals, free_port, start, stop

SLOTS = 16_384
FORM_SECONDS = 30.0
MIGRATE_MILLISECONDS = 60_000
# Pause between two slots that move.
MOVE_PAUSE_SECONDS = 0.02

Reply = Union[int, bytes, list, None]


class RedisError(Exception):
    pass


class Node:
    """A node, and a connection to it. `bus` is the port at which other nodes reach it."""

    def __init__(self, port: int, bus: int = 0):
        self.port = port
        self.bus = bus
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=2 * MIGRATE_MILLISECONDS / 1000)
        self.reader = self.socket.makefile("rb")
        self.id = self.ask("CLUSTER", "MYID").decode()

    def close(self) -> None:
        self.reader.close()
        self.socket.close()

    def ask(self, *words: Union[str, int, bytes]) -> Reply:
        encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded))
        return self._reply()

    def _reply(self) -> Reply:
        line = self.reader.readline()
        if not line.endswith(b"\r\n"):
            raise RedisError(f"node {self.port} closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RedisError(rest.decode())
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.reader.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self._reply() for _ in range(int(rest))]
        raise RedisError(f"node {self.port} sent {line!r}")


def form(nodes: Sequence[Node]) -> None:
    """Makes a cluster of nodes that share the slots evenly, and waits until all agree."""
    for at, node in enumerate(nodes):
        first, end = SLOTS * at // len(nodes), SLOTS * (at + 1) // len(nodes)
        node.ask("CLUSTER", "ADDSLOTSRANGE", first, end - 1)
        node.ask("CLUSTER", "SET-CONFIG-EPOCH", at + 1)
    for node in nodes[1:]:
        nodes[0].ask("CLUSTER", "MEET", "127.0.0.1", node.port, node.bus)
    deadline = time.monotonic() + FORM_SECONDS
    for node in nodes:
        while True:
            info = node.ask("CLUSTER", "INFO").decode()
            if "cluster_state:ok" in info and f"cluster_known_nodes:{len(nodes)}" in info:
                break
            if time.monotonic() > deadline:
                raise StartError(f"the cluster did not form; node {node.port} says:\n{info}")
            time.sleep(0.02)


def open_slot(slot: int, source: Node, target: Node) -> None:
    """From here on the nodes redirect with ASK what has left the source."""
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)


def move_keys(slot: int, source: Node, target: Node) -> int:
    """Moves the keys of a slot, and says how many there were."""
    moved = 0
    while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, 100):
        for key in keys:
            # NOKEY: it expired or was deleted meanwhile.
            moved += source.ask("MIGRATE", "127.0.0.1", target.port, key, 0, MIGRATE_MILLISECONDS) == b"OK"
    return moved


def view(node: Node) -> list:
    """Who has which slots since which epoch, as far as this node knows."""
    lines = [line.split() for line in node.ask("CLUSTER", "NODES").decode().splitlines()]
    return sorted((line[0], line[6], [slots for slots in line[8:] if not slots.startswith("[")]) for line in lines)


def close_slot(slot: int, target: Node, nodes: Sequence[Node]) -> None:
    """Makes the target the owner. From here on the others redirect with MOVED.

    It waits until all nodes know the epoch of the target. Before that, word of an older owner on its way could turn
    a node back, if the next slot moves at once.
    """
    for node in [target, *(node for node in nodes if node is not target)]:
        node.ask("CLUSTER", "SETSLOT", slot, "NODE", target.id)
    deadline = time.monotonic() + FORM_SECONDS
    while any(view(node) != view(target) for node in nodes):
        if time.monotonic() > deadline:
            raise StartError(f"the nodes do not agree about slot {slot}")
        time.sleep(0.002)


class Mover(threading.Thread):
    """Moves slots that have keys, each to the node that follows its own, until it is told to stop."""

    def __init__(self, ports: Sequence[int]):
        super().__init__(daemon=True)
        self.nodes = [Node(port) for port in ports]
        self.done = threading.Event()
        self.slots = self.keys = 0
        self.failure = None

    def run(self) -> None:
        try:
            while not self.done.is_set():
                slots = {node.ask("CLUSTER", "KEYSLOT", key) for node in self.nodes for key in node.ask("KEYS", "*")}
                for slot in sorted(slots):
                    if self.done.is_set():
                        break
                    self.move(slot)
                    self.done.wait(MOVE_PAUSE_SECONDS)
                self.done.wait(MOVE_PAUSE_SECONDS)
        except (OSError, RedisError, StartError) as failure:
            self.failure = failure

    def move(self, slot: int) -> None:
        holders = [at for at, node in enumerate(self.nodes) if node.ask("CLUSTER", "COUNTKEYSINSLOT", slot)]
        if not holders:
            return
        source, target = self.nodes[holders[0]], self.nodes[(holders[0] + 1) % len(self.nodes)]
        open_slot(slot, source, target)
        self.keys += move_keys(slot, source, target)
        close_slot(slot, target, self.nodes)
        self.slots += 1

    def stop(self) -> None:
        self.done.set()
        self.join()
        if self.failure is not None:
            raise StartError(f"moving slots failed: {self.failure}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a command beside a cluster that has the module loaded.")
    parser.add_argument("--primaries", type=int, default=3)
    parser.add_argument("--move", action="store_true")
    parser.add_argument("--server", default=os.environ.get("ROLLCALL_SERVER") or "redis-server")
    parser.add_argument("--module", type=Path, default=os.environ.get("ROLLCALL_MODULE") or ROOT / "target/release/librollcall.so")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("no command given")
    if not 1 <= options.primaries <= 100:
        parser.error("primaries must be from 1 to 100")
    if options.move and options.primaries == 1:
        parser.error("slots cannot move within one primary")
    module = options.module.resolve()
    if not module.is_file():
        print(f"with_cluster: {module} is missing: make build", file=sys.stderr)
        return 1

    exit_on_signals()
    servers = []
    with tempfile.TemporaryDirectory(prefix="rollcall-") as folder:
        try:
            for at in range(options.primaries):
                own = Path(folder, str(at))
                own.mkdir()
                # By default the port of the bus is 10,000 above the other, and might be above all ports.
                bus = free_port()
                clustered = ["--cluster-enabled", "yes", "--cluster-port", str(bus)]
                server, port = start(options.server, module, str(own), clustered)
                servers.append((server, port, bus))
            ports = [port for _, port, _ in servers]
            nodes = [Node(port, bus) for _, port, bus in servers]
            form(nodes)
            for node in nodes:
                node.close()
            mover = Mover(ports) if options.move else None
            if mover:
                mover.start()
            command = subprocess.Popen(options.command, env={**os.environ, "ROLLCALL_URL": f"redis://127.0.0.1:{ports[0]}"})
            try:
                status = command.wait()
            finally:
                stop(command)
            if mover:
                mover.stop()
                print(f"with_cluster: {mover.slots} slots with {mover.keys} keys moved meanwhile")
            ended = [port for server, port, _ in servers if server.poll() is not None]
            if ended:
                print(f"with_cluster: nodes ended meanwhile: {ended}", file=sys.stderr)
                return status or 1
            return status if status >= 0 else 128 - status
        except (StartError, RedisError) as error:
            print(f"with_cluster: {error}", file=sys.stderr)
            return 1
        except FileNotFoundError as error:
            print(f"with_cluster: {error}", file=sys.stderr)
            return 127
        finally:
            for server, _, _ in servers:
                stop(server)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
