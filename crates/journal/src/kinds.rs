//! Kinds of events by the names of their variants, as serde has them.

use serde::{
    Serialize,
    de::{DeserializeOwned, Deserializer, Error as _, Visitor, value::Error},
    forward_to_deserialize_any,
};

/// The kind of what is no variant of an enum.
const OTHER: &str = "event";

/// The name of an event's variant. Nothing of its content is looked at.
pub(super) fn kind_of<T: Serialize>(event: &T) -> &'static str {
    serde_variant::to_variant_name(event).unwrap_or(OTHER)
}

/// Whether events of a type can have this kind.
pub(super) fn has_kind<T: DeserializeOwned>(kind: &str) -> bool {
    let mut variants = None;
    // Asked for a value of the type, serde says which variants there are, and gets none.
    let _ = T::deserialize(Variants(&mut variants));
    variants.map_or(kind == OTHER, |variants: &[&str]| variants.contains(&kind))
}

/// Takes down the variants that are asked for.
struct Variants<'a>(&'a mut Option<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Variants<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("no value"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = Some(variants);
        Err(Error::custom("no value"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Step {
        TaskAdded(String),
        Moved {
            to: u64,
        },
        Paired(u64, u64),
        #[serde(rename = "over")]
        Done,
    }

    #[derive(Debug, Serialize, Deserialize)]
    #[serde(tag = "type")]
    enum Tagged {
        One { n: u64 },
    }

    #[test]
    fn kinds_are_the_names_of_variants_as_they_are_written() {
        let steps = [
            (Step::TaskAdded("a".to_owned()), "task_added"),
            (Step::Moved { to: 1 }, "moved"),
            (Step::Paired(1, 2), "paired"),
            (Step::Done, "over"),
        ];
        for (step, kind) in steps {
            assert_eq!(kind_of(&step), kind);
            assert!(has_kind::<Step>(kind), "{kind}");
        }
        assert!(!has_kind::<Step>("Done") && !has_kind::<Step>("event"));
    }

    #[test]
    fn what_has_no_variants_has_one_kind() {
        assert_eq!((kind_of(&7), kind_of(&Tagged::One { n: 1 })), ("event", "event"));
        assert!(has_kind::<u64>("event") && has_kind::<Tagged>("event"));
        assert!(!has_kind::<u64>("One") && !has_kind::<Tagged>("One"));
    }
}
