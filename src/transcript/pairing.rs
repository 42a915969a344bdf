use std::{collections::VecDeque, sync::Arc};

use indexmap::IndexMap;

use crate::{
    id::FacetType,
    json::{ObjectExt, Value},
    veil::Facet,
};

/// How many calls of a session may wait for their result; the oldest are given up first.
const OPEN_CALLS: usize = 1_024;
/// Of how many sessions the open calls are remembered.
const SESSIONS: usize = 1_024;

/// Finds the call of each result, session by session, in bounded memory.
///
/// A result answers the latest earlier call with its id that is still open; without an id, the
/// oldest open call of its name, else the oldest open call. Ids repeat within a session, on
/// different calls, and so a table of ids would not do. A result whose id no open call has may
/// still answer a call that was recorded without an id.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    sessions: IndexMap<Arc<str>, VecDeque<Open>>,
}

#[derive(Debug)]
struct Open {
    id: Option<Box<str>>,
    name: Box<str>,
}

impl Pairing {
    /// Takes the calls and results of the next frame, and gives the results the names of their
    /// tools where they lack them.
    pub(super) fn pair(&mut self, session: &Arc<str>, facets: &mut [Facet]) {
        for facet in facets {
            if let Some(call) = facet.call() {
                let open = Open { id: known(call.id).map(Box::from), name: call.name.into() };
                let calls = self.session(session);
                if calls.len() >= OPEN_CALLS {
                    calls.pop_front();
                }
                calls.push_back(open);
            } else if facet.facet_type == FacetType::RESULT
                && let Some(Value::Object(state)) = &mut facet.state
            {
                let text = |key: &str| state.get(key).and_then(Value::as_str);
                let (id, name) = (known(text("toolCallId")), known(text("toolName")));
                let call = self.sessions.get_mut(session).and_then(|calls| answer(calls, id, name));
                if let (Some(call), None) = (call, name) {
                    let rest = std::mem::take(state);
                    state.put("toolName", call.name.as_ref());
                    state.extend(rest.into_iter().filter(|(key, _)| key != "toolName"));
                }
            }
        }
    }

    fn session(&mut self, session: &Arc<str>) -> &mut VecDeque<Open> {
        if !self.sessions.contains_key(session) && self.sessions.len() >= SESSIONS {
            self.sessions.shift_remove_index(0);
        }
        self.sessions.entry(session.clone()).or_default()
    }
}

/// Providers without ids write `""` for them.
fn known(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

fn answer(calls: &mut VecDeque<Open>, id: Option<&str>, name: Option<&str>) -> Option<Open> {
    let has_name = |call: &Open| name.is_some_and(|name| &*call.name == name);
    let at = match id {
        Some(id) => calls.iter().rposition(|call| call.id.as_deref() == Some(id)).or_else(|| {
            calls.iter().position(|call| call.id.is_none() && (name.is_none() || has_name(call)))
        }),
        None => calls.iter().position(has_name).or((!calls.is_empty()).then_some(0)),
    };
    calls.remove(at?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::parts::{self, Arguments};

    /// Steps are calls, `>id:name`, and results, `id`. Gives the names that the results got.
    fn names(steps: &[&str]) -> Vec<String> {
        let mut pairing = Pairing::default();
        let session: Arc<str> = "1".into();
        let mut out = Vec::new();
        for step in steps {
            let mut facet = match step.strip_prefix('>').and_then(|call| call.split_once(':')) {
                Some((id, name)) => parts::call(Some(id), name, Arguments::None),
                None => parts::result(Some(step), None, "", false),
            };
            pairing.pair(&session, std::slice::from_mut(&mut facet));
            if facet.facet_type == FacetType::RESULT {
                out.push(facet.tool_name().unwrap_or("-").to_owned());
            }
        }
        out
    }

    #[test]
    fn a_repeated_id_is_the_latest_open_call_that_has_it() {
        assert_eq!(names(&[">a:one", "a", ">a:two", "a", "a"]), ["one", "two", "-"]);
        assert_eq!(names(&[">a:one", ">a:two", "a", "a"]), ["two", "one"]);
    }

    #[test]
    fn without_ids_the_oldest_open_call_is_answered() {
        assert_eq!(names(&[">:one", ">:two", "", "", ""]), ["one", "two", "-"]);
        assert_eq!(names(&[">a:one", ">b:two", "b", ""]), ["two", "one"]);
    }

    #[test]
    fn an_id_that_no_call_has_answers_only_a_call_without_one() {
        assert_eq!(names(&[">a:one", "b"]), ["-"]);
        assert_eq!(names(&[">a:one", ">:two", "b", "a"]), ["two", "one"]);
    }

    #[test]
    fn calls_that_are_never_answered_do_not_pile_up() {
        let mut pairing = Pairing::default();
        for _ in 0..3 * OPEN_CALLS {
            let mut call = parts::call(None, "shell", Arguments::None);
            pairing.pair(&"1".into(), std::slice::from_mut(&mut call));
        }
        assert_eq!(pairing.sessions.first().map(|(_, calls)| calls.len()), Some(OPEN_CALLS));
    }
}
