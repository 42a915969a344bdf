//! Recorded API traffic: requests and responses. Each request repeats the conversation so far.
//!
//! A conversation is its last request and the response to it, and becomes a session.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use super::{
    Api, ClearedPart, Exchange, Provenance,
    echo::Echo,
    exchange::Asked,
    generate_content::CANDIDATES,
    interaction::Interaction,
    items, joining,
    kept::{self, Kept, KeptCall, KeptItems, State},
    read_exchange::{self, ReadExchange},
    request_body::ReadBodies,
    request_prints::{RequestPrints, operator_messages},
    sink::Sink,
    threads::{self, Budget, MessageHash, Print, ThreadId, Threads},
};
use crate::{
    id::FrameSeq,
    json::{Object, ObjectExt, Value},
};

/// How many earlier threads a request is looked for in, besides its own messages: a retry, or what
/// follows a response, is next to it.
const LOOK_BACK: usize = 64;

/// Calls by which clients keep something at a provider, or fetch it.
const KEPT: &str = "items that a provider keeps";

/// What may be given again in a session that forks from another, and from outcomes.
const REPEATED: Budget = Budget { messages: 1 << 16, bytes: 64 << 20 };

/// Reads `{"interactions": [{uri, request, status, response}]}`, cassettes, and HAR archives.
#[derive(Default)]
pub(super) struct WireReader {
    /// What the sessions are called after; by default they have numbers.
    name: Option<String>,
    conversations: Vec<Conversation>,
    /// Every exchange, where the caller wants them.
    exchanges: Vec<Taken>,
    /// The conversation whose last request has these messages.
    ends: HashMap<(Api, Print), usize>,
    /// The conversations of Chat Completions whose last request has these messages behind those of
    /// the operator, which may differ from turn to turn; the newest last.
    after_operator: HashMap<Print, Vec<usize>>,
    threads: Threads,
    bodies: ReadBodies,
    /// What the responses answered, with them, by id: a request may build on one.
    responses: HashMap<String, ThreadId>,
    /// What a provider holds of the conversations that it keeps, by their ids, with the last response.
    kept: HashMap<Arc<str>, (ThreadId, Option<Arc<str>>)>,
    /// What calls say that it keeps besides, and responses that were not recorded.
    stored: KeptItems,
    /// What a request went on from that named one of these, as long as that is the same.
    kept_bases: HashMap<Arc<str>, KeptBase>,
    /// What the provider answers in the background, by the ids of the responses, until that is fetched.
    pending: HashMap<String, Pending>,
    /// The responses that were taken, by their ids and what was said up to their ends: another program,
    /// or two of them around one another, may write a response down twice. Our recorder does not.
    taken: HashSet<(String, Print)>,
    /// Calls of a provider's tools with their outcome, by the id of the item.
    outcomes: HashMap<String, Value>,
    /// What the provider cleared of the requests of a conversation, from the first such request on.
    cleared: HashMap<usize, ClearedRequests>,
}

/// A request that is answered in the background.
struct Pending {
    asked: Interaction,
    read: ReadExchange,
    /// The print of its messages.
    print: Print,
}

/// The messages of answered requests by their number, with what was cleared of them.
type ClearedRequests = BTreeMap<usize, (Print, Vec<ClearedPart>)>;

/// What the last request of a conversation holds, and the response to it.
struct Conversation {
    api: Api,
    /// Where the last exchange stands in the file, from one.
    line: u64,
    /// The system prompt in a field of its own.
    system: Option<Value>,
    /// Messages or items of the request, then of the response; none of that if it failed.
    thread: ThreadId,
    /// The print of those of the request.
    request: Print,
    /// How many of them the operator wrote, the first ones.
    operator: usize,
    /// The print of those behind them.
    after_operator: Print,
    /// What was answered, where something was.
    answer: Option<Echo>,
    /// Whether an earlier request of the conversation was answered.
    was_answered: bool,
}

/// An exchange whose conversation is known, and not yet its session.
struct Taken {
    exchange: Exchange,
    conversation: usize,
    prints: RequestPrints,
    /// The print of all messages, in Chat Completions of those behind the operator's; `None` where
    /// there is none.
    end: Option<Print>,
    has_system: bool,
}

/// What a provider kept before a request.
struct KeptBase {
    states: Vec<Arc<State>>,
    thread: ThreadId,
    kept: Arc<Kept>,
}

impl WireReader {
    /// An object with `interactions`, each of them a request to somewhere.
    pub(super) fn is_document(value: &Value) -> bool {
        let has_one = |list: &[Value]| list.iter().any(Interaction::is_one);
        interactions(value).is_some_and(has_one) || Self::is_log(value)
    }

    /// A call as gateways log it, by line or in a list: a request and its response in one object.
    pub(super) fn is_log(value: &Value) -> bool {
        match value.as_array() {
            Some(list) => !list.is_empty() && list.iter().all(Interaction::is_logged_call),
            None => Interaction::is_logged_call(value),
        }
    }

    /// A reader of exchanges that name a conversation: the first session that they make is called
    /// that, the others have a number behind it.
    pub(super) fn of_conversation(name: Option<&str>) -> Self {
        Self { name: name.map(str::to_owned), ..Self::default() }
    }

