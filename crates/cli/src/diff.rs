//! `afterimage diff`: where two contexts part, who wrote that, and what it costs.

pub(crate) mod args;
mod loaded;
mod page;
mod unit;

use std::{borrow::Cow, io::Write};

use afterimage::{
    export::{Divergence, PrefixReport, PrefixRules, prefix_report},
    hud::Owner,
    id::FrameSeq,
    json::{Path, PathElement, Value},
    request::{CacheBreak, ParameterChange, ReshapedContent, compare, reshaped},
    tokens::TokenCounter,
    transcript::Api,
};

use self::{
    loaded::{LoadedContext, load_both},
    unit::{Change, MessageChange, changes},
};
use crate::{
    answer::answer,
    failure::{Failure, Outcome},
    labels::{self, PlacedCall, SessionLabels},
    lens::{Counting, Lens},
    output::Output,
};

pub(crate) fn run(args: &args::Diff) -> Outcome {
    let lens = Lens::new(&args.rendering, Counting::Always)?;
    let (previous, next) = load_both(args)?;
    let (was, is) = (previous.exported.form(), next.exported.form());
    if was != is {
        let failure = Failure::new(format!(
            "cannot compare a context of the form {was} with one of the form {is}"
        ));
        let failure = failure.at("A", &previous.name).at("B", &next.name);
        return Err(failure.hint("write both contexts with the same `--as`").into());
    }
    let comparison = Comparison::of(&previous, &next, &*lens.counter, args.cache.rules())?;
    let mut out = Output::new(args.coloring.color);
    if args.json {
        out.answer(&comparison.answer())?;
    } else {
        page::print(&comparison, args.full, &mut out)?;
    }
    Ok(out.flush()?)
}

/// Two contexts, and what is between them.
struct Comparison<'c> {
    previous: &'c LoadedContext,
    next: &'c LoadedContext,
    report: PrefixReport,
    previous_tokens: u64,
    changes: Vec<Change>,
    /// The parameters that differ, where both are whole requests, but for the model, which stands
    /// among the changes.
    parameters: Vec<ParameterChange>,
    /// What takes the cache from text that is the same, where both are whole requests.
    breaks: Vec<CacheBreak>,
    /// The owner of the first difference, if both are whole requests.
    first_owner: Option<Owner>,
    /// What says the same in another form, before the first difference.
    forms: Vec<ReshapedContent>,
}

/// Where two contexts part.
struct Place<'d> {
    divergence: &'d Divergence,
    previous_owner: Option<&'d Owner>,
    owner: Option<&'d Owner>,
    /// The index of the message; `None` before the first message, or in a text that has none.
    message: Option<usize>,
    /// The tool whose definition differs.
    tool: Option<&'d str>,
}

impl<'c> Comparison<'c> {
    fn of(
        previous: &'c LoadedContext,
        next: &'c LoadedContext,
        counter: &dyn TokenCounter,
        rules: PrefixRules,
    ) -> Outcome<Self> {
        let (was, is) = (&previous.exported, &next.exported);
        let both = previous.request.as_ref().zip(next.request.as_ref());
        let compared = both.map(|(was, is)| compare(was, is, counter, rules)).transpose()?;
        let (report, mut parameters, breaks, first_owner) = match compared {
            Some(diff) => {
                let owner = diff.owner().map(Cow::into_owned);
                (diff.prefix, diff.parameters, diff.breaks, owner)
            }
            None => (prefix_report(was, is, counter, rules), Vec::new(), Vec::new(), None),
        };
        parameters.retain(|change| change.name != "model");
        let value = |of: &LoadedContext| match &of.request {
            Some(request) => request.value().cloned(),
            None => Ok(of.exported.value()),
        };
        let forms = reshaped(&value(previous)?, &value(next)?);
        let mut comparison = Self {
            previous,
            next,
            report,
            previous_tokens: prefix_report(was, was, counter, rules).tokens,
            changes: changes(was, is),
            parameters,
            breaks,
            first_owner,
            forms: Vec::new(),
        };
        let is_before = |content: &ReshapedContent| match comparison.place().map(|at| at.message) {
            None => true,
            Some(first) => content.message().zip(first).is_some_and(|(at, first)| at < first),
        };
        comparison.forms = forms.into_iter().filter(is_before).collect();
        Ok(comparison)
    }

