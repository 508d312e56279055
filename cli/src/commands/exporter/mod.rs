//! `exporter`: figures and findings for Prometheus.

mod collect;
mod families;
mod figures;
mod metrics;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use clap::Args;

use crate::failure::Failure;
use crate::http;
use crate::output::Output;
use crate::server::Access;
use collect::{Polling, Target};
use families::Form;

/// The page at `/` for people with a browser.
const PAGE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>rollcall exporter</title>\
    <p>rollcall exporter: figures of filters and counters, for Prometheus: <a href=\"metrics\">metrics</a>\n";

/// Arguments of `exporter`.
#[derive(Debug, Args)]
pub struct Exporter {
    /// A server to read, with the syntax of --url of other commands; may be repeated. In the environment variable,
    /// several servers have spaces between them
    #[arg(
        long = "url",
        env = "ROLLCALL_URL",
        value_name = "URL",
        value_delimiter = ' ',
        default_value = "redis://127.0.0.1:6379",
        hide_env_values = true
    )]
    urls: Vec<String>,
    #[command(flatten)]
    access: Access,
    /// The address and port to listen on. There is no login: whoever can connect can read everything
    #[arg(long, default_value = "127.0.0.1:9727", value_name = "ADDRESS:PORT")]
    bind: SocketAddr,
    /// Seconds between two readings of the servers; a scrape gets the figures of the last reading
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Export figures of each key whose name matches this pattern, in the syntax of KEYS: user:* [default: no keys]
    #[arg(long)]
    pattern: Option<String>,
    /// The largest number of keys to export for each server: the first in order of names
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_keys: u32,
    /// Seconds between two readings of the keys, or nine times the duration of a reading if that is longer
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    keys_interval: u64,
    /// Print the figures once, in the format of node_exporter's text files, and exit; with 3 if a server or its keys
    /// could not be read
    #[arg(long)]
    once: bool,
}

impl Exporter {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        if output.is_json() {
            return Err(Failure::arguments("exporter has no --json: its format is that of Prometheus"));
        }
        let polling = Polling {
            interval: self.interval,
            keys_interval: self.keys_interval,
            pattern: self.pattern,
            max_keys: self.max_keys as usize,
        };
        let urls: Vec<&str> = self.urls.iter().map(String::as_str).collect();
        let targets = urls.iter().map(|url| Target::new(url, &self.access.of(url, &urls), polling.clone()));
        let mut targets = targets.collect::<Result<Vec<Target>, Failure>>()?;
        if self.once {
            targets.iter_mut().for_each(Target::look);
            output.plain(&figures::text(&targets, Form::Plain))?;
            return match targets.iter().map(Target::failures).sum() {
                0 => Ok(()),
                // Standard error has the reasons.
                failures => Err(Failure::new(format!("{failures} readings of servers failed"))),
            };
        }
        let targets: Arc<[Target]> = targets.into();
        for at in 0..targets.len() {
            Target::watch(&targets, at)?;
        }
        http::serve("metrics for Prometheus", self.bind, router(targets))
    }
}

/// Time for which one text answers all requests, so that frequent or slow requests do not multiply the work.
const TEXT_TIME: Duration = Duration::from_secs(1);

/// The last text in each format, with the time at which it was written.
type Written = Arc<[tokio::sync::Mutex<Option<(Instant, Bytes)>>; Form::ALL.len()]>;

/// The metrics in the format `form`, at most [`TEXT_TIME`] old.
async fn text(targets: Arc<[Target]>, form: Form, written: &Written) -> Result<Bytes, String> {
    let mut last = written[form as usize].lock().await;
    if let Some((at, text)) = &*last
        && at.elapsed() < TEXT_TIME
    {
        return Ok(text.clone());
    }
    // Writing the metrics of many keys takes a while, so it must not block the thread that serves requests.
    let text = tokio::task::spawn_blocking(move || figures::text(&targets, form)).await;
    let text = Bytes::from(text.map_err(|error| error.to_string())?);
    *last = Some((Instant::now(), text.clone()));
    Ok(text)
}

fn router(targets: Arc<[Target]>) -> Router {
    let written = Written::default();
    let metrics = move |headers: HeaderMap| {
        let (targets, written) = (targets.clone(), written.clone());
        async move {
            let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
            let form = Form::accepted(accepts);
            match text(targets, form, &written).await {
                Ok(text) => {
                    let headers = [(header::CONTENT_TYPE, form.content_type()), (header::VARY, "accept")];
                    (headers, text).into_response()
                }
                Err(why) => failed(&why),
            }
        }
    };
    Router::new().route("/", get(|| async { Html(PAGE) })).route("/metrics", get(metrics))
}

fn failed(why: &str) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n")).into_response()
}

#[cfg(test)]
mod tests;
