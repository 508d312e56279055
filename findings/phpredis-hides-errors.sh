#!/usr/bin/env bash
# Expected: either all errors of commands raise exceptions in phpredis, or none does.
# Seen: in Debian's phpredis 5.3.7 the first word of the error decides. NOPERM and OOM raise exceptions. For ERR and
# WRONGTYPE, rawCommand and methods return `false`, which a condition takes for "no". If the module is not loaded,
# every item therefore looks absent. Status replies inside a reply become `true`, unless OPT_REPLY_LITERAL is set.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
redisbloom
debs php php8.2-cli php8.2-redis php8.2-igbinary

port=$(free_port)
start redis-7.0.15 "$port" --loadmodule "$bloom"
cli "$port" set text x >/dev/null
cli "$port" acl setuser reader on '>secret' '~*' +get +auth +bf.exists >/dev/null
cat >"$work/errors.php" <<'P'
<?php
$redis = new Redis();
$redis->connect("127.0.0.1", (int) $argv[1]);
function show($name, $call) {
    try {
        $reply = var_export($call(), true);
        echo "$name: $reply\n";
    } catch (RedisException $error) {
        echo "$name: raises ", strtok($error->getMessage(), " "), "\n";
    }
}
echo "phpredis ", phpversion("redis"), "\n";
show("absent", fn() => $redis->rawCommand("BF.EXISTS", "filter", "x"));
show("wrong type", fn() => $redis->rawCommand("BF.ADD", "text", "x"));
show("wrong type for a method", fn() => $redis->sAdd("text", "x"));
show("unknown command", fn() => $redis->rawCommand("LC.EXISTS", "counter", "x"));
show("wrong option", fn() => $redis->rawCommand("BF.RESERVE", "new", "2", "100"));
$redis->rawCommand("BF.ADD", "filter", "x");
echo "names: ", json_encode($redis->rawCommand("BF.INFO", "filter")), "\n";
$redis->rawCommand("CONFIG", "SET", "maxmemory", "1");
show("out of memory", fn() => $redis->rawCommand("BF.ADD", "filter", "x"));
$redis->rawCommand("CONFIG", "SET", "maxmemory", "0");
$redis->auth(["reader", "secret"]);
show("no permission", fn() => $redis->rawCommand("BF.ADD", "filter", "x"));
P
root="$cache/php/usr"
extensions=$(dirname "$(find "$root/lib/php" -name redis.so)")
LD_LIBRARY_PATH="$(libraries php)" "$root/bin/php8.2" -n -d "extension_dir=$extensions" -d extension=igbinary \
    -d extension=redis "$work/errors.php" "$port" | tee "$work/seen"
expect "names" "$(sed -n 's/^names: //p' "$work/seen" | grep -c '^\[true,100,true,')" 1
expect "raise" "$(grep raises "$work/seen" | paste -sd ,)" "out of memory: raises OOM,no permission: raises NOPERM"
expect "false" "$(grep ': false' "$work/seen" | sed 's/:.*//' | paste -sd ,)" \
    "wrong type,wrong type for a method,unknown command,wrong option"