    /// Whether both say the same, in whatever form.
    fn says_same(&self) -> bool {
        self.report.divergence.is_none() && self.changes.is_empty() && self.parameters.is_empty()
    }

    fn place(&self) -> Option<Place<'_>> {
        let divergence = self.report.divergence.as_ref()?;
        let message = divergence.path.elements().iter().find_map(|element| match element {
            PathElement::Index(index) => Some(*index),
            PathElement::Key(_) => None,
        });
        // The blocks of a system prompt are no messages, nor are tools.
        let is_apart = matches!(
            divergence.path.elements().first(),
            Some(PathElement::Key(key)) if !Api::is_conversation(key)
        );
        let owner = self.first_owner.as_ref().or(divergence.owner.as_ref());
        let owner = owner.or(divergence.previous_owner.as_ref());
        let tool = owner.and_then(|owner| match owner {
            Owner::Recorded { facet, .. } => facet.as_str().strip_prefix("tool:"),
            _ => None,
        });
        Some(Place {
            divergence,
            previous_owner: speaker(self.previous, divergence, divergence.previous_owner.as_ref()),
            owner: speaker(self.next, divergence, divergence.owner.as_ref()),
            message: message.filter(|_| !is_apart && tool.is_none()),
            tool,
        })
    }

    /// A change, with the place in the source of the first frame of its message.
    fn change(&self, change: &Change) -> ChangeAnswer {
        let frames = change.shown().frames;
        ChangeAnswer {
            change: change.answer(),
            frames: frames.map(|(first, last)| [first, last]),
            place: frames.map(|(first, _)| self.labels_of(change).of(first, None).place()),
        }
    }

    /// What is known of the frames of the message that a change shows.
    fn labels_of(&self, change: &Change) -> &SessionLabels {
        match change {
            Change::Removed(_) => &self.previous.labels,
            Change::Added(_) | Change::Replaced(..) => &self.next.labels,
        }
    }

    fn answer(&self) -> DiffAnswer<'_> {
        let divergence = self.place().map(|place| {
            let Place { divergence, message, previous_owner, owner, tool } = place;
            let source = |of: &LoadedContext, owner: Option<&Owner>| {
                let label = owner.and_then(|owner| of.labels.of_owner(owner));
                label.map(|label| label.placed_call())
            };
            DivergenceAnswer {
                path: divergence.path.to_string(),
                message,
                tool,
                byte: divergence.offset,
                token: self.report.unchanged,
                previous_owner: previous_owner.map(Owner::to_json),
                owner: owner.map(Owner::to_json),
                previous_source: source(self.previous, previous_owner),
                source: source(self.next, owner),
            }
        });
        let parameter = |change: &'_ ParameterChange| ParameterAnswer {
            name: change.name.clone(),
            previous: change.previous.clone(),
            next: change.next.clone(),
        };
        let form = |content: &ReshapedContent| FormAnswer {
            owner: content.owner.to_string(),
            role: content.role.clone(),
            change: content.change.as_str(),
        };
        DiffAnswer {
            previous: self.previous.answer(),
            next: self.next.answer(),
            form: self.next.form(),
            same: self.says_same() && self.forms.is_empty(),
            divergence,
            tokens: DiffTokens {
                previous: self.previous_tokens,
                next: self.report.tokens,
                unchanged: self.report.unchanged,
                cached: self.report.cached,
                billed_again: self.report.billed_again(),
            },
            changes: self.changes.iter().map(|change| self.change(change)).collect(),
            parameters: self.parameters.iter().map(parameter).collect(),
            breaks: &self.breaks,
            forms: self.forms.iter().map(form).collect(),
        }
    }
}