    /// Takes the next exchange of the source.
    pub(super) fn take(&mut self, mut interaction: Interaction, sink: &mut Sink) {
        let call = KeptCall::of(&interaction);
        // A recorder that writes no unknown words has no id in the address.
        let by_address = kept::fetched_id(&interaction);
        let mut ids = by_address.into_iter().chain(call.as_ref().and_then(KeptCall::response_id));
        let known = ids.find(|id| self.pending.contains_key(*id)).map(str::to_owned);
        if let Some(id) = &known {
            sink.skip(KEPT);
            // Most look whether it is there yet.
            if !read_exchange::tells_more(&interaction.response) {
                return;
            }
            if let Some(Pending { asked, .. }) = self.pending.remove(id) {
                interaction = asked.with_fetched(interaction);
            }
        } else if let Some(call) = call {
            sink.skip(KEPT);
            return self.keep(call);
        } else if by_address.is_some() {
            return sink.skip("other traffic");
        }
        let mut read = match read_exchange::read(&interaction, &mut self.bodies) {
            Ok(read) => read,
            Err(reason) => {
                let reason = match interaction.unread_api() {
                    Some(api) => sink.unread_request(&api),
                    None => reason.to_owned(),
                };
                return sink.unknown(interaction.line, reason, interaction.into_json());
            }
        };
        // The rest of a stream does not say it again.
        read.reply_id = known.or(read.reply_id);
        let is_beside = read.is_pending || !self.pending.is_empty();
        let hashes = if is_beside { self.threads.hashes(&read.messages) } else { Vec::new() };
        let mut before: Vec<Print> = Print::default().running(&hashes).collect();
        let print = before.pop().unwrap_or_default();
        let goes_on_from = |id: &str, of: &Pending| {
            read.exchange.previous_response() == Some(id)
                || read.kept_in.is_some() && read.kept_in == of.read.kept_in
                || read.exchange.asked == of.read.exchange.asked && before.contains(&of.print)
        };
        self.add_pending(goes_on_from, sink);
        let Some(id) = read.reply_id.clone().filter(|_| read.is_pending) else {
            return self.add(&interaction, read, sink);
        };
        let known = self.pending.insert(id, Pending { asked: interaction, read, print });
        if let Some(Pending { asked, read, .. }) = known {
            self.add(&asked, read, sink);
        }
    }

    /// Adds these of the requests that are answered in the background, in their order.
    fn add_pending(&mut self, is_due: impl Fn(&str, &Pending) -> bool, sink: &mut Sink) {
        let due = self.pending.extract_if(|id, of| is_due(id, of)).map(|(_, of)| of);
        let mut due: Vec<Pending> = due.collect();
        due.sort_by_key(|of| of.asked.line);
        due.into_iter().for_each(|of| self.add(&of.asked, of.read, sink));
    }

    /// Adds an exchange to its conversation.
    fn add(&mut self, interaction: &Interaction, read: ReadExchange, sink: &mut Sink) {
        let ReadExchange {
            mut exchange,
            system,
            messages,
            reply,
            reply_id,
            kept_in,
            cleared,
            is_pending,
        } = read;
        let is_recorded = interaction.is_recorded;
        let (api, line) = (exchange.api, interaction.line);
        let has_system = system.is_some();
        let is_failed = reply.is_none();
        if is_failed {
            sink.skip("failed response");
        }
        note_alternatives(reply.iter().flatten(), line, sink);
        let reply: Vec<Arc<Value>> = reply.unwrap_or_default().into_iter().map(Arc::new).collect();
        for item in reply.iter().filter(|item| items::has_outcome(item)) {
            if let Some(id) = item.str_at("id") {
                self.outcomes.insert(id.to_owned(), Value::clone(item));
            }
        }
        let base = self.base_of(&mut exchange);
        let before = base.and_then(|base| self.threads.prints(base).next()).unwrap_or_default();
        let hashes = self.threads.hashes(&messages);
        let operator = operator_messages(api, messages.iter().map(|message| &**message));
        let prints = RequestPrints::of(before, operator, &hashes);
        let after_operator = prints.end(before);
        // What the request begins with is looked up before its own messages are added.
        let with_other_operator = self.continued_with_other_operator(api, &prints, &messages);
        let own = match operator {
            0 => prints.after_operator.clone(),
            _ => before.running(&hashes).collect(),
        };
        let end = own.last().copied().unwrap_or(before);
        let request = self.threads.add(base, messages, &hashes, end);
        let is_unanswered = is_pending && reply.is_empty();
        let answer = (!is_failed).then(|| Echo::of(reply.iter().map(|item| &**item)));
        let hashes: Vec<MessageHash> = reply.iter().map(|item| MessageHash::of(item)).collect();
        let end = end.running(&hashes).last().unwrap_or(end);
        let thread = self.threads.add(Some(request), reply, &hashes, end);
        let whole = self.threads.prints(thread).next();
        if let (false, false, Some(id), Some(whole)) = (is_recorded, is_failed, &reply_id, whole)
            && !self.taken.insert((id.clone(), whole))
        {
            return sink.skip("repeated response");
        }
        let kept_in = kept_in.filter(|_| !is_failed);
        let reply_id = reply_id.filter(|_| api == Api::Responses);
        self.remember_answer(thread, reply_id, kept_in);
        let request = self.threads.prints(request).next().unwrap_or_default();
        let of_base = base.into_iter().flat_map(|base| self.threads.prints(base)).take(LOOK_BACK);
        let continued =
            own.into_iter().rev().chain(of_base).find_map(|print| self.ends.remove(&(api, print)));
        let continued = continued.or(with_other_operator);
        let index = continued.unwrap_or(self.conversations.len());
        if !is_failed && (!cleared.is_empty() || self.cleared.contains_key(&index)) {
            let requests = self.cleared.entry(index).or_default();
            requests.insert(request.len(), (request, cleared));
        }
        if sink.keeps_exchanges() {
            let exchange = with_bodies(exchange, interaction, sink);
            let end = Some(after_operator).filter(|_| !request.is_empty() && !is_unanswered);
            self.exchanges.push(Taken { exchange, conversation: index, prints, end, has_system });
        }
        let mut next = Conversation {
            api,
            line,
            system,
            thread,
            request,
            operator,
            after_operator,
            answer,
            was_answered: false,
        };
        self.forget_request_of(index);
        match self.conversations.get_mut(index) {
            Some(earlier) => {
                sink.skip("earlier request");
                next.was_answered = earlier.was_answered || earlier.answer.is_some();
                // An answer outlives an attempt at the same messages that failed, or was an earlier one.
                let is_outlived = is_failed || line < earlier.line;
                if !(is_outlived && earlier.request == request && earlier.answer.is_some()) {
                    *earlier = next;
                }
            }
            None => self.conversations.push(next),
        }
        self.remember_request((api, request), after_operator, index);
    }

