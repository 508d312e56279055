#!/usr/bin/env bash
# Expected: `clear` deletes the keys of its own namespace. Keyv's README says that namespaces allow this in one
# database.
# Seen: @keyv/redis 5.1.6 (with keyv 5.6.0) deletes what matches the pattern namespace::*. So `clear` of "shop" deletes
# the keys of "shop::eu" too. That of "page-[id]" leaves its own keys, and deletes those of "page-i". Keep "::" and
# *?[]\ out of namespaces.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
node_packages keyv@5.6.0 @keyv/redis@5.1.6
port=$(free_port)
start redis-8.2.3 "$port"

cat >"$work/node/clear.mjs" <<'J'
import KeyvRedis from "@keyv/redis";
import Keyv from "keyv";
const pairs = [["shop", "bank"], ["shop", "shop2"], ["shop", "shop::eu"], ["page-[id]", "page-i"], ["v?", "v1"]];
for (const [cleared, other] of pairs) {
    const one = new Keyv({ store: new KeyvRedis(process.argv[2]), namespace: cleared });
    const two = new Keyv({ store: new KeyvRedis(process.argv[2]), namespace: other });
    await one.set("key", cleared);
    await two.set("key", other);
    await one.clear();
    console.log(`${cleared} beside ${other}: ${await one.get("key")} ${await two.get("key")}`);
    await one.disconnect();
    await two.disconnect();
}
J
node "$work/node/clear.mjs" "redis://127.0.0.1:$port" | tee "$work/seen"
expect "keys after clear of shop, beside bank" "$(value "shop beside bank")" "undefined bank"
expect "of shop, beside shop2" "$(value "shop beside shop2")" "undefined shop2"
expect "of shop, beside shop::eu" "$(value "shop beside shop::eu")" "undefined undefined"
expect "of page-[id], beside page-i" "$(value "page-[id] beside page-i")" "page-[id] undefined"
expect "of v?, beside v1" "$(value "v? beside v1")" "undefined undefined"
