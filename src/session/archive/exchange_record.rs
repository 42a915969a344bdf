//! The record of an exchange: what is known of it, and what its request does not share with the one
//! before it.

use std::sync::Arc;

use crate::{
    id::FrameSeq,
    json::{self, Object, ObjectExt, Value, object},
    transcript::{Api, Asked, Exchange, Kept, Provenance, Usage},
};

/// Every so many records, from the first, one holds its request whole.
const WHOLE_EVERY: u64 = 16;
/// Up to so many bytes all bodies of a file may have, whatever its length.
const FREE: u64 = 1 << 30;
/// And how many bytes each byte of the file may stand for beyond that.
const MOST_RATIO: u64 = 1024;

/// The most bytes that the bodies of a file of this length may have.
pub(super) fn most_bytes(file: u64) -> u64 {
    FREE.max(file.saturating_mul(MOST_RATIO))
}

/// The bytes of the bodies of an exchange.
pub(super) fn body_bytes(exchange: &Exchange) -> u64 {
    let response = exchange.response.as_ref().map_or(0, |response| response.len());
    (exchange.request.len() as u64).saturating_add(response as u64)
}

/// The body that the request of a record is compared with: none of a record that holds it whole.
fn base(index: u64, before: &[u8]) -> &[u8] {
    if index.is_multiple_of(WHOLE_EVERY) { &[] } else { before }
}

/// The record with this index; `before` is the request of the one before it.
pub(super) fn to_bytes(index: u64, exchange: &Exchange, before: &[u8]) -> Vec<u8> {
    let (base, body) = (base(index, before), exchange.request.as_bytes());
    let is_same = |(one, other): &(&u8, &u8)| one == other;
    let prefix = base.iter().zip(body).take_while(is_same).count();
    let rest = base.iter().skip(prefix).rev().zip(body.iter().skip(prefix).rev());
    let suffix = rest.take_while(is_same).count();
    let middle = body.get(prefix..body.len() - suffix).unwrap_or_default();
    let head = Value::from(head(exchange, prefix, suffix, middle.len())).to_string();
    let response = exchange.response.as_deref().unwrap_or_default();
    let mut bytes = Vec::with_capacity(4 + head.len() + middle.len() + response.len());
    bytes.extend((head.len() as u32).to_le_bytes());
    bytes.extend(head.as_bytes());
    bytes.extend(middle);
    bytes.extend(response.as_bytes());
    bytes
}

fn head(exchange: &Exchange, prefix: usize, suffix: usize, middle: usize) -> Object {
    let frame = |frame: &Option<FrameSeq>| frame.map_or(Value::Null, |frame| frame.get().into());
    let mut head = object! {
        "session": &*exchange.session,
        "line": exchange.line.unwrap_or_default(),
        "api": exchange.api.as_str(),
        "asSent": exchange.provenance == Provenance::Sent,
        "prefix": prefix as u64,
        "suffix": suffix as u64,
        "middle": middle as u64,
    };
    head.put_some("response", exchange.response.as_ref().map(|response| response.len() as u64));
    head.put_some("host", exchange.host.as_deref());
    head.put_some("status", exchange.status);
    head.put_some("durationMs", exchange.duration_ms);
    head.put_some("failure", exchange.failure.as_deref());
    head.put_some("cut", exchange.cut.as_deref());
    head.put_some("unread", exchange.unread.as_deref());
    head.put_some("started", exchange.time.as_deref());
    head.put_some("model", exchange.model.as_deref());
    head.put_some("usage", exchange.usage.as_ref().map(Usage::to_json));
    head.put_some("systemFrame", exchange.system_frame.map(FrameSeq::get));
    head.put_some("answer", exchange.answer().map(FrameSeq::get));
    head.put_some("listed", exchange.is_unlisted.then_some(false));
    if let Some(Kept { items, after, is_start }) = exchange.kept.as_deref() {
        let mut kept = object! { "items": &**items, "isStart": *is_start };
        kept.put_some("after", after.as_deref());
        head.put("kept", kept);
    }
    head.put("frames", exchange.frames.iter().map(frame).collect::<Value>());
    head
}

