//! A provider that knows its lines, and the HTTP client in front of it.

use std::time::Duration;

use bytes::Bytes;
use rig_core::http_client::{
    Error, HttpClientExt, LazyBody, MultipartForm, Request, Response, Result, StreamingResponse,
};

/// The model: it asks for the tide, and then says what that is.
fn answer(body: &str) -> String {
    let is_told = body.rfind("High water on day ") > body.rfind("When must I leave");
    let day = body.rsplit("leave on day ").next().and_then(|rest| rest.split('?').next());
    let day: u64 = day.and_then(|day| day.parse().ok()).unwrap_or_default();
    let (stop, said) = match is_told {
        true => {
            ("end_turn", format!(r#""type": "text", "text": "Leave at {:02}:00.""#, 5 + day % 12))
        }
        false => (
            "tool_use",
            format!(
                r#""type": "tool_use", "id": "t{day}", "name": "tide", "input": {{"day": {day}}}"#
            ),
        ),
    };
    format!(
        r#"{{"id": "msg_{day}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6", "content": [{{{said}}}], "stop_reason": "{stop}", "stop_sequence": null, "usage": {{"input_tokens": 41, "output_tokens": 9}}}}"#
    )
}

/// The HTTP client, which is as slow as a network.
pub struct Scripted;

impl HttpClientExt for Scripted {
    fn send<T: Into<Bytes> + Send, U: From<Bytes> + Send + 'static>(
        &self,
        request: Request<T>,
    ) -> impl Future<Output = Result<Response<LazyBody<U>>>> + Send + 'static {
        let body: Bytes = request.into_body().into();
        async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let answer = Bytes::from(answer(&String::from_utf8_lossy(&body)));
            let answer: LazyBody<U> = Box::pin(async { Ok(U::from(answer)) });
            Ok(Response::new(answer))
        }
    }

    async fn send_streaming<T: Into<Bytes> + Send>(
        &self,
        _: Request<T>,
    ) -> Result<StreamingResponse> {
        Err(Error::StreamEnded)
    }

    fn send_multipart<U: From<Bytes> + Send + 'static>(
        &self,
        _: Request<MultipartForm>,
    ) -> impl Future<Output = Result<Response<LazyBody<U>>>> + Send + 'static {
        std::future::ready(Err(Error::StreamEnded))
    }
}
