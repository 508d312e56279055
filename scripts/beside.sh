#!/usr/bin/env bash
# Runs commands in parallel. Tests wait for servers about half of their time, so this uses the processors better.
#
#   scripts/beside.sh COMMAND COMMAND...    each is a line for bash
#
# The output of the first command is shown at once. That of another command is shown after it and the first command
# have ended. If any command fails, the script fails after all have ended. If the script is ended, it ends all
# commands.
set -euo pipefail
# Puts each command into a process group of its own, so that it can be ended with all its children.
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
