//! What a secret looks like, as data.

use std::{collections::BTreeMap, sync::Arc};

use regex_automata::meta::Regex;
use serde::Deserialize;

use super::{
    cut::Forms,
    expression::{self, Compiler, Expression},
    structure::Structure,
    view::Reading,
};
use crate::{Error, ErrorKind, Result};

/// The rules that come along, which say their date themselves.
const EMBEDDED: &str = include_str!("rules.toml");

/// Matches nothing: a rule that is told by members alone has no text of its own.
const NEVER: &str = r"[^\s\S]";

/// What rules of `keys` have in common.
const KEYED: &str = include_str!("keyed.toml");

/// Rules by which secrets are found, as TOML.
///
/// A rule has an `id` and one of `regex`, `token`, `keys` and `members`. Of a `regex` the group
/// `secretGroup`, else the first group that took part, else the whole match is the secret. A `token`
/// is one that stands for itself: no letter or digit is beside it, but for those of an escape that is
/// written out, as in `\nghp_…` and `%3Dghp_…`. `keys`
/// are names of members and variables whose value is one; `-`, `_` and case do not count, and
/// something may stand before them; `exceptKeys` matches those that tell nothing, in the form
/// `cache_key`. `members` are names of members of JSON that are secret as a
/// whole. What has less `entropy`, in bits for each character, is none, nor what is shorter than
/// `least`.
///
/// `keywords`, `allowlists` with `regexes`, `stopwords`, `condition` and `regexTarget` are those of
/// gitleaks, so that its maintained rules can be read as they are. A text is in no file: rules of
/// paths alone are passed over, a path beside a `regex` is not asked for, and what is allowed in
/// some files only is redacted. A target `line` is looked for in the match. Expressions are read as
/// Go reads them: `\b`, `\d` and `\w` are those of ASCII, and a `{` that begins no repetition stands
/// for itself. Each takes at most 64 MiB of memory, and all of them together at most 256 MiB.
///
/// ```
/// use afterimage::redact::{RedactionRules, Redactor};
///
/// let own = RedactionRules::from_toml(r#"
///     [[rules]]
///     id = "berth-code"
///     regex = '''\bB-[0-9]{4}\b'''
/// "#)?;
/// let mut redactor = Redactor::new(&RedactionRules::embedded()?.with(&own)?);
/// assert_eq!(redactor.text("Berth B-1234.", ""), "Berth [redacted:berth-code:1].");
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RedactionRules {
    pub(super) rules: Arc<[Rule]>,
    /// All of them, in sets that are looked for one after the other: what few expressions have read is
    /// told by few states. A copy would begin with empty caches.
    pub(super) sets: Arc<[Subset]>,
    /// What is looked for in JSON as it is written, where its strings stand beside each other.
    pub(super) written: Arc<Subset>,
    pub(super) reading: Arc<Reading>,
    pub(super) forms: Arc<Forms>,
}

/// How many rules a set has at most, and which rules are in sets of this kind.
type RulesOfSets = (usize, fn(&Rule) -> bool);

/// Some of the rules, all at once.
#[derive(Debug)]
pub(super) struct Subset {
    pub(super) regex: Regex,
    /// The numbers of the rules.
    pub(super) numbers: Vec<usize>,
    /// Finds any keyword without which none of them is looked for.
    pub(super) keywords: Option<Expression>,
    /// Whether each stands for itself.
    pub(super) is_of_tokens: bool,
}

/// A token of less entropy stands for one: `ghp_xxxxxxxx`.
const LEAST_OF_TOKEN: f64 = 2.5;

/// The longest text that is a secret without a form of its own.
const LONGEST: usize = 16 << 10;

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is something that a rule may say")]
pub(super) struct Rule {
    pub(super) id: String,
    /// Its groups are those of this. That of all expressions would need memory for the groups of all.
    pub(super) expression: Expression,
    pub(super) group: Option<usize>,
    /// The names that tell it, without `-` and `_`, in lower case.
    pub(super) names: Vec<String>,
    /// Names that end as those do and tell nothing, as [`snake_name`] has them.
    except: Option<Expression>,
    /// Whether members with these names are secret as a whole, whatever is in them.
    is_whole: bool,
    /// Whether it stands for itself: no letter or digit is beside it.
    pub(super) is_token: bool,
    /// What a match begins or is a part of, whose secrets are read by its shape.
    pub(super) structure: Option<Structure>,
    /// Whether what it found is a secret wherever it stands again.
    pub(super) spreads: bool,
    is_written: bool,
    entropy: f64,
    least: usize,
    keywords: Vec<String>,
    allowed: Vec<Arc<Allowed>>,
}

