#!/usr/bin/env bash
# Expected: a line of standard input that redis-cli does not send makes it fail, at least with -e ("return exit error
# code when command execution fails").
# Seen: redis-cli 7.0.15 and 8.10.2 leave out each line with an open quote, as in O'Brien or 5" disc. They print
# "Invalid argument(s)" among the replies, nothing to standard error, and exit with status 0, with -e too. A closed pair
# of quotes is taken away. `echo item | redis-cli -x` adds the item with its newline, which is another member than the
# one that `redis-cli PFADD key item` adds.
# Let a client library add the items, or write RESP for --pipe, which takes every byte.
set -euo pipefail
. "$(dirname "$0")/servers.sh"

port=$(free_port)
start redis-8.10.2 "$port"
printf '%s\n' Ann "O'Brien" '5"disc' "'Bob'" Zoe >"$work/names"
sed 's/^/SADD names /' "$work/names" >"$work/lines"
for name in redis-7.0.15 redis-8.10.2; do
    program "$name" redis-cli
    echo "== $($path --version)"
    cli "$port" del names counter >/dev/null
    status=0
    $path -p "$port" -e <"$work/lines" >"$work/replies" 2>"$work/errors" || status=$?
    expect "  exit status" "$status" 0
    expect "  standard error" "$(cat "$work/errors")" ""
    expect "  standard output" "$(paste -sd , "$work/replies")" "1,Invalid argument(s),Invalid argument(s),1,1"
    expect "  members of the five" "$(cli "$port" smembers names | sort | paste -sd ,)" Ann,Bob,Zoe

    $path -p "$port" PFADD counter item >/dev/null
    echo item | $path -p "$port" -x PFADD counter >/dev/null
    expect "  PFCOUNT of one item, added in two ways" "$($path -p "$port" PFCOUNT counter)" 2

    cli "$port" del names >/dev/null
    while IFS= read -r item; do
        printf '*3\r\n$4\r\nSADD\r\n$5\r\nnames\r\n$%s\r\n%s\r\n' "${#item}" "$item"
    done <"$work/names" | $path -p "$port" --pipe >/dev/null
    expect "  members of the five, by --pipe" "$(cli "$port" scard names)" 5
done
