//! The module and RedisBloom side by side: the same replies to every command, and every case known to have hurt
//! RedisBloom. Starts servers, with the harness of the server tests.

#[path = "../server/client.rs"]
#[allow(dead_code)]
mod client;
mod differential;
#[path = "../server/harness.rs"]
#[allow(dead_code)]
mod harness;
mod history;
#[path = "../server/payload.rs"]
#[allow(dead_code)]
mod payload;
#[path = "../../core/tests/redisbloom/support.rs"]
#[allow(dead_code, unused_imports)]
mod support;
