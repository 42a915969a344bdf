use std::ops::Range;

use crate::{
    id::{FacetId, FrameSeq},
    json::{self, PlacedValue, Value},
    transcript::Api,
};

use super::compare::{CACHE_POINT, GROUPS, TOOL_CONFIG};

/// A run of bytes of a request that belongs to one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPart {
    /// What it is.
    pub kind: PartKind,
    /// Where it stands in the body, in bytes.
    pub range: Range<usize>,
}

/// What a part of a request is.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// The definition of a tool.
    Tool {
        /// Its index among the definitions.
        index: usize,
        /// Its name, or its type where it has no name.
        name: String,
    },
    /// The system prompt that stands apart from the messages, or a block of it.
    System {
        /// The frame that holds it.
        frame: Option<FrameSeq>,
    },
    /// A message, or an item, of the conversation.
    Message {
        /// Its index in the list.
        index: usize,
        /// Its role, or its type where it has no role.
        role: String,
        /// The frame that is the same.
        frame: Option<FrameSeq>,
    },
    /// Any other member of the request, with its key.
    Parameter {
        /// Its name.
        name: String,
    },
    /// What holds the others together: brackets, commas, and the keys of lists.
    Form,
}

impl RequestPart {
    /// The facet that the part is: `tool:NAME`, `system`, `message:INDEX`, `parameter:NAME`, `form`.
    pub fn facet_id(&self) -> FacetId {
        match &self.kind {
            PartKind::Tool { name, .. } => format!("tool:{name}").into(),
            PartKind::System { .. } => "system".into(),
            PartKind::Message { index, .. } => format!("message:{index}").into(),
            PartKind::Parameter { name } => format!("parameter:{name}").into(),
            PartKind::Form => "form".into(),
        }
    }

    /// The frame that the part is in, where it is in one.
    pub fn frame(&self) -> Option<FrameSeq> {
        match &self.kind {
            PartKind::System { frame } | PartKind::Message { frame, .. } => *frame,
            _ => None,
        }
    }
}

/// Where the frames of a request are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Frames {
    pub(super) system: Option<FrameSeq>,
    /// Of each message.
    pub(super) messages: Vec<Option<FrameSeq>>,
}

/// The parts of a body, in order, without gap or overlap.
pub(super) fn parts(body: &str, api: Api, frames: &Frames) -> Vec<RequestPart> {
    let mut tiling = Tiling { parts: Vec::new(), end: 0 };
    for member in json::children(body, 0..body.len()) {
        let key = member.key.as_deref().unwrap_or_default();
        let elements = json::children(body, member.value.clone());
        let is_list = body.get(member.value.clone()).is_some_and(|text| text.starts_with('['));
        let alone =
            [PlacedValue { key: None, whole: member.value.clone(), value: member.value.clone() }];
        let is_object = || body.get(member.value.clone()).is_some_and(|text| text.starts_with('{'));
        if key == "tools" && (is_list || is_object()) {
            let elements = if is_list { elements } else { alone.into() };
            let tools = elements.into_iter().flat_map(|tool| definitions(body, tool));
            for (index, tool) in tools.enumerate() {
                let name = tool_name(body, &tool);
                tiling.push(PartKind::Tool { index, name }, tool.whole);
            }
        } else if key == api.conversation_key() {
            let list = if is_list { elements.as_slice() } else { &alone };
            for (index, message) in list.iter().enumerate() {
                let role = role(body, message);
                let frame = frames.messages.get(index).copied().flatten();
                tiling.push(PartKind::Message { index, role, frame }, message.whole.clone());
            }
        } else if key == TOOL_CONFIG && api == Api::Converse {
            for inner in elements {
                if inner.key.as_deref() != Some("tools") {
                    let name = inner.key.unwrap_or_default();
                    tiling.push(PartKind::Parameter { name }, inner.whole);
                    continue;
                }
                let tools = json::children(body, inner.value).into_iter();
                let tools = tools.filter(|tool| !is_mark(body, tool));
                for (index, tool) in tools.enumerate() {
                    let name = tool_name(body, &tool);
                    tiling.push(PartKind::Tool { index, name }, tool.whole);
                }
            }
        } else if api.is_system(key) {
            tiling.push(PartKind::System { frame: frames.system }, member.value);
        } else {
            tiling.push(PartKind::Parameter { name: key.to_owned() }, member.whole);
        }
    }
    tiling.finish(body.len())
}

