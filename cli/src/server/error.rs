//! Errors of connections and servers, and what to do about them.

use redis::{RedisError, Value};

use super::texts;
use crate::failure::Failure;

/// The failure of a connection attempt.
pub fn connecting(server: &str, error: &RedisError) -> Failure {
    if let Some(code) = error.code() {
        let text = format!("{code} {}", error.detail().unwrap_or_default());
        return rejected(server, "connecting", text.trim());
    }
    let text = error.to_string();
    let kind = if is_down(error, &text) { Failure::down } else { Failure::new };
    let failure = kind(format!("cannot connect to {server}: {text}"));
    if error.is_connection_refusal() {
        failure.advise("nothing listens there: give the server with --url or ROLLCALL_URL")
    } else if error.is_timeout() {
        failure.advise("no answer: is the address right, and does a firewall let it through? --timeout waits longer")
    } else if is_client_rejected(&text) {
        failure.advise("the server rejects this client: give a certificate that it trusts, --cert FILE --key FILE")
    } else if text.contains("ertificate") || text.contains("UnknownIssuer") {
        failure.advise("give the authority that signed the server's certificate: --cacert FILE")
    } else if text.contains(NO_SUCH_NAME) {
        failure.advise("nobody knows this name here: is it spelled right? --url and ROLLCALL_URL name the server")
    } else if text.contains("Permission denied") {
        failure.advise("this user may not open the server's socket: unixsocketperm in redis.conf")
    } else if error.is_connection_dropped() {
        failure.advise("does a server run there? And is the URL right: redis:// without TLS, rediss:// with it?")
    } else {
        failure.advise("a URL of redis:// is without TLS, one of rediss:// with it")
    }
}

/// The error of the system's resolver for an unknown name.
const NO_SUCH_NAME: &str = "lookup address";

/// Whether nothing answers there, or the connection was closed, as by a proxy without its server. With other errors
/// something answers, such as a server that rejects a certificate.
fn is_down(error: &RedisError, text: &str) -> bool {
    let unreachable = [NO_SUCH_NAME, "unreachable", "No route to host", "Host is down"];
    error.is_connection_refusal()
        || error.is_connection_dropped()
        || error.is_timeout()
        || unreachable.iter().any(|what| text.contains(what))
}

/// Whether the server ended the TLS handshake because of the client's certificate, or because there is none. Servers of
/// TLS 1.2 say only that the handshake failed.
fn is_client_rejected(text: &str) -> bool {
    let alerts = ["ertificate", "UnknownCA", "AccessDenied", "HandshakeFailure"];
    text.contains("received fatal alert") && alerts.iter().any(|alert| text.contains(alert))
}

/// The failure of a connection that broke during `command`.
pub fn broken(server: &str, command: &str, error: &RedisError) -> Failure {
    let text = error.to_string();
    let kind = if is_down(error, &text) { Failure::down } else { Failure::new };
    let failure = kind(format!("{server} was lost at {command}: {text}"));
    if error.is_timeout() {
        failure.advise("no answer in time: --timeout waits longer. What is done is kept: run the same again")
    } else {
        failure.advise("what is done is kept: run the same again")
    }
}

/// The failure of a command to which the server answered with an error.
pub fn rejected(server: &str, command: &str, text: &str) -> Failure {
    let failure = Failure::new(format!("{server} answered {command} with: {text}"));
    match advice(text) {
        Some(advice) => failure.advise(advice),
        None => failure,
    }
}

/// The advice for a server's error, chosen by its code or text; `None` if no advice fits.
fn advice(text: &str) -> Option<&'static str> {
    if texts::is_unknown_command(text) {
        return Some(match text.to_ascii_lowercase() {
            lower if ["lc.", "bf.", "rf."].iter().any(|prefix| lower.contains(prefix)) => {
                "the module is not loaded there: loadmodule /path/librollcall.so in redis.conf; MODULE LIST shows it"
            }
            _ => "the server is older than 7.0, or the command was renamed there",
        });
    }
    if texts::needs_no_password(text) {
        return Some("this server asks for no password: give none, neither in the URL nor in ROLLCALL_PASSWORD");
    }
    if texts::is_full(text) {
        return Some("it has as many clients as CONFIG GET maxclients allows: close some, or raise it");
    }
    let code = if texts::is_forbidden(text) { "NOPERM" } else { text.split(' ').next()? };
    Some(match code {
        "NOAUTH" => "give user and password in the URL, or the password in ROLLCALL_PASSWORD",
        "WRONGPASS" => {
            "user or password is wrong, in the URL or the password in ROLLCALL_PASSWORD; ACL LIST shows who there is"
        }
        "NOPERM" => {
            "give the user the right that the error names: ACL SETUSER user +command, and ~pattern for its keys; \
             docs/tool.md lists what each command needs"
        }
        "BUSY" => "it runs a script or a function: try again when that has ended",
        "DENIED" => "it is in protected mode: set a password there, or run this on its own machine",
        "LOADING" => "it is loading its data: try again when INFO persistence says loading:0",
        "MOVED" | "ASK" | "CROSSSLOT" => "the server belongs to a cluster: add --cluster",
        "CLUSTERDOWN" => "the cluster does not serve: CLUSTER INFO there says why",
        "READONLY" => "it is a replica: give the primary, which INFO replication names",
        "NOREPLICAS" => "it takes no writes without replicas: CONFIG GET min-replicas-to-write",
        "OOM" => "its maxmemory is used up: raise it, or free some",
        "MISCONF" => "it cannot save, and so takes no writes: its log says why",
        "MASTERDOWN" => "it is a replica without its primary: give the primary",
        _ => return None,
    })
}

/// The text of an error reply, as the server sent it.
pub fn text_of(value: &Value) -> Option<String> {
    let Value::ServerError(error) = value else { return None };
    let details = error.details().unwrap_or_default();
    Some(format!("{} {details}", error.code()).trim_end().to_owned())
}
