use crate::{
    compress::{CompressionJob, Passage, again, keep, mark, stands, transcript_of},
    hud::{Message, RenderedContext},
    id::{FrameSeq, Role},
    tokens::TokenCounter,
};

/// The text of the instruction, whose fields the compiler fills in.
macro_rules! template {
    () => {
        "\
This message is from the program that runs you, and not from the user. Do not go on with the work, \
and call no tool: write a summary.

What you write replaces {range} in your context; you read it and go on working. The original can be \
looked up, but only by someone who knows what to look for.

Write at most {limit} tokens. Use prose and lists; no introduction, no closing remark, no tags.

Keep, in this order of importance:
1. What the user asked for, decided and ruled out, in the user's own words where they matter.
2. What was done, in order: each tool call that changed or found something, with its arguments, \
and what came of it. Errors and how they were solved.
3. What is still open, and what was to happen next.
4. Every identifier, number, date, path and URL that may be needed again, exactly as it is spelled \
and beside what it names.

Add nothing that was not said. {stands}

Likely to be needed again: {keep}
{new}{again}"
    };
}

/// The instruction of a [`ContinuedPrompt`] with its fields in braces.
pub const CONTINUED_TEMPLATE: &str = template!();

/// How many characters of a message say which it is.
const QUOTED: usize = 80;

/// A request for a summary that begins with the session's own messages, so that the provider reads
/// these from its cache: a tenth of the price.
///
/// Send the messages of the last request byte for byte as they were sent, with the same model and
/// tools, and the instruction behind them as one more message of the user.
///
/// ```
/// use std::sync::Arc;
/// use afterimage::{
///     compress::{CompressionJob, Passage}, hud::{Hud, RenderRequest}, id::{FacetType, Millis, Role},
///     tokens::Chars4, veil::{Facet, FacetOp, Frame, History, Source}, window::ContinuedPrompt,
/// };
///
/// let hud = Hud::new(Arc::new(Chars4));
/// let mut history = History::new();
/// let said = Facet::new("order", FacetType::EVENT, "Please move berth 7.");
/// let frame = Frame::new(0, Source::User).with(FacetOp::add(said));
/// let frame = hud.capture(&mut history, frame, Millis::new(0))?;
/// let sent = hud.render(&history, &RenderRequest::default(), Millis::new(0))?;
///
/// let snapshot = frame.rendered_snapshot.clone().unwrap();
/// let (from, to, source) = (frame.sequence, frame.sequence, None);
/// let passage = Passage { from, to, role: Role::User, source, snapshot };
/// let job = CompressionJob::new(vec![passage], 50);
/// let ContinuedPrompt { messages, instruction } = ContinuedPrompt::of(&job, &sent, &Chars4);
/// assert_eq!(messages, sent.messages().len());
/// assert!(instruction.contains("message 1 of this conversation"), "{instruction}");
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinuedPrompt {
    /// How many messages of the context come before the instruction: all but the beginning of an
    /// answer.
    pub messages: usize,
    /// What the user's last message says: which of them to summarise, and what came since.
    pub instruction: String,
}

impl ContinuedPrompt {
    /// The request for a summary of `job`, after a context that was sent. What the context does not
    /// hold of the job stands in the instruction. Runs in time linear in the context's messages and
    /// in the job's text.
    pub fn of(job: &CompressionJob, context: &RenderedContext, counter: &dyn TokenCounter) -> Self {
        let all = context.messages();
        let is_prefill =
            |message: &Message| message.frames().is_none() && message.role() == Role::Assistant;
        let messages = all.len() - usize::from(all.last().is_some_and(is_prefill));
        let sent = all.get(..messages).unwrap_or_default();
        let place = |passage: &Passage| {
            let is_of = |(from, to): (FrameSeq, FrameSeq)| from <= passage.from && passage.to <= to;
            sent.iter().position(|message| message.frames().is_some_and(is_of))
        };
        let places: Vec<Option<usize>> = job.passages.iter().map(place).collect();
        let there: Vec<usize> = places.iter().flatten().copied().collect();
        let new = job.passages.iter().zip(&places).filter(|(_, place)| place.is_none());
        let new: Vec<Passage> = new.map(|(passage, _)| passage.clone()).collect();
        let new = transcript_of(&new);
        let answer = job.revision.as_ref().map_or("", |revision| revision.answer.as_str());
        let mark = mark(&[&new, answer]);
        let range = range(sent, &there, !new.is_empty());
        let since = if new.is_empty() {
            String::new()
        } else {
            format!(
                "\nWhat came since stands between the two lines {mark}.\n\n{mark}\n{new}\n{mark}\n"
            )
        };
        let instruction = format!(
            template!(),
            range = range,
            limit = job.token_limit,
            stands = stands(job),
            keep = keep(job, counter),
            new = since,
            again = again(job, &mark),
        );
        Self { messages, instruction }
    }
}

/// Which messages, for a model that sees no numbers: their places, and how they begin.
fn range(sent: &[Message], there: &[usize], has_new: bool) -> String {
    let quoted = |at: usize| {
        let content = sent.get(at).map(Message::content).unwrap_or_default();
        let words: Vec<&str> = content.split_whitespace().collect();
        let beginning: String = words.join(" ").chars().take(QUOTED).collect();
        format!("{beginning:?}")
    };
    let since = if has_new { " and what came since" } else { "" };
    match (there.iter().min(), there.iter().max()) {
        (Some(first), Some(last)) if first == last => {
            format!("message {} of this conversation ({}){since}", first + 1, quoted(*first))
        }
        (Some(first), Some(last)) => format!(
            "messages {} to {} of this conversation (from {} to {}){since}",
            first + 1,
            last + 1,
            quoted(*first),
            quoted(*last)
        ),
        _ => "what came since the last message".to_owned(),
    }
}
