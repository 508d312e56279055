//! RedisBloom's filters, here: the same bits, numbers and dumps, and every way a dump or value of it can be wrong.
//! What servers reply is compared by the tests of the module.

mod forged;
mod golden;
mod loading;
mod support;