answer! {
    /// Two contexts, and what is between them.
    pub(crate) struct DiffAnswer<'d> {
        /// the first context
        previous: ComparedContext<'d>,
        /// the second one
        next: ComparedContext<'d>,
        /// `messages`, `openai`, `responses`, `anthropic`, `gemini` or `text`; of requests of other
        /// APIs in the roles of Chat Completions `ollama`, `generate` or `converse`
        form: &'static str,
        /// whether neither says anything that the other does not, in the same form
        same: bool,
        /// where they first differ; null where the second begins with the whole of the first
        divergence: Option<DivergenceAnswer<'d>>,
        /// what they hold, and what a cache serves
        tokens: DiffTokens,
        /// the messages that are not the same, in order; of requests also the tools, with the role `tool
        /// NAME`, and the `model`
        changes: Vec<ChangeAnswer>,
        /// of requests: the other parameters that differ
        parameters: Vec<ParameterAnswer>,
        /// of requests: what takes the cache from text that is the same; `tokens.cached` ends there
        /// ([compression.md](compression.md))
        breaks: &'d [CacheBreak],
        /// what says the same in another form, before the first difference. Providers document both
        /// shapes as one; a cache that counts them ends at the first that changed
        forms: Vec<FormAnswer>,
    }

    /// A context that was compared.
    pub(crate) struct ComparedContext<'d> {
        /// its file
        file: &'d str,
        /// its session; null where the file names none
        session: Option<&'d str>,
        /// of a request where it comes from, as in `requests --json`; else null
        provenance: Option<&'static str>,
    }

    /// Where two contexts first differ.
    pub(crate) struct DivergenceAnswer<'d> {
        /// a JSON pointer; a content that is a text counts as its only block
        path: String,
        /// the index of the message; null where it is in none
        message: Option<usize>,
        /// the tool whose definition differs; null where none does there
        tool: Option<&'d str>,
        /// the first byte that differs in the string at the path; null where one of the two has none
        byte: Option<usize>,
        /// the tokens before it
        token: u64,
        /// who wrote that byte in the first context, as in a rendered context; of a role it is whoever
        /// speaks. Null where there is nothing
        previous_owner: Option<Value>,
        /// the same in the second context
        owner: Option<Value>,
        /// where that stands in the source of the first, and its tool call; null where it is in no
        /// frame
        previous_source: Option<PlacedCall>,
        /// the same of the second
        source: Option<PlacedCall>,
    }

    /// The tokens of two contexts.
    pub(crate) struct DiffTokens {
        /// of the whole first context
        previous: u64,
        /// of the whole second one
        next: u64,
        /// of the second before the first difference
        unchanged: u64,
        /// those of them that the cache serves
        cached: u64,
        /// the tokens of the second that the cache does not serve; where nothing differs, those of
        /// `unchanged`
        billed_again: u64,
    }

    /// A message that is not the same.
    pub(crate) struct ChangeAnswer {
        ..change: MessageChange,
        /// where the message is in frames: the first and the last; what follows is where the first
        /// stands
        frames?: [FrameSeq; 2],
        ..place: Option<labels::Place>,
    }

    /// A parameter that differs.
    pub(crate) struct ParameterAnswer {
        /// its name
        name: String,
        /// what it was; null where it was not set
        previous: Option<Value>,
        /// what it is; null where it is not set
        next: Option<Value>,
    }

    /// Content whose form alone differs.
    pub(crate) struct FormAnswer {
        /// `system`, `tool:NAME` or `message:INDEX`
        owner: String,
        /// its role; null where it has none
        role: Option<String>,
        /// `text` (it was a list of blocks), `blocks` (it was a text), `marked`, `unmarked` or `remarked`
        /// (marks for the cache)
        change: &'static str,
    }
}

/// Who wrote the byte: where it is a word of the form, as a role, whoever speaks the message.
fn speaker<'d>(
    of: &'d LoadedContext,
    divergence: &'d Divergence,
    owner: Option<&'d Owner>,
) -> Option<&'d Owner> {
    let owner = owner?;
    if *owner != Owner::Framing("form") {
        return Some(owner);
    }
    let is_index = |element: &PathElement| matches!(element, PathElement::Index(_));
    let elements = divergence.path.elements();
    let end = elements.iter().position(is_index).map_or(0, |at| at + 1);
    let message: Path = elements.iter().take(end).cloned().collect();
    let texts = of.exported.root().pointer(&message.to_string())?.texts();
    let spans = texts.into_iter().flat_map(|(_, text)| text.spans());
    let said = spans.map(|span| &span.owner).find(|owner| **owner != Owner::Framing("form"));
    Some(said.unwrap_or(owner))
}
