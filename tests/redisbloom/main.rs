//! The module and RedisBloom side by side: the same replies to every command, and every case known to have hurt
//! RedisBloom. Starts servers, with the harness of the server tests.

mod differential;
mod history;
