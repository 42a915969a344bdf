//! What messages and records say of the model's answers.

use super::draft::FrameDraft;
use crate::{
    json::{Object, Value},
    usage::Usage,
    veil::{AnswerId, ModelAnswer, Source},
};

/// What a message of the APIs says of itself, or else what the response says that mini-swe-agent
/// keeps beside it.
pub(super) fn of_message(message: &Object) -> ModelAnswer {
    let response = message.get("extra").and_then(|extra| extra.get("response"));
    of_response(message)
        .or(response.and_then(Value::as_object).map(of_response).unwrap_or_default())
}

/// What a response of the APIs says. The id of a message without usage may be one of the client's.
pub(super) fn of_response(response: &Object) -> ModelAnswer {
    let text = |key: &str| response.get(key).and_then(Value::as_str).map(Box::from);
    let usage = response.get("usage").and_then(Usage::of);
    let id = text("id").filter(|id: &Box<str>| !id.is_empty() && usage.is_some());
    let stop = ["stop_reason", "stopReason", "finish_reason"].into_iter().find_map(text);
    let id = id.map(AnswerId::Response);
    ModelAnswer { model: text("model"), usage, stop, id, ..ModelAnswer::default() }
}

/// A usage that names its model.
pub(super) fn of_usage(stated: &Value) -> ModelAnswer {
    let model = stated.str_at("model").map(Box::from);
    ModelAnswer { model, usage: Usage::of(stated), ..ModelAnswer::default() }
}

impl FrameDraft {
    /// Adds what is said of the answer that the frame is, or is a part of; what was said before
    /// stays.
    pub(super) fn add_answer(&mut self, said: ModelAnswer) {
        if self.source == Source::Agent && said != ModelAnswer::default() {
            let known = self.answer.take().unwrap_or_default();
            self.answer = Some(Box::new(known.or(said)));
        }
    }
}
