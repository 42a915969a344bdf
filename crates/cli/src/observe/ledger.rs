//! What the contexts of a session cost, turn by turn.

use afterimage::{
    json::Value,
    observe::{Interception, Moment, Observations, Response, ToolCall},
    session::bridge::observed::{Backlog, Repeats, reference},
    tokens::TokenCounter,
};

use crate::{answer::answer, failure::Outcome};

/// A session on its way through interception.
pub(super) struct Ledger<'o> {
    observations: &'o Observations,
    counter: &'o dyn TokenCounter,
    limit: usize,
    /// Who plays it.
    agent: String,
    /// What gave way to a line, in the order of the frames.
    lines: Vec<Line>,
    /// The results since the last turn that may give way.
    fresh: Vec<Line>,
    /// Those that were shown.
    backlog: Backlog<Line>,
    /// The payloads that the model has read.
    repeats: Repeats,
    kept: u64,
    calls: u64,
    pub(super) turns: Vec<Turn>,
}

/// A result, and the line that may stand for it.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// The frame of the result.
    frame: u64,
    payload: Size,
    line: Size,
    /// Whether the model has read the payload, and so needs the summary.
    was_shown: bool,
}

answer! {
    /// Bytes and tokens of a text.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Size {
        /// its bytes
        bytes: u64,
        /// its tokens
        tokens: u64,
    }

    /// What the model was sent before it answered.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Turn {
        /// the frame with the answer
        frame: u64,
        /// the results since the last turn
        calls: u64,
        /// those of them that are observations
        kept: u64,
        /// what the model was sent without interception
        without: Size,
        /// what it was sent with interception
        with: Size,
        /// the share of the summary; 0 as long as lines and a summary would cost more than they save
        summary: Size,
    }
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
            lines: Vec::new(),
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

    /// The model answers: it was sent `without`, less what gave way of the frames that were in the
    /// context.
    pub(super) fn turn(
        &mut self,
        frame: u64,
        without: Size,
        is_in_context: impl Fn(u64) -> bool,
        now: Moment,
    ) -> Outcome {
        self.lines.extend(self.backlog.due());
        let (mut with, mut saved) = (without, 0_u64);
        for Line { payload, line, was_shown, .. } in
            self.lines.iter().filter(|line| is_in_context(line.frame))
        {
            with = with.minus(*payload).plus(*line);
            let less = payload.tokens.saturating_sub(line.tokens);
            saved = saved.saturating_add(if *was_shown { less } else { 0 });
        }
        // Of what a compaction took away nothing is left to sum up.
        let summary = if self.backlog.is_open() && saved > self.limit as u64 {
            let summary = self.observations.summary_of_agent(&self.agent, now, self.limit)?;
            Size { bytes: summary.text().len() as u64, tokens: summary.tokens() }
        } else {
            Size::default()
        };
        self.turns.push(Turn {
            frame,
            without,
            with: with.plus(summary),
            summary,
            calls: std::mem::take(&mut self.calls),
            kept: std::mem::take(&mut self.kept),
        });
        for line in std::mem::take(&mut self.fresh) {
            self.backlog.add(line, line.payload.tokens, line.line.tokens);
        }
        Ok(())
    }

    /// A result of a tool, whose text is in the context already.
    pub(super) fn result(
        &mut self,
        frame: u64,
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
                self.lines.push(Line { frame, payload, line, was_shown: false });
                self.kept += 1;
                return Ok(outcome);
            }
        }
        if let (Some(account), Some(name)) = (&outcome.account, &outcome.stored)
            && let Some(found) = self.observations.get(account, name)?
        {
            self.kept += 1;
            let (payload, line) = (self.size(text), self.size(&reference(&found.info)));
            self.fresh.push(Line { frame, payload, line, was_shown: true });
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
    pub(super) fn plus(self, other: Size) -> Size {
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
}
