//! Registers the commands with the server: names, ACL categories, documentation and keys.

use std::ffi::{CStr, CString, c_int};
use std::ptr::null;

use redis_module::commands::{BeginSearch, FindKeys, KeySpec, KeySpecFlags, get_redis_key_spec};
use redis_module::raw;

use super::argument::{Argument, ArgumentKind};
use super::table::{BLOOM, COUNTING, Command, Keys};
use crate::config::Commands;
use crate::server::api::api;
use crate::server::ffi::{Ctx, OK};
use crate::server::version;

/// The sizes of the structures tell the server which version of them the module uses.
static INFO_VERSION: raw::RedisModuleCommandInfoVersion = raw::RedisModuleCommandInfoVersion {
    version: 1,
    sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
    sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
    sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
};

/// The version in which the commands appeared, for `COMMAND DOCS`. After the first release, it stays that of the first
/// release.
const SINCE: &CStr = version::TEXT;
const _: () = assert!(version::NUMBER <= 10_000, "not the first release: write down the text of that one for SINCE");

/// The ACL categories: `counting` for LC.*, `bloom` for BF.* and RF.*, and `filters` for RF.* alone. RF.* are second
/// names of BF.*. RedisBloom has a category `bloom` too.
const COUNTING_CATEGORY: &CStr = c"counting";
const BLOOM_CATEGORY: &CStr = c"bloom";
const FILTERS_CATEGORY: &CStr = c"filters";

/// Registers LC.*, RF.* (second names of BF.*) and, for [`Commands::All`], BF.*. The error is the name of a command
/// that another module already has.
pub fn register(ctx: Ctx, commands: Commands) -> Result<(), String> {
    add_category(ctx, COUNTING_CATEGORY);
    add_category(ctx, FILTERS_CATEGORY);
    for command in COUNTING {
        register_one(ctx, command, (command.name, command.summary), &[COUNTING_CATEGORY])?;
    }
    if commands == Commands::All {
        add_category(ctx, BLOOM_CATEGORY);
        for command in BLOOM {
            register_one(ctx, command, (command.name, command.summary), &[BLOOM_CATEGORY])?;
        }
    }
    // RF.*, the second names of BF.*, are always registered, because a primary or an AOF may send them. With the option
    // `commands lc`, clients cannot call them.
    //
    // If another module owns BF.*, this module does not add the ACL category `bloom`, because the RedisBloom of Redis 8
    // would not load if the category existed. RF.* join the category if RedisBloom has added it.
    for command in BLOOM {
        let renamed =
            |text: &CStr, from, to| CString::new(text.to_string_lossy().replace(from, to)).unwrap_or_default();
        let (name, summary) = (renamed(command.name, "bf.", "rf."), renamed(command.summary, "BF.", "RF."));
        register_one(ctx, command, (&name, &summary), &[FILTERS_CATEGORY, BLOOM_CATEGORY])?;
    }
    Ok(())
}

/// Adds an ACL category. If the category exists already, the call fails without harm, and the commands join the
/// category.
fn add_category(ctx: Ctx, category: &CStr) {
    // SAFETY: the function is called only if the server has it; the name ends with NUL.
    unsafe {
        if let Some(add_category) = raw::RedisModule_AddACLCategory {
            add_category(ctx.as_ptr(), category.as_ptr());
        }
    }
}

