#!/usr/bin/env bash
# Expected: a client adds as many members as it is given, or fails.
# Seen: Debian's lua-redis 2.0.5 sends numbers with 14 digits, so different ids of 16 digits become one member. A nil
# between members becomes an empty member. Neither causes an error.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
debs lua-redis lua-redis=2.0.5~git20141117.880dda9-7 lua-socket lua5.1

port=$(free_port)
start redis-7.0.15 "$port"
root="$cache/lua-redis/usr"
cat >"$work/ids.lua" <<'L'
local client = require("redis").connect("127.0.0.1", tonumber(arg[1]))
client:sadd("ids", 1732690000123456, 1732690000123457, 1732690000123458)
client:sadd("texts", "1732690000123456", "1732690000123457", "1732690000123458")
client:sadd("with nil", "a", nil, "b")
L
LUA_PATH="$root/share/lua/5.1/?.lua" LUA_CPATH="$root/lib/x86_64-linux-gnu/lua/5.1/?.so" \
    LD_LIBRARY_PATH="$(libraries lua-redis)" "$root/bin/lua5.1" "$work/ids.lua" "$port"
expect "three ids as numbers" "$(cli "$port" smembers ids | xargs)" 1.7326900001235e+15
expect "three ids as texts" "$(cli "$port" scard texts)" 3
expect "two members with a nil between" "$(cli "$port" scard "with nil")" 3
expect "the empty member is there" "$(cli "$port" sismember "with nil" "")" 1
