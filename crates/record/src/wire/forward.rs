//! Passes a request on, and its answer back.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    body::{Body as _, Incoming},
    ext::ReasonPhrase,
    header::{self, HeaderName, HeaderValue},
};

use super::{
    KeyCheck, Route, Shared,
    guard::{self, Target},
    passing::{EndReceipt, PassingAnswer, RequestBody, ResponseBody},
    unanswered::{UNCLEAR_LENGTH, unanswered},
    watched::Watch,
    websocket,
};
use crate::{Start, allowed_headers, allowed_path};

/// Headers of one connection, which end with it.
const OF_CONNECTION: [HeaderName; 7] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Answers a request of a client: by the provider, or with a refusal.
pub(super) async fn answer(
    shared: Arc<Shared>,
    watch: Watch,
    request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Infallible> {
    let is_clear = watch.is_clear(request.method());
    let checked = guard::check(request.method(), request.uri(), request.headers(), shared.address);
    let checked = checked.and_then(|()| {
        is_clear.then_some(()).ok_or((StatusCode::BAD_REQUEST, "its length is ambiguous"))
    });
    let target = checked.and_then(|()| {
        let nobody = (StatusCode::NOT_FOUND, "nothing is at this path");
        let found = guard::target(request.uri(), &shared.token).ok_or(nobody)?;
        let (route, uri, start) = destination(&shared, &found).ok_or(nobody)?;
        let start = Start { headers: written(request.headers()), ..start };
        let check = route.check.as_ref();
        let misled = check
            .and_then(|KeyCheck(check)| check(&guard::carriers(found.path, request.headers())));
        let misled = misled.or_else(|| {
            guard::is_signed(request.uri(), request.headers()).then(|| SIGNED.to_owned())
        });
        Ok((uri, start, misled))
    });
    let target = match target {
        Ok((_, start, Some(reason))) => {
            return Ok(misled(&shared, watch, request, start, &reason).await);
        }
        Ok((uri, start, None)) => Ok((uri, start)),
        Err(refusal) => Err(refusal),
    };
    Ok(match target {
        Ok((uri, start)) if websocket::is_handshake(request.method(), request.headers()) => {
            websocket::pass(&shared, watch, request, uri, start).await
        }
        Ok((uri, start)) => pass(&shared, watch, request, uri, start).await,
        Err(refusal) => refused(refusal),
    })
}

/// Why a request that is signed for a host is refused: the provider would refuse it too, and nobody
/// would know why.
const SIGNED: &str = "the request is signed for the host that it was sent to (AWS Signature Version 4), \
                      and the signature is wrong at any other: it was not passed on. Bedrock takes a \
                      key in the place of a signature: set AWS_BEARER_TOKEN_BEDROCK. Traffic that is \
                      signed is read from HAR files";

/// Where a request goes, and how it is written down.
fn destination<'s>(shared: &'s Shared, target: &Target<'_>) -> Option<(&'s Route, Uri, Start)> {
    let route = shared.routes.iter().find(|route| route.name == target.route)?;
    let uri = route.upstream.uri(if target.path.is_empty() { "/" } else { target.path })?;
    // The path of the base URL may hold a key.
    let path = route.upstream.versioned(behind(target.path, route.upstream.path()));
    Some((route, uri, Start { path: allowed_path(&path), ..Start::now("", route.name()) }))
}

/// Refuses a request whose key must not go to its provider, and records that.
async fn misled(
    shared: &Shared,
    watch: Watch,
    request: Request<Incoming>,
    start: Start,
    reason: &str,
) -> Response<ResponseBody> {
    let (parts, body) = request.into_parts();
    shared.tell(&start.provider, reason);
    let start = Start { method: parts.method.as_str().to_owned(), ..start };
    let (of_request, mut recorder) = shared.recorder.exchange(start);
    let (body, unsent) = RequestBody::new(body, of_request, watch);
    drop(body);
    unsent.record().await;
    EndReceipt::end(&mut recorder, Some(reason), &shared.patience).await;
    refused((StatusCode::UNAUTHORIZED, reason))
}

/// What of a path is behind that of the base URL, where it ends between two words.
fn behind<'p>(path: &'p str, base: &str) -> &'p str {
    let is_end = |rest: &&str| rest.is_empty() || rest.starts_with(['/', '?']);
    path.strip_prefix(base).filter(is_end).unwrap_or(path)
}

