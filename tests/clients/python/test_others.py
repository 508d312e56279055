"""Tests every command by clients of other languages that Debian has: phpredis, redis-rb
and Perl's Redis. A program for each client, in tests/clients/others, sends the commands
of this file and prints the replies."""

import json
import re
import subprocess
import unittest
from pathlib import Path
from urllib.parse import urlsplit

from rows import ROWS, expected, is_as
from variants import URL

FOLDER = Path(__file__).parents[1] / "others"
DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "clients.md"
FULL = {"error": "ERR non scaling filter is full"}


class Other:
    program: list[str]
    row: str  # the first cell of its row in the page's table of members
    full = [1, 1, FULL]  # the reply of BF.MADD if a filter is full after two items

    def setUp(self):
        address = urlsplit(URL)
        words = [self.program[0], FOLDER / self.program[1], address.hostname, str(address.port)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.process.__exit__, None, None, None)

    def call(self, *words):
        print(json.dumps(words), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def key(self, name: str) -> str:
        return f"{self.id()}:{name}"

    def seen(self, reply):
        """The client's value for a reply of RESP2."""
        return [self.seen(element) for element in reply] if isinstance(reply, list) else reply

    def test_every_command(self):
        for words, reply in ROWS:
            with self.subTest(" ".join(words)):
                value = self.call(*(self.key(word[1:]) if word[:1] == "@" else word for word in words))
                if isinstance(reply, dict) and "error" in reply:
                    self.assertIn(reply["error"], value["error"])
                    continue
                if isinstance(reply, dict) and "sorted" in reply:
                    value.sort()
                wanted = self.seen(expected(reply, 2))
                self.assertTrue(is_as(value, wanted), f"{value!r}, not {wanted!r}")

    def test_a_full_filter(self):
        self.call("BF.RESERVE", self.key("small"), "0.001", "2", "NONSCALING")
        reply = self.call("BF.MADD", self.key("small"), "a", "b", "c", "d")
        if isinstance(reply, dict):
            self.assertIn(self.full["error"], reply["error"])
        else:
            self.assertEqual(reply, self.full)
        self.assertEqual(int(self.call("BF.CARD", self.key("small"))), 2)

    def test_chunks(self):
        self.call("BF.RESERVE", self.key("BF"), "0.0001", "15000")
        for family in ("BF", "LC"):
            key, copy = self.key(family), self.key(f"{family}:copy")
            self.call(f"{family}.INSERT", key, "ITEMS", *map(str, range(5000)))
            iterator, data = self.call(f"{family}.SCANDUMP", key, "0")
            while int(iterator):
                self.assertEqual(self.call(f"{family}.LOADCHUNK", copy, str(iterator), data), self.seen("OK"))
                iterator, data = self.call(f"{family}.SCANDUMP", key, str(iterator))
            self.assertEqual(self.call("DUMP", key), self.call("DUMP", copy))

    def test_members(self):
        (row,) = re.findall(rf"^\| {self.row} \|(.*) \|$", DOCUMENT.read_text(), re.MULTILINE)
        found = []
        for value in [1.0, 0.1 + 0.2, 1e16, 1e21, True, None]:
            self.call("DEL", "members")
            reply = self.call("LC.ADD", "members", value)
            if reply is False or isinstance(reply, dict):
                found.append("rejected")
            else:
                (member,) = self.call("LC.MEMBERS", "members")
                found.append(f"`{member}`" if member else "empty")
        self.assertEqual([cell.strip() for cell in row.split("|")], found)


class Phpredis(Other, unittest.TestCase):
    program = ["php", "phpredis.php"]
    row = "phpredis"
    full = [1, 1, False]

    def seen(self, reply):
        return False if reply is None else super().seen(reply)


class RedisRb(Other, unittest.TestCase):
    program = ["ruby", "redis.rb"]
    row = "redis-rb"


class PerlRedis(Other, unittest.TestCase):
    program = ["perl", "redis.pl"]
    row = "Perl's Redis"
    full = FULL

    def seen(self, reply):
        return str(reply) if type(reply) is int else super().seen(reply)