#[derive(Clone, Debug)]
struct Allowed {
    regexes: Vec<Expression>,
    stopwords: Vec<String>,
    of_match: bool,
    /// Whether both a regex and a stopword are to be found, where there are both.
    needs_all: bool,
}

#[derive(Deserialize)]
struct TomlRules {
    /// What expressions have in common, by its name in them: `{value}`.
    #[serde(default)]
    parts: BTreeMap<String, String>,
    #[serde(default)]
    rules: Vec<TomlRule>,
    #[serde(default)]
    allowlist: Option<TomlAllowed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TomlKeyed {
    regex: String,
    allowlists: Vec<TomlAllowed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TomlRule {
    id: String,
    regex: Option<String>,
    token: Option<String>,
    reads: Option<Structure>,
    #[serde(default)]
    written: bool,
    #[serde(default)]
    stand_ins: bool,
    spreads: Option<bool>,
    #[serde(default)]
    keys: Vec<String>,
    except_keys: Option<String>,
    #[serde(default)]
    members: Vec<String>,
    secret_group: Option<usize>,
    entropy: Option<f64>,
    least: Option<usize>,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    allowlists: Vec<TomlAllowed>,
    path: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TomlAllowed {
    #[serde(default)]
    regexes: Vec<String>,
    #[serde(default)]
    stopwords: Vec<String>,
    regex_target: Option<String>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    commits: Vec<String>,
    condition: Option<String>,
}

impl TomlAllowed {
    fn needs_all(&self) -> bool {
        let condition = self.condition.as_deref().unwrap_or_default();
        condition.eq_ignore_ascii_case("and") || condition == "&&"
    }

    /// Whether it allows something by its text alone. What it allows in some files only is secret
    /// elsewhere, and a text is in no file.
    fn is_of_text(&self) -> bool {
        !self.needs_all() || self.paths.is_empty() && self.commits.is_empty()
    }
}

impl RedactionRules {
    /// The rules that come along. Costs what [`RedactionRules::from_toml`] does.
    ///
    /// # Errors
    /// None in a build whose tests pass: [`ErrorKind::Shape`].
    pub fn embedded() -> Result<Self> {
        Self::read(EMBEDDED, Compiler::lazy(), |_| true)
    }

    /// Of the rules that come along those of tokens: what issuers make, by its form, whatever stands
    /// beside it. Costs less.
    ///
    /// # Errors
    /// Those of [`RedactionRules::embedded`].
    pub fn of_tokens() -> Result<Self> {
        Self::read(EMBEDDED, Compiler::lazy(), |rule| rule.token.is_some())
    }

    /// Reads rules that are written as TOML. O(text), and compiles each expression by itself and
    /// all of them together.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] with the line where the text is not TOML or has another shape, and with
    /// the rule where its expression cannot be read or takes too much memory, or it has none.
    pub fn from_toml(text: &str) -> Result<Self> {
        Self::read(text, Compiler::new(), |_| true)
    }

    fn read(
        text: &str,
        mut compiler: Compiler,
        is_taken: impl Fn(&TomlRule) -> bool,
    ) -> Result<Self> {
        let read: TomlRules = from_toml(text)?;
        let keyed: TomlKeyed = from_toml(KEYED)?;
        let stand_ins = keyed.allowlists.iter();
        let stand_ins =
            stand_ins.map(|of| Allowed::of(of, "the names of all", &mut compiler).map(Arc::new));
        let stand_ins = stand_ins.collect::<Result<Vec<_>>>()?;
        let for_all = read.allowlist.as_ref().filter(|of| of.is_of_text());
        let for_all = for_all
            .map(|of| Allowed::of(of, "the allowlist of all", &mut compiler).map(Arc::new))
            .transpose()?;
        let mut rules = Vec::with_capacity(read.rules.len());
        for mut rule in read.rules.into_iter().filter(is_taken) {
            for (name, part) in &read.parts {
                let allowed = rule.allowlists.iter_mut().flat_map(|of| &mut of.regexes);
                let own = [&mut rule.regex, &mut rule.token].into_iter().flatten();
                for expression in own.chain(allowed) {
                    *expression = expression.replace(&format!("{{{name}}}"), part);
                }
            }
            if rule.regex.is_none()
                && rule.keys.is_empty()
                && rule.members.is_empty()
                && rule.path.is_some()
            {
                continue;
            }
            let mut rule = Rule::of(rule, (&keyed.regex, &stand_ins), &mut compiler)?;
            rule.allowed.extend(for_all.clone());
            rules.push(rule);
        }
        Self::of(rules)
    }

    fn of(rules: Vec<Rule>) -> Result<Self> {
        let written = rules.iter().enumerate().filter(|(_, rule)| rule.is_written);
        let written = Subset::of(&rules, written.map(|(number, _)| number).collect())?;
        // What more expressions have read together is told by states that hardly come again.
        let kinds: [RulesOfSets; 4] = [
            (20, |rule| rule.structure.is_some()),
            (20, |rule| rule.is_common() && rule.is_token),
            (8, |rule| rule.is_common() && !rule.is_token),
            (15, |rule| !rule.keywords.is_empty() && rule.structure.is_none()),
        ];
        let mut sets = Vec::new();
        for (most, is_of_kind) in kinds {
            let these = rules.iter().enumerate().filter(|(_, rule)| is_of_kind(rule));
            let numbers: Vec<usize> = these.map(|(number, _)| number).collect();
            for some in numbers.chunks(most) {
                sets.push(Subset::of(&rules, some.to_vec())?);
            }
        }
        Ok(Self {
            rules: rules.into(),
            sets: sets.into(),
            written: Arc::new(written),
            reading: Arc::new(Reading::new()?),
            forms: Arc::default(),
        })
    }

    /// These rules, and after them others. Compiles all of them anew.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where they take too much memory to be looked for at once.
    pub fn with(&self, others: &Self) -> Result<Self> {
        Self::of(self.rules.iter().chain(others.rules.iter()).cloned().collect())
    }

    /// The ids of the rules, in order. O(rules) for all of them.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule.id.as_str())
    }
}

impl Subset {
    fn of(rules: &[Rule], numbers: Vec<usize>) -> Result<Self> {
        let these: Vec<&Rule> = numbers.iter().filter_map(|number| rules.get(*number)).collect();
        let patterns: Vec<&str> = these.iter().map(|rule| rule.expression.text.as_str()).collect();
        let regex = expression::compile_all(&patterns)?;
        // A rule without keywords is looked for in every text.
        let needs_keyword = these.iter().all(|rule| !rule.keywords.is_empty());
        let words = these.iter().filter(|_| needs_keyword).flat_map(|rule| &rule.keywords);
        let words: Vec<String> = words.map(|word| expression::literal(word)).collect();
        let keywords = format!("(?i:{})", words.join("|"));
        let keywords = (!words.is_empty()).then(|| Compiler::lazy().compile("keywords", &keywords));
        let keywords = keywords.transpose()?;
        let is_of_tokens = these.iter().all(|rule| rule.is_token);
        Ok(Self { regex, numbers, keywords, is_of_tokens })
    }
}

impl Rule {
    fn of(
        toml: TomlRule,
        (keyed, stand_ins): (&str, &[Arc<Allowed>]),
        compiler: &mut Compiler,
    ) -> Result<Self> {
        let TomlRule {
            id, regex, token, keys, members, secret_group: group, least, keywords, ..
        } = toml;
        let (structure, is_written, is_token) = (toml.reads, toml.written, token.is_some());
        let entropy = toml.entropy.unwrap_or(if is_token { LEAST_OF_TOKEN } else { 0.0 });
        let except = toml.except_keys.map(|written| compiler.compile(&id, &written));
        let except = except.transpose()?;
        let is_whole = !members.is_empty();
        let names: Vec<String> = keys.iter().chain(&members).map(|name| plain_name(name)).collect();
        let least = least.unwrap_or(if names.is_empty() { 1 } else { 4 });
        let pattern = match (regex, token, keys.is_empty(), is_whole) {
            (Some(pattern), None, true, false) | (None, Some(pattern), true, false) => pattern,
            (None, None, true, true) => NEVER.to_owned(),
            (None, None, false, false) => named(keyed, &keys),
            _ => {
                let expected = "one of `regex`, `token`, `keys` and `members`";
                return Err(shape(format!("rule {id:?}: expected {expected}")));
            }
        };
        let expression = compiler.compile(&id, &pattern)?;
        let of_text = toml.allowlists.iter().filter(|allowed| allowed.is_of_text());
        let of_text = of_text.map(|allowed| Allowed::of(allowed, &id, compiler).map(Arc::new));
        let mut allowed = of_text.collect::<Result<Vec<_>>>()?;
        // Only of a rule of names a match begins with one.
        let is_asked = |of: &&Arc<Allowed>| !names.is_empty() || toml.stand_ins && !of.of_match;
        allowed.extend(stand_ins.iter().filter(is_asked).cloned());
        let keywords = keywords.iter().map(|word| word.to_ascii_lowercase()).collect();
        let spreads = toml.spreads.unwrap_or(true);
        Ok(Self {
            id,
            expression,
            group,
            names,
            except,
            is_whole,
            is_token,
            structure,
            spreads,
            is_written,
            entropy,
            least,
            keywords,
            allowed,
        })
    }

    /// Whether what the rule matched in `text` is a secret.
    pub(super) fn takes(&self, text: &str, found: &str, secret: &str, is_quoted: bool) -> bool {
        // What is called or looked into is code.
        let is_code = !self.names.is_empty() && !is_quoted && is_dotted(secret);
        !is_code
            && !self.is_excepted(name_at_start(found))
            && secret.chars().count() >= self.least
            && entropy(secret) >= self.entropy
            && !self.allowed.iter().any(|allowed| allowed.holds(found, secret))
            && (self.names.is_empty() || self.is_value(secret, is_quoted))
            && (self.keywords.is_empty() || self.has_keyword(text))
    }

    /// Whether it is looked for in every text, and by its expression alone.
    fn is_common(&self) -> bool {
        self.keywords.is_empty() && self.structure.is_none()
    }

    fn has_keyword(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        self.keywords.iter().any(|word| text.contains(word.as_str()))
    }

    /// Whether what a name stands before is a value, and not code or a stand-in for one.
    pub(super) fn is_value(&self, secret: &str, is_quoted: bool) -> bool {
        if secret.len() > LONGEST || secret.chars().count() < self.least {
            return false;
        }
        if entropy(secret) < self.entropy {
            return false;
        }
        if self.allowed.iter().any(|allowed| allowed.holds(secret, secret)) {
            return false;
        }
        if self.is_whole {
            return true;
        }
        let has = |is: fn(&char) -> bool| secret.chars().any(|c| is(&c));
        if has(|c| c.is_whitespace()) {
            // A sentence is none, and of keys nobody makes one with many spaces.
            let begins_low = secret.starts_with(|c: char| !c.is_uppercase());
            let is_short = secret.split_whitespace().count() <= 3 && has(char::is_ascii_digit);
            let is_phrase = self.entropy == 0.0 && begins_low || is_short;
            return is_quoted && is_phrase && secret.len() <= 64;
        }
        let inside = secret.trim_matches(is_sign);
        let has_sign = || self.entropy < LEAST_OF_TOKEN && inside.contains(is_sign);
        let is_of_signs =
            || has_sign() && has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase);
        let is_phrase = || self.entropy == 0.0 && is_of_words(secret);
        is_quoted
            || is_phrase()
            || has(char::is_ascii_digit) && has(|c| !c.is_ascii_digit())
            || is_of_signs()
    }

    /// Whether a member of this name holds a secret; `plain` is the name as [`plain_name`] has it.
    pub(super) fn is_named(&self, name: &str, plain: &str) -> bool {
        self.names.iter().any(|name| plain.ends_with(name.as_str())) && !self.is_excepted(name)
    }

    fn is_excepted(&self, name: &str) -> bool {
        self.except.as_ref().is_some_and(|except| except.is_match(&snake_name(name)))
    }
}

impl Allowed {
    fn of(toml: &TomlAllowed, rule: &str, compiler: &mut Compiler) -> Result<Self> {
        let compile = |written: &String| compiler.compile(rule, written);
        let regexes = toml.regexes.iter().map(compile).collect::<Result<_>>()?;
        let stopwords = toml.stopwords.iter().map(|word| word.to_ascii_lowercase()).collect();
        let of_match = toml.regex_target.is_some();
        Ok(Self { regexes, stopwords, of_match, needs_all: toml.needs_all() })
    }

