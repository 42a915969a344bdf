use crate::json::Value;

/// A text of fewer bytes says nothing of the answer that it is in.
const LEAST: usize = 16;

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

    /// Whether both have the same calls or, without calls, one text is in the other: clients trim
    /// answers, leave reasoning out of them, or put it in. A short text may be in any other.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let (own, others) = (self.text.trim(), other.text.trim());
        let is_in = |text: &str, whole: &str| text.len() >= LEAST && whole.contains(text);
        let is_same_text =
            !own.is_empty() && own == others || is_in(own, others) || is_in(others, own);
        self.calls == other.calls && (!self.calls.is_empty() || is_same_text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(text: &str, calls: &[&str]) -> Echo {
        Echo { text: text.to_owned(), calls: calls.iter().map(|id| (*id).to_owned()).collect() }
    }

    #[test]
    fn answers_are_alike_by_their_calls_or_by_texts_that_are_long_enough() {
        let long = "the tide turns at four";
        for (one, other, is_like) in [
            (echo("", &["a"]), echo("I look it up.", &["a"]), true),
            (echo("", &["a"]), echo("", &["b"]), false),
            (echo(" yes\n", &[]), echo("yes", &[]), true),
            (echo("y", &[]), echo("yes", &[]), false),
            (echo("", &[]), echo("yes", &[]), false),
            (echo("", &[]), echo("", &[]), false),
            (echo(long, &[]), echo("<think>so</think> the tide turns at four", &[]), true),
        ] {
            assert_eq!((one.is_like(&other), other.is_like(&one)), (is_like, is_like), "{one:?}");
        }
    }
}
