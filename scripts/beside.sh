#!/usr/bin/env bash
# Runs commands beside each other: tests wait for servers about as long as they work.
#
#   scripts/beside.sh COMMAND COMMAND...    each is a line for bash
#
# The output of the first is shown at once, that of another when it has ended and the first has. If any fails, this
# fails, when all have ended. What ends this ends them.
set -euo pipefail
# Each in a process group of its own, by which it is ended.
set -m
folder=$(mktemp -d)
running=()
end() {
    for group in "${running[@]}"; do kill -- "-$group" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 130' INT TERM
bash -euo pipefail -c "$1" </dev/null & running+=($!)
for command in "${@:2}"; do
    bash -euo pipefail -c "$command" </dev/null >"$folder/${#running[@]}" 2>&1 & running+=($!)
done
status=0
for index in "${!running[@]}"; do
    wait "${running[index]}" || status=$?
    ((index == 0)) || cat "$folder/$index"
done
running=()
exit "$status"