    fn holds(&self, found: &str, secret: &str) -> bool {
        let target = if self.of_match { found } else { secret };
        let by_regex = || self.regexes.iter().any(|regex| regex.is_match(target));
        let by_word = || {
            let secret = secret.to_ascii_lowercase();
            self.stopwords.iter().any(|word| secret.contains(word.as_str()))
        };
        if self.needs_all && !self.regexes.is_empty() && !self.stopwords.is_empty() {
            by_regex() && by_word()
        } else {
            by_regex() || by_word()
        }
    }
}

/// Whether it is a passphrase of at least four words: `tide-lantern-mole-harbour`.
fn is_of_words(text: &str) -> bool {
    let is_word = |word: &str| {
        (3..=12).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    text.split('-').count() >= 4 && text.split('-').all(is_word)
}

/// Whether it is in passwords more than in code.
fn is_sign(c: char) -> bool {
    "#!@$%^*?".contains(c)
}

/// The name that a match of a rule with names begins with.
fn name_at_start(found: &str) -> &str {
    found.split(|c| !is_of_name(c)).next().unwrap_or_default()
}

pub(super) fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// A name in lower case, with `_` between its words: `cacheKey` and `CACHE-KEY` are `cache_key`.
fn snake_name(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut is_after_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && is_after_lower {
            snake.push('_');
        }
        is_after_lower = c.is_lowercase() || c.is_ascii_digit();
        snake.extend(if c == '-' { '_' } else { c }.to_lowercase());
    }
    snake
}

/// A name without `-` and `_`, in lower case.
pub(super) fn plain_name(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '-' | '_'));
    letters.flat_map(char::to_lowercase).collect()
}

