//! What the contexts of a session cost, turn by turn.

use afterimage::{
    json::{Object, Value},
    observe::{Interception, Moment, Observations, Response, ToolCall},
    session::bridge::observed::{Backlog, Repeats, reference},
    tokens::TokenCounter,
};

use crate::{failure::Outcome, json::object};

/// A session on its way through interception.
pub(super) struct Ledger<'o> {
    observations: &'o Observations,
    counter: &'o dyn TokenCounter,
    limit: usize,
    /// Who plays it.
    agent: String,
    without: Size,
    with: Size,
    /// The results since the last turn: the payload of each, and the line that may stand for it.
    fresh: Vec<(Size, Size)>,
    /// Those that were shown.
    backlog: Backlog<(Size, Size)>,
    /// The payloads that the model has read.
    repeats: Repeats,
    kept: u64,
    calls: u64,
    pub(super) turns: Vec<Turn>,
}

/// Bytes and tokens of a text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) tokens: u64,
}

/// What the model was sent before it answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// The frame with the answer.
    pub(super) frame: u64,
    pub(super) without: Size,
    pub(super) with: Size,
    pub(super) summary: Size,
    /// The results since the last turn, and those of them that are observations.
    pub(super) calls: u64,
    pub(super) kept: u64,
}

impl<'o> Ledger<'o> {
    pub(super) fn new(
        observations: &'o Observations,
        counter: &'o dyn TokenCounter,
        limit: usize,
        agent: &str,
        now: Moment,
    ) -> Outcome<Self> {
        observations.login(agent, agent, now)?;
        Ok(Self {
            observations,
            counter,
            limit,
            agent: agent.to_owned(),
            without: Size::default(),
            with: Size::default(),
            fresh: Vec::new(),
            backlog: Backlog::new(limit),
            repeats: Repeats::new(),
            kept: 0,
            calls: 0,
            turns: Vec::new(),
        })
    }

    fn size(&self, text: &str) -> Size {
        Size { bytes: text.len() as u64, tokens: self.counter.count(text) as u64 }
    }

    /// The model answers: what it was sent is what came before.
    pub(super) fn turn(&mut self, frame: u64, now: Moment) -> Outcome {
        for (payload, line) in self.backlog.due() {
            self.with = self.with.minus(payload).plus(line);
        }
        let summary = if self.backlog.is_open() {
            let summary = self.observations.summary_of_agent(&self.agent, now, self.limit)?;
            Size { bytes: summary.text().len() as u64, tokens: summary.tokens() }
        } else {
            Size::default()
        };
        self.turns.push(Turn {
            frame,
            without: self.without,
            with: self.with.plus(summary),
            summary,
            calls: std::mem::take(&mut self.calls),
            kept: std::mem::take(&mut self.kept),
        });
        for (payload, line) in std::mem::take(&mut self.fresh) {
            self.backlog.add((payload, line), payload.tokens, line.tokens);
        }
        Ok(())
    }

    /// Something that stands in the context from now on.
    pub(super) fn add(&mut self, size: Size) {
        self.without = self.without.plus(size);
        self.with = self.with.plus(size);
    }

    /// A result of a tool, whose text is in the context already.
    pub(super) fn result(
        &mut self,
        tool: &str,
        arguments: Option<&Value>,
        response: &Response,
        text: &str,
        now: Moment,
    ) -> Outcome<Interception> {
        let mut call = ToolCall::new(&self.agent, tool, response);
        if let Some(arguments) = arguments {
            call = call.with_arguments(arguments);
        }
        let outcome = self.observations.intercept(&call, now)?;
        self.calls += 1;
        if let Some(line) = self.repeats.line(self.observations, &outcome)? {
            let (payload, line) = (self.size(text), self.size(&line));
            if line.tokens < payload.tokens {
                // It comes as a line from the first.
                self.with = self.with.minus(payload).plus(line);
                self.kept += 1;
                return Ok(outcome);
            }
        }
        if let (Some(account), Some(name)) = (&outcome.account, &outcome.stored)
            && let Some(found) = self.observations.get(account, name)?
        {
            self.kept += 1;
            self.fresh.push((self.size(text), self.size(&reference(&found.info))));
        }
        Ok(outcome)
    }

    pub(super) fn counted(&self, text: &str) -> Size {
        self.size(text)
    }

    /// The sums over all turns: what all requests together would have cost, and what they do.
    pub(super) fn totals(&self) -> (Size, Size) {
        let sum = |of: fn(&Turn) -> Size| {
            self.turns.iter().fold(Size::default(), |sum, turn| sum.plus(of(turn)))
        };
        (sum(|turn| turn.without), sum(|turn| turn.with))
    }
}

impl Size {
    fn plus(self, other: Size) -> Size {
        Size {
            bytes: self.bytes.saturating_add(other.bytes),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }

    fn minus(self, other: Size) -> Size {
        Size {
            bytes: self.bytes.saturating_sub(other.bytes),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }

    pub(super) fn to_json(self) -> Object {
        object! { "bytes": self.bytes, "tokens": self.tokens }
    }
}

impl Turn {
    pub(super) fn to_json(self) -> Object {
        object! {
            "frame": self.frame,
            "calls": self.calls,
            "kept": self.kept,
            "without": self.without.to_json(),
            "with": self.with.to_json(),
            "summary": self.summary.to_json(),
        }
    }
}
