//! What is known of the members of an answer: their names, types and meanings.

use std::{borrow::Cow, sync::Arc};

use afterimage::{
    bill::MediaCount,
    guard::ProviderDiagnostics,
    id::{FacetId, FrameSeq, Millis},
    json::{Object, Value},
    request::{CacheBreak, RequestTokens},
    snapshot::FrameSnapshot,
    steps::Touch,
    transcript::{AppliedEdit, Money, Usage},
};

use super::ByName;

/// A member as `docs/FORMAT.md` describes it.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its name, behind those of the objects that it is in: `tokens.tools`, `edits[].type`.
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) meaning: String,
}

/// A type that stands in answers.
pub(crate) trait Described {
    /// The heading of its own page; without one its members stand where it is used.
    const TITLE: Option<&'static str> = None;

    /// What its JSON is called where it is a member.
    fn kind() -> String {
        let page = |title: &str| format!("[{title}](#{})", title.replace(' ', "-"));
        Self::TITLE.map_or_else(|| "object".to_owned(), page)
    }

    /// Adds its members.
    fn members(_: &mut Vec<Member>) {}

    /// Adds its members to another answer, in which they stand as if they were its own.
    fn flattened(of: &mut Vec<Member>) {
        Self::members(of);
    }

    /// What stands between its name and those of its members.
    fn within() -> &'static str {
        "."
    }
}

/// Adds a member of this type, and the members of it that have no page of their own.
pub(crate) fn member<T: Described>(
    of: &mut Vec<Member>,
    field: &str,
    is_optional: bool,
    meaning: &str,
) {
    let name = camel(field);
    let kind = T::kind();
    let kind = if is_optional { format!("{kind}, optional") } else { kind };
    let mut inner = Vec::new();
    if T::TITLE.is_none() {
        T::members(&mut inner);
    }
    let within = format!("{name}{}", T::within());
    of.push(Member { name, kind, meaning: meaning.trim().to_owned() });
    of.extend(
        inner.into_iter().map(|member| Member { name: within.clone() + &member.name, ..member }),
    );
}

/// A field's name as it is written.
fn camel(field: &str) -> String {
    let mut words = field.trim_start_matches("r#").split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.extend(letters);
    }
    name
}

macro_rules! kinds {
    ($($($type:ty),+ => $kind:literal;)+) => {$($(
        impl Described for $type {
            fn kind() -> String {
                $kind.to_owned()
            }
        }
    )+)+};
}

kinds! {
    Millis, u64, u32, usize, i64, i128, FrameSeq => "integer";
    f64 => "number";
    bool => "boolean";
    Touch, str, String, Arc<str>, FacetId, Cow<'_, str> => "string";
    Value, Object => "any";
    Usage => "[usage](#usage)";
    Money => "[money](#money)";
    AppliedEdit, ProviderDiagnostics => "object";
    FrameSnapshot => "[snapshot](#frame-snapshot)";
}

/// Values of the library that serialise themselves.
macro_rules! of_library {
    ($($type:ty { $($field:ident: $kind:ty = $meaning:literal),+ $(,)? })+) => {$(
        impl Described for $type {
            fn members(of: &mut Vec<Member>) {
                $(member::<$kind>(of, stringify!($field), false, $meaning);)+
            }
        }
    )+};
}

of_library! {
    CacheBreak {
        cause: String = "what it is: the name of a parameter, or `images`, or `citations`",
        from: String = "from where on the cache is lost: `start`, `system` or `messages`",
    }
    MediaCount {
        parts: u64 = "how many there are",
        tokens: u64 = "the tokens of those whose cost is known",
        unknown: u64 = "how many are of unknown cost",
    }
    RequestTokens {
        tools: u64 = "of the definitions of tools",
        system: u64 = "of the system prompt and of the operator's messages",
        messages: u64 = "of the other messages",
    }
}

/// These stand for what they refer to.
macro_rules! as_inner {
    ($($type:ty),+) => {$(
        impl<T: Described + ?Sized> Described for $type {
            const TITLE: Option<&'static str> = T::TITLE;

            fn kind() -> String {
                T::kind()
            }

            fn members(of: &mut Vec<Member>) {
                T::members(of);
            }

            fn within() -> &'static str {
                T::within()
            }
        }
    )+};
}

as_inner!(&T, Box<T>);

impl<T: Described> Described for Option<T> {
    const TITLE: Option<&'static str> = T::TITLE;

    fn kind() -> String {
        format!("{} or null", T::kind())
    }

    fn members(of: &mut Vec<Member>) {
        T::members(of);
    }

    /// Where there is none, all of its members are left out.
    fn flattened(of: &mut Vec<Member>) {
        let mut members = Vec::new();
        T::flattened(&mut members);
        for member in &mut members {
            if !member.name.contains('.') && !member.kind.ends_with(", optional") {
                member.kind.push_str(", optional");
            }
        }
        of.extend(members);
    }

    fn within() -> &'static str {
        T::within()
    }
}

/// Several of a kind. What has a page of its own is called by its title, and `any` is no noun.
fn plural(kind: &str) -> String {
    match kind.strip_prefix("array ") {
        Some(of) => format!("arrays {of}"),
        None if kind == "any" || kind.ends_with(')') => kind.to_owned(),
        None => format!("{kind}s"),
    }
}

/// Lists.
macro_rules! lists {
    ($($type:ty),+) => {$(
        impl<T: Described> Described for $type {
            const TITLE: Option<&'static str> = T::TITLE;

            fn kind() -> String {
                format!("array of {}", plural(&T::kind()))
            }

            fn members(of: &mut Vec<Member>) {
                T::members(of);
            }

            fn within() -> &'static str {
                "[]."
            }
        }
    )+};
}

lists!(Vec<T>, [T], [T; 2]);

impl<T: Described> Described for ByName<'_, T> {
    const TITLE: Option<&'static str> = T::TITLE;

    fn kind() -> String {
        format!("object of {}", plural(&T::kind()))
    }

    fn members(of: &mut Vec<Member>) {
        T::members(of);
    }

    fn within() -> &'static str {
        ".NAME."
    }
}
