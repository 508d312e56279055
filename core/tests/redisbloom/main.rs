//! RedisBloom's filters in Rollcall: the same bits, numbers and dumps, and every way a dump or value can be wrong. The
//! tests of the module compare what servers reply.

mod forged;
mod golden;
mod loading;
