//! Contexts in the forms that providers take.
//!
//! An [`Export`] is made of a [`RenderedContext`] that was rendered in the `native` format, and of
//! the history that it was rendered from. It renders nothing: the texts are the captured chunks,
//! whose parts (text, call, result, reasoning, image, opaque) decide the structure, and what a
//! message had besides its text comes from the frames. Data passes through three steps: `turns`
//! puts the chunks of each frame together into items; `pairing` brings every result to its call
//! and repairs what the history lacks; one module for each form writes the items.
//!
//! What is written is [`OwnedJson`]: JSON in which each byte of each string knows who wrote it.
//! `docs/exports.md` says what each form holds, and what an export changes and reports.
//!
//! ```
//! use std::sync::Arc;
//! use afterimage::{
//!     export::{Export, ExportOptions}, hud::{Hud, NativeFormat, RenderRequest},
//!     id::{FacetType, Millis}, tokens::Chars4, veil::{Facet, FacetOp, Frame, History, Source},
//! };
//!
//! let hud = Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build();
//! let mut history = History::new();
//! let ask = Facet::new("ask", FacetType::EVENT, "Is it open?");
//! let arguments = afterimage::json::read(br#"{"door": 7}"#)?;
//! let look = Facet::tool_call("look", Some("c1"), "look", arguments);
//! let seen = Facet::tool_result("seen", Some("c1"), None, "open");
//! for (sequence, (source, facet)) in
//!     [(Source::User, ask), (Source::Agent, look), (Source::Environment, seen)].into_iter().enumerate()
//! {
//!     let frame = Frame::new(sequence as u64, source).with(FacetOp::add(facet));
//!     hud.capture(&mut history, frame, Millis::new(0))?;
//! }
//! let context = hud.render(&history, &RenderRequest::default(), Millis::new(0))?;
//! let chat = Export::of(&history, &context)?.openai_chat(&ExportOptions::default());
//! assert_eq!(
//!     chat.value().at(1).unwrap().to_string(),
//!     r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"door\":7}"}}]}"#
//! );
//! let name = chat.root().pointer("/1/tool_calls/0/function/name").unwrap();
//! assert_eq!(format!("{:?}", name.spans()[0].owner), r#"Chunk { frame: FrameSeq(1), chunk: 0, facet_ids: ["look"] }"#);
//! # Ok::<(), afterimage::Error>(())
//! ```

mod anthropic;
mod anthropic_block;
mod breakpoints;
mod form;
mod gemini;
mod ids;
mod image;
mod load;
mod members;
mod openai_chat;
mod options;
mod owned;
mod pairing;
mod parsed;
mod plain;
mod prefix;
mod report;
mod responses;
mod turns;

pub use form::Form;
pub use options::{Breakpoints, ExportOptions, Orphans, UnansweredCalls};
pub use owned::{OwnedJson, OwnedText};
pub(crate) use prefix::LeafPrint;
#[cfg(feature = "rules")]
pub(crate) use prefix::{CountedLeaf, PrefixCounts, prefix_counts};
pub use prefix::{Divergence, PrefixReport, PrefixRules, prefix_report};
pub use report::{ExportReport, Repair, RepairKind};

use crate::{
    Error, ErrorKind, Result,
    hud::{ProviderFraming, RenderedContext, Span},
    json::{Object, ObjectExt, Value},
    tokens::TokenCounter,
    veil::History,
};

/// The format whose chunks are the raw strings of a message's fields.
const NATIVE: &str = "native";

/// A context that is ready to be written in the form of a provider. Borrows both; costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    history: &'a History,
    context: &'a RenderedContext,
}

/// A context in the form of a provider, with an owner for every byte of every string.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportedRequest {
    form: Form,
    root: OwnedJson,
    report: ExportReport,
}

impl<'a> Export<'a> {
    /// An export of `context`, which was rendered from `history`.
    ///
    /// Cost: O(n) over the snapshots of the context; copies nothing.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownFormat`] where a snapshot in the context was made in another format
    /// than `native`: tags would be sent as if the agent had written them.
    pub fn of(history: &'a History, context: &'a RenderedContext) -> Result<Self> {
        let mut renderings =
            context.identities().filter_map(|identity| identity.rendering.as_ref());
        match renderings.find(|rendering| rendering.format != NATIVE) {
            Some(rendering) => {
                let found = &rendering.format;
                let message = format!(
                    "an export is made of chunks in the format `{NATIVE}`, found `{found}`"
                );
                Err(Error::new(ErrorKind::UnknownFormat, message))
            }
            None => Ok(Self { history, context }),
        }
    }

