"""Runs the consumers of docs/tutorials/notify.md, and kills one between each two of its steps."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import redis

PAGE = Path(__file__).resolve().parents[2] / "docs/tutorials/notify.md"

# Kills itself before command number `step`, counted from 0. The act comes between the commands 2 and 3.
KILLED = """
import os, signal, sys

step, device, acts = sys.argv[1], sys.argv[1], redis.Redis(port={port})

class Dying(redis.Redis):
    done = 0

    def execute_command(self, *words, **options):
        if step == str(Dying.done):
            os.kill(os.getpid(), signal.SIGKILL)
        Dying.done += 1
        return super().execute_command(*words, **options)

client = Dying(port={port}, protocol=3, decode_responses=True)
filters = client.bf()

handle(device, lambda device: acts.rpush("acts", device))
"""


def consumer(port: int) -> str:
    """The page's code up to its example. The test moves the window of claims."""
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL))
    code, example, _ = code.partition("\nsent = []\n")
    assert example
    code = re.sub(r"^assert .*$", "", code, flags=re.MULTILINE)
    assert code.count('"WINDOW", 30, "SLICES", 6') == 1
    code = code.replace('"WINDOW", 30, "SLICES", 6', '"WINDOW", 30, "SLICES", 6, "MANUAL"')
    return code.replace("redis://127.0.0.1:6379", f"redis://127.0.0.1:{port}")


def test_a_consumer_may_be_killed_between_any_two_steps(server: Any) -> None:
    code = consumer(server.port)
    steps = ["0", "1", "2", "3", "4", "never"]
    with redis.Redis(port=server.port, decode_responses=True) as client:
        client.flushall()
        for step in steps:
            program = code + KILLED.format(port=server.port)
            run = subprocess.run([sys.executable, "-", step], input=program, capture_output=True, text=True)
            assert (run.returncode, run.stderr) == (0 if step == "never" else -9, ""), step
        another: dict[str, Any] = {}
        exec(code, another)
        act = partial(client.rpush, "acts")
        # Claims of the killed consumers keep the other waiting until they expire.
        for slice, waiting in ((0, {"2", "3", "4"}), (6, {"2", "3", "4"}), (7, set())):
            client.execute_command("LC.ADVANCE", "claims", slice)
            assert {step for step in steps if not another["handle"](step, act)} == waiting
        acts = client.lrange("acts", 0, -1)
        # Nothing is lost. Only an act that was not confirmed is repeated.
        assert {step: acts.count(step) for step in steps} == {step: 1 + (step == "3") for step in steps}
        assert client.execute_command("LC.COUNT", "claims") == 0
        client.flushall()
