//! Errors of connections and servers, and what to do about them.

use std::time::Duration;

use redis::{RedisError, Value};
use rollcall_core::unstable::wire::StillLoading;

use super::texts;
use crate::failure::Failure;

/// The names by which the user gives a server, for advice.
#[derive(Debug, Clone, Copy)]
pub struct Given {
    /// `None` for a node that its cluster names.
    pub url: Option<&'static str>,
    pub password: &'static str,
    /// The option that says that the server is a node of a cluster.
    pub cluster: &'static str,
}

impl Default for Given {
    fn default() -> Self {
        Given { url: Some("--url or ROLLCALL_URL"), password: "ROLLCALL_PASSWORD", cluster: "--cluster" }
    }
}

/// The failure of a connection attempt.
pub fn connecting(server: &str, given: Given, timeout: Duration, error: &RedisError) -> Failure {
    if let Some(code) = error.code() {
        let text = format!("{code} {}", error.detail().unwrap_or_default());
        return rejected(server, given, "connecting", text.trim());
    }
    let text = text_of_error(timeout, error);
    let kind = if is_down(error, &text) { Failure::down } else { Failure::new };
    let failure = kind(format!("cannot connect to {server}: {text}"));
    if error.is_connection_refusal() {
        failure.advise(match given.url {
            Some(url) => format!("nothing listens there: give the server with {url}"),
            None => "this node of the cluster is down: start it, or let a replica take over its slots; rollcall nodes \
                     shows every node"
                .to_owned(),
        })
    } else if error.is_timeout() {
        failure.advise("no answer: is the address right, and does a firewall let it through? --timeout waits longer")
    } else if is_client_rejected(&text) {
        failure.advise("the server rejects this client: give a certificate that it trusts, --cert FILE --key FILE")
    } else if text.contains("KeyMismatch") {
        failure.advise("--key is not the key of the certificate in --cert: give the two that belong together")
    } else if text.contains("not valid for name") || text.contains("NotValidForName") {
        failure.advise("the certificate is for other names: give one of them as the host in the URL")
    } else if text.contains("ertificate") || text.contains("UnknownIssuer") {
        failure.advise("give the authority that signed the server's certificate: --cacert FILE")
    } else if text.contains(NO_SUCH_NAME) {
        failure.advise(match given.url {
            Some(url) => format!("nobody knows this name here: is it spelled right? {url} names the server"),
            None => "nobody knows this name here, by which the cluster calls the node".to_owned(),
        })
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

/// The text of an error of a connection. The system's text for a timeout is that of a resource that is unavailable.
fn text_of_error(timeout: Duration, error: &RedisError) -> String {
    match error.is_timeout() {
        true => format!("no reply within {} s", timeout.as_secs()),
        false => error.to_string(),
    }
}

/// The failure of a connection that broke during `command`.
pub fn broken(server: &str, command: &str, timeout: Duration, error: &RedisError) -> Failure {
    let text = text_of_error(timeout, error);
    let kind = if is_down(error, &text) { Failure::down } else { Failure::new };
    let failure = kind(format!("{server} was lost at {command}: {text}"));
    if error.is_timeout() {
        failure.advise("no answer in time: --timeout waits longer. What is done is kept: run the same again")
    } else {
        failure.advise("what is done is kept: run the same again")
    }
}

/// The failure of a command to which the server answered with an error.
pub fn rejected(server: &str, given: Given, command: &str, text: &str) -> Failure {
    let failure = Failure::new(format!("{server} answered {command} with: {text}"));
    match advice(given, text) {
        Some(advice) => failure.advise(advice),
        None => failure,
    }
}

/// The advice for a server's error, chosen by its code or text; `None` if no advice fits.
fn advice(given: Given, text: &str) -> Option<String> {
    let Given { password, cluster, .. } = given;
    if texts::is_unknown_command(text) {
        let lower = text.to_ascii_lowercase();
        let advice = match ["lc.", "bf.", "rf."].iter().any(|prefix| lower.contains(prefix)) {
            true => {
                "the module is not loaded there: loadmodule /path/librollcall.so in redis.conf; MODULE LIST shows it"
            }
            false => "the server is older than 7.0, or the command was renamed there",
        };
        return Some(advice.to_owned());
    }
    if texts::needs_no_password(text) {
        return Some(format!("this server asks for no password: give none, neither in the URL nor in {password}"));
    }
    if texts::is_full(text) {
        return Some("it has as many clients as CONFIG GET maxclients allows: close some, or raise it".to_owned());
    }
    if StillLoading::from_error(text).is_some() {
        return Some("its other chunks are missing: run the same rollcall load again, or delete the key".to_owned());
    }
    let code = if texts::is_forbidden(text) { "NOPERM" } else { text.split(' ').next()? };
    let advice = match code {
        "NOAUTH" => return Some(format!("give user and password in the URL, or the password in {password}")),
        "WRONGPASS" => {
            return Some(format!(
                "user or password is wrong, in the URL or the password in {password}; ACL LIST shows who there is"
            ));
        }
        "MOVED" | "ASK" | "CROSSSLOT" => return Some(format!("the server belongs to a cluster: add {cluster}")),
        "NOPERM" => {
            "give the user the right that the error names: ACL SETUSER user +command, and ~pattern for its keys; \
             docs/tool.md lists what each command needs"
        }
        "BUSY" => "it runs a script or a function: try again when that has ended",
        "DENIED" => "it is in protected mode: set a password there, or run this on its own machine",
        "LOADING" => "it is loading its data: try again when INFO persistence says loading:0",
        "CLUSTERDOWN" => "the cluster does not serve: CLUSTER INFO there says why",
        "READONLY" => "it is a replica: give the primary, which INFO replication names",
        "NOREPLICAS" => "it takes no writes without replicas: CONFIG GET min-replicas-to-write",
        "OOM" => "its maxmemory is used up: raise it, or free some",
        "MISCONF" => "it cannot save, and so takes no writes: its log says why",
        "MASTERDOWN" => "it is a replica without its primary: give the primary",
        _ => return None,
    };
    Some(advice.to_owned())
}

/// The text of an error reply, as the server sent it.
pub fn text_of(value: &Value) -> Option<String> {
    let Value::ServerError(error) = value else { return None };
    let details = error.details().unwrap_or_default();
    Some(format!("{} {details}", error.code()).trim_end().to_owned())
}
