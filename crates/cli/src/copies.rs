//! Answers that stand in several sessions: a session that was forked, or resumed into another file,
//! may hold those of the first one without saying so.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use afterimage::{request::Exchange, session::Viewer};
use indexmap::IndexMap;

use crate::{
    args::{Input, Rendering},
    failure::Outcome,
    input::{self, Source},
    lens::{Counting, Lens},
    output::note,
    text::counted,
    when::written,
};

/// The session in which each answer counts that stands in several.
#[derive(Default)]
pub(crate) struct Copies {
    counted: HashMap<u64, Holder>,
    /// Two sessions, and how many answers of the first count in the second, where that one has others
    /// too: either may be the copy.
    unsure: Vec<([Arc<str>; 2], u64)>,
}

/// A session of a file. Two files that hold the same session as far are one, as a file and its archive:
/// of these each counts. The number is that of its answers.
type Holder = (Arc<str>, usize);

/// The answers of a session, and when it ended.
pub(crate) struct SessionAnswers {
    pub(crate) session: Arc<str>,
    pub(crate) ended: Option<i64>,
    pub(crate) answers: Vec<u64>,
}

impl SessionAnswers {
    fn holder(&self) -> Holder {
        (Arc::clone(&self.session), self.answers.len())
    }
}

impl Copies {
    /// An answer counts in the session that ended first: the others went on from it.
    pub(crate) fn among(mut sessions: Vec<SessionAnswers>) -> Self {
        sessions
            .sort_by(|one, other| (one.ended, &one.session).cmp(&(other.ended, &other.session)));
        let mut first: HashMap<u64, &SessionAnswers> = HashMap::new();
        let mut copies = Self::default();
        for of in &sessions {
            let own: HashSet<u64> = of.answers.iter().copied().collect();
            let mut holders: IndexMap<Holder, (u64, bool)> = IndexMap::new();
            for answer in &of.answers {
                let holder = *first.entry(*answer).or_insert(of);
                if holder.holder() != of.holder() {
                    let goes_on = || holder.answers.iter().any(|answer| !own.contains(answer));
                    let shared = holders.entry(holder.holder()).or_insert_with(|| (0, goes_on()));
                    shared.0 += 1;
                    copies.counted.insert(*answer, holder.holder());
                }
            }
            for ((holder, _), (count, _)) in holders.into_iter().filter(|(_, shared)| shared.1) {
                copies.unsure.push(([Arc::clone(&of.session), holder], count));
            }
        }
        copies
    }

    /// Says that nothing tells the copies of sessions that are shown from their originals, where that is
    /// so.
    pub(crate) fn note(&self, is_shown: impl Fn(&str) -> bool) {
        let unsure = self.unsure.iter().filter(|(of, _)| of.iter().any(|of| is_shown(of)));
        let (mut count, mut sessions) = (0, HashSet::new());
        for (both, answers) in unsure {
            count += answers;
            sessions.extend(both);
        }
        if count > 0 {
            let several = if sessions.len() > 2 { "several of " } else { "" };
            note(&format!(
                "{} in {several}{}, and nothing tells which session made them: each counts in the \
                 one that ended first",
                if count == 1 {
                    "1 answer stands".to_owned()
                } else {
                    format!("{} stand", counted(count, "answer"))
                },
                counted(sessions.len() as u64, "session"),
            ));
        }
    }

    /// What tells this state of a session's copies from others; 0 where it has none.
    pub(crate) fn print(&self, answers: &[u64], own: (&str, usize)) -> u64 {
        let holders =
            answers.iter().filter_map(|answer| Some((answer, self.elsewhere(*answer, own)?)));
        let prints = holders.map(|(answer, session)| {
            session.bytes().fold(*answer, |print, byte| print.rotate_left(5) ^ u64::from(byte))
        });
        prints.fold(0, u64::wrapping_add)
    }

    /// The same of the files of a command. Where there are several, they are read for it; what cannot
    /// be read is told by the command itself.
    pub(crate) fn of_files(input: &Input) -> Outcome<Self> {
        let lens = Lens::new(&Rendering { format: None, tokenizer: None }, Counting::OnDemand)?;
        let found = input::of_each(input, |source| answers(source, &lens))?;
        let copies = Self::among(found.into_iter().flatten().collect());
        copies.note(|_| true);
        Ok(copies)
    }

    /// The session that an answer counts in, where it is another one than this, which has so many.
    pub(crate) fn elsewhere(&self, answer: u64, (own, count): (&str, usize)) -> Option<&Arc<str>> {
        let (session, of) = self.counted.get(&answer)?;
        (&**session != own || *of != count).then_some(session)
    }

    /// Says of answers of a file that they count elsewhere.
    pub(crate) fn mark(&self, exchanges: &mut [&mut Exchange]) {
        let mut counts: HashMap<Arc<str>, usize> = HashMap::new();
        let own = exchanges.iter().filter(|of| of.copied.is_none() && of.print.is_some());
        own.for_each(|of| *counts.entry(Arc::clone(&of.session)).or_default() += 1);
        for exchange in exchanges {
            let count = counts.get(&exchange.session).copied().unwrap_or_default();
            let own = (&*exchange.session, count);
            let session = exchange.print.and_then(|answer| self.elsewhere(answer, own));
            if let Some(session) = session.map(Arc::clone) {
                exchange.count_in(Some(session));
            }
        }
    }
}

/// The answers of the sessions of a file that may be copies, or may have been copied.
fn answers(source: &mut Source, lens: &Lens) -> Outcome<Vec<SessionAnswers>> {
    let mut sessions: IndexMap<Arc<str>, Vec<u64>> = IndexMap::new();
    let mut ended = None;
    let format = source.format();
    if format.may_hold_copies() {
        let mut viewer = Viewer::new(&lens.hud, format);
        while let Some(record) = source.next() {
            let viewed = source.see(&mut viewer, record?)?;
            ended = ended.max(viewed.frame.timestamp.as_deref().and_then(written));
        }
        for exchange in viewer.reported().filter(|exchange| exchange.copied.is_none()) {
            sessions.entry(Arc::clone(&exchange.session)).or_default().extend(exchange.print);
        }
    }
    let of = |(session, answers)| SessionAnswers { session, ended, answers };
    Ok(sessions.into_iter().map(of).collect())
}
