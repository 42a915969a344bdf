//! Open names: cheap to clone, compared by their text.

use std::sync::Arc;

/// The text of a name. Public for [`name_type!`](crate::name_type) alone.
#[doc(hidden)]
#[derive(Clone)]
pub enum Text {
    /// A thin reference, so that a name is no wider than a shared text.
    Static(&'static &'static str),
    Shared(Arc<str>),
}

impl Text {
    #[inline]
    pub fn as_str(&self) -> &str {
        match self {
            Text::Static(text) => text,
            Text::Shared(text) => text,
        }
    }

    #[inline]
    pub fn same(&self, other: &Self) -> bool {
        std::ptr::eq(self.as_str(), other.as_str())
    }
}

/// Declares an enum of closed names: `as_str` gives the name on the wire, and serde writes it.
///
/// ```
/// afterimage_json::name_enum! {
///     /// Where a vessel is.
///     #[derive(Clone, Copy)]
///     pub enum Berth {
///         /// At the quay.
///         Quay = "quay",
///         /// At anchor.
///         Roads = "roads",
///     }
/// }
///
/// assert_eq!(Berth::Roads.as_str(), "roads");
/// ```
#[macro_export]
macro_rules! name_enum {
    (
        $(#[$meta:meta])* $vis:vis enum $name:ident {
            $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        $vis enum $name {
            $($(#[$vmeta])* $variant,)+
        }

        impl $name {
            /// The name on the wire.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

/// Declares an open string type over a shared or static text, with serde's traits.
///
/// ```
/// afterimage_json::name_type! {
///     /// The kind of a vessel.
///     Vessel {
///         /// A ferry.
///         FERRY = "ferry",
///     }
/// }
///
/// assert_eq!(Vessel::from("ferry"), Vessel::FERRY);
/// assert_eq!(Vessel::from("tug").as_str(), "tug");
/// ```
#[macro_export]
macro_rules! name_type {
    ($(#[$meta:meta])* $name:ident { $($(#[$cmeta:meta])* $constant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone)]
        pub struct $name($crate::name::Text);

        impl $name {
            $($(#[$cmeta])* pub const $constant: Self = Self($crate::name::Text::Static(&$text));)*

            /// The text of the name.
            #[inline]
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                $(if text == $text { return Self::$constant; })*
                Self($crate::name::Text::Shared(std::sync::Arc::from(text)))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::from(text.as_str())
            }
        }

        impl From<&String> for $name {
            fn from(text: &String) -> Self {
                Self::from(text.as_str())
            }
        }

        impl std::ops::Deref for $name {
            type Target = str;
            #[inline]
            fn deref(&self) -> &str {
                self.as_str()
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl PartialEq for $name {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.0.same(&other.0) || self.as_str() == other.as_str()
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl Eq for $name {}

        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.as_str().hash(state);
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.as_str().cmp(other.as_str())
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(self.as_str(), f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
    };
}
