//! The ways to use redis-rs. [`in_every_way`] runs a suite in all of them: blocking and asynchronous, with untyped and
//! typed traits, in RESP2 and in RESP3. The untyped traits convert a reply to the type that the caller asks for. The
//! typed ones fix that type.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, RedisError, RedisResult, Value};
use tokio::runtime::{Builder, Runtime};

/// The time limit of a reply. The client's default of half a second is too short on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The API of redis-rs that a test uses, by the name of its trait.
#[derive(Clone, Copy, Debug)]
pub enum Style {
    /// The trait `Commands`.
    Blocking,
    /// The trait `TypedCommands`.
    Typed,
    /// The trait `AsyncCommands`.
    Async,
    /// The trait `AsyncTypedCommands`.
    AsyncTyped,
}

/// A connection for each style.
pub enum Connection {
    Blocking(redis::Connection),
    Typed(redis::Connection),
    Async(Runtime, MultiplexedConnection),
    AsyncTyped(Runtime, MultiplexedConnection),
}

/// Calls a command of the client's API: `got!(connection, bf_add(key, item))`. The result has the type that the typed
/// traits return.
macro_rules! got {
    ($connection:expr, $command:ident($($argument:expr),*)) => {
        match $connection {
            $crate::ways::Connection::Blocking(connection) => redis::Commands::$command(connection, $($argument),*),
            $crate::ways::Connection::Typed(connection) => redis::TypedCommands::$command(connection, $($argument),*),
            $crate::ways::Connection::Async(runtime, connection) => {
                runtime.block_on(redis::AsyncCommands::$command(connection, $($argument),*))
            }
            $crate::ways::Connection::AsyncTyped(runtime, connection) => {
                runtime.block_on(redis::AsyncTypedCommands::$command(connection, $($argument),*))
            }
        }
    };
}

/// The URL of the server for a client that speaks RESP2 or RESP3.
pub fn url(resp3: bool) -> String {
    let address = std::env::var("ROLLCALL_URL").expect("ROLLCALL_URL: make test-clients sets it");
    format!("{address}/?protocol={}", if resp3 { "resp3" } else { "resp2" })
}

/// The connection and the key prefix of one test.
pub struct Session {
    pub connection: Connection,
    pub resp3: bool,
    prefix: String,
}

impl Session {
    pub fn new(test: &str, style: Style, resp3: bool) -> Self {
        let client = Client::open(url(resp3)).expect("a URL");
        let blocking = || client.get_connection().expect("a connection");
        let asynchronous = || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(PATIENCE))
                .set_response_timeout(Some(PATIENCE));
            let connection = runtime.block_on(client.get_multiplexed_async_connection_with_config(&config));
            let connection = connection.expect("a connection");
            (runtime, connection)
        };
        let connection = match style {
            Style::Blocking => Connection::Blocking(blocking()),
            Style::Typed => Connection::Typed(blocking()),
            Style::Async => {
                let (runtime, connection) = asynchronous();
                Connection::Async(runtime, connection)
            }
            Style::AsyncTyped => {
                let (runtime, connection) = asynchronous();
                Connection::AsyncTyped(runtime, connection)
            }
        };
        Session { connection, resp3, prefix: format!("{test}:{style:?}:{resp3}") }
    }

    /// The name of a key that no other test uses.
    pub fn key(&self, name: &str) -> String {
        format!("{}:{name}", self.prefix)
    }

    /// Sends a command by the client's generic call.
    pub fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        match &mut self.connection {
            Connection::Blocking(connection) | Connection::Typed(connection) => command.query(connection),
            Connection::Async(runtime, connection) | Connection::AsyncTyped(runtime, connection) => {
                runtime.block_on(command.query_async(connection))
            }
        }
    }

    /// A double of the server as the client delivers it without conversion.
    pub fn double(&self, value: f64) -> Value {
        if self.resp3 { Value::Double(value) } else { Value::BulkString(value.to_string().into_bytes()) }
    }
}

/// The text of the server's error; panics if the command succeeded.
#[track_caller]
pub fn error<T: std::fmt::Debug>(result: RedisResult<T>) -> String {
    let error: RedisError = result.expect_err("an error");
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => panic!("not an error of the server: {error}"),
    }
}

/// Makes a test of each function for every style and protocol.
macro_rules! in_every_way {
    ($(fn $name:ident($session:ident: &mut Session) $body:block)*) => {
        $(fn $name($session: &mut $crate::ways::Session) $body)*
        in_every_way!(@ blocking_resp2, Blocking, false, $($name)*);
        in_every_way!(@ blocking_resp3, Blocking, true, $($name)*);
        in_every_way!(@ typed_resp2, Typed, false, $($name)*);
        in_every_way!(@ typed_resp3, Typed, true, $($name)*);
        in_every_way!(@ async_resp2, Async, false, $($name)*);
        in_every_way!(@ async_resp3, Async, true, $($name)*);
        in_every_way!(@ async_typed_resp2, AsyncTyped, false, $($name)*);
        in_every_way!(@ async_typed_resp3, AsyncTyped, true, $($name)*);
    };
    (@ $way:ident, $style:ident, $resp3:literal, $($name:ident)*) => {
        mod $way {
            use $crate::ways::{Session, Style};
            $(#[test] fn $name() {
                super::$name(&mut Session::new(concat!(module_path!(), stringify!($name)), Style::$style, $resp3));
            })*
        }
    };
}
