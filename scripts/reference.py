#!/usr/bin/env python3
"""Copies the documents into packages, and checks their links.

    scripts/reference.py write FOLDER MONITORING   copy docs/ and SECURITY.md into FOLDER; MONITORING is where the
                                                   package has the files of packaging/monitoring, as a path from FOLDER
    scripts/reference.py check [FOLDER]            fail if a link leads nowhere from there, or if a page is missing that
                                                   the module, the tool or an alert names; without FOLDER, of copies
                                                   for both kinds of packages

A link to a file that the package lacks leads to the repository if packaging/identity.toml has its address, and else is
plain text.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MONITORING = "packaging/monitoring"
FENCES = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
NAMED = re.compile(r"\bdocs/[a-z-]+\.md(?:#[\w-]+)?")


def repository() -> str:
    address = subprocess.check_output([ROOT / "scripts/identity.py", "repository"], text=True).strip()
    version = subprocess.check_output([ROOT / "scripts/package.sh", "version"], text=True).strip()
    return address and f"{address}/blob/v{version}"


def pages(folder: Path) -> list[Path]:
    return [folder / "SECURITY.md", *folder.glob("docs/**/*.md"), folder / "docs/llms.txt"]


def write(folder: Path, monitoring: str) -> None:
    shutil.rmtree(folder / "docs", ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder / "docs", copy_function=shutil.copyfile)
    shutil.copyfile(ROOT / "SECURITY.md", folder / "SECURITY.md")
    address = repository()
    for page in pages(folder):
        here = page.relative_to(folder).parent

        def link(found: re.Match[str]) -> str:
            path, _, anchor = found[2].partition("#")
            target = os.path.normpath(here / path)
            if "://" in found[2] or not path or (folder / target).exists():
                return found[0]
            if target.startswith(MONITORING):
                path = os.path.relpath(monitoring + target.removeprefix(MONITORING), here)
                return f"[{found[1]}]({path})"
            return f"[{found[1]}]({address}/{target}{anchor and '#' + anchor})" if address else found[1]

        parts = FENCES.split(page.read_text())
        parts[::2] = [LINK.sub(link, part) for part in parts[::2]]
        page.write_text("".join(parts))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings: in lower case, without punctuation, with dashes for spaces."""
    text = "".join(FENCES.split(page.read_text())[::2])
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def check(folder: Path) -> list[str]:
    links = []
    for page in pages(folder):
        text = "".join(FENCES.split(page.read_text())[::2])
        links += [(page, target) for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    for source in [*ROOT.glob("src/**/*.rs"), *ROOT.glob("cli/src/**/*.rs"), *ROOT.glob(f"{MONITORING}/*")]:
        links += [(folder / source.name, target) for target in NAMED.findall(source.read_text())]
    assert len(links) > 500, len(links)
    wrong = []
    for page, target in links:
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            wrong.append(f"{page.name}: {target}")
    return wrong


match sys.argv[1:]:
    case ["write", folder, monitoring]:
        write(Path(folder), monitoring)
    case ["check", *folders]:
        with tempfile.TemporaryDirectory() as scratch:
            for monitoring in [] if folders else ["monitoring", "examples/monitoring"]:
                folders.append(f"{scratch}/{len(folders)}")
                shutil.copytree(ROOT / MONITORING, f"{folders[-1]}/{monitoring}")
                write(Path(folders[-1]), monitoring)
            wrong = [line for folder in folders for line in check(Path(folder))]
        if wrong:
            sys.exit("reference: these lead nowhere:\n" + "\n".join(wrong))
    case _:
        sys.exit(__doc__)
