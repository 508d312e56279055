//! The routes of the dashboard: the page, the two addresses that its script requests, and the page about findings.

use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::map_response;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::meaning::meaning;
use super::page::Page;
use super::seen::Seen;
use super::watcher::{Question, Slices, lock};

/// The largest number of requests that wait for the server. Further requests are asked to try again.
pub const MAX_QUESTIONS: usize = 64;

/// The longest time that a request waits for the slices of a counter. The other curves do not wait for them.
const PATIENCE: Duration = Duration::from_secs(4);

/// The longest period that a request may ask for, in seconds; the history covers no more.
const MOST_SECONDS: u64 = 7 * 86_400;

/// The state that all requests share.
#[derive(Clone)]
struct Shared {
    page: Arc<Page>,
    meaning: Arc<Page>,
    seen: Arc<Mutex<Seen>>,
    questions: SyncSender<Question>,
}

/// The router for all requests.
pub fn routes(seen: Arc<Mutex<Seen>>, questions: SyncSender<Question>) -> Router {
    let meaning = Page::from_text("Rollcall · findings", &meaning());
    Router::new()
        .route("/", get(async |State(shared): State<Shared>| page(&shared.page)))
        .route("/findings", get(async |State(shared): State<Shared>| page(&shared.meaning)))
        .route("/api/state", get(state))
        .route("/api/series", get(series))
        .fallback(async || (StatusCode::NOT_FOUND, "there is nothing here: the page is at /\n"))
        .layer(map_response(with_headers))
        .with_state(Shared { page: Arc::new(Page::new()), meaning: Arc::new(meaning), seen, questions })
}

/// Adds headers: browsers must not cache the response, guess its type, send a referrer, or hand it to other sites.
async fn with_headers(mut response: Response) -> Response {
    let headers: [(HeaderName, &str); 4] = [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn page(page: &Page) -> Response {
    ([(header::CONTENT_SECURITY_POLICY, page.policy.clone())], Html(page.html.clone())).into_response()
}

async fn state(State(shared): State<Shared>) -> Response {
    json(lock(&shared.seen).state())
}

/// Answers `?seconds=N` with the history of all keys together, and with `&key=ID` the history of one key.
async fn series(State(shared): State<Shared>, uri: Uri) -> Response {
    let Some((seconds, key)) = read_query(uri.query().unwrap_or_default()) else {
        return (StatusCode::BAD_REQUEST, "expected seconds=NUMBER, and key=ID or none\n").into_response();
    };
    let Some(id) = key else { return as_json(&lock(&shared.seen).totals(seconds)) };
    let (mut series, place) = {
        let seen = lock(&shared.seen);
        (seen.key(id, seconds), seen.place(id).cloned())
    };
    if let Some(place) = place.filter(|place| place.has_slices) {
        let (answer, answered) = oneshot::channel();
        let slices: Slices = match shared.questions.try_send(Question { place, answer }) {
            Ok(()) => match timeout(PATIENCE, answered).await {
                Ok(Ok(slices)) => slices,
                _ => Err("the server has not answered yet".to_owned()),
            },
            Err(TrySendError::Full(_)) => Err("too many ask at once".to_owned()),
            Err(TrySendError::Disconnected(_)) => Err("nobody asks the server any more".to_owned()),
        };
        match slices {
            Ok(slices) => series.window = Some(slices),
            Err(why) => series.window_trouble = Some(why),
        }
    }
    as_json(&series)
}

/// The period in seconds and the key's id from a query; `None` if the query is invalid.
fn read_query(query: &str) -> Option<(u64, Option<&str>)> {
    let (mut seconds, mut key) = (None, None);
    for part in query.split('&') {
        match part.split_once('=')? {
            ("seconds", value) if seconds.is_none() => seconds = Some(value.parse::<u64>().ok()?),
            ("key", value) if key.is_none() && value.len() == 16 => key = Some(value),
            _ => return None,
        }
    }
    Some((seconds?.clamp(1, MOST_SECONDS), key))
}

fn as_json(value: &impl serde::Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => json(text.into()),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

fn json(text: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read() {
        let id = "0123456789abcdef";
        assert_eq!(read_query("seconds=60"), Some((60, None)));
        assert_eq!(read_query(&format!("key={id}&seconds=99999999")), Some((MOST_SECONDS, Some(id))));
        assert_eq!(read_query("seconds=0"), Some((1, None)));
        for wrong in
            ["", "seconds", "seconds=", "seconds=-1", "seconds=1&seconds=2", "seconds=1&key=abc", "seconds=1&x=1"]
        {
            assert_eq!(read_query(wrong), None, "{wrong}");
        }
        assert_eq!(read_query(&format!("key={id}")), None, "how long is not said");
    }
}
