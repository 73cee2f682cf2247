//! One `GET` on loopback, with a deadline and a limit.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::sample::Why;

/// Bytes of a status line and headers.
const MOST_HEADERS: usize = 64 << 10;

/// The body of the answer with status 200. No redirection is followed.
///
/// # Errors
/// `TimedOut`; `NoPermission` for 401 and 403; `NotSupported` where nobody listens or the path is
/// not served; `Nonsense` for what is no answer or is longer than `limit`; else the system's
/// number or the status.
pub fn get(port: u16, path: &str, until: Instant, limit: usize) -> Result<Vec<u8>, Why> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream =
        TcpStream::connect_timeout(&address, left(until)?).map_err(|error| why(&error))?;
    // HTTP/1.0: the answer ends with the connection and comes in one piece.
    let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAccept: */*\r\n\r\n");
    stream.set_write_timeout(Some(left(until)?)).map_err(|error| why(&error))?;
    stream.write_all(request.as_bytes()).map_err(|error| why(&error))?;
    let mut answer = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        stream.set_read_timeout(Some(left(until)?)).map_err(|error| why(&error))?;
        let count = stream.read(&mut piece).map_err(|error| why(&error))?;
        answer.extend_from_slice(piece.get(..count).unwrap_or_default());
        if answer.len() > limit.saturating_add(MOST_HEADERS) {
            return Err(Why::Nonsense);
        }
        if count == 0 || is_complete(&answer) {
            return body(&answer, limit);
        }
    }
}

fn left(until: Instant) -> Result<Duration, Why> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Why::TimedOut) } else { Ok(left) }
}

fn why(error: &std::io::Error) -> Why {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Why::TimedOut,
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            Why::NotSupported
        }
        _ => Why::Failed(error.raw_os_error().unwrap_or(-1)),
    }
}

/// Headers and what follows them.
fn split(answer: &[u8]) -> Option<(&str, &[u8])> {
    let end = answer.windows(4).take(MOST_HEADERS).position(|four| four == b"\r\n\r\n")?;
    Some((std::str::from_utf8(answer.get(..end)?).ok()?, answer.get(end + 4..)?))
}

fn header<'a>(headers: &'a str, name: &str) -> Option<&'a str> {
    headers.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Whether all that was promised is there; a server may keep the connection open.
fn is_complete(answer: &[u8]) -> bool {
    split(answer).is_some_and(|(headers, body)| {
        header(headers, "content-length")
            .and_then(|length| length.parse::<usize>().ok())
            .is_some_and(|length| body.len() >= length)
    })
}

/// The body of a whole answer.
///
/// # Errors
/// As [`get`].
pub fn body(answer: &[u8], limit: usize) -> Result<Vec<u8>, Why> {
    let (headers, rest) = split(answer).ok_or(Why::Nonsense)?;
    let status = headers.strip_prefix("HTTP/1.").and_then(|text| text.get(2..5));
    match status.and_then(|text| text.parse::<i32>().ok()) {
        Some(200) => {}
        Some(401 | 403) => return Err(Why::NoPermission),
        Some(404 | 405 | 501) => return Err(Why::NotSupported),
        Some(status) => return Err(Why::Failed(status)),
        None => return Err(Why::Nonsense),
    }
    let chunked = header(headers, "transfer-encoding")
        .is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    let body = if chunked { unchunk(rest).ok_or(Why::Nonsense)? } else { rest.to_vec() };
    if body.len() > limit { Err(Why::Nonsense) } else { Ok(body) }
}

/// Chunks with their lengths, from a server that takes no notice of HTTP/1.0.
fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|two| two == b"\r\n")?;
        let text = std::str::from_utf8(rest.get(..line)?).ok()?;
        let length = usize::from_str_radix(text.split(';').next()?.trim(), 16).ok()?;
        rest = rest.get(line + 2..)?;
        if length == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..length)?);
        rest = rest.get(length.checked_add(2)?..)?;
    }
}
