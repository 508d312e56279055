//! Tests RedisBloom's filters in the library: equal bits, numbers and dumps, and every kind of damage in a dump or RDB
//! value. The tests in tests/redisbloom compare the replies of servers.

mod forged;
mod golden;
mod loading;