    /// Looks the last request of a conversation up from now on, by all of its messages and by those
    /// behind the operator's. A request without messages is continued by none.
    fn remember_request(&mut self, request: (Api, Print), after_operator: Print, index: usize) {
        if !request.1.is_empty() {
            self.ends.insert(request, index);
        }
        if request.0 == Api::Chat && !after_operator.is_empty() {
            let known = self.after_operator.entry(after_operator).or_default();
            if known.len() == LOOK_BACK {
                known.remove(0);
            }
            known.push(index);
        }
    }

    /// The thread that a request goes on from by name, with what its provider kept since.
    fn base_of(&mut self, exchange: &mut Exchange) -> Option<ThreadId> {
        let Asked { previous, conversation, .. } = &exchange.asked;
        let name = previous.as_ref().or(conversation.as_ref())?;
        let Some(states) = self.stored.before(name, |id| self.responses.contains_key(id)) else {
            return match previous {
                Some(previous) => self.responses.get(&**previous).copied(),
                None => self.kept.get(name).map(|(thread, _)| *thread),
            };
        };
        let is_same = |of: &&KeptBase| {
            of.states.len() == states.len()
                && of.states.iter().zip(&states).all(|(one, other)| Arc::ptr_eq(one, other))
        };
        if let Some(known) = self.kept_bases.get(name).filter(is_same) {
            exchange.kept = Some(Arc::clone(&known.kept));
            return Some(known.thread);
        }
        let states: Vec<Arc<State>> = states.into_iter().cloned().collect();
        let (items, kept) = kept::joined(&states);
        let after = kept.after.as_ref().and_then(|after| self.responses.get(&**after)).copied();
        let before = after.and_then(|after| self.threads.prints(after).next()).unwrap_or_default();
        let hashes: Vec<MessageHash> = items.iter().map(|item| MessageHash::of(item)).collect();
        let end = before.running(&hashes).last().unwrap_or(before);
        let thread = self.threads.add(after, items, &hashes, end);
        let kept = Arc::new(kept);
        exchange.kept = Some(Arc::clone(&kept));
        self.kept_bases.insert(Arc::clone(name), KeptBase { states, thread, kept });
        Some(thread)
    }

    /// Remembers what was said up to the end of an answer, by its id and by the conversation that its
    /// provider keeps it in.
    fn remember_answer(&mut self, thread: ThreadId, id: Option<String>, kept_in: Option<Arc<str>>) {
        if let Some(conversation) = kept_in {
            self.stored.forget(&conversation);
            self.kept.insert(conversation, (thread, id.as_deref().map(Arc::from)));
        }
        if let Some(id) = id {
            self.responses.insert(id, thread);
        }
    }

    /// Takes a call by which a provider keeps something, or says what it keeps.
    fn keep(&mut self, call: KeptCall) {
        let id = call.id();
        let answered = match self.kept.get(id) {
            Some((_, last)) => last.clone(),
            None if self.responses.contains_key(&**id) => return,
            None => None,
        };
        self.stored.take(call, answered);
    }

    /// No longer looks the last request of a conversation up, since another one goes on from it.
    fn forget_request_of(&mut self, index: usize) {
        let Some(earlier) = self.conversations.get(index) else { return };
        // It may be known by another prompt of its operator.
        let key = (earlier.api, earlier.request);
        if self.ends.get(&key) == Some(&index) {
            self.ends.remove(&key);
        }
        if let Some(known) = self.after_operator.get_mut(&earlier.after_operator) {
            known.retain(|known| *known != index);
            if known.is_empty() {
                self.after_operator.remove(&earlier.after_operator);
            }
        }
    }

    /// The conversation of Chat Completions that a request goes on from with another prompt of the
    /// operator: what is behind that prompt begins with all that was behind the earlier one, and
    /// goes on with an answer. Where that is true of several, their answers tell which one it is, or
    /// none is. After a request that failed anything may follow, the same messages too, if there was
    /// an answer before; else the same messages with another prompt are another conversation.
    fn continued_with_other_operator(
        &self,
        api: Api,
        prints: &RequestPrints,
        messages: &[Arc<Value>],
    ) -> Option<usize> {
        let messages = messages.get(prints.operator.len()..).filter(|_| api == Api::Chat)?;
        prints.after_operator.iter().rev().find_map(|print| {
            let next = messages.get(print.len());
            let next = next.filter(|next| next.str_at("role") == Some("assistant"));
            let known = self.after_operator.get(print)?.iter().copied();
            let may_go_on = |index: &usize| {
                self.conversations.get(*index).is_some_and(|of| match of.answer {
                    Some(_) => next.is_some(),
                    None => of.was_answered,
                })
            };
            let known: Vec<usize> = known.filter(may_go_on).collect();
            if let [only] = *known {
                return Some(only);
            }
            let next = Echo::of(next.map(|next| &**next));
            let answer = |index: usize| self.conversations.get(index)?.answer.as_ref();
            let only = |is: &dyn Fn(&Echo) -> bool| {
                let mut those = known.iter().filter(|index| answer(**index).is_some_and(is));
                those.next().filter(|_| those.next().is_none()).copied()
            };
            only(&|answer| *answer == next).or_else(|| only(&|answer| answer.is_like(&next)))
        })
    }

