//! The functions of the server's API that every supported server has. They are called without a null check.

use redis_module::raw;

/// Defines the functions that the module requires, from two lists of names. Functions in `called` are called through
/// [`api!`]. Functions in `otherwise` are mostly called by the crate `redis-module`. The malloc functions are in
/// neither list: without them an error could not even be reported.
macro_rules! required {
    (called: [$($called:ident,)*], otherwise: [$($otherwise:ident,)*]) => {
        /// A call through [`api!`] compiles only if one of these constants has the function's name.
        #[allow(non_upper_case_globals)] // Named as the functions.
        pub mod required {
            $(pub const $called: () = ();)*
        }

        /// The name of the first required function that this server lacks. Redis 7.0, Valkey 8 and later lack none.
        pub fn missing() -> Option<&'static str> {
            // SAFETY: this reads pointers that `RedisModule_Init` has filled in.
            unsafe {
                $(if { raw::$called }.is_none() { return Some(stringify!($called)); })*
                $(if { raw::$otherwise }.is_none() { return Some(stringify!($otherwise)); })*
            }
            None
        }
    };
}

required! {
    called: [
        RedisModule_CreateCommand, RedisModule_CreateDataType, RedisModule_CreateString,
        RedisModule_DeauthenticateAndCloseClient, RedisModule_DefragCursorGet, RedisModule_DefragCursorSet,
        RedisModule_DefragShouldStop, RedisModule_DigestAddStringBuffer, RedisModule_DigestEndSequence,
        RedisModule_EmitAOF, RedisModule_FreeServerInfo, RedisModule_FreeString, RedisModule_GetAbsExpire,
        RedisModule_GetClientId, RedisModule_GetCommand, RedisModule_GetContextFlags, RedisModule_GetContextFromIO,
        RedisModule_GetKeyNameFromIO, RedisModule_GetServerInfo, RedisModule_GetUsedMemoryRatio,
        RedisModule_IsKeysPositionRequest, RedisModule_KeyAtPosWithFlags, RedisModule_KeyType,
        RedisModule_LoadConfigs, RedisModule_Milliseconds, RedisModule_ModuleTypeGetType,
        RedisModule_ModuleTypeGetValue, RedisModule_ModuleTypeSetValue,
        RedisModule_NotifyKeyspaceEvent, RedisModule_OpenKey, RedisModule_RegisterStringConfig, RedisModule_Replicate,
        RedisModule_ServerInfoGetFieldC, RedisModule_SetAbsExpire, RedisModule_SetCommandInfo,
        RedisModule_SetModuleOptions, RedisModule_SignalModifiedKey, RedisModule_StringPtrLen, RedisModule_WrongArity,
    ],
    otherwise: [
        RedisModule_CloseKey, RedisModule_DefragAlloc, RedisModule_InfoAddFieldString,
        RedisModule_InfoAddFieldULongLong, RedisModule_InfoAddSection, RedisModule_IsIOError, RedisModule_LoadDouble,
        RedisModule_LoadStringBuffer, RedisModule_LoadUnsigned, RedisModule_Log, RedisModule_RegisterInfoFunc,
        RedisModule_ReplicateVerbatim, RedisModule_ReplyWithArray, RedisModule_ReplyWithBool,
        RedisModule_ReplyWithDouble, RedisModule_ReplyWithError, RedisModule_ReplyWithLongLong,
        RedisModule_ReplyWithMap, RedisModule_ReplyWithNull, RedisModule_ReplyWithSimpleString,
        RedisModule_ReplyWithStringBuffer, RedisModule_SaveDouble, RedisModule_SaveStringBuffer,
        RedisModule_SaveUnsigned, RedisModule_SubscribeToServerEvent, RedisModule_TryAlloc,
    ]
}

/// Calls a function of the server's API without a null check. It compiles only for functions that this file lists. The
/// module does not load if the server lacks one.
macro_rules! api {
    ($name:ident ( $($arg:expr),* $(,)? )) => {{
        let () = $crate::server::api::required::$name;
        match redis_module::raw::$name {
            Some(function) => function($($arg),*),
            None => panic!(concat!(stringify!($name), " is missing from this server")),
        }
    }};
}
pub(crate) use api;
