#!/usr/bin/env python3
"""Reads packaging/identity.toml: who publishes Rollcall, and under which addresses and names.

    scripts/identity.py KEY       the value, an empty line if there is none yet
    scripts/identity.py missing   what the owner still has to fill in, a key a line
    scripts/identity.py write     copy the values into the manifests and the newest entry of the Debian changelog
    scripts/identity.py check     fail if `write` would change a file, or if a manifest has another name

In a manifest the values are between two comments, `# identity: ...` and `# identity: end`.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "packaging/identity.toml").read_text()
IDENTITY = dict(re.findall(r'^(\w+) = "([^"\\]*)"$', TEXT, re.MULTILINE))
NAMES = {
    "crate_library": "core/Cargo.toml",
    "crate_tool": "cli/Cargo.toml",
    "python_package": "python/pyproject.toml",
    "npm_package": "js/package.json",
    "debian_package": "Cargo.toml",
}
OPTIONAL = ("home_page",)

NAME = IDENTITY["maintainer_name"] or "The Rollcall authors"
MAIL = IDENTITY["maintainer_mail"]
ADDRESSES = {"repository": IDENTITY["repository"], "homepage": IDENTITY["home_page"] or IDENTITY["repository"]}


def cargo() -> list[str]:
    authors = f"{NAME} <{MAIL}>" if MAIL else NAME
    return [f'authors = ["{authors}"]'] + [f'{key} = "{value}"' for key, value in ADDRESSES.items() if value]


def python() -> list[str]:
    mail = f', email = "{MAIL}"' if MAIL else ""
    urls = ", ".join(f'{key.capitalize()} = "{value}"' for key, value in ADDRESSES.items() if value)
    return [f'authors = [{{ name = "{NAME}"{mail} }}]'] + ([f"urls = {{ {urls} }}"] if urls else [])


def block(name: str, lines: list[str]) -> str:
    """The content of the manifest `name`, with `lines` between its two comments."""
    pattern = r"(?s)(?<=\n)(# identity: [^\n]*\n).*?(# identity: end\n)"
    text, found = re.subn(
        pattern, lambda match: match[1] + "".join(f"{line}\n" for line in lines) + match[2], (ROOT / name).read_text()
    )
    assert found == 1, f"{name} has {found} places for the identity"
    return text


def filled() -> dict[str, str]:
    """The new content of each file that contains values of packaging/identity.toml."""
    files = {name: block(name, cargo()) for name in ("Cargo.toml", "core/Cargo.toml", "cli/Cargo.toml")}
    files["python/pyproject.toml"] = block("python/pyproject.toml", python())
    log = "packaging/debian/changelog"
    files[log] = re.sub(r"(?m)^ -- .* <.*>  ", lambda _: f" -- {NAME} <{MAIL}>  ", (ROOT / log).read_text(), count=1)
    return files


def main(arguments: list[str]) -> None:
    match arguments:
        case ["missing"]:
            print(*(key for key, value in IDENTITY.items() if not value and key not in OPTIONAL), sep="\n")
        case ["write"]:
            for name, text in filled().items():
                (ROOT / name).write_text(text)
        case ["check"]:
            wrong = [name for name, text in filled().items() if text != (ROOT / name).read_text()]
            wrong += [
                f"{manifest}: its name is not {IDENTITY[key]}"
                for key, manifest in NAMES.items()
                if not re.search(rf'\n(name =|  "name":) "{IDENTITY[key]}",?\n', (ROOT / manifest).read_text())
            ]
            if wrong:
                sys.exit("packaging/identity.toml says otherwise: run  scripts/identity.py write\n" + "\n".join(wrong))
        case [key] if key in IDENTITY:
            print(IDENTITY[key])
        case _:
            sys.exit(__doc__)


main(sys.argv[1:])