    /// Gives out the conversations as sessions.
    pub(super) fn give(self, sink: &mut Sink) {
        self.give_beside(|_| false, sink);
    }

    /// The same beside other sessions: where this conversation is several sessions, the later ones
    /// get numbers that lead to no name of another.
    pub(super) fn give_beside(mut self, is_taken: impl Fn(&str) -> bool, sink: &mut Sink) {
        self.add_pending(|_, _| true, sink);
        self.exchanges.sort_by_key(|taken| taken.exchange.line);
        let Self { name, conversations, exchanges, mut threads, outcomes, mut cleared, .. } = self;
        let mut budget = REPEATED;
        let mut numbers = 2_u64..;
        let mut taken: Vec<Vec<Taken>> = Vec::new();
        taken.resize_with(conversations.len(), Vec::new);
        for exchange in exchanges {
            if let Some(of) = taken.get_mut(exchange.conversation) {
                of.push(exchange);
            }
        }
        threads.count_uses(conversations.iter().map(|conversation| conversation.thread));
        for (index, conversation) in conversations.into_iter().enumerate() {
            let (api, line) = (conversation.api, conversation.line);
            sink.session(&match (&name, index + 1) {
                (Some(name), 1) => name.clone(),
                (Some(name), _) => {
                    let mut names = numbers.by_ref().map(|number| format!("{name}/{number}"));
                    names.find(|name| !is_taken(name)).unwrap_or_default()
                }
                (None, number) => number.to_string(),
            });
            let taken = taken.get_mut(index).map(std::mem::take).unwrap_or_default();
            let system_frame = conversation
                .system
                .and_then(|system| sink.frame_of(|sink| api.push_system(system, line, sink)));
            let (messages, left_out) = threads.give(conversation.thread, &mut budget);
            if left_out > 0 {
                let mut shared = Object::new();
                shared.put("messages", left_out as u64);
                let reason = "begins as another session does, with too much to repeat";
                sink.unknown(line, reason, shared.into());
            }
            let cleared = cleared.remove(&index).unwrap_or_default();
            let last = if taken.is_empty() && cleared.is_empty() {
                RequestPrints::default()
            } else {
                let hashes = threads::hashes(&messages);
                RequestPrints::of(Print::default(), conversation.operator, &hashes)
            };
            let mut frames = Vec::with_capacity(messages.len());
            for message in messages {
                let message = match api {
                    Api::Responses => with_outcome(message, &outcomes, &mut budget),
                    _ => message,
                };
                frames.push(sink.frame_of(|sink| api.push_message(message, line, sink)));
            }
            tell_cleared(cleared, &last, &frames, sink);
            // Of several answers to the same messages the last one is in the conversation.
            let answers: HashMap<Print, Option<u64>> = taken
                .iter()
                .filter(|taken| taken.exchange.has_answer())
                .filter_map(|taken| Some((taken.end?, taken.exchange.line)))
                .collect();
            let frame = |at: usize| frames.get(at).copied().flatten();
            for Taken { mut exchange, prints, end, has_system, .. } in taken {
                // What the last request of the conversation holds too has frames.
                let places = (0..prints.len()).map(|at| prints.place_in(&last, at));
                exchange.frames = places.map(|place| place.and_then(frame)).collect();
                // A request that failed was not answered, even if a later one like it was.
                let is_answered = |end: &Print| answers.get(end) == Some(&exchange.line);
                let end = end.filter(|end| is_answered(end) && last.begins_with(*end));
                let answer = end.and_then(|end| frame(last.operator.len() + end.len()));
                exchange.answer_frames = answer.into_iter().collect();
                exchange.system_frame = system_frame.filter(|_| has_system);
                sink.exchange(exchange);
            }
        }
    }
}

/// Has the answers to requests tell what their model did not read of the frames before, where that is
/// something else than the answer before told.
fn tell_cleared(
    requests: ClearedRequests,
    last: &RequestPrints,
    frames: &[Option<FrameSeq>],
    sink: &mut Sink,
) {
    let frame = |at: usize| frames.get(at).copied().flatten();
    let mut told: BTreeMap<FrameSeq, Vec<ClearedPart>> = BTreeMap::new();
    for (length, (print, parts)) in requests {
        let Some(answer) = frame(length).filter(|_| last.begins_with(print)) else { continue };
        let mut now: BTreeMap<FrameSeq, Vec<ClearedPart>> = BTreeMap::new();
        for part in parts {
            if let Some(frame) = frame(part.message) {
                now.entry(frame).or_default().push(part);
            }
        }
        let all: BTreeSet<FrameSeq> = told.keys().chain(now.keys()).copied().collect();
        let changed = all.into_iter().filter(|frame| told.get(frame) != now.get(frame));
        let edits = changed.filter_map(|frame| {
            let mut facets = sink.facets_of(frame)?;
            let cleared = now.get(&frame).into_iter().flatten();
            cleared.rev().for_each(|part| part.clear(&mut facets));
            Some((frame, facets))
        });
        let edits: Vec<_> = edits.collect();
        sink.tell_edit(answer, edits);
        told = now;
    }
}

/// The entries of a document: of a list of interactions, or of a cassette of another language.
fn interactions(value: &Value) -> Option<&[Value]> {
    let list = value.get("interactions").or_else(|| value.get("http_interactions"))?;
    list.as_array()
}

