"""Tests docs/clients.md: runs the examples of redis-py and valkey-glide, checks those of clients with filter methods
for gaps, and tests the page's statements about values."""

import re
import subprocess
import sys
import unittest
from enum import IntEnum
from pathlib import Path
from urllib.parse import urlsplit

import glide_sync
import redis
from variants import URL

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "clients.md"
COUNTING = "ADD INSERT RESERVE COUNT COUNTSINCE HISTORY DIFFCARD MERGE MEMBERS INFO MERGEDUMP".split()


def code(client: str, language: str) -> str:
    """All code blocks of a client's section as one program, because they build on each other."""
    (section,) = re.findall(rf"^## {client}\n(.*?)(?=^## |\Z)", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL))


class Statements(unittest.TestCase):
    def setUp(self):
        self.client = self.connect()
        self.client.flushall()

    def connect(self, **options):
        client = redis.Redis.from_url(URL, socket_timeout=60, protocol=3, **options)
        self.addCleanup(client.close)
        return client

    def has_members(self, client: str, add) -> None:
        """Adds each value of the page's table, and compares the member with the client's row."""
        (row,) = re.findall(rf"^\| {client} \|(.*) \|$", DOCUMENT.read_text(), re.MULTILINE)
        shown = [cell.strip().strip("`") for cell in row.split("|")]
        for value, expected in zip([1.0, 0.1 + 0.2, 1e16, 1e21, True, None], shown, strict=True):
            with self.subTest(f"{client}: {value}"):
                self.client.delete("members")
                if expected == "rejected":
                    self.assertRaises((redis.DataError, TypeError), add, value)
                    continue
                add(value)
                member = b"" if expected == "empty" else expected.encode()
                self.assertEqual(self.client.execute_command("LC.MEMBERS", "members"), [member])

    def test_members_of_redis_py(self):
        self.has_members("redis-py", lambda value: self.client.execute_command("LC.ADD", "members", value))

    def test_members_of_glide(self):
        address = urlsplit(URL)
        node = glide_sync.NodeAddress(address.hostname, address.port)
        client = glide_sync.GlideClient.create(glide_sync.GlideClientConfiguration([node], request_timeout=60_000))
        self.addCleanup(client.close)
        self.has_members("valkey-glide, Python", lambda value: client.custom_command(["LC.ADD", "members", value]))

    def test_members_of_enums(self):
        role = IntEnum("Role", {"ADMIN": 7})
        self.client.execute_command("LC.ADD", "members", role.ADMIN)
        self.assertEqual(self.client.execute_command("LC.MEMBERS", "members"), [b"<Role.ADMIN: 7>"])
        self.assertIn("`<Role.ADMIN: 7>`", DOCUMENT.read_text())

    def test_chunks_in_a_transaction_of_a_client_that_decodes(self):
        self.client.execute_command("BF.MADD", "seen", *range(50))
        decoding = self.connect(decode_responses=True)
        self.assertIs(type(decoding.bf().scandump("seen", 0)[1]), bytes)
        for transaction in (True, False):
            pipe = decoding.pipeline(transaction=transaction)
            pipe.bf().scandump("seen", 0)
            if transaction:
                self.assertRaises(UnicodeDecodeError, pipe.execute)
            else:
                self.assertIs(type(pipe.execute()[0][1]), bytes)


class Documents(unittest.TestCase):
    def test_examples_run(self):
        program = code("redis-py", "python")
        self.assertGreater(program.count("assert "), 20)
        program = program.replace("redis://127.0.0.1:6379", URL)
        self.assertEqual(program.count(URL), 3)
        self.run_program(program)

    def test_examples_of_glide_run(self):
        program = code("valkey-glide", "python")
        self.assertGreater(program.count("assert "), 5)
        address = urlsplit(URL)
        here = f'NodeAddress("{address.hostname}", {address.port})'
        program = program.replace('NodeAddress("127.0.0.1", 6379)', here)
        self.assertIn(here, program)
        # GLIDE prints errors of the server even if they are caught.
        self.run_program(program, printed="Error executing command: .*non scaling filter is full\n")

    def run_program(self, program, printed=""):
        with redis.Redis.from_url(URL) as client:
            client.flushall()
        result = subprocess.run([sys.executable, "-"], input=program, text=True, capture_output=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, rf"\A{printed}\Z")

    def test_every_client_shows_every_counter_command(self):
        for client, language in (("redis-py", "python"), ("redis-rs", "rust")):
            missing = [command for command in COUNTING if f'"LC.{command}"' not in code(client, language)]
            self.assertEqual(missing, [], client)

    def test_the_versions_are_those_tested(self):
        text = DOCUMENT.read_text()
        pins = Path(__file__).parents[1]
        for name, file, pattern in (
            ("redis-py", "python/requirements.txt", r"^redis==(\S+)"),
            ("node-redis", "node/package.json", r'"redis": "([^"]+)"'),
            ("ioredis", "node/package.json", r'"ioredis": "([^"]+)"'),
            ("redis-rs", "rust/Cargo.toml", r'^redis = { version = "=([^"]+)"'),
            ("valkey-glide", "python/requirements.txt", r"^valkey-glide==(\S+)"),
            ("valkey-glide", "python/requirements.txt", r"^valkey-glide-sync==(\S+)"),
            ("valkey-glide", "node/package.json", r'"@valkey/valkey-glide": "([^"]+)"'),
        ):
            (version,) = re.findall(pattern, (pins / file).read_text(), re.MULTILINE)
            self.assertRegex(text, rf"\| \[{name}\]\(#{name}\) \| [^|]*{re.escape(version)}\b", name)
