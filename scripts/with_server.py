#!/usr/bin/env python3
"""Runs a command beside a server of its own that has the module loaded, and stops that server whatever happens.

    scripts/with_server.py [--server PROGRAM] [--module FILE] COMMAND [ARGUMENT...]

The server listens on a free port of this machine, keeps its files in a temporary folder and saves nothing. The command
finds it by ROLLCALL_URL=redis://127.0.0.1:PORT, and its exit status is ours. PROGRAM defaults to $ROLLCALL_SERVER, else
redis-server; FILE to $ROLLCALL_MODULE, else target/release/librollcall.so.
"""

import argparse
import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Sequence

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 20.0
STOP_SECONDS = 10.0
ATTEMPTS = 5
PR_SET_PDEATHSIG = 1


class StartError(Exception):
    pass


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def die_with_parent() -> None:
    """Runs in the child: the kernel kills it if we end without stopping it, for instance by SIGKILL."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def stop(server: subprocess.Popen) -> None:
    if server.poll() is None:
        server.terminate()
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def start(program: str, module: Path, folder: str, options: Sequence[str] = ()) -> tuple[subprocess.Popen, int]:
    """Returns a server that answers, and its port. If another program takes the port first, it tries another."""
    log_path = Path(folder, "server.log")
    for _ in range(ATTEMPTS):
        port = free_port()
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no"]
        command += ["--loadmodule", str(module), *options]
        with open(log_path, "wb") as log:
            try:
                # A session of its own: Ctrl-C reaches only the command and us, and the server lives until the command
                # is done.
                server = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=die_with_parent
                )
            except OSError as error:
                raise StartError(f"cannot run {program}: {error}") from error
        try:
            deadline = time.monotonic() + START_SECONDS
            while server.poll() is None and time.monotonic() < deadline:
                # The answer counts only while our own server is alive: another program could answer on this port.
                if answers(port) and server.poll() is None:
                    return server, port
                time.sleep(0.02)
        except BaseException:
            stop(server)
            raise
        stop(server)
        text = log_path.read_text(errors="replace")
        if "Address already in use" not in text:
            break
    raise StartError(f"{program} did not start; its log ends:\n" + "\n".join(text.splitlines()[-15:]))


def exit_on_signals() -> None:
    """Makes an exit of these signals, so that `finally` runs. SIGINT is one already (KeyboardInterrupt). Signals that nohup
    ignores stay ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: sys.exit(128 + number))


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a command beside a server that has the module loaded.")
    parser.add_argument("--server", default=os.environ.get("ROLLCALL_SERVER") or "redis-server")
    parser.add_argument("--module", type=Path, default=os.environ.get("ROLLCALL_MODULE") or ROOT / "target/release/librollcall.so")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("no command given")
    module = options.module.resolve()
    if not module.is_file():
        print(f"with_server: {module} is missing: make build", file=sys.stderr)
        return 1

    exit_on_signals()
    with tempfile.TemporaryDirectory(prefix="rollcall-") as folder:
        try:
            server, port = start(options.server, module, folder)
        except StartError as error:
            print(f"with_server: {error}", file=sys.stderr)
            return 1
        try:
            url = f"redis://127.0.0.1:{port}"
            command = subprocess.Popen(options.command, env={**os.environ, "ROLLCALL_URL": url})
            try:
                status = command.wait()
            finally:
                stop(command)
            if server.poll() is not None:
                log = Path(folder, "server.log").read_text(errors="replace").splitlines()
                print("with_server: the server ended meanwhile; its log ends:\n" + "\n".join(log[-30:]), file=sys.stderr)
                return status or 1
            return status if status >= 0 else 128 - status
        except FileNotFoundError as error:
            print(f"with_server: {error}", file=sys.stderr)
            return 127
        finally:
            stop(server)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
