use std::{fmt, sync::Arc};

use crate::json::{Object, ObjectExt, Value};

/// Where a request comes from, and so how far it can be trusted.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Provenance {
    /// The bytes of the wire.
    Sent,
    /// The JSON that a client, or a recorder, wrote down: the same values, and maybe other bytes.
    #[default]
    Logged,
    /// It names an earlier response, and is joined with what it goes on from: the conversation of the
    /// requests and answers of the recording that lead there. `Recording::sent` gives what was sent.
    Resolved {
        /// How many messages, the first ones, were joined to it.
        messages: usize,
        /// The response up to whose end, or where it broke off from there on, something is missing;
        /// `None` where nothing is.
        missing: Option<Arc<str>>,
        /// What is wrong with the link, in a sentence: it names the response to a later request, or to
        /// this one. Then nothing is joined, and `missing` is that response.
        wrong: Option<Arc<str>>,
    },
    /// It was put together from what a transcript holds. Where that is all of it, the client logged it:
    /// then the name is `logged`.
    Reconstructed {
        /// What the transcript does not hold.
        lacks: Vec<Lack>,
    },
}

/// A part of requests that a transcript does not hold.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// The definitions of the tools.
    Tools,
    /// The system prompt.
    SystemPrompt,
    /// The model, and how it was asked: temperature, limits, reasoning.
    Parameters,
}

impl Provenance {
    /// The name on the wire: `sent`, `logged`, `resolved`, `reconstructed`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Resolved { .. } => "resolved",
            Self::Reconstructed { lacks } if !lacks.is_empty() => "reconstructed",
            Self::Logged | Self::Reconstructed { .. } => "logged",
        }
    }

    /// Whether all of it is as the client wrote it down.
    pub const fn is_logged(&self) -> bool {
        match self {
            Self::Logged => true,
            Self::Reconstructed { lacks } => lacks.is_empty(),
            Self::Sent | Self::Resolved { .. } => false,
        }
    }

    /// Of a request that was joined with what it goes on from: `messages`, how many were joined,
    /// `missing`, the response from which on something is missing, or null, and `wrong`, if any.
    /// Copies both texts.
    pub fn resolved_json(&self) -> Option<Value> {
        let Self::Resolved { messages, missing, wrong } = self else { return None };
        let mut object = Object::new();
        object.put("messages", *messages as u64);
        object.put("missing", missing.as_deref().map_or(Value::Null, Value::from));
        object.put_some("wrong", wrong.as_deref());
        Some(object.into())
    }

    /// What the source does not hold.
    pub fn lacks(&self) -> &[Lack] {
        match self {
            Self::Reconstructed { lacks } => lacks,
            Self::Sent | Self::Logged | Self::Resolved { .. } => &[],
        }
    }
}

impl Lack {
    /// What a request lacks that is worked out from a transcript, which holds the system prompt, the
    /// tools and the parameters or does not.
    pub fn of_transcript(has_system: bool, has_tools: bool, has_parameters: bool) -> Vec<Self> {
        let all = [
            (Self::Tools, has_tools),
            (Self::SystemPrompt, has_system),
            (Self::Parameters, has_parameters),
        ];
        all.into_iter().filter(|(_, is_held)| !is_held).map(|(lack, _)| lack).collect()
    }

    /// The name on the wire: `tools`, `system`, `parameters`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::SystemPrompt => "system",
            Self::Parameters => "parameters",
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tools => "the tools",
            Self::SystemPrompt => "the system prompt",
            Self::Parameters => "the parameters",
        })
    }
}