    fn sources(&self) -> turns::Sources {
        turns::Sources::of(self.history, self.context)
    }

    /// The `messages` of OpenAI's Chat Completions: an array. Runs in linear time in what the
    /// context holds, like all exports.
    pub fn openai_chat(&self, options: &ExportOptions) -> ExportedRequest {
        let sources = self.sources();
        openai_chat::write(turns::collect(&sources, self.context), self.history.pairs(), options)
    }

    /// The `input` items of OpenAI's Responses: an array.
    ///
    /// Cost: O(what the context holds).
    pub fn responses(&self, options: &ExportOptions) -> ExportedRequest {
        let sources = self.sources();
        responses::write(turns::collect(&sources, self.context), self.history.pairs(), options)
    }

    /// `{"system": …, "messages": […]}` of Anthropic's Messages; without `system` where the
    /// context has none.
    ///
    /// Cost: O(what the context holds).
    pub fn anthropic(&self, options: &ExportOptions) -> ExportedRequest {
        let sources = self.sources();
        anthropic::write(turns::collect(&sources, self.context), self.history.pairs(), options)
    }

    /// `{"systemInstruction": …, "contents": […]}` of Gemini; without the first where the context has
    /// no system prompt.
    ///
    /// Cost: O(what the context holds).
    pub fn gemini(&self, options: &ExportOptions) -> ExportedRequest {
        let sources = self.sources();
        gemini::write(turns::collect(&sources, self.context), self.history.pairs(), options)
    }

    /// In the form of a provider; `None` of those that are the context itself.
    pub(crate) fn in_form(&self, form: Form, options: &ExportOptions) -> Option<ExportedRequest> {
        match form {
            Form::OpenaiChat => Some(self.openai_chat(options)),
            Form::Responses => Some(self.responses(options)),
            Form::Anthropic => Some(self.anthropic(options)),
            Form::Gemini => Some(self.gemini(options)),
            Form::Messages | Form::Plain => None,
        }
    }

    /// One text, for people and for models without messages: a string. Each turn begins with a line
    /// that says who speaks.
    ///
    /// Cost: O(what the context holds).
    pub fn plain(&self, options: &ExportOptions) -> ExportedRequest {
        let sources = self.sources();
        plain::write(turns::collect(&sources, self.context), self.history.pairs(), options)
    }
}

impl ExportedRequest {
    /// The form that it has.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The JSON, with owners.
    pub fn root(&self) -> &OwnedJson {
        &self.root
    }

    /// The JSON alone. Copies every text.
    pub fn value(&self) -> Value {
        self.root.to_value()
    }

    /// What stands in it.
    pub(crate) fn into_root(self) -> OwnedJson {
        self.root
    }

    /// Its tokens: every text in it by `counter`, and what the provider adds around messages.
    /// Data that no tokenizer reads costs nothing, as in [`prefix_report`].
    pub fn tokens(&self, counter: &dyn TokenCounter, framing: ProviderFraming) -> u64 {
        let rules = PrefixRules { per_message: framing.per_message, ..PrefixRules::EXACT };
        prefix_report(self, self, counter, rules).tokens + framing.per_reply
    }

    /// Who wrote each string: a list of `path` (a JSON pointer) and `spans`, in the order in which
    /// the strings stand. What [`ExportedRequest::from_json`] takes beside the JSON.
    ///
    /// Cost: O(the strings and their spans); copies no text.
    pub fn owners(&self) -> Value {
        let owners = self.root.texts().into_iter().map(|(path, text)| {
            let mut object = Object::new();
            object.put("path", path.to_string());
            object.put("spans", text.spans().iter().map(Span::to_json).collect::<Value>());
            object
        });
        owners.collect()
    }

    /// The same request with its members in this order; those that are not named come first.
    #[cfg(feature = "rules")]
    pub(crate) fn with_members_in_order(mut self, keys: &[&str]) -> Self {
        if let OwnedJson::Map(members) = &mut self.root {
            members.sort_by_key(|(name, _)| keys.iter().position(|key| key == name));
        }
        self
    }

    /// What was repaired, changed and left out.
    pub fn report(&self) -> &ExportReport {
        &self.report
    }
}
