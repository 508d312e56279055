//! Facts about the server (Redis or Valkey, version, memory), and whether the running command is replicated.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

use redis_module::raw;

use super::api::api;
use super::ffi::{Ctx, RedisModuleCtx};

/// What does not change while the server runs.
struct Facts {
    is_valkey: bool,
    /// The version as `0xMMmmpp` (major, minor, patch); 0 if unknown.
    version: c_int,
    must_obey: Option<MustObeyClient>,
}

static FACTS: OnceLock<Facts> = OnceLock::new();

/// The API function `RedisModule_MustObeyClient`: whether a command comes from a primary or the AOF rather than from a
/// client.
type MustObeyClient = unsafe extern "C" fn(*mut RedisModuleCtx) -> c_int;

/// Gathers the [`Facts`] when the module is loaded. Before, and in unit tests, the server counts as a Redis of unknown
/// version.
pub fn gather() {
    FACTS.get_or_init(|| {
        // In Valkey, every API function also has a name with the prefix `ValkeyModule_`.
        let is_valkey = probe(c"ValkeyModule_SetModuleOptions").is_some();
        let must_obey = probe(c"RedisModule_MustObeyClient").map(|function| {
            // SAFETY: the function of this name takes a context and returns an int.
            unsafe { std::mem::transmute::<*mut c_void, MustObeyClient>(function.as_ptr()) }
        });
        // SAFETY: the function takes no arguments, and the server may lack it, which is checked.
        let version = unsafe { raw::RedisModule_GetServerVersion.map_or(0, |version| version()) };
        Facts { is_valkey, version, must_obey }
    });
}

/// Looks up a function of the server's API; `None` if this server lacks it.
fn probe(name: &CStr) -> Option<NonNull<c_void>> {
    let mut function: *mut c_void = null_mut();
    // SAFETY: the name ends with NUL. The call writes an address, or writes nothing and returns an error.
    unsafe { raw::RedisModule_GetApi?(name.as_ptr(), (&raw mut function).cast()) };
    NonNull::new(function)
}

pub fn is_valkey() -> bool {
    FACTS.get().is_some_and(|facts| facts.is_valkey)
}

/// Whether the server is Redis 8 or later, which has its own Bloom filters and lets modules have options without a
/// prefix. Valkey does neither.
pub fn is_redis_8() -> bool {
    FACTS.get().is_some_and(|facts| !facts.is_valkey && facts.version >= 0x0008_0000)
}

/// Whether the running command is replicated (from a primary or the AOF). Another server has acknowledged it, so it
/// must not fail here.
#[inline]
pub fn must_obey(ctx: Ctx) -> bool {
    *ctx.obeyed.get_or_init(|| ask_whether_to_obey(ctx))
}

#[inline(never)]
fn ask_whether_to_obey(ctx: Ctx) -> bool {
    if ctx.flags() & (raw::REDISMODULE_CTX_FLAGS_REPLICATED | raw::REDISMODULE_CTX_FLAGS_LOADING) != 0 {
        return true;
    }
    let must_obey = FACTS.get().and_then(|facts| facts.must_obey);
    // SAFETY: the function is the server's, and the context is live.
    must_obey.is_some_and(|must_obey| unsafe { must_obey(ctx.as_ptr()) != 0 })
}

/// The flags of the server, `REDISMODULE_CTX_FLAGS_*`, without those of a client.
pub fn server_flags() -> u32 {
    // SAFETY: a null context is allowed. It means that there is no client.
    unsafe { api!(RedisModule_GetContextFlags(null_mut())) as u32 }
}

/// The memory in use divided by `maxmemory`; 0 if `maxmemory` is not set. Buffers of replicas and of the AOF do not
/// count.
pub fn used_memory_ratio() -> f64 {
    // SAFETY: takes no arguments.
    f64::from(unsafe { api!(RedisModule_GetUsedMemoryRatio()) })
}

pub struct Memory {
    /// The option `maxmemory`.
    pub max_bytes: u64,
    /// The memory in use. Buffers of replicas and of the AOF do not count.
    pub used_bytes: u64,
    /// Whether `maxmemory-policy` evicts keys.
    pub evicts: bool,
}

/// The server's memory; `None` if `maxmemory` is not set. This takes long, because the server writes a section of INFO,
/// so callers ask [`used_memory_ratio`] first.
pub fn memory() -> Option<Memory> {
    let info = Info::read(c"memory");
    let max_bytes = std::str::from_utf8(info.text(c"maxmemory")?).ok()?.parse().ok().filter(|&bytes| bytes > 0)?;
    let used_bytes = (max_bytes as f64 * used_memory_ratio()) as u64;
    Some(Memory { max_bytes, used_bytes, evicts: info.text(c"maxmemory_policy") != Some(b"noeviction") })
}

pub fn server_uses_jemalloc() -> bool {
    Info::read(c"memory").text(c"mem_allocator").is_some_and(|name| name.starts_with(b"jemalloc"))
}

/// When the running script, transaction or single command began, in microseconds since 1970. On Redis 7.0, this takes
/// as long as [`memory`].
pub fn command_time_us() -> u64 {
    // SAFETY: the function takes no arguments, and the server may lack it, which is checked.
    let cached = unsafe { raw::RedisModule_CachedMicroseconds.map(|time| time()) };
    let listed = || std::str::from_utf8(Info::read(c"server").text(c"server_time_usec")?).ok()?.parse().ok();
    cached.map(|time| time as u64).or_else(listed).unwrap_or(0)
}

/// A section of the server's INFO.
struct Info(*mut raw::RedisModuleServerInfoData);

impl Info {
    fn read(section: &CStr) -> Self {
        // SAFETY: a null context is allowed; the name ends with NUL.
        Info(unsafe { api!(RedisModule_GetServerInfo(null_mut(), section.as_ptr())) })
    }

    fn text(&self, name: &CStr) -> Option<&[u8]> {
        // SAFETY: the data is live, and so is the text that belongs to it; the name ends with NUL.
        unsafe {
            let text = api!(RedisModule_ServerInfoGetFieldC(self.0, name.as_ptr()));
            (!text.is_null()).then(|| CStr::from_ptr(text).to_bytes())
        }
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: the data belong to this module, and they are freed once.
        unsafe { api!(RedisModule_FreeServerInfo(null_mut(), self.0)) };
    }
}
