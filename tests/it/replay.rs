//! Recorded sessions replayed within budgets: nothing over, no pair cut, every request accepted,
//! the provider's cache kept warm, and figures that add up.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::exporting;
use crate::support::sessions;

use afterimage_testkit::data;

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
};

use afterimage::{
    compress::{Epoch, OutlineEngine},
    export::{Export, ExportOptions},
    hud::{Hud, Message, NativeFormat, RenderedContext},
    id::{FrameSeq, Millis, Role},
    replay::{Replay, ReplayFigures, ReplayPolicy, ReplayedTurn},
    snapshot::PartRef,
    tokens::{Bpe, Memo, TokenCounter},
    veil::{Frame, Source},
    window::Budget,
};
use sessions::Session;

const NOW: Millis = Millis::new(0);

/// The sessions of at least 20 messages, without what is not needed.
static SESSIONS: LazyLock<Vec<Session>> = LazyLock::new(|| {
    let Some(first) = data::recordings(sessions::GROUPS[0]) else { return Vec::new() };
    sessions::sessions(first.parent().unwrap(), 20, 1)
});

/// What counts texts that were counted before.
static COUNTER: LazyLock<Arc<dyn TokenCounter>> =
    LazyLock::new(|| Arc::new(Memo::new(Bpe::o200k())));

fn replay(budget: Budget, policy: ReplayPolicy) -> Replay {
    let hud = Hud::builder(COUNTER.clone()).format(Arc::new(NativeFormat)).build();
    Replay::new(hud, budget, policy, Arc::new(OutlineEngine))
}

fn blocks(budget: Budget) -> Replay {
    replay(budget, ReplayPolicy::Blocks(budget.compression()))
}

/// The frame and the facet of a call or a result.
type Half = (FrameSeq, String);

/// Calls with their results, as a reader of the recording pairs them.
#[derive(Default)]
struct Ledger {
    open: Vec<(String, Half)>,
    pairs: Vec<(Half, Half)>,
    is_agents: bool,
    /// What each frame that shows something has that nobody may cut, and whether it is the
    /// operator's: all of it then.
    uncut: Vec<(FrameSeq, u64, bool)>,
    /// The tokens of all frames as messages, and of what the agent said.
    whole: u64,
    answered: u64,
}

impl Ledger {
    fn push(&mut self, frame: &Frame) {
        let snapshot = frame.rendered_snapshot.as_ref().unwrap();
        if snapshot.is_empty() {
            return;
        }
        let is_agents = frame.source == Source::Agent;
        let tokens = COUNTER.count(snapshot.text()) as u64;
        self.whole += tokens + 4;
        self.answered += if is_agents { tokens } else { 0 };
        if is_agents && !self.is_agents {
            self.open.clear();
        }
        self.is_agents = is_agents;
        let is_operators = snapshot.chunks().any(|chunk| chunk.role() == Some(Role::System));
        let mut uncut = if is_operators { snapshot.exact_tokens().unwrap() } else { 0 };
        for chunk in snapshot.chunks() {
            let half = || (frame.sequence, chunk.facet_ids().next().unwrap().to_owned());
            match chunk.part() {
                PartRef::Call { id, .. } => {
                    self.open.push((id.unwrap_or_default().to_owned(), half()));
                    if !is_operators {
                        uncut += chunk.tokens();
                    }
                }
                PartRef::Result { id } => {
                    let id = id.unwrap_or_default();
                    let answered = self.open.iter().position(|(open, _)| open == id);
                    let Some(at) = answered else { continue };
                    self.pairs.push((self.open.remove(at).1, half()));
                }
                _ => {}
            }
        }
        self.uncut.push((frame.sequence, uncut, is_operators));
    }

    /// The tokens that stay whatever is done: the operator's words, and the calls that wait or that
    /// the newest message answers.
    fn least(&self) -> u64 {
        let mut newest = self.uncut.last().unwrap().0;
        newest = self.open.iter().map(|(_, (call, _))| *call).fold(newest, FrameSeq::min);
        for ((call, _), (result, _)) in self.pairs.iter().rev() {
            if (*call..=*result).contains(&newest) {
                newest = *call;
            }
        }
        let stays =
            self.uncut.iter().filter(|(frame, _, is_operators)| *is_operators || *frame >= newest);
        stays.map(|(_, tokens, _)| tokens + 4).sum::<u64>() + 3
    }

