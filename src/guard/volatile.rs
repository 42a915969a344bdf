//! What in a text changes by itself.

crate::json::name_enum! {
    /// Something that changes by itself, and takes the cache from what stands behind it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Volatile {
        /// A day.
        Date = "date",
        /// A time of day, with or without its day.
        Time = "time",
        /// Seconds or milliseconds since 1970.
        Epoch = "epoch",
        /// A UUID.
        Uuid = "uuid",
        /// A hash, or a random id: at least 16 hexadecimal digits.
        Hash = "hash",
        /// A number that is another one now.
        Number = "number",
    }
}

const NAMES: [&str; 38] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "jan",
    "feb",
    "mar",
    "apr",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "mon",
    "tue",
    "wed",
    "thu",
    "fri",
    "sat",
    "sun",
    "sept",
];

impl Volatile {
    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Date => "a date",
            Self::Time => "a time",
            Self::Epoch => "a time in seconds or milliseconds",
            Self::Uuid => "a UUID",
            Self::Hash => "a hash or a random id",
            Self::Number => "a number",
        }
    }

    /// What two texts hold at the byte from which on they differ; `None` where it is not of one kind
    /// in both.
    pub(super) fn at(was: &str, is: &str, offset: usize) -> Option<Self> {
        let (was, is) = (Self::of(word_at(was, offset))?, Self::of(word_at(is, offset))?);
        (was == is).then_some(was)
    }

    fn of(word: &str) -> Option<Self> {
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_number = |text: &str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        };
        let groups: Vec<usize> = word.split('-').map(str::len).collect();
        let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
        if groups == [8, 4, 4, 4, 12] && word.split('-').all(is_hex) {
            Some(Self::Uuid)
        } else if has_time(word) {
            Some(Self::Time)
        } else if has_date(word) || NAMES.contains(&word.to_ascii_lowercase().as_str()) {
            Some(Self::Date)
        } else if is_number(word) {
            let whole = word.split('.').next().unwrap_or_default();
            let is_epoch = matches!(whole.len(), 10 | 13) && whole.starts_with(['1', '2']);
            Some(if is_epoch { Self::Epoch } else { Self::Number })
        } else {
            (word.len() >= 16 && has_digit && is_hex(word)).then_some(Self::Hash)
        }
    }
}

/// The word that holds the byte at `offset`, or ends there.
fn word_at(text: &str, offset: usize) -> &str {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "-:.+/".contains(c);
    let (before, after) = text.split_at_checked(offset).unwrap_or((text, ""));
    let start = before.rfind(|c| !is_of_word(c)).map_or(0, |at| {
        at + before.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
    });
    let end = offset + after.find(|c| !is_of_word(c)).unwrap_or(after.len());
    let word = text.get(start..end).unwrap_or_default();
    word.trim_matches(|c: char| !c.is_ascii_alphanumeric())
}

/// Digits in groups of these lengths, with `between` between them, somewhere in a word.
fn has_groups(word: &str, lengths: &[usize], between: char) -> bool {
    let mut groups: Vec<usize> = Vec::new();
    let mut last = None;
    for c in word.chars() {
        match c {
            '0'..='9' if last.is_some_and(|c: char| c.is_ascii_digit()) => {
                groups.last_mut().into_iter().for_each(|digits| *digits += 1);
            }
            '0'..='9' if last == Some(between) => groups.push(1),
            '0'..='9' => groups = vec![1],
            c if c == between && last.is_some_and(|c| c.is_ascii_digit()) => {}
            _ => {
                if groups.ends_with(lengths) {
                    return true;
                }
                groups.clear();
            }
        }
        last = Some(c);
    }
    groups.ends_with(lengths)
}

fn has_date(word: &str) -> bool {
    has_groups(word, &[4, 2, 2], '-')
        || has_groups(word, &[4, 2, 2], '/')
        || has_groups(word, &[2, 2, 4], '/')
        || has_groups(word, &[2, 2, 4], '.')
}

fn has_time(word: &str) -> bool {
    has_groups(word, &[2, 2], ':') || has_groups(word, &[1, 2], ':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(was: &str, is: &str, expected: Option<Volatile>) {
        let offset = crate::text::common_prefix(was, is);
        assert_eq!(Volatile::at(was, is, offset), expected, "{was} {is}");
    }

    #[test]
    fn what_changes_by_itself_is_named() {
        use Volatile::{Date, Epoch, Hash, Number, Time, Uuid};
        check("Today is 2026-11-23.", "Today is 2026-11-24.", Some(Date));
        check("Today's date: Monday", "Today's date: Tuesday", Some(Date));
        check("on 23.11.2026", "on 24.11.2026", Some(Date));
        check("at 2026-11-23T10:00:00Z", "at 2026-11-23T10:00:07Z", Some(Time));
        check("It is 9:41 now", "It is 9:42 now", Some(Time));
        check("now=1795430000", "now=1795430009", Some(Epoch));
        check(
            "id 0b5e9f6e-2f6e-4d7f-9e55-6f7f7f0c1d2e",
            "id 1b5e9f6e-2f6e-4d7f-9e55-6f7f7f0c1d2e",
            Some(Uuid),
        );
        check("commit 9f86d081884c7d65", "commit 9f86d081884c7d66", Some(Hash));
        check("step 7 of 90", "step 8 of 90", Some(Number));
        check("Überschrift 7", "Überschrift 8", Some(Number));
        check("Be kind.", "Be brief.", None);
        check("Be kind.", "7", None);
        check("", "x", None);
    }
}
