//! An HTTP server for monitoring pages: [`serve`] answers GET and HEAD by a router until the tool is asked to end.
//!
//! Clients cannot use up the server: slow clients, large requests and too many connections are cut off. On a loopback
//! address only requests with a `Host` of this machine are answered. Otherwise another site could read the pages, by
//! resolving its own host name to this machine (DNS rebinding).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use hyper::body::Body;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::failure::Failure;
use crate::interrupt::{Interrupt, LOOK};
use crate::output::report;

/// The largest number of open connections. Further connections wait to be accepted.
const MAX_CONNECTIONS: usize = 64;

/// Number of threads for slow requests, and so the most processors that they use. Further requests wait.
const BUSY_THREADS: usize = 4;

/// Time for a request to arrive.
const HEADER_TIME: Duration = Duration::from_secs(5);

/// Time limit of a connection, which serves one request. Clients cannot keep a connection open longer.
const CONNECTION_TIME: Duration = Duration::from_secs(30);

/// Time that requests in progress get when the tool ends.
const END_TIME: Duration = Duration::from_secs(2);

/// The largest size of a request's head in bytes.
const HEAD_BYTES: usize = 16 << 10;

/// Pause after a connection could not be accepted because there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers requests at `address` until a signal asks the tool to end. With port 0 the system chooses a port. The line
/// `rollcall: NAME at http://ADDRESS/` on standard error says that requests are accepted.
///
/// All handlers run on one thread, so waiting for a Redis server has to happen on another thread.
///
/// # Errors
/// When `address` cannot be listened on.
pub fn serve(name: &str, address: SocketAddr, router: Router) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        let failure = Failure::new(format!("cannot listen at {address}: {error}"));
        failure.advise("give another address or port with --bind")
    };
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(BUSY_THREADS).build().map_err(cannot)?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        let interrupt = Interrupt::listen()?;
        report(format_args!("rollcall: {name} at http://{bound}/"));
        let router = router.layer(middleware::from_fn_with_state(bound.ip().is_loopback(), guard));
        let (permits, graceful) = (Arc::new(Semaphore::new(MAX_CONNECTIONS)), GracefulShutdown::new());
        let mut connections = http1::Builder::new();
        connections.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME);
        connections.keep_alive(false).max_buf_size(HEAD_BYTES);
        loop {
            let next = async {
                let permit = permits.clone().acquire_owned().await;
                (permit, listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                next = next => next,
                () = signalled(&interrupt) => break,
            };
            let Ok((stream, _)) = accepted else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let service = TowerToHyperService::new(router.clone());
            let connection = graceful.watch(connections.serve_connection(TokioIo::new(stream), service));
            tokio::spawn(async move {
                // The error of a connection that was cut off is of no use here.
                let _ = timeout(CONNECTION_TIME, connection).await;
                drop(permit);
            });
        }
        drop(listener);
        let _ = timeout(END_TIME, graceful.shutdown()).await;
        Ok(())
    })
}

/// Waits for a signal that asks the tool to end.
async fn signalled(interrupt: &Interrupt) {
    while interrupt.check().is_ok() {
        sleep(LOOK).await;
    }
}

/// Rejects requests other than GET and HEAD, requests with a body, and on a loopback address requests for another host.
async fn guard(State(is_local): State<bool>, request: Request, next: Next) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")], "only GET and HEAD\n").into_response();
    }
    if !request.body().is_end_stream() {
        return (StatusCode::PAYLOAD_TOO_LARGE, "requests have no body here\n").into_response();
    }
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    if is_local && host.is_some_and(|host| !is_this_machine(host)) {
        let text = "this is bound to a loopback address: ask for it by that, or by localhost\n";
        return (StatusCode::MISDIRECTED_REQUEST, text).into_response();
    }
    next.run(request).await
}

/// Whether a Host header names a loopback address or `localhost`.
fn is_this_machine(host: &str) -> bool {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return address.ip().is_loopback();
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() && !name.contains(':') => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_host_names_of_this_machine_are_accepted() {
        for host in ["localhost", "LOCALHOST:9", "127.0.0.1", "127.0.0.1:80", "127.1.2.3:1", "[::1]", "[::1]:80", "::1"]
        {
            assert!(is_this_machine(host), "{host}");
        }
        for host in
            ["", "example.org", "localhost.example.org", "127.0.0.1.example.org:80", "10.0.0.1:80", "[::2]", ":"]
        {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