/// The item, from the response that gave it where the client dropped its outcome.
fn with_outcome(item: Value, outcomes: &HashMap<String, Value>, budget: &mut Budget) -> Value {
    let is_bare = item.str_at("type").is_some_and(|kind| kind.ends_with("_call"))
        && !items::has_outcome(&item);
    let whole = item.str_at("id").filter(|_| is_bare).and_then(|id| outcomes.get(id));
    let whole = whole.filter(|whole| whole.get("type") == item.get("type"));
    whole.filter(|whole| budget.take(0, joining::size(whole))).cloned().unwrap_or(item)
}

impl super::Decoder for WireReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let list = match value {
            value if Interaction::is_logged_call(&value) => {
                match Interaction::of_logged_call(value, line) {
                    Ok(interaction) => self.take(interaction, sink),
                    Err(entry) => sink.unknown(line, "a call without messages", entry),
                }
                return;
            }
            Value::Array(list) => {
                for (line, call) in (1..).zip(list) {
                    match Interaction::of_logged_call(call, line) {
                        Ok(interaction) => self.take(interaction, sink),
                        Err(entry) => sink.unknown(line, "a call without messages", entry),
                    }
                }
                return;
            }
            Value::Object(mut object) => {
                let list = object
                    .shift_remove("interactions")
                    .or_else(|| object.shift_remove("http_interactions"));
                match list {
                    Some(Value::Array(list)) => list,
                    _ => return sink.unknown(line, "no interactions", object.into()),
                }
            }
            other => {
                return sink.unknown(line, format!("{} has no interactions", other.kind()), other);
            }
        };
        for (index, entry) in list.into_iter().enumerate() {
            let line = index as u64 + 1;
            match Interaction::of_entry(entry, line) {
                Ok(interaction) => self.take(interaction, sink),
                Err(entry) => sink.unknown(line, "an interaction without a request", entry),
            }
        }
        std::mem::take(self).give(sink);
    }

    fn finish(&mut self, sink: &mut Sink) {
        std::mem::take(self).give(sink);
    }
}

/// An exchange as it is kept beside its frames.
fn with_bodies(mut exchange: Exchange, interaction: &Interaction, sink: &Sink) -> Exchange {
    exchange.keep_bodies(interaction);
    // Half of a surrogate pair may have stood where the document was mended.
    if sink.report.mended_surrogates > 0 && exchange.request.contains('\u{FFFD}') {
        exchange.provenance = Provenance::Logged;
    }
    exchange
}

fn note_alternatives<'m>(messages: impl Iterator<Item = &'m Value>, line: u64, sink: &mut Sink) {
    let others = |message: &'m Value| message.get("choices").or_else(|| message.get(CANDIDATES));
    let mut further = messages.filter_map(|message| others(message)?.as_array());
    if further.any(|choices| !choices.is_empty()) {
        sink.note(line, "an answer has further choices, which are kept beside the first");
    }
}

#[cfg(test)]
mod tests {
    use crate::transcript::{ImportReport, testing};

