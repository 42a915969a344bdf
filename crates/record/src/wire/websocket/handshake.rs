use std::sync::Arc;

use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    body::{Body as _, Incoming},
    header::{self, HeaderValue},
    upgrade,
};
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioIo},
};
use tokio::io::split;

use super::{
    copy::{both, copy},
    deflate::Deflate,
    exchanges::Exchanges,
    tap::{Side, Tap},
};
use crate::{
    Start,
    wire::{
        MOST_HEADERS, Shared,
        client::Connector,
        forward,
        passing::{EndReceipt, PassingAnswer, ResponseBody},
        unanswered::unanswered,
        watched::Watch,
    },
};

/// What WebSockets are opened through: HTTP/1.1 alone, as HTTP/2 opens them in another way.
pub(in crate::wire) type Client = legacy::Client<Connector, String>;

/// A client whose connections are not used again.
pub(in crate::wire) fn client(connector: Connector) -> Client {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder.pool_max_idle_per_host(0).http1_max_headers(MOST_HEADERS).build(connector)
}

/// Whether a request asks for a WebSocket.
pub(in crate::wire) fn is_handshake(method: &Method, headers: &HeaderMap) -> bool {
    let mut names = headers.get_all(header::UPGRADE).iter();
    let is_one = names.next().is_some_and(|of| of.as_bytes().eq_ignore_ascii_case(b"websocket"));
    is_one && names.next().is_none() && *method == Method::GET
}

/// Opens a WebSocket to the provider for a client that asks for one. An answer that opens none is
/// passed on.
pub(in crate::wire) async fn pass(
    shared: &Shared,
    watch: Watch,
    mut request: Request<Incoming>,
    uri: Uri,
    start: Start,
) -> Response<ResponseBody> {
    if !request.body().is_end_stream() {
        return forward::refused((StatusCode::BAD_REQUEST, "a handshake has no body"));
    }
    let start = Start { method: request.method().as_str().to_owned(), ..start };
    let (mut of_request, mut recorder) = shared.recorder.exchange(start.clone());
    of_request.end();
    let of_client = upgrade::on(&mut request);
    let mut asked = Request::new(String::new());
    *asked.uri_mut() = uri;
    *asked.headers_mut() = forward::passed_headers(std::mem::take(request.headers_mut()));
    name_protocol(asked.headers_mut());
    let mut answer = match shared.clients.sockets.request(asked).await {
        Ok(answer) => answer,
        Err(error) => {
            watch.next_request();
            let reason = unanswered(&error);
            shared.tell_unanswered(&start.provider, &reason);
            EndReceipt::end(&mut recorder, Some(&reason), &shared.patience).await;
            return forward::refused((StatusCode::BAD_GATEWAY, &reason));
        }
    };
    recorder.head(answer.status().as_u16(), forward::written(answer.headers()));
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        watch.next_request();
        let (mut head, body) = answer.into_parts();
        forward::drop_connection_headers(&mut head.headers);
        head.version = hyper::Version::HTTP_11;
        head.extensions.clear();
        let passing = PassingAnswer::new(body, recorder, shared.patience.clone(), None, None);
        return Response::from_parts(head, ResponseBody::Passing(passing));
    }
    watch.upgrade();
    let of_upstream = upgrade::on(&mut answer);
    let extensions: Vec<&str> = answer
        .headers()
        .get_all(header::SEC_WEBSOCKET_EXTENSIONS)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let deflate = Deflate::agreed(&extensions.join(","));
    EndReceipt::end(&mut recorder, None, &shared.patience).await;
    let tap = tap(shared, start, deflate);
    tokio::spawn(async move {
        if let (Ok(client), Ok(upstream)) = (of_client.await, of_upstream.await) {
            connect(client, upstream, &tap).await;
        }
        tap.close();
    });
    let mut response = Response::new(ResponseBody::Own(None));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = std::mem::take(answer.headers_mut());
    forward::drop_connection_headers(response.headers_mut());
    name_protocol(response.headers_mut());
    response
}

fn tap(shared: &Shared, start: Start, deflate: Option<(Deflate, Deflate)>) -> Tap {
    let recorder = &shared.recorder;
    let most = recorder.limits().request.max(recorder.limits().response);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    Tap::new(Exchanges::new(Arc::clone(recorder), start, shared.patience.clone()), deflate, most)
}

/// The headers of a connection that becomes a WebSocket.
fn name_protocol(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

/// Copies both ways until both sides have ended, or one breaks off.
async fn connect(client: upgrade::Upgraded, upstream: upgrade::Upgraded, tap: &Tap) {
    let (from_client, to_client) = split(TokioIo::new(client));
    let (from_upstream, to_upstream) = split(TokioIo::new(upstream));
    let out = copy(from_client, to_upstream, |bytes| tap.see(Side::Client, bytes));
    let back = copy(from_upstream, to_client, |bytes| tap.see(Side::Upstream, bytes));
    both(out, back).await;
}
