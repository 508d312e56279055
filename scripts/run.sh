#!/usr/bin/env bash
# Runs redis-server with the module by the repository's redis.conf, in the foreground.
#
#   scripts/run.sh check PORT    fail if PORT is invalid or in use, before anything is built
#   scripts/run.sh start PORT    starts the server in place of the script, and prints what to type next
set -euo pipefail
cd "$(dirname "$0")/.."
step=$1 port=$2

[[ "$port" =~ ^[1-9][0-9]{0,4}$ ]] && ((port <= 65535)) ||
    { echo "run: PORT=$port is not a port (1 to 65535)" >&2; exit 1; }

for host in 127.0.0.1 ::1; do
    if (exec 3<>"/dev/tcp/$host/$port") 2>/dev/null; then
        other=$((port == 65535 ? 6380 : port + 1))
        echo "run: port $port is in use, perhaps by another redis-server. Choose another: make run PORT=$other" >&2
        exit 1
    fi
done
[[ "$step" == start ]] || exit 0

mkdir -p target/run
hint() {
    cat <<TEXT

Rollcall is up on port $port. In another terminal:

  redis-cli -p $port LC.ADD visitors alice bob alice     2: how many were new
  redis-cli -p $port LC.COUNT visitors                   2 distinct members
  redis-cli -p $port BF.ADD seen token-1                 1: new
  redis-cli -p $port BF.ADD seen token-1                 0: seen before

Ctrl-C stops it; what it holds is saved to target/run/ and is back at the next start.

TEXT
}
server=$$ # `exec` keeps it
# Prints the hint after the server answers, so that it is below the server's banner and log. A grandchild process
# prints it, because the server would treat a child process as its own.
(
    {
        until [[ "$(redis-cli -p "$port" PING 2>/dev/null)" == PONG ]]; do
            kill -0 "$server" 2>/dev/null || exit 0
            sleep 0.1
        done
        hint
    } &
)
exec redis-server redis.conf --port "$port"
