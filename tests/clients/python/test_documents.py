"""Tests the examples in docs/clients.md: runs those of redis-py and valkey-glide, and checks those of clients with
filter methods for gaps."""

import re
import subprocess
import sys
import unittest
from pathlib import Path
from urllib.parse import urlsplit

import redis
from variants import URL

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "clients.md"
COUNTING = "ADD INSERT RESERVE COUNT COUNTSINCE HISTORY DIFFCARD MERGE MEMBERS INFO SCANDUMP LOADCHUNK".split()


def code(client: str, language: str) -> str:
    """All code blocks of a client's section as one program, because they build on each other."""
    (section,) = re.findall(rf"^## {client}\n(.*?)(?=^## |\Z)", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL))


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
        # The client prints errors of the server, also those that are caught.
        self.run_program(program, printed="Error executing command: .*non scaling filter is full\n")

    def run_program(self, program, printed=""):
        with redis.Redis.from_url(URL) as client:
            client.flushall()
        result = subprocess.run([sys.executable, "-"], input=program, text=True, capture_output=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, rf"\A{printed}\Z")

    def test_every_client_shows_every_counter_command(self):
        for client, language in (("redis-py", "python"), ("node-redis", "javascript"), ("redis-rs", "rust")):
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