/// Registers a command in the ACL categories `families`, or in the first of them if the server rejects them.
fn register_one(
    ctx: Ctx,
    command: &Command,
    (name, summary): (&CStr, &CStr),
    families: &[&CStr],
) -> Result<(), String> {
    let (ctx, entry, flags) = (ctx.as_ptr(), Some(command.entry), command.flags.as_ptr());
    // The key specifications below replace the positions of keys, which are 0 here.
    // SAFETY: names and flags end with NUL; the entry point is of the type that the server calls.
    if OK != unsafe { api!(RedisModule_CreateCommand(ctx, name.as_ptr(), entry, flags, 0, 0, 0)) } {
        return Err(name.to_string_lossy().into_owned());
    }
    let (mut key_specs, mut lists) = (key_specs(command.keys), Lists::new());
    let info = raw::RedisModuleCommandInfo {
        version: &raw const INFO_VERSION,
        summary: summary.as_ptr(),
        complexity: command.complexity.as_ptr(),
        since: SINCE.as_ptr(),
        history: std::ptr::null_mut(),
        tips: command.tips.as_ptr(),
        arity: command.arity,
        key_specs: key_specs.as_mut_ptr(),
        args: arguments(command.arguments, command.keys, &mut lists),
    };
    // SAFETY: the command was created just now. The lists of its description end with zeroed entries, and live until
    // the calls return, which copy them.
    unsafe {
        let handle = api!(RedisModule_GetCommand(ctx, name.as_ptr()));
        // If a server does not know a category, the command lacks it.
        if let Some(set_categories) = raw::RedisModule_SetCommandACLCategories {
            let set = |families: &[&CStr]| set_categories(handle, categories(command, families).as_ptr());
            if set(families) != OK {
                set(&families[..1]);
            }
        }
        // Without its key specifications, a command would pass the key patterns of the ACL.
        if handle.is_null() || api!(RedisModule_SetCommandInfo(handle, &info)) != OK {
            return Err(name.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// The ACL categories of a command: `families`, then `read` or `write`, then `fast` or `slow`. The server derives the
/// last two itself only for a command without other categories.
fn categories(command: &Command, families: &[&CStr]) -> CString {
    let has = |flag: &str| command.flags.to_string_lossy().split(' ').any(|word| word == flag);
    let access = if has("write") { "write" } else { "read" };
    let speed = if has("fast") { "fast" } else { "slow" };
    let families = families.iter().map(|family| family.to_string_lossy()).collect::<Vec<_>>().join(" ");
    CString::new(format!("{families} {access} {speed}")).unwrap_or_default()
}

/// The flags of a key that a command reads.
const ACCESS: KeySpecFlags = KeySpecFlags::READ_ONLY.union(KeySpecFlags::ACCESS);
/// The flags of a key to which a command adds items. The reply reveals whether the value had them.
const INSERT: KeySpecFlags = KeySpecFlags::READ_WRITE.union(KeySpecFlags::ACCESS).union(KeySpecFlags::INSERT);
/// The flags of a key that a command changes without adding items. Items may expire.
const ADVANCE: KeySpecFlags = KeySpecFlags::READ_WRITE.union(KeySpecFlags::UPDATE);
/// The flags of a key whose contents a command deletes.
const CLEAR: KeySpecFlags = KeySpecFlags::READ_WRITE.union(KeySpecFlags::DELETE);
/// The flags of a key from which a command removes members. The reply reveals whether the value had them.
const REMOVE: KeySpecFlags = CLEAR.union(KeySpecFlags::ACCESS);

/// The key specifications of a command, and a zeroed one that ends the list.
fn key_specs(keys: Keys) -> Vec<raw::RedisModuleCommandKeySpec> {
    // The position of the last key is relative to the first; -1 means the last argument.
    let (one, rest) = (FindKeys::new_range(0, 1, 0), FindKeys::new_range(-1, 1, 0));
    let specs = match keys {
        Keys::Read => vec![(1, ACCESS, one)],
        Keys::Insert => vec![(1, INSERT, one)],
        Keys::Remove => vec![(1, REMOVE, one)],
        Keys::Clear => vec![(1, CLEAR, one)],
        Keys::Advance => vec![(1, ADVANCE, one)],
        Keys::ReadAll => vec![(1, ACCESS, rest)],
        Keys::Numbered => vec![(1, ACCESS, FindKeys::new_keys_num(0, 1, 1))],
        Keys::Merge => vec![(1, INSERT, one), (2, ACCESS, rest)],
    };
    let spec = |(position, flags, keys)| KeySpec::new(None, flags, BeginSearch::new_index(position), keys);
    get_redis_key_spec(specs.into_iter().map(spec).collect())
}

/// The argument lists in the server's form, with pointers to each other. They stay valid when a list is moved, because
/// its elements stay at the same address.
type Lists = Vec<Vec<raw::RedisModuleCommandArg>>;

/// Converts `arguments` to the server's form: an array that ends with a zeroed element. The pointer is valid while
/// `lists` lives.
fn arguments(arguments: &'static [Argument], keys: Keys, lists: &mut Lists) -> *mut raw::RedisModuleCommandArg {
    // SAFETY: all zeros is a value of this C structure: null pointers. An element without a name ends the list.
    let end: raw::RedisModuleCommandArg = unsafe { std::mem::zeroed() };
    let mut listed = Vec::with_capacity(arguments.len() + 1);
    for (position, argument) in arguments.iter().enumerate() {
        let key_spec = match (argument.kind, keys) {
            (ArgumentKind::Key, Keys::Merge) if position > 0 => 1,
            (ArgumentKind::Key, _) => 0,
            _ => -1,
        };
        let flags = if argument.optional { raw::REDISMODULE_CMD_ARG_OPTIONAL } else { 0 }
            | if argument.multiple { raw::REDISMODULE_CMD_ARG_MULTIPLE } else { 0 };
        let nested = match argument.choices {
            [] => std::ptr::null_mut(),
            choices => self::arguments(choices, keys, lists),
        };
        listed.push(raw::RedisModuleCommandArg {
            name: argument.name.as_ptr(),
            type_: argument.kind as raw::RedisModuleCommandArgType,
            key_spec_index: key_spec,
            token: argument.token.map_or(null(), CStr::as_ptr),
            flags: flags as c_int,
            subargs: nested,
            ..end
        });
    }
    listed.push(end);
    let first = listed.as_mut_ptr();
    lists.push(listed);
    first
}