    /// `exchanges` are pieces of JSON `uri | request | status | response`.
    #[track_caller]
    fn check(exchanges: &[(&str, &str, &str, &str)], expected: &str) -> ImportReport {
        let list: Vec<_> = exchanges
            .iter()
            .map(|(uri, request, status, response)| {
                format!(r#"{{"uri":"{uri}","request":{request},"status":{status},"response":{response}}}"#)
            })
            .collect();
        testing::check("wire", &format!(r#"{{"interactions":[{}]}}"#, list.join(",")), expected)
    }

    const CHAT: &str = "https://a.b/v1/chat/completions";
    const MESSAGES: &str = "https://a.b/v1/messages?beta=true";
    const RESPONSES: &str = "https://a.b/v1/responses";

    #[test]
    fn a_conversation_is_its_last_request_and_the_response() {
        let report = check(
            &[
                (
                    CHAT,
                    r#"{"messages":[{"role":"user","content":"a"}]}"#,
                    "200",
                    r#"{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"","function":{"name":"f","arguments":"{}"}}]}}]}"#,
                ),
                (
                    CHAT,
                    r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"x","content":""}]}"#,
                    "{\"code\":200}",
                    r#"{"choices":[{"message":{"role":"assistant","content":"b"}},{"message":{"role":"assistant","content":"c"}}]}"#,
                ),
                ("https://a.b/v1/embeddings", r#"{"input":"a"}"#, "200", "{}"),
                (
                    CHAT,
                    r#"{"messages":[{"role":"user","content":"other"}]}"#,
                    "400",
                    r#"{"error":{"code":"tool_use_failed"}}"#,
                ),
            ],
            r#"
1/environment
  unknown "" {"uri":"https://a.b/v1/embeddings","request":{"input":"a"},"status":200,"response":{}}
1/user*
  event "a"
1/agent*
  action "" {"toolName":"f","toolCallId":"x","parameters":{}}
1/environment*
  result "" {"toolName":"f","toolCallId":"x"}
1/agent*
  speech "b"
2/user*
  event "other""#,
        );
        assert_eq!((report.sessions, report.unknown_records), (2, 1));
        assert_eq!(
            format!("{:?}", report.skipped),
            r#"{"earlier request": 1, "failed response": 1}"#
        );
    }

    #[test]
    fn a_paused_turn_goes_on_in_the_response_and_the_cache_marker_moves() {
        check(
            &[
                (
                    MESSAGES,
                    r#"{"system":"S","messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}"#,
                    "200",
                    r#"{"type":"message","role":"assistant","content":[],"stop_reason":"pause_turn"}"#,
                ),
                (
                    MESSAGES,
                    r#"{"system":"S2","messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]}]}"#,
                    "200",
                    r#"{"type":"message","role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"s","content":[]}]}"#,
                ),
            ],
            r#"
1/system
  system "S2"
1/user*
  event "a"
1/agent*
  action "" {"toolName":"web_search","toolCallId":"s","parameters":{}}
1/agent*
  result "" {"toolName":"web_search","toolCallId":"s"}"#,
        );
    }

    /// An exchange of Chat Completions: messages as `role text`, status and answer.
    fn chat(messages: &[(&str, &str)], answer: Option<&str>) -> [String; 3] {
        let message =
            |(role, text): &(&str, &str)| format!(r#"{{"role":"{role}","content":"{text}"}}"#);
        let messages: Vec<_> = messages.iter().map(message).collect();
        let (status, answer) = match answer {
            Some(answer) => {
                let message = message(&("assistant", answer));
                ("200", format!(r#"{{"choices":[{{"message":{message}}}]}}"#))
            }
            None => ("500", r#"{"error":{}}"#.to_owned()),
        };
        let request = format!(r#"{{"messages":[{}]}}"#, messages.join(","));
        [request, status.to_owned(), answer]
    }

    #[track_caller]
    fn check_chats(exchanges: &[[String; 3]], expected: &str) {
        let all: Vec<_> = exchanges
            .iter()
            .map(|[request, status, answer]| (CHAT, &**request, &**status, &**answer))
            .collect();
        check(&all, expected);
    }

    #[test]
    fn the_operators_messages_may_change_from_turn_to_turn() {
        check_chats(
            &[
                chat(&[("system", "at 1"), ("user", "a")], Some("A")),
                chat(
                    &[
                        ("system", "at 2"),
                        ("developer", "D"),
                        ("user", "a"),
                        ("assistant", "A"),
                        ("user", "b"),
                    ],
                    Some("A"),
                ),
                chat(
                    &[
                        ("user", "a"),
                        ("assistant", "A"),
                        ("user", "b"),
                        ("assistant", "A"),
                        ("user", "c"),
                    ],
                    Some("A"),
                ),
            ],
            r#"
1/user*
  event "a"
1/agent*
  speech "A"
1/user*
  event "b"
1/agent*
  speech "A"
1/user*
  event "c"
1/agent*
  speech "A""#,
        );
    }

    #[test]
    fn one_question_to_two_operators_is_two_sessions() {
        check_chats(
            &[
                chat(&[("system", "one"), ("user", "a")], Some("A")),
                chat(&[("system", "two"), ("user", "a")], Some("A")),
                chat(
                    &[("system", "one"), ("user", "a"), ("assistant", "A"), ("user", "b")],
                    Some("A"),
                ),
                // What goes on with another word of the user's is none of these either.
                chat(&[("system", "three"), ("user", "a"), ("user", "c")], Some("A")),
            ],
            r#"
1/system*
  system "one"
1/user*
  event "a"
1/agent*
  speech "A"
1/user*
  event "b"
1/agent*
  speech "A"
2/system*
  system "two"
2/user*
  event "a"
2/agent*
  speech "A"
3/system*
  system "three"
3/user*
  event "a"
3/user*
  event "c"
3/agent*
  speech "A""#,
        );
    }

    #[test]
    fn an_attempt_without_an_answer_may_be_repeated_with_another_prompt_behind_an_answer() {
        let later = |system| [("system", system), ("user", "a"), ("assistant", "A"), ("user", "b")];
        check_chats(
            &[
                chat(&[("system", "at 1"), ("user", "a")], Some("A")),
                chat(&later("at 2"), None),
                chat(&later("at 3"), Some("B")),
                // Without one it is the same question to others.
                chat(&[("system", "strict"), ("user", "q")], None),
                chat(&[("system", "lenient"), ("user", "q")], Some("L")),
                chat(&[("system", "strict"), ("user", "q")], Some("S")),
            ],
            r#"
1/system*
  system "at 3"
1/user*
  event "a"
1/agent*
  speech "A"
1/user*
  event "b"
1/agent*
  speech "B"
2/system*
  system "strict"
2/user*
  event "q"
2/agent*
  speech "S"
3/system*
  system "lenient"
3/user*
  event "q"
3/agent*
  speech "L""#,
        );
    }

    #[test]
    fn of_chats_beside_each_other_that_the_time_is_told_each_goes_on_with_its_answer() {
        let asked = |system| [("system", system), ("user", "a")];
        let gone_on = |system, answer| {
            [("system", system), ("user", "a"), ("assistant", answer), ("user", "b")]
        };
        check_chats(
            &[
                chat(&asked("at 1"), Some("one")),
                chat(&asked("at 2"), Some("two ")),
                chat(&asked("at 3"), Some("three")),
                // What a client trims is still its answer.
                chat(&gone_on("at 4", "two"), Some("2")),
                chat(&gone_on("at 5", "one"), Some("1")),
                chat(&gone_on("at 6", "something else"), Some("3")),
            ],
            r#"
1/system*
  system "at 5"
1/user*
  event "a"
1/agent*
  speech "one"
1/user*
  event "b"
1/agent*
  speech "1"
2/system*
  system "at 4"
2/user*
  event "a"
2/agent*
  speech "two"
2/user*
  event "b"
2/agent*
  speech "2"
3/system*
  system "at 6"
3/user*
  event "a"
3/agent*
  speech "something else"
3/user*
  event "b"
3/agent*
  speech "3""#,
        );
        check_chats(
            &[
                chat(&asked("at 1"), Some("one")),
                chat(&asked("at 2"), Some("one")),
                // Nothing tells which of the two.
                chat(&gone_on("at 3", "one"), Some("1")),
            ],
            r#"
1/system*
  system "at 1"
1/user*
  event "a"
1/agent*
  speech "one"
2/system*
  system "at 2"
2/user*
  event "a"
2/agent*
  speech "one"
3/system*
  system "at 3"
3/user*
  event "a"
3/agent*
  speech "one"
3/user*
  event "b"
3/agent*
  speech "1""#,
        );
    }

    #[test]
    fn an_outcome_that_the_client_dropped_is_taken_from_the_response() {
        check(
            &[
                (
                    RESPONSES,
                    r#"{"input":"a"}"#,
                    "200",
                    r#"{"id":"r1","output":[{"type":"mcp_call","id":"m","name":"ask","arguments":"{}","output":"A."}]}"#,
                ),
                (
                    RESPONSES,
                    r#"{"input":[{"role":"user","content":"a"},{"type":"mcp_call","id":"m","name":"ask","arguments":"{}","output":null}]}"#,
                    "200",
                    r#"{"id":"r2","output":[]}"#,
                ),
            ],
            r#"
1/user*
  event "a"
1/agent
  action "" {"toolName":"ask","toolCallId":"m","parameters":{}}
  result "A." {"toolName":"ask","toolCallId":"m"}"#,
        );
    }

    #[test]
    fn a_request_builds_on_the_response_that_it_names_also_when_it_is_retried() {
        let reply = |id: &str, text: &str| {
            format!(
                r#"{{"id":"{id}","error":null,"output":[{{"type":"message","role":"assistant","content":"{text}"}}]}}"#
            )
        };
        let again = r#"{"previous_response_id":"r1","input":"b"}"#;
        check(
            &[
                (RESPONSES, r#"{"input":"a"}"#, "200", &reply("r1", "A")),
                (RESPONSES, again, "500", r#"{"error":{}}"#),
                (RESPONSES, again, "200", &reply("r2", "B")),
                (
                    RESPONSES,
                    r#"{"previous_response_id":"r2","input":"c"}"#,
                    "200",
                    &reply("r3", "C"),
                ),
            ],
            r#"
1/user*
  event "a"
1/agent*
  speech "A"
1/user*
  event "b"
1/agent*
  speech "B"
1/user*
  event "c"
1/agent*
  speech "C""#,
        );
    }

    #[test]
    fn a_request_in_the_background_that_nobody_fetches_is_where_others_go_on_from_it() {
        let asked = |text: &str| format!(r#"{{"background":true,{text}}}"#);
        let queued = |id: &str| format!(r#"{{"id":"{id}","status":"queued","output":[]}}"#);
        let reply = |id: &str, text: &str| {
            format!(
                r#"{{"id":"{id}","object":"response","output":[{{"type":"message","role":"assistant","content":"{text}"}}]}}"#
            )
        };
        let (a, c, d) = (asked(r#""input":"a""#), asked(r#""input":"c""#), asked(r#""input":"d""#));
        let [fetched, last] = ["r5", "r6"].map(|id| format!("{RESPONSES}/{id}"));
        let exchanges = [
            (RESPONSES, &*a, "200", &*queued("r1")),
            (
                RESPONSES,
                r#"{"input":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}"#,
                "200",
                &reply("r2", "B"),
            ),
            // Asked once more, in its place or beside it.
            (RESPONSES, &c, "200", &queued("r3")),
            (RESPONSES, r#"{"input":"c"}"#, "200", &reply("r4", "C")),
            (RESPONSES, &d, "200", &queued("r5")),
            (RESPONSES, &d, "200", &queued("r6")),
            (&last, "null", "200", &reply("r6", "D 6")),
            (&fetched, "null", "200", &reply("r5", "D 5")),
            (RESPONSES, &asked(r#""conversation":"k","input":"e""#), "200", &queued("r7")),
            (RESPONSES, r#"{"conversation":"k","input":"f"}"#, "200", &reply("r8", "F")),
        ];
        check(
            &exchanges,
            r#"
1/user*
  event "a"
1/user*
  event "b"
1/agent*
  speech "B"
2/user*
  event "c"
2/agent*
  speech "C"
3/user*
  event "d"
3/agent*
  speech "D 6"
4/user*
  event "e"
4/user*
  event "f"
4/agent*
  speech "F""#,
        );
        let list = exchanges.map(|(uri, request, status, response)| {
            format!(
                r#"{{"uri":"{uri}","request":{request},"status":{status},"response":{response}}}"#
            )
        });
        let input = format!(r#"{{"interactions":[{}]}}"#, list.join(","));
        let mut transcript = crate::transcript::Transcript::new(input.as_bytes()).unwrap();
        transcript.keep_exchanges();
        transcript.by_ref().for_each(|record| drop(record.unwrap()));
        let exchanges = transcript.take_exchanges().into_iter();
        let answered = exchanges.filter(|of| of.answer().is_some());
        let lines: Vec<_> = answered.filter_map(|of| of.line).collect();
        assert_eq!(lines, [2, 4, 6, 10]);
    }

    #[test]
    fn requests_of_a_conversation_that_the_provider_keeps_are_one_session() {
        let reply = |id: &str, text: &str| {
            format!(
                r#"{{"id":"{id}","output":[{{"type":"message","role":"assistant","content":"{text}"}}]}}"#
            )
        };
        let failed = r#"{"conversation":"c","input":"b"}"#;
        check(
            &[
                (RESPONSES, r#"{"conversation":"c","input":"a"}"#, "200", &reply("r1", "A")),
                (RESPONSES, r#"{"conversation":"d","input":"x"}"#, "200", &reply("r2", "X")),
                (RESPONSES, failed, "500", r#"{"error":{}}"#),
                (RESPONSES, r#"{"conversation":{"id":"c"},"input":"b"}"#, "200", &reply("r3", "B")),
            ],
            r#"
1/user*
  event "a"
1/agent*
  speech "A"
1/user*
  event "b"
1/agent*
  speech "B"
2/user*
  event "x"
2/agent*
  speech "X""#,
        );
    }

    #[test]
    fn a_log_of_a_gateway_is_requests_with_their_answers_and_usage() {
        let call = |messages: &str, response: &str, more: &str| {
            format!(
                r#"{{"call_type":"acompletion","model":"m","messages":[{messages}],"response":{response},"startTime":1777629600.5,"endTime":1777629601.0{more}}}"#
            )
        };
        let user = r#"{"role":"user","content":"a"}"#;
        let answer = r#"{"role":"assistant","content":"A"}"#;
        let first = call(
            user,
            &format!(r#"{{"id":"x","choices":[{{"message":{answer}}}]}}"#),
            r#","status":"success","prompt_tokens":100,"completion_tokens":10,"total_tokens":110,"response_cost":0.0008,"model_parameters":{"tools":[{"name":"f"}]}"#,
        );
        let second = call(
            &format!(r#"{user},{answer},{{"role":"user","content":"b"}}"#),
            "null",
            r#","status":"failure","error_str":"no room""#,
        );
        let expected = r#"
1/user*
  event "a"
1/agent*
  speech "A"
1/user*
  event "b""#;
        let input = format!("{first}\n{second}\n");
        testing::check("wire", &input, expected);
        testing::check("wire", &format!("[{first},{second}]"), expected);
        let mut transcript = crate::transcript::Transcript::new(input.as_bytes()).unwrap();
        transcript.keep_exchanges();
        transcript.by_ref().for_each(|record| drop(record.unwrap()));
        let [first, second] = &transcript.take_exchanges()[..] else { panic!() };
        let usage = first.usage.as_ref().unwrap();
        assert_eq!((usage.input, usage.output), (Some(100), Some(10)));
        assert!(usage.cost.is_some() && first.request.contains("\"tools\""));
        assert_eq!((first.duration_ms, second.failure.as_deref()), (Some(500), Some("no room")));
        assert_eq!(first.time.as_deref(), Some("2026-05-01T10:00:00.5Z"));
    }

    #[test]
    fn alternatives_are_kept_beside_the_answer_and_told() {
        let report = check(
            &[(
                CHAT,
                r#"{"n":2,"messages":[{"role":"user","content":"a"}]}"#,
                "200",
                r#"{"choices":[{"message":{"content":"b"}},{"message":{"content":"c"}}]}"#,
            )],
            r#"
1/user*
  event "a"
1/agent*
  speech "b""#,
        );
        assert_eq!(report.noted, 1);
    }

    #[test]
    fn streams_are_joined() {
        check(
            &[
                (
                    CHAT,
                    r#"{"messages":[]}"#,
                    "200",
                    r#""data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]""#,
                ),
                (
                    MESSAGES,
                    r#"{"messages":[]}"#,
                    "200",
                    r#""data: {\"type\":\"error\",\"error\":{}}\n\n""#,
                ),
                (
                    RESPONSES,
                    r#"{"input":[]}"#,
                    "200",
                    r#""data: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"c\"}]}}\n""#,
                ),
            ],
            r#"
1/agent*
  speech "a"
3/agent*
  speech "c""#,
        );
    }

    #[test]
    fn forks_share_what_they_build_on_and_repeat_only_so_much_of_it() {
        let item = r#"{"type":"message","role":"assistant","content":"x"}"#;
        let reply = vec![item; 2_000].join(",");
        let exchange = |request: &str, id: &str, output: &str| {
            format!(
                r#"{{"uri":"{RESPONSES}","request":{request},"status":200,"response":{{"id":"{id}","output":[{output}]}}}}"#
            )
        };
        let mut list = vec![exchange(r#"{"input":"a"}"#, "r", &reply)];
        for fork in 0..200 {
            let request = format!(r#"{{"previous_response_id":"r","input":"{fork}"}}"#);
            list.push(exchange(&request, &format!("f{fork}"), ""));
        }
        let input = format!(r#"{{"interactions":[{}]}}"#, list.join(","));
        let mut transcript = crate::transcript::Transcript::new(input.as_bytes()).unwrap();
        let frames = transcript.by_ref().map(Result::unwrap).count();
        let report = transcript.report();
        let repeated = (1 << 16) / 2_001;
        assert_eq!((report.sessions, report.unknown_records), (200, 199 - repeated));
        assert_eq!(frames as u64, (1 + repeated) * 2_001 + 200 + (199 - repeated));
    }

    #[test]
    fn a_fork_of_an_earlier_response_begins_as_far_as_it_goes() {
        let reply = |id: &str| {
            format!(
                r#"{{"id":"{id}","output":[{{"type":"message","role":"assistant","content":"{id}"}}]}}"#
            )
        };
        check(
            &[
                (RESPONSES, r#"{"input":"a"}"#, "200", &reply("r1")),
                (RESPONSES, r#"{"previous_response_id":"r1","input":"b"}"#, "200", &reply("r2")),
                (RESPONSES, r#"{"previous_response_id":"r2","input":"c"}"#, "200", &reply("r3")),
                (RESPONSES, r#"{"previous_response_id":"r1","input":"d"}"#, "200", &reply("r4")),
            ],
            r#"
1/user*
  event "a"
1/agent*
  speech "r1"
1/user*
  event "b"
1/agent*
  speech "r2"
1/user*
  event "c"
1/agent*
  speech "r3"
2/user*
  event "a"
2/agent*
  speech "r1"
2/user*
  event "d"
2/agent*
  speech "r4""#,
        );
    }
}
