//! What a session has of the budget.

use std::{io::Write, sync::Arc};

use afterimage::{bill::MediaItem, request::RequestOverhead, veil::Frame};

use crate::{
    answer::answer,
    compress::report::OverheadAnswer,
    failure::Outcome,
    lens::{Counts, CountsAnswer, LacksAnswer},
    output::Output,
    style,
    text::counted,
};

/// What a session has of the budget.
pub(super) struct SessionBudget {
    session: Arc<str>,
    pub(super) counts: Counts,
    /// What is left for its tools, its texts, its images and its documents.
    pub(super) room: u64,
    /// What its requests add to their messages, which takes room of it.
    pub(super) overhead: RequestOverhead,
    /// The images and documents that take no room, since nobody knows how much.
    unknown_media: u64,
}

impl SessionBudget {
    /// What its transcript lacks takes of the budget.
    pub(super) fn new(
        session: &Arc<str>,
        counts: Counts,
        overhead: RequestOverhead,
        budget: u64,
    ) -> Outcome<Self> {
        let room = counts.room(budget, session)?;
        Ok(Self { session: Arc::clone(session), counts, room, overhead, unknown_media: 0 })
    }

    /// Counts the images and documents of a frame that no rule of the model counts.
    pub(super) fn look(&mut self, frame: &Frame, model: Option<&str>) {
        let items = MediaItem::of_frame(frame).into_iter();
        let unknown = items.filter(|item| item.tokens(model).is_err()).count();
        self.unknown_media += unknown as u64;
    }

    pub(super) fn answer<'b>(&'b self, file: &'b str) -> BudgetAnswer<'b> {
        BudgetAnswer {
            file,
            session: &self.session,
            budget: self.room,
            unknown_media: self.unknown_media,
            overhead: self.overhead.into(),
            counts: self.counts.answer(),
            lacks: self.counts.lacks_answer(),
        }
    }

    /// Says what was taken off the budget, and what could not be.
    pub(super) fn print(&self, out: &mut Output) -> Outcome {
        let dim = out.paint.style(style::DIM);
        if let Some(lacks) = self.counts.lacks.filter(|lacks| lacks.tokens > 0) {
            let (tokens, from) = (counted(lacks.tokens, "token"), lacks.from());
            writeln!(
                out,
                "        {dim}{tokens} of the budget are for what the transcript lacks{from}{dim:#}"
            )?;
        }
        if self.overhead.total() > 0 {
            let tokens = counted(self.overhead.total(), "token");
            writeln!(out, "        {dim}{tokens} of the budget are for tools{dim:#}")?;
        }
        if self.unknown_media > 0 {
            let of = counted(self.unknown_media, "media item");
            writeln!(out, "        {dim}{of} of unknown cost take nothing of it{dim:#}")?;
        }
        Ok(())
    }
}

answer! {
    /// What a session had of the budget.
    pub(crate) struct BudgetAnswer<'b> {
        /// the file
        file: &'b str,
        /// the session
        session: &'b str,
        /// what is left for its texts, images, documents and tools
        budget: u64,
        /// the images and documents that take nothing of it, since nobody knows how much
        unknown_media: u64,
        ..overhead: OverheadAnswer,
        ..counts: CountsAnswer<'b>,
        ..lacks: LacksAnswer,
    }
}