/// The exchange in the record with this index; `None` where there is none.
pub(super) fn from_bytes(index: u64, bytes: &[u8], before: &[u8]) -> Option<Exchange> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (head, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let head = json::read(head).ok()?;
    let text = |key: &str| head.get(key)?.as_str().map(str::to_owned);
    let number = |key: &str| head.get(key)?.as_u64();
    let size = |key: &str| usize::try_from(number(key)?).ok();
    let (middle, response) = rest.split_at_checked(size("middle")?)?;
    let response = match size("response") {
        Some(length) if length == response.len() => Some(std::str::from_utf8(response).ok()?),
        None if response.is_empty() => None,
        _ => return None,
    };
    let base = base(index, before);
    let (prefix, shared) = base.split_at_checked(size("prefix")?)?;
    let suffix = shared.get(shared.len().checked_sub(size("suffix")?)?..)?;
    let request = String::from_utf8([prefix, middle, suffix].concat()).ok()?;
    let frame = |frame: &Value| match frame {
        Value::Null => Some(None),
        frame => Some(Some(FrameSeq::new(frame.as_u64()?))),
    };
    let api = Api::from_name(head.str_at("api")?)?;
    let is_as_sent = head.get("asSent")?.as_bool()?;
    Some(Exchange {
        session: text("session")?.into(),
        line: Some(number("line")?).filter(|line| *line > 0),
        api,
        host: text("host").map(Arc::from),
        asked: Asked::of_body(api, &request),
        request: request.into(),
        provenance: if is_as_sent { Provenance::Sent } else { Provenance::Logged },
        response: response.map(Arc::from),
        status: number("status"),
        failure: text("failure"),
        cut: text("cut"),
        unread: text("unread"),
        time: text("started"),
        duration_ms: number("durationMs"),
        model: text("model").map(Arc::from),
        usage: head.get("usage").map(Usage::from_json),
        system_frame: number("systemFrame").map(FrameSeq::new),
        frames: head.get("frames")?.as_array()?.iter().map(frame).collect::<Option<_>>()?,
        answer_frames: number("answer").map(FrameSeq::new).into_iter().collect(),
        kept: head.get("kept").and_then(kept_of).map(Arc::new),
        is_unlisted: head.get("listed").and_then(Value::as_bool) == Some(false),
        ..Exchange::default()
    })
}

fn kept_of(kept: &Value) -> Option<Kept> {
    let items = kept.str_at("items")?.into();
    let after = kept.str_at("after").map(Arc::from);
    Some(Kept { items, after, is_start: kept.get("isStart")?.as_bool()? })
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in super::super) fn exchange(request: &str, rest: bool) -> Exchange {
        Exchange {
            session: "s".into(),
            line: Some(7),
            api: if rest { Api::Responses } else { Api::Chat },
            host: rest.then(|| "api.example".into()),
            request: request.into(),
            provenance: if rest { Provenance::Sent } else { Provenance::Logged },
            response: rest.then(|| "data: é\n\n".into()),
            status: rest.then_some(529),
            failure: rest.then(|| "\u{0}overloaded".to_owned()),
            cut: rest.then(|| "the disk was full".to_owned()),
            unread: rest.then(|| "the request is no JSON".to_owned()),
            time: rest.then(|| "2026-11-22T00:00:00Z".to_owned()),
            duration_ms: rest.then_some(u64::MAX),
            model: rest.then(|| "m".into()),
            usage: rest.then(|| Usage { input: Some(u64::MAX), ..Usage::default() }),
            system_frame: rest.then(|| FrameSeq::new(0)),
            frames: if rest { vec![None, Some(FrameSeq::new(3))] } else { Vec::new() },
            answer_frames: rest.then(|| FrameSeq::new(9)).into_iter().collect(),
            is_unlisted: !rest,
            kept: rest.then(|| {
                let (items, after) = ("[1,{\"a\":\"é\"}]".into(), Some("r".into()));
                Arc::new(Kept { items, after, is_start: true })
            }),
            ..Exchange::default()
        }
    }

    proptest! {
        #[test]
        fn an_exchange_comes_back_whatever_was_before_it(
            bodies in proptest::collection::vec("[ab]{0,3}[é€ü]{0,2}[ab]{0,9}", 1..40),
            rest: bool,
        ) {
            let mut before = String::new();
            for (index, body) in (0..).zip(bodies) {
                let exchange = exchange(&body, rest);
                let bytes = to_bytes(index, &exchange, before.as_bytes());
                prop_assert_eq!(from_bytes(index, &bytes, before.as_bytes()), Some(exchange));
                before = body;
            }
        }
    }

    #[test]
    fn no_part_of_a_record_is_taken_for_one() {
        let exchange = exchange("{\"messages\":[1,2]}", true);
        let before = b"{\"messages\":[1]}";
        let bytes = to_bytes(1, &exchange, before);
        assert!(bytes.len() < to_bytes(16, &exchange, before).len());
        for end in 0..bytes.len() {
            assert_eq!(from_bytes(1, &bytes[..end], before), None, "{end}");
        }
        // The body before it is another one, or none.
        assert_eq!(from_bytes(1, &bytes, b"{"), None);
        assert_eq!(from_bytes(16, &bytes, before), None);
    }
}
