//! Names for the sessions of a file that holds many.

use std::collections::HashMap;

use crate::json::Value;

/// Gives out session names; one that was given before gets a number, since two sessions that a
/// source calls the same are still two.
#[derive(Default)]
pub(super) struct Names(HashMap<String, u64>);

impl Names {
    pub(super) fn unique(&mut self, mut name: String) -> String {
        loop {
            let count = self.0.entry(name.clone()).or_default();
            *count += 1;
            if *count == 1 {
                return name;
            }
            // The numbered name may be taken, too.
            name = format!("{name}-{count}");
        }
    }
}

/// An id as part of a name: a string as it is, anything else as JSON.
pub(super) fn label(id: Option<&Value>) -> String {
    match id {
        None | Some(Value::Null) => "unnamed".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once() {
        let mut names = Names::default();
        let mut given = |name: &str| names.unique(name.to_owned());
        assert_eq!(
            [given("a"), given("a-2"), given("a"), given("a")],
            ["a", "a-2", "a-2-2", "a-3"]
        );
    }
}