    /// The pairs of which a context holds one half.
    fn halves(&self, context: &RenderedContext) -> Vec<&(Half, Half)> {
        let chunks = context.messages().iter().flat_map(Message::chunks);
        let parts = chunks.filter_map(|(_, chunk)| match chunk.part() {
            PartRef::Call { .. } | PartRef::Result { .. } => {
                Some(chunk.facet_ids().next().unwrap().to_owned())
            }
            _ => None,
        });
        let there: HashSet<String> = parts.collect();
        let is_half = |((_, call), (_, result)): &&(Half, Half)| {
            there.contains(call) != there.contains(result)
        };
        self.pairs.iter().filter(is_half).collect()
    }
}

/// A request as it was sent.
#[derive(Clone, PartialEq)]
struct Sent {
    messages: Vec<Said>,
}

#[derive(Clone, PartialEq)]
struct Said {
    role: Role,
    text: String,
    tokens: u64,
    frames: Option<(FrameSeq, FrameSeq)>,
}

impl Sent {
    fn of(context: &RenderedContext) -> Self {
        let said = |message: &Message| Said {
            role: message.role(),
            text: message.content().into_owned(),
            tokens: message.tokens(),
            frames: message.frames(),
        };
        Self { messages: context.messages().iter().map(said).collect() }
    }

    /// The tokens that a provider has seen in `before` from the first on.
    fn cached(&self, before: &Self) -> u64 {
        let mut tokens = 0;
        for (now, before) in self.messages.iter().zip(&before.messages) {
            if now.role != before.role {
                break;
            }
            if now.text != before.text {
                let same = now.text.chars().zip(before.text.chars()).take_while(|(a, b)| a == b);
                let same: String = same.map(|(a, _)| a).collect();
                tokens += COUNTER.count(&same) as u64;
                break;
            }
            tokens += now.tokens + 4;
        }
        tokens
    }

    /// What was sent before stays: all of it but the tail, or what is before the epoch.
    fn assert_grew_from(&self, before: &Self, epoch: Option<&Epoch>, place: &str) {
        let stays = |said: &&Said| {
            said.frames.is_some_and(|(_, to)| epoch.is_none_or(|epoch| to < epoch.from))
        };
        for (index, said) in before.messages.iter().take_while(stays).enumerate() {
            let now =
                self.messages.get(index).unwrap_or_else(|| panic!("{place}: {index} is gone"));
            assert!(
                (now.role, &now.text, now.frames) == (said.role, &said.text, said.frames),
                "{place}: message {index} changed, epoch {epoch:?}\n{:.300}\n{:.300}",
                said.text,
                now.text
            );
        }
    }
}

/// Counts every message afresh, as a provider would.
fn assert_counted(context: &RenderedContext, place: &str) {
    static PLAIN: LazyLock<Bpe> = LazyLock::new(Bpe::o200k);
    let count = |message: &Message| PLAIN.count(&message.content()) as u64;
    let sum: u64 = context.messages().iter().map(count).sum();
    let framing = 4 * context.messages().len() as u64 + 3;
    assert_eq!(context.tokens().total, sum + framing, "{place}");
}

/// Checks of one session, turn by turn.
struct Checks<'s> {
    session: &'s Session,
    budget: Budget,
    ledger: Ledger,
    last: Option<Sent>,
    figures: ReplayFigures,
}