struct Tiling {
    parts: Vec<RequestPart>,
    end: usize,
}

impl Tiling {
    fn push(&mut self, kind: PartKind, range: Range<usize>) {
        self.fill(range.start);
        self.end = range.end;
        self.parts.push(RequestPart { kind, range });
    }

    fn fill(&mut self, until: usize) {
        if self.end < until {
            self.parts.push(RequestPart { kind: PartKind::Form, range: self.end..until });
        }
    }

    fn finish(mut self, len: usize) -> Vec<RequestPart> {
        self.fill(len);
        self.parts
    }
}

/// A string member of an object, at the end of `path`.
fn string(body: &str, object: &PlacedValue, path: &[&str]) -> Option<String> {
    let mut at = object.value.clone();
    for key in path {
        let members = json::children(body, at);
        // As in a body that is parsed, the last of several stands.
        at = members.into_iter().rfind(|member| member.key.as_deref() == Some(key))?.value;
    }
    match json::read_mended(body.get(at)?.as_bytes()) {
        Ok((Value::String(text), _)) => Some(text),
        _ => None,
    }
}

/// As [`super::compare::definitions`], in a body.
fn definitions(body: &str, tool: PlacedValue) -> Vec<PlacedValue> {
    if let [only] = &json::children(body, tool.value.clone())[..] {
        let is_list = body.get(only.value.clone()).is_some_and(|text| text.starts_with('['));
        if is_list && only.key.as_deref().is_some_and(|key| GROUPS.contains(&key)) {
            return json::children(body, only.value.clone());
        }
    }
    vec![tool]
}

/// As in the module `compare`, in a body.
fn is_mark(body: &str, tool: &PlacedValue) -> bool {
    let members = json::children(body, tool.value.clone());
    matches!(&members[..], [only] if only.key.as_deref() == Some(CACHE_POINT))
}

fn tool_name(body: &str, tool: &PlacedValue) -> String {
    string(body, tool, &["function", "name"])
        .or_else(|| string(body, tool, &["name"]))
        .or_else(|| string(body, tool, &["custom", "name"]))
        .or_else(|| string(body, tool, &["toolSpec", "name"]))
        .or_else(|| string(body, tool, &["type"]))
        .or_else(|| match &mut json::children(body, tool.value.clone())[..] {
            [only] => only.key.take(),
            _ => None,
        })
        .unwrap_or_else(|| "unnamed".to_owned())
}

pub(super) fn role(body: &str, message: &PlacedValue) -> String {
    string(body, message, &["role"])
        .or_else(|| string(body, message, &["type"]))
        .unwrap_or_else(|| "user".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Provenance, Request};

    #[test]
    fn a_mark_of_a_cache_among_tools_is_no_tool() {
        let body = r#"{"messages":[],"toolConfig":{"tools":[{"toolSpec":{"name":"a","inputSchema":{}}},{"cachePoint":{"type":"default"}}]}}"#;
        let request = Request::new(Api::Converse, Provenance::Sent, body.into(), Frames::default());
        assert_eq!(request.tools().len(), 1);
        let owners = request.in_cache_order().unwrap().owners().to_string();
        assert!(owners.contains("tool:a") && !owners.contains("cachePoint"), "{owners}");
    }

    #[test]
    fn owned_bytes_a_tool_is_called_the_same_in_the_body_and_in_cache_order() {
        for tool in [
            r#"{"name":"a"}"#,
            r#"{"name":"a","name":"b"}"#,
            r#"{"function":{"name":"a"},"function":{"name":"b"}}"#,
            r#"{"function":{"name":1},"custom":{"name":"c"},"type":"custom"}"#,
            r#"{"type":"web_search"}"#,
            r#"{"functionDeclarations":[{"name":"a"},{"name":"b"}]}"#,
            r#"{"googleSearch":{}}"#,
            r#"{"functionDeclarations":[{"name":"a"}],"googleSearch":{}}"#,
            "{}",
        ] {
            let body = format!("{{\"model\":\"m\",\"messages\":[],\"tools\":[{tool}]}}");
            let request =
                Request::new(Api::Chat, Provenance::Sent, body.as_str().into(), Frames::default());
            let id = request.tools()[0].id.to_string();
            let owners = request.in_cache_order().unwrap().owners().to_string();
            assert!(owners.contains(&format!("\"{id}\"")), "{tool}: {id} in {owners}");
        }
    }
}
