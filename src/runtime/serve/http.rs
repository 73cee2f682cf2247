//! The thread that answers scrapes.
//!
//! A reader costs a bounded share: so many connections at once, so long for a request's head, so
//! long for the whole. Where a new connection finds no room, the oldest one ends: an honest scrape
//! is over in milliseconds.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use subtle::ConstantTimeEq;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::{Counters, Page};
use crate::report::prometheus::Format;

/// Connections at once.
const MOST_CONNECTIONS: usize = 128;
/// For the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(3);
/// For a request and its answer. Every connection ends after one: nobody can keep it.
const DONE_WITHIN: Duration = Duration::from_secs(10);
/// The longest head of a request, in bytes; hyper asks for 8 KiB at least.
const LONGEST_HEAD: usize = 16 << 10;
/// Where no connection can be taken (no file descriptor is left), it is tried again so much later.
const REST: Duration = Duration::from_millis(100);

const TEXT: &str = "text/plain; charset=utf-8";
const INDEX: &str = "vramlens exports metrics under /metrics, and /healthz says whether the \
                     driver answers.\n";

/// What requests are answered from.
#[derive(Clone)]
pub struct Site {
    /// The newest page.
    pub pages: watch::Receiver<Page>,
    /// What a reader of metrics has to show, where that is asked for.
    pub token: Option<Arc<str>>,
    /// What happened.
    pub counters: Arc<Counters>,
}

/// Takes the first of these addresses that is free; nobody is answered yet.
///
/// # Errors
/// Where none can be used.
pub fn bind(addresses: &[SocketAddr]) -> io::Result<StdListener> {
    let listener = StdListener::bind(addresses)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves on a thread of its own. Gives the address in use.
///
/// # Errors
/// Where no thread is to be had.
pub fn spawn(listener: StdListener, site: Site) -> io::Result<SocketAddr> {
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("http".to_owned()).spawn(move || {
        runtime.block_on(async {
            // It was made non-blocking, which is all that can be wrong.
            if let Ok(listener) = TcpListener::from_std(listener) {
                accept(&listener, &site).await;
            }
        });
    })?;
    Ok(address)
}

async fn accept(listener: &TcpListener, site: &Site) {
    let mut open: VecDeque<AbortHandle> = VecDeque::with_capacity(MOST_CONNECTIONS);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(REST).await;
            continue;
        };
        if open.len() >= MOST_CONNECTIONS {
            open.retain(|connection| !connection.is_finished());
        }
        if open.len() >= MOST_CONNECTIONS
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
            site.counters.cut.fetch_add(1, Ordering::Relaxed);
        }
        open.push_back(tokio::spawn(serve(stream, site.clone())).abort_handle());
    }
}

async fn serve(stream: TcpStream, site: Site) {
    let counters = Arc::clone(&site.counters);
    let service = service_fn(move |request: Request<Incoming>| {
        let response = site.answer(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .keep_alive(false)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let too_late = match timeout(DONE_WITHIN, connection).await {
        Err(_elapsed) => true,
        Ok(Err(error)) => error.is_timeout(),
        Ok(Ok(())) => false,
    };
    if too_late {
        counters.cut.fetch_add(1, Ordering::Relaxed);
    }
}

type Answer = Response<Full<Bytes>>;

impl Site {
    fn answer<B>(&self, request: &Request<B>) -> Answer {
        let response = self.page(request);
        let ok = response.status() != StatusCode::NOT_FOUND
            && response.status() != StatusCode::UNAUTHORIZED
            && response.status() != StatusCode::METHOD_NOT_ALLOWED;
        let counter = if ok { &self.counters.requests } else { &self.counters.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        response
    }

    fn page<B>(&self, request: &Request<B>) -> Answer {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        match request.uri().path() {
            "/metrics" if self.may_read(request) => self.metrics(request),
            "/metrics" => {
                let mut refused = text(StatusCode::UNAUTHORIZED, "a bearer token is needed\n");
                let scheme = HeaderValue::from_static("Bearer");
                refused.headers_mut().insert(WWW_AUTHENTICATE, scheme);
                refused
            }
            "/healthz" => self.health(),
            "/" => text(StatusCode::OK, INDEX),
            _ => text(StatusCode::NOT_FOUND, "no such page: see /metrics\n"),
        }
    }

    fn may_read<B>(&self, request: &Request<B>) -> bool {
        let Some(token) = &self.token else { return true };
        let shown = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.split_once(' '));
        shown.is_some_and(|(scheme, shown)| {
            // How long it takes says nothing of how much of it is right.
            scheme.eq_ignore_ascii_case("bearer")
                && bool::from(shown.trim().as_bytes().ct_eq(token.as_bytes()))
        })
    }

    fn metrics<B>(&self, request: &Request<B>) -> Answer {
        // Several headers of one name are one list.
        let accept: Vec<&str> =
            request.headers().get_all(ACCEPT).iter().filter_map(|one| one.to_str().ok()).collect();
        let format = Format::wanted(&accept.join(","));
        let page = self.pages.borrow();
        let body = match format {
            Format::Prometheus => page.prometheus.clone(),
            Format::OpenMetrics => page.open_metrics.clone(),
        };
        respond(StatusCode::OK, format.content_type(), body)
    }

    fn health(&self) -> Answer {
        match &self.pages.borrow().trouble {
            None => text(StatusCode::OK, "ok\n"),
            Some(why) => respond(
                StatusCode::SERVICE_UNAVAILABLE,
                TEXT,
                Bytes::from(format!("{why}\n").into_bytes()),
            ),
        }
    }
}

fn text(status: StatusCode, body: &'static str) -> Answer {
    respond(status, TEXT, Bytes::from_static(body.as_bytes()))
}

fn respond(status: StatusCode, kind: &'static str, body: Bytes) -> Answer {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(token: Option<&str>) -> Site {
        let (_, pages) = watch::channel(Page {
            prometheus: Bytes::from_static(b"a 1\n"),
            open_metrics: Bytes::from_static(b"a 1\n# EOF\n"),
            trouble: Some("it hangs".into()),
        });
        Site { pages, token: token.map(Into::into), counters: Arc::default() }
    }

    fn status(site: &Site, method: Method, path: &str, authorization: Option<&str>) -> u16 {
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap();
        if let Some(value) = authorization {
            request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        site.answer(&request).status().as_u16()
    }

    #[test]
    fn a_token_is_asked_for_where_there_is_one() {
        let open = site(None);
        assert_eq!(status(&open, Method::GET, "/metrics", None), 200);
        let closed = site(Some("s3cret"));
        let asked = |value| status(&closed, Method::GET, "/metrics", value);
        assert_eq!(asked(Some("Bearer s3cret")), 200);
        assert_eq!(asked(Some("bearer  s3cret ")), 200);
        let wrong = ["Bearer s3cre", "Bearer s3cret1", "Bearer ", "Basic s3cret", "s3cret"];
        for value in wrong.into_iter().map(Some).chain([None]) {
            assert_eq!(asked(value), 401, "{value:?}");
        }
        assert_eq!(status(&closed, Method::GET, "/healthz", None), 503);
        assert_eq!(closed.counters.refused.load(Ordering::Relaxed), 6);
    }

    #[test]
    fn other_pages_and_methods_are_refused() {
        let site = site(None);
        assert_eq!(status(&site, Method::POST, "/metrics", None), 405);
        assert_eq!(status(&site, Method::HEAD, "/metrics?x=1", None), 200);
        assert_eq!(status(&site, Method::GET, "/", None), 200);
        assert_eq!(status(&site, Method::GET, "/metrics/../etc", None), 404);
    }
}