async fn pass(
    shared: &Shared,
    watch: Watch,
    request: Request<Incoming>,
    uri: Uri,
    start: Start,
) -> Response<ResponseBody> {
    let (mut parts, body) = request.into_parts();
    let takes_trailers = takes_trailers(&parts.headers);
    let has_body = parts.method != Method::HEAD;
    let start = Start { method: parts.method.as_str().to_owned(), ..start };
    let provider = start.provider.clone();
    let (of_request, mut recorder) = shared.recorder.exchange(start);
    parts.uri = uri;
    parts.headers = passed_headers(parts.headers);
    if takes_trailers {
        parts.headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    parts.version = hyper::Version::HTTP_11;
    parts.extensions.clear();
    let (body, unsent) = RequestBody::new(body, of_request, watch.clone());
    let call = shared.clients.call();
    let (mut head, body) = match call.send(Request::from_parts(parts, body)).await {
        Ok(response) => response.into_parts(),
        Err(error) => {
            let (status, reason) = match unsent.broken() {
                Some(reason) => (StatusCode::BAD_REQUEST, reason.into()),
                None => (StatusCode::BAD_GATEWAY, unanswered(&error)),
            };
            shared.tell_unanswered(&provider, &reason);
            unsent.record().await;
            EndReceipt::end(&mut recorder, Some(&reason), &shared.patience).await;
            return refused((status, &reason));
        }
    };
    recorder.head(head.status.as_u16(), written(&head.headers));
    if let Err(reason) = settle_length(&mut head.headers) {
        EndReceipt::end(&mut recorder, Some(reason), &shared.patience).await;
        return refused((StatusCode::BAD_GATEWAY, reason));
    }
    drop_connection_headers(&mut head.headers);
    head.version = hyper::Version::HTTP_11;
    // An answer keeps its own words for its status.
    let reason = head.extensions.remove::<ReasonPhrase>();
    head.extensions.clear();
    if let Some(reason) = reason {
        head.extensions.insert(reason);
    }
    if !watch.is_read() {
        // What is left of a body that the provider did not wait for is no request.
        head.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if body.is_end_stream() {
        EndReceipt::end(&mut recorder, None, &shared.patience).await;
        return Response::from_parts(head, ResponseBody::Own(None));
    }
    let length = head.headers.get(header::CONTENT_LENGTH).filter(|_| has_body);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let passing = PassingAnswer::new(body, recorder, shared.patience.clone(), length, Some(call));
    Response::from_parts(head, ResponseBody::Passing(passing))
}

/// Whether a client says that it reads what comes after a body.
fn takes_trailers(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::TE).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
}

/// Leaves one length in the headers of an answer, where they have some; none where a coding tells its
/// end.
///
/// # Errors
/// What is wrong with the lengths.
fn settle_length(headers: &mut HeaderMap) -> Result<(), &'static str> {
    if headers.contains_key(header::TRANSFER_ENCODING) {
        headers.remove(header::CONTENT_LENGTH);
        return Ok(());
    }
    let mut settled = None;
    for value in headers.get_all(header::CONTENT_LENGTH) {
        for length in value.to_str().map_err(|_| UNCLEAR_LENGTH)?.split(',') {
            let length: u64 = length.trim().parse().map_err(|_| UNCLEAR_LENGTH)?;
            if settled.replace(length).is_some_and(|before| before != length) {
                return Err(UNCLEAR_LENGTH);
            }
        }
    }
    if let Some(length) = settled {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    Ok(())
}

/// The headers of a request that go on to the provider.
pub(super) fn passed_headers(mut headers: HeaderMap) -> HeaderMap {
    drop_connection_headers(&mut headers);
    // The provider has its own name, and this listener has answered what the client waited for.
    headers.remove(header::HOST);
    headers.remove(header::EXPECT);
    headers
}

/// Of some headers those that may be written down.
pub(super) fn written(headers: &HeaderMap) -> Vec<(String, String)> {
    allowed_headers(headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())))
}

pub(super) fn drop_connection_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_CONNECTION) {
        headers.remove(name);
    }
}

/// An answer of the recorder itself, in the form that providers give their errors: those of AWS have
/// their words outside.
pub(super) fn refused((status, reason): (StatusCode, &str)) -> Response<ResponseBody> {
    let message = format!("\"message\":\"afterimage record: {reason}\"");
    let text = format!(
        "{{\"type\":\"error\",\"error\":{{\"type\":\"afterimage_record\",{message}}},{message}}}\n"
    );
    let mut response = Response::new(ResponseBody::Own(Some(Bytes::from(text))));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_path_ends_between_two_words() {
        for (path, base, expected) in [
            ("/v1/messages", "/v1", "/messages"),
            ("/v1?a=b", "/v1", "?a=b"),
            ("/v1", "/v1", ""),
            ("/v1beta/models", "/v1", "/v1beta/models"),
            ("/v2/messages", "/v1", "/v2/messages"),
            ("/messages", "", "/messages"),
        ] {
            assert_eq!(behind(path, base), expected);
        }
    }
}
