//! Answers as values: what a command says is a struct, and one declaration of it gives its JSON and its
//! page in `docs/FORMAT.md`.
//!
//! ```text
//! answer! {
//!     /// A line of `berths --json`.
//!     pub(crate) struct Berth<'a> {
//!         /// the number of the berth
//!         number: u64,
//!         /// the ship that lies there; null where none does
//!         ship: Option<&'a str>,
//!         /// what she waits for, where she waits
//!         waits_for?: &'a str,
//!         /// where it is written
//!         ..place: Place<'a>,
//!     }
//! }
//! ```
//!
//! A member has the field's name in camel case. `?` leaves it out where it is `None`, `..` puts the
//! members of another answer in its place. `struct Berth as "berth"` gives it a heading of its own, to
//! which other answers refer.

#[cfg(test)]
mod described;
#[cfg(test)]
mod pages;

use afterimage::json::{Object, Value, to_value};
use serde::{Serialize, Serializer};

#[cfg(test)]
pub(crate) use described::{Described, Member, member};

/// Declares answers; see the module.
macro_rules! answer {
    ($(
        $(#[$about:meta])*
        $vis:vis struct $name:ident $(<$life:lifetime>)? $(as $title:literal)? { $($body:tt)* }
    )+) => {$(
        $crate::answer::answer_members! {
            { $(#[$about])* $vis struct $name $(<$life>)? $(as $title)? } {} {} $($body)*
        }
    )+};
}

/// Takes the members of an answer one by one: their fields, then what is known of them.
macro_rules! answer_members {
    (
        $head:tt { $($fields:tt)* } { $($known:tt)* }
        $(#[doc = $doc:literal])* .. $name:ident : $type:ty, $($rest:tt)*
    ) => {
        $crate::answer::answer_members! {
            $head
            { $($fields)* $(#[doc = $doc])* #[serde(flatten)] pub(crate) $name: $type, }
            { $($known)* { .. $name [$type] } }
            $($rest)*
        }
    };
    (
        $head:tt { $($fields:tt)* } { $($known:tt)* }
        $(#[doc = $doc:literal])* $name:ident ? : $type:ty, $($rest:tt)*
    ) => {
        $crate::answer::answer_members! {
            $head
            {
                $($fields)*
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub(crate) $name: Option<$type>,
            }
            { $($known)* { ? $name [$type] [$($doc)*] } }
            $($rest)*
        }
    };
    (
        $head:tt { $($fields:tt)* } { $($known:tt)* }
        $(#[doc = $doc:literal])* $name:ident : $type:ty, $($rest:tt)*
    ) => {
        $crate::answer::answer_members! {
            $head
            { $($fields)* $(#[doc = $doc])* pub(crate) $name: $type, }
            { $($known)* { = $name [$type] [$($doc)*] } }
            $($rest)*
        }
    };
    (
        { $(#[$about:meta])* $vis:vis struct $name:ident $(<$life:lifetime>)? $(as $title:literal)? }
        { $($fields:tt)* } { $($known:tt)* }
    ) => {
        $(#[$about])*
        #[derive(serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        $vis struct $name $(<$life>)? { $($fields)* }

        #[cfg(test)]
        impl $(<$life>)? $crate::answer::Described for $name $(<$life>)? {
            const TITLE: Option<&'static str> = $crate::answer::title!($($title)?);

            fn members(of: &mut Vec<$crate::answer::Member>) {
                $($crate::answer::known_member!(of $known);)*
            }
        }
    };
}

#[cfg(test)]
macro_rules! title {
    () => {
        None
    };
    ($title:literal) => {
        Some($title)
    };
}

#[cfg(test)]
macro_rules! known_member {
    ($of:ident { .. $name:ident [$type:ty] }) => {
        <$type as $crate::answer::Described>::flattened($of)
    };
    ($of:ident { $sign:tt $name:ident [$type:ty] [$($doc:literal)*] }) => {
        $crate::answer::member::<$type>(
            $of,
            stringify!($name),
            stringify!($sign) == "?",
            concat!($($doc),*),
        )
    };
}

pub(crate) use {answer, answer_members};
#[cfg(test)]
pub(crate) use {known_member, title};

/// Values by name, in this order; no name is there twice.
pub(crate) struct ByName<'n, V>(pub(crate) Vec<(&'n str, V)>);

impl<V: Serialize> Serialize for ByName<'_, V> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Adds the members of an answer to an object.
pub(crate) fn put(json: &mut Object, answer: &impl Serialize) {
    if let Ok(Value::Object(members)) = to_value(answer) {
        json.extend(members);
    }
}