impl Checks<'_> {
    fn turn(&mut self, turn: &ReplayedTurn<'_>, is_last: bool) {
        let number = self.figures.turns;
        let place = format!("{} at {}, turn {number}", self.session.name, self.budget.max_tokens);
        self.figures.turns += 1;
        let Some(context) = turn.context else {
            self.figures.unfit += 1;
            let least = self.ledger.least();
            assert!(least > self.budget.room(), "{place}: {least} would fit");
            return;
        };
        let total = context.tokens().total;
        assert!(total <= self.budget.room(), "{place}: {total}");
        let halves = self.ledger.halves(context);
        assert!(halves.is_empty(), "{place}: {halves:?}");
        if turn.epoch.is_some() || number.is_multiple_of(8) || is_last {
            assert_counted(context, &place);
            let export = Export::of(turn.history, context).unwrap();
            exporting::check(&export, &ExportOptions::default(), &place);
        }
        let sent = Sent::of(context);
        if let Some(before) = &self.last {
            sent.assert_grew_from(before, turn.epoch.as_ref(), &place);
            self.figures.tokens_cached += sent.cached(before).min(total);
        }
        self.figures.tokens_sent += total;
        if self.ledger.whole > self.budget.room() {
            self.figures.full_sent += total;
            self.figures.full_room += self.budget.room();
        }
        let has_blocks = turn.epoch.as_ref().is_some_and(|epoch| !epoch.blocks.is_empty());
        self.figures.compressions += u64::from(has_blocks);
        self.last = Some(sent);
    }
}

/// The figures of a session, which are those that its contexts come to.
fn check(session: &Session, budget: Budget) -> ReplayFigures {
    let mut replay = blocks(budget);
    let mut checks = Checks {
        session,
        budget,
        ledger: Ledger::default(),
        last: None,
        figures: ReplayFigures::default(),
    };
    let last = session.frames.len() - 1;
    for (index, frame) in session.frames.iter().enumerate() {
        if let Some(turn) = replay.push(frame.clone(), NOW).unwrap() {
            checks.turn(&turn, index == last);
        }
        checks.ledger.push(&replay.history().frames().last().unwrap());
    }
    let figures = replay.figures();
    let (needed, kept) = (figures.identifiers_needed, figures.identifiers_kept);
    assert!(kept <= needed, "{}", session.name);
    let mut counted = checks.figures;
    counted.tokens_answered = checks.ledger.answered;
    counted.survival = figures.survival;
    (counted.identifiers_needed, counted.identifiers_kept) = (needed, kept);
    assert_eq!(figures, counted, "{}", session.name);
    figures
}

/// What a session cost by blocks, by a window that slides, and with all that was said.
#[derive(Clone, Copy, Debug, Default)]
struct Compared {
    blocks: ReplayFigures,
    sliding: ReplayFigures,
    raw: ReplayFigures,
}

impl Compared {
    fn of(session: &Session, budget: Budget) -> Self {
        let figures = |policy: ReplayPolicy| {
            let mut replay = replay(budget, policy);
            for frame in &session.frames {
                replay.push(frame.clone(), NOW).unwrap();
            }
            replay.figures()
        };
        let (sliding, raw) = (figures(ReplayPolicy::Sliding), figures(ReplayPolicy::Unlimited));
        Self { blocks: check(session, budget), sliding, raw }
    }

    fn add(&mut self, other: &Self) {
        self.blocks += other.blocks;
        self.sliding += other.sliding;
        self.raw += other.raw;
    }

    /// What was billed, as a share of what a window that slides is billed.
    fn billed(&self) -> f64 {
        self.blocks.billed_tokens() as f64 / self.sliding.billed_tokens().max(1) as f64
    }
}

/// The bars of a budget: the most that is billed, by all sessions and by those that are ever larger
/// than the budget, and the least of these that is served from the cache and that is used.
struct Bars {
    billed: f64,
    billed_by_larger: f64,
    cached: f64,
    room_used: f64,
}

