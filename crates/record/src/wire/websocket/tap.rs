use std::sync::{Arc, Mutex, PoisonError};

use super::{
    decoder::{Decoder, Message},
    deflate::Deflate,
    exchanges::Exchanges,
};
use crate::wire::passing::EndReceipt;

/// Sees what passes through a WebSocket, both ways.
#[derive(Clone, Debug)]
pub(super) struct Tap(Arc<Mutex<TapState>>);

#[derive(Debug)]
struct TapState {
    /// `None` where the bytes could not be decoded: then nothing more is recorded.
    decoders: Option<(Decoder, Decoder)>,
    exchanges: Exchanges,
    /// Who ended it first.
    ended_by: Option<Side>,
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Upstream,
}

impl Tap {
    /// A tap of a WebSocket whose messages are packed as agreed, and kept up to `most` bytes.
    pub(super) fn new(
        exchanges: Exchanges,
        deflate: Option<(Deflate, Deflate)>,
        most: usize,
    ) -> Self {
        let (client, server) = deflate.unzip();
        let decoders = Some((Decoder::new(client, most), Decoder::new(server, most)));
        Self(Arc::new(Mutex::new(TapState { decoders, exchanges, ended_by: None })))
    }

    /// Sees the next bytes of one side, none where it sends no more. Gives the ends of exchanges that
    /// are being written.
    pub(super) fn see(&self, from: Side, bytes: &[u8]) -> Vec<EndReceipt> {
        self.with(|seen| {
            if bytes.is_empty() {
                seen.end(from);
            }
            seen.take(from, bytes)
        })
    }

    /// Both directions are over, or one of them broke.
    pub(super) fn close(&self) {
        self.with(|seen| {
            let reason = seen.ended_by.map_or("the connection broke off", reason);
            seen.exchanges.cut(reason);
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut TapState) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl TapState {
    fn end(&mut self, side: Side) {
        let first = *self.ended_by.get_or_insert(side);
        // A client may end its direction and wait for the answer.
        if side == Side::Upstream {
            self.exchanges.cut(reason(first));
        }
    }

    fn take(&mut self, from: Side, bytes: &[u8]) -> Vec<EndReceipt> {
        let Some((client, server)) = &mut self.decoders else { return Vec::new() };
        let (exchanges, ended_by) = (&mut self.exchanges, &mut self.ended_by);
        let mut ends = Vec::new();
        let take = |message: Message| match (message, from) {
            (Message::Close, _) => {
                ended_by.get_or_insert(from);
            }
            (Message::Data { bytes, total }, Side::Client) => exchanges.asked(&bytes, total),
            (Message::Data { bytes, total }, Side::Upstream) => {
                ends.extend(exchanges.answered(&bytes, total));
            }
        };
        let decoder = if from == Side::Client { client } else { server };
        if let Err(error) = decoder.push(bytes, take) {
            self.decoders = None;
            let reason = format!("the WebSocket cannot be decoded: {}", error.message());
            self.exchanges.cut(&reason);
        }
        ends
    }
}

fn reason(ended_by: Side) -> &'static str {
    match ended_by {
        Side::Client => "the client closed the WebSocket",
        Side::Upstream => "the upstream closed the WebSocket",
    }
}
