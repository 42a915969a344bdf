//! Snapshots with the counts of another tokenizer.

use std::sync::Arc;

use crate::{
    Result,
    json::{Object, Value},
    snapshot::FrameSnapshot,
    tokens::TokenCounter,
};

/// The snapshot as it may stand beside others that `counter` counted: itself, or the same chunks
/// counted again. An archive holds the counts of one tokenizer, so that they may be added up.
///
/// # Errors
/// Those of loading a snapshot.
pub(super) fn counted_by(
    counter: &dyn TokenCounter,
    snapshot: &Arc<FrameSnapshot>,
) -> Result<Arc<FrameSnapshot>> {
    let made_by = snapshot.identity();
    if snapshot.is_empty() || made_by.is_some_and(|by| by.tokenizer == counter.id()) {
        return Ok(Arc::clone(snapshot));
    }
    let (mut chunks, mut total) = (Vec::with_capacity(snapshot.len()), 0_u64);
    for chunk in snapshot.chunks() {
        let mut chunk = chunk.to_owned();
        chunk.tokens = counter.count(&chunk.content) as u64;
        total = total.saturating_add(chunk.tokens);
        chunks.push(chunk.to_json());
    }
    let Value::Object(mut json) = snapshot.to_json() else { return Ok(Arc::clone(snapshot)) };
    json.shift_remove("exactTokens");
    let mut made_by = match json.shift_remove("madeBy") {
        Some(Value::Object(known)) => known,
        _ => Object::new(),
    };
    made_by.insert("tokenizer".to_owned(), counter.id().into());
    json.extend([
        ("chunks".to_owned(), chunks.into()),
        ("totalTokens".to_owned(), total.into()),
        ("madeBy".to_owned(), made_by.into()),
    ]);
    FrameSnapshot::from_json(json.into()).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use crate::{json, tokens::Chars4};

    use super::*;

    fn snapshot(made_by: &str) -> Arc<FrameSnapshot> {
        let json = format!(
            r#"{{"chunks":[{{"content":"four","tokens":9,"facetIds":["f"],"metadata":{{"a":1}}}},{{"content":"seven77","tokens":1}}],"totalContent":"fourseven77","totalTokens":10,"capturedAt":5,"hasContent":true,"exactTokens":8{made_by},"x":1}}"#
        );
        Arc::new(FrameSnapshot::from_json(json::read(json.as_bytes()).unwrap()).unwrap())
    }

    #[test]
    fn what_another_tokenizer_counted_is_counted_again_and_nothing_else_changes() {
        let declared = counted_by(&Chars4, &snapshot("")).unwrap();
        assert_eq!(
            declared.to_json().to_string(),
            r#"{"chunks":[{"content":"four","tokens":1,"facetIds":["f"],"metadata":{"a":1}},{"content":"seven77","tokens":2}],"totalContent":"fourseven77","totalTokens":3,"capturedAt":5,"hasContent":true,"madeBy":{"tokenizer":"chars4"},"x":1}"#
        );
        let made = r#","madeBy":{"viewer":"agent","format":"plain","renderer":1,"tokenizer":"other","y":2}"#;
        let made_by = counted_by(&Chars4, &snapshot(made)).unwrap().identity().cloned().unwrap();
        assert_eq!(made_by.rendering.as_ref().unwrap().format, "plain");
        assert_eq!(made_by.tokenizer, "chars4");
        assert!(made_by.extra.contains_key("y"));
    }

    #[test]
    fn what_the_tokenizer_itself_counted_stays() {
        let made =
            r#","madeBy":{"viewer":"agent","format":"plain","renderer":1,"tokenizer":"chars4"}"#;
        let known = snapshot(made);
        assert!(Arc::ptr_eq(&counted_by(&Chars4, &known).unwrap(), &known));
    }
}
