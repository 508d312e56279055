//! Compares the module with RedisBloom: the replies to every command, and the known defects of RedisBloom. The tests
//! start servers with the harness of the server tests.

mod differential;
mod history;