/// Replays all sessions at a budget.
fn assert_replays(tokens: u64, bars: &Bars) {
    let budget = Budget::new(tokens);
    let (mut all, mut larger) = (Compared::default(), Compared::default());
    let mut groups = [Compared::default(); sessions::GROUPS.len()];
    for session in SESSIONS.iter() {
        let compared = Compared::of(session, budget);
        all.add(&compared);
        groups[session.group].add(&compared);
        let (billed, raw) = (compared.blocks.billed_tokens(), compared.raw.billed_tokens());
        if billed > raw {
            println!("{tokens}: {} costs {billed}, and {raw} without compression", session.name);
        }
        if compared.blocks.full_room > 0 {
            larger.add(&compared);
        }
    }
    for figures in [&all.blocks, &all.sliding] {
        assert_eq!((figures.over_budget, figures.orphans), (0, 0));
    }
    let found = format!(
        "{tokens}: billed {:.4}, by larger sessions {:.4}; cached {:.4}, {:.4}; room used {:.4}",
        all.billed(),
        larger.billed(),
        all.blocks.cached_ratio(),
        larger.blocks.cached_ratio(),
        larger.blocks.room_used().unwrap_or(1.0),
    );
    println!("{found}");
    // No group of sessions costs more than if nothing had been compressed.
    for (group, compared) in sessions::GROUPS.into_iter().zip(&groups) {
        let (billed, raw) = (compared.blocks.billed_tokens(), compared.raw.billed_tokens());
        println!("{tokens}: {group} costs {billed}, and {raw} without compression");
        assert!(billed <= raw, "{tokens}: {group} costs {billed}, and {raw} without compression");
    }
    assert!(all.billed() <= bars.billed, "{found}");
    assert!(larger.billed() <= bars.billed_by_larger, "{found}");
    assert!(all.blocks.cached_ratio() >= bars.cached, "{found}");
    assert!(larger.blocks.room_used().unwrap_or(1.0) >= bars.room_used, "{found}");
}

#[test]
fn sessions_replay_within_4_000_tokens() {
    if !SESSIONS.is_empty() {
        // Measured: 0.8267 cached, 0.7610 of the room used. The bars were 0.828 and 0.766 until the
        // marks of quotes and the heads of blocks and ledgers took their share of this small room, and
        // 0.827 until labels within items stood in quotes, and pasted logs were told from the user's words.
        let (billed, billed_by_larger, cached, room_used) = (0.545, 0.50, 0.8265, 0.76);
        assert_replays(4_000, &Bars { billed, billed_by_larger, cached, room_used });
    }
}

#[test]
fn sessions_replay_within_8_000_tokens() {
    if !SESSIONS.is_empty() {
        // Measured: 0.2802 billed by larger sessions. The bar was 0.28 until labels within items stood
        // in quotes, and pasted logs were told from the user's words.
        let (billed, billed_by_larger, cached, room_used) = (0.37, 0.2805, 0.89, 0.67);
        assert_replays(8_000, &Bars { billed, billed_by_larger, cached, room_used });
    }
}

#[test]
fn sessions_replay_within_32_000_tokens() {
    if !SESSIONS.is_empty() {
        // Measured: 0.3103 and 0.2614 billed. The bars were 0.31 and 0.26 until a mask told from a
        // program's output that its command failed, and what else its call says.
        let (billed, billed_by_larger, cached, room_used) = (0.311, 0.262, 0.946, 0.63);
        assert_replays(32_000, &Bars { billed, billed_by_larger, cached, room_used });
    }
}

#[test]
fn a_replay_is_the_same_each_time() {
    let budget = Budget::new(6_000);
    for session in SESSIONS.iter().step_by(5) {
        let (mut one, mut other) = (blocks(budget), blocks(budget));
        for frame in &session.frames {
            let turn = one.push(frame.clone(), NOW).unwrap();
            let again = other.push(frame.clone(), NOW).unwrap();
            let requests = [turn, again].map(|turn| {
                let turn = turn?;
                let context = turn.context.map(Sent::of);
                Some((context.map(|sent| sent.messages), turn.epoch, turn.dropped, turn.shortened))
            });
            let [one, other] = requests;
            assert!(one == other, "{}", session.name);
        }
        assert_eq!(one.figures(), other.figures());
    }
}

#[test]
fn the_last_error_of_a_log_without_calls_is_measured() {
    let logs: Vec<&Session> = SESSIONS.iter().filter(|session| session.group == 3).collect();
    let mut wanted = 0;
    for session in &logs {
        let mut replay = blocks(Budget::new(4_000)).measure_survival();
        for frame in &session.frames {
            replay.push(frame.clone(), NOW).unwrap();
        }
        wanted += replay.figures().survival.last_error.wanted;
    }
    assert!(logs.is_empty() || wanted > 0, "{} logs", logs.len());
}