fn named(form: &str, keys: &[String]) -> String {
    let names: Vec<String> = keys.iter().map(|name| name.replace(['_', '-'], "[_-]?")).collect();
    form.replace("{names}", &names.join("|"))
}

fn from_toml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| {
        let message = format!("not rules of redaction: {}", error.message());
        let at = error.span().map_or(0, |span| span.start);
        let before = text.get(..at).unwrap_or_default();
        shape(message).on_line(before.matches('\n').count() as u64 + 1)
    })
}

/// The entropy of a text by its characters, in bits for each.
pub(super) fn entropy(text: &str) -> f64 {
    let mut chars: Vec<char> = text.chars().collect();
    chars.sort_unstable();
    let all = chars.len() as f64;
    let shares = chars.chunk_by(|a, b| a == b).map(|of| of.len() as f64 / all);
    shares.map(|share| -share * share.log2()).sum()
}

/// Whether it is names with points between them, as in code: `config.s3_api_key`. A word that begins
/// with a capital and one with a number behind it are none: `Harbour.tide42`, `tide.calm421`.
fn is_dotted(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let word = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let least = if text.starts_with(|c: char| c.is_ascii_uppercase()) { 2 } else { 3 };
    let is_password = text.len() >= word.len() + least
        && word.matches('.').count() == 1
        && word.chars().skip(1).all(|c| c.is_ascii_lowercase() || c == '.')
        && !CODE_WORDS.iter().any(|of| word.ends_with(of));
    text.contains('.') && text.split('.').all(is_name) && !is_password
}

/// What stands before a number in names of code.
const CODE_WORDS: [&str; 12] =
    ["password", "pass", "pwd", "pw", "secret", "token", "key", "sha", "md", "base", "utf", "int"];

fn shape(message: String) -> Error {
    Error::new(ErrorKind::Shape, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_that_comes_along_compiles() {
        assert!(RedactionRules::from_toml(EMBEDDED).is_ok());
    }
}
