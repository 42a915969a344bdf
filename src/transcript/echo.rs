use crate::json::Value;

/// What an answer says: its text, and the ids of its calls. A request that goes on repeats that,
/// whatever else the client leaves out or writes anew.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Echo {
    text: String,
    calls: Vec<String>,
}

impl Echo {
    /// What the messages of an answer say.
    pub(super) fn of<'v>(messages: impl IntoIterator<Item = &'v Value>) -> Self {
        let mut echo = Self::default();
        for message in messages {
            match message.get("content") {
                Some(Value::String(text)) => echo.text.push_str(text),
                Some(Value::Array(parts)) => {
                    echo.text.extend(parts.iter().filter_map(|part| part.str_at("text")));
                }
                _ => {}
            }
            let calls = message.get("tool_calls").and_then(Value::as_array);
            let ids = calls.into_iter().flatten().filter_map(|call| call.str_at("id"));
            echo.calls.extend(ids.map(str::to_owned));
        }
        echo
    }

    /// Whether one text is in the other, beside the same calls: clients trim answers, leave
    /// reasoning out of them, or put it in.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let (own, others) = (self.text.trim(), other.text.trim());
        self.calls == other.calls && (own.contains(others) || others.contains(own))
    }
}
