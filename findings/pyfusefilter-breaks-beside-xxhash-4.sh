#!/usr/bin/env bash
# Expected: a package works with the versions that it asks for.
# Seen: pyfusefilter 1.3.0 asks for any xxhash, so pip installs the newest, and hashes str(item) by it. Since 4.0.0,
# xxhash takes only bytes. With 4.1.0, pyfusefilter can be imported, and then its four filters raise TypeError for
# every item, even for bytes and numbers. A filter that was stored before opens, but cannot be asked. With `xxhash<4`
# all work.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages xxhash==3.8.2
mv "$work/python" "$work/older"
python_packages pyfusefilter==1.3.0 xxhash==4.1.0 cffi==2.1.1 pycparser==3.12

cat >"$work/calls.py" <<'P'
import importlib.metadata, pathlib, sys
import pyfusefilter

stored = pathlib.Path(sys.argv[1])
items = ["text", b"bytes", 51]

def call(name, function):
    try:
        print(f"{name}: {function()}")
    except TypeError as error:
        print(f"{name}: {type(error).__name__}: {error}")

print("asks for:", *importlib.metadata.requires("pyfusefilter"))
print("xxhash:", importlib.metadata.version("xxhash"))
for kind in (pyfusefilter.Xor8, pyfusefilter.Xor16, pyfusefilter.Fuse8, pyfusefilter.Fuse16):
    for item in items:
        call(f"{kind.__name__} of {item!r}", lambda: kind([item]).contains(item))
if not stored.exists():
    stored.write_bytes(pyfusefilter.Xor8(items).serialize())
filter = pyfusefilter.Xor8.deserialize(stored.read_bytes())
print("stored filter:", filter)
call("stored filter, found", lambda: sum(filter.contains(item) for item in items))
P
PYTHONPATH="$work/older:$PYTHONPATH" python3 "$work/calls.py" "$work/stored" | tee "$work/seen"
expect "asks for" "$(value "asks for")" "cffi xxhash"
expect "xxhash" "$(value xxhash)" 3.8.2
expect "items found" "$(grep -c "of .*: True$" "$work/seen")" 12
expect "stored filter, found" "$(value "stored filter, found")" 3
python3 "$work/calls.py" "$work/stored" | tee "$work/seen"
expect "xxhash" "$(value xxhash)" 4.1.0
expect "items that raise" "$(grep -c "of .*: TypeError: Strings must be encoded" "$work/seen")" 12
expect "stored filter opens" "$(value "stored filter" | cut -d ' ' -f 1)" Xor8
expect "stored filter" "$(value "stored filter, found" | cut -d : -f 1)" TypeError
