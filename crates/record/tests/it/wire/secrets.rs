//! No secret of a header or of a target is written down.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::fs;

use super::support::{Provider, Recorded};
use afterimage_record::Limits;

const ANSWER: &str = "HTTP/1.1 401 No\r\nSet-Cookie: session=planted-90\r\nX-Api-Key: planted-91\r\n\
    WWW-Authenticate: Bearer planted-92\r\nLocation: https://h/?key=planted-93\r\n\
    Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

#[test]
fn no_planted_secret_is_in_any_byte_of_a_recording() {
    let provider = Provider::saying(ANSWER);
    let base = format!("http://{}/planted-99", provider.address);
    let mut recorded = Recorded::with(&base, Limits::default());
    let token = recorded.path().split('/').nth(1).unwrap().to_owned();
    let names = [
        "Authorization",
        "Proxy-Authorization",
        "api-key",
        "x-api-key",
        "X-Goog-Api-Key",
        "Cookie",
        "Sec-WebSocket-Protocol",
        "OpenAI-Organization",
        "X-Amz-Security-Token",
        "Ocp-Apim-Subscription-Key",
        "X-Own",
        "Referer",
    ];
    let lines: Vec<String> =
        (10..).zip(names).map(|(number, name)| format!("{name}: planted-{number}\r\n")).collect();
    let kept = "User-Agent: test/1\r\nContent-Type: application/json\r\n";
    for path in [
        "/v1/responses?key=planted-50&api_key=planted-51&beta=true",
        "/v1/planted-52/messages?planted-53",
        "/v1/models/planted-54:generateContent?access_token=planted-55#planted-56",
    ] {
        let body = b"{\"input\": \"a body keeps its own\"}";
        let got = recorded.post(path, &format!("{}{kept}", lines.concat()), body);
        assert_eq!(got.status(), 401);
    }
    let received = provider.received();
    assert!(received.iter().all(|request| request.header("x-own") == Some("planted-20")));
    assert!(received[0].line.contains("key=planted-50"));

    let recording = recorded.stop();
    assert_eq!(recording.exchanges().len(), 3);
    let headers = &recording.exchanges()[0].start.headers;
    assert!(headers.contains(&("user-agent".to_owned(), "test/1".to_owned())));
    for entry in fs::read_dir(&recorded.folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        for secret in ["planted", &token] {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} is in {}", path.display());
        }
    }
}
