//! What a secret looks like, as data.

use std::sync::Arc;

use regex_automata::meta::Regex;
use serde::Deserialize;

use super::{
    cut::Forms,
    expression::{self, Compiler, Expression},
};
use crate::{Error, ErrorKind, Result};

/// The rules that come along, which say their date themselves.
const EMBEDDED: &str = include_str!("rules.toml");

/// What takes the place of `{name}` in a rule that is told by names: such a name with what may
/// stand before it, what stands between it and the value, and the value, in quotes or without.
const NAMED: &str = concat!(
    r#"(?i:\b[A-Za-z0-9_-]*?(?:{names}))\\*["']?\s*(?::=|=>|[:=])\s*"#,
    // Quotes that are escaped once, with what is escaped in them; then those of any depth.
    r#"(?:\\"((?:[^"\\\r\n]|\\{2,}[^\\\r\n]){least,})\\""#,
    r#"|\\+"([^"\\\r\n]{least,})\\+"|\\+'([^'\\\r\n]{least,})\\+'"#,
    r#"|"((?:[^"\\\r\n]|\\[^\r\n]){least,})"|'((?:[^'\\\r\n]|\\[^\r\n]){least,})'"#,
    r#"|`([^`\r\n]{least,})`|([^\s"'`<>\\,;(){}\[\]]{least,}))"#
);

/// How many of its groups, which come first, are values in quotes.
pub(super) const QUOTED_GROUPS: usize = 6;

/// Matches nothing: a rule that is told by members alone has no text of its own.
const NEVER: &str = r"[^\s\S]";

/// What a value is that stands for another one, or for none.
const STAND_INS: &str = concat!(
    r"(?i)^(?:\*+|x{3,}|\.{3,}|-+|_+|null|none|nil|true|false|undefined|string|str|text|bytes|",
    r"bool|int|number|optional|required|redacted|hidden|empty|example|placeholder|todo|changeme|",
    r"password|passwd|pwd|secret|token|key|.*\$\{.*|\$[A-Za-z_].*|%[A-Za-z({].*|\{\{?.*|<.*|",
    r"(?:your|my|the|some|a|an|any|new|old|test|fake|dummy|sample)[-_ ].*|.*\.(?:env|environ)\b.*|",
    r"env[.:].*|.*(?:here|example)$)"
);

/// Rules by which secrets are found, as TOML.
///
/// A rule has an `id` and one of `regex`, `keys` and `members`. Of a `regex` the group
/// `secretGroup`, else the first group that took part, else the whole match is the secret. `keys`
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
    /// All of them at once. A copy would begin with empty caches.
    pub(super) regex: Arc<Regex>,
    /// What is looked for in most texts: fewer expressions take less time.
    common: Option<Arc<Common>>,
    pub(super) forms: Arc<Forms>,
}

/// The rules that are told by no keyword, where others are.
#[derive(Debug)]
struct Common {
    /// Finds any keyword of the others.
    keywords: Regex,
    regex: Arc<Regex>,
    /// The numbers of the rules.
    numbers: Vec<usize>,
}

/// The longest text that is a secret without a form of its own.
const LONGEST: usize = 16 << 10;

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) id: String,
    /// Its groups are those of this. That of all expressions would need memory for the groups of all.
    pub(super) expression: Expression,
    pub(super) group: Option<usize>,
    /// The names that tell it, without `-` and `_`, in lower case.
    pub(super) names: Vec<String>,
    /// Names that end as those do and tell nothing, as [`snake_name`] has them.
    except: Option<Regex>,
    /// Whether members with these names are secret as a whole, whatever is in them.
    is_whole: bool,
    entropy: f64,
    least: usize,
    keywords: Vec<String>,
    allowed: Vec<Allowed>,
}

#[derive(Clone, Debug)]
struct Allowed {
    regexes: Vec<Regex>,
    stopwords: Vec<String>,
    of_match: bool,
    /// Whether both a regex and a stopword are to be found, where there are both.
    needs_all: bool,
}

#[derive(Deserialize)]
struct TomlRules {
    #[serde(default)]
    rules: Vec<TomlRule>,
    #[serde(default)]
    allowlist: Option<TomlAllowed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TomlRule {
    id: String,
    regex: Option<String>,
    #[serde(default)]
    keys: Vec<String>,
    except_keys: Option<String>,
    #[serde(default)]
    members: Vec<String>,
    secret_group: Option<usize>,
    #[serde(default)]
    entropy: f64,
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
        Self::from_toml(EMBEDDED)
    }

    /// Reads rules that are written as TOML. O(text), and compiles each expression by itself and
    /// all of them together.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] with the line where the text is not TOML or has another shape, and with
    /// the rule where its expression cannot be read or takes too much memory, or it has none.
    pub fn from_toml(text: &str) -> Result<Self> {
        let read: TomlRules = toml::from_str(text).map_err(|error| {
            let message = format!("not rules of redaction: {}", error.message());
            let at = error.span().map_or(0, |span| span.start);
            let before = text.get(..at).unwrap_or_default();
            shape(message).on_line(before.matches('\n').count() as u64 + 1)
        })?;
        let mut compiler = Compiler::new();
        let for_all = read.allowlist.as_ref().filter(|of| of.is_of_text());
        let for_all =
            for_all.map(|of| Allowed::of(of, "the allowlist of all", &mut compiler)).transpose()?;
        let mut rules = Vec::with_capacity(read.rules.len());
        for rule in read.rules {
            if rule.regex.is_none()
                && rule.keys.is_empty()
                && rule.members.is_empty()
                && rule.path.is_some()
            {
                continue;
            }
            let mut rule = Rule::of(rule, &mut compiler)?;
            rule.allowed.extend(for_all.clone());
            rules.push(rule);
        }
        Self::of(rules)
    }

    fn of(rules: Vec<Rule>) -> Result<Self> {
        let patterns: Vec<&str> = rules.iter().map(|rule| rule.expression.text.as_str()).collect();
        let regex = expression::compile_all(&patterns)?;
        let common = Common::of(&rules)?.map(Arc::new);
        Ok(Self { rules: rules.into(), regex, common, forms: Arc::default() })
    }

    /// These rules, and after them others. Compiles all of them anew.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where they take too much memory to be looked for at once.
    pub fn with(&self, others: &Self) -> Result<Self> {
        Self::of(self.rules.iter().chain(others.rules.iter()).cloned().collect())
    }

    /// The expressions to be looked for in a text, and the numbers of their rules where these are not
    /// all of them.
    pub(super) fn for_text(&self, text: &str) -> (&Regex, Option<&[usize]>) {
        match self.common.as_deref().filter(|common| !common.keywords.is_match(text)) {
            Some(common) => (&common.regex, Some(&common.numbers)),
            None => (&self.regex, None),
        }
    }

    /// The ids of the rules, in order. O(rules) for all of them.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule.id.as_str())
    }
}

impl Common {
    fn of(rules: &[Rule]) -> Result<Option<Self>> {
        let is_told = |rule: &&Rule| !rule.keywords.is_empty();
        let words = rules.iter().filter(is_told).flat_map(|rule| &rule.keywords);
        let words: Vec<String> = words.map(|word| expression::literal(word)).collect();
        if words.is_empty() {
            return Ok(None);
        }
        let common = rules.iter().enumerate().filter(|(_, rule)| !is_told(rule));
        let (numbers, patterns): (Vec<usize>, Vec<&str>) =
            common.map(|(number, rule)| (number, rule.expression.text.as_str())).unzip();
        let keywords = format!("(?i:{})", words.join("|"));
        let keywords = Compiler::new().compile("all keywords", &keywords)?.regex;
        Ok(Some(Self { keywords, regex: expression::compile_all(&patterns)?, numbers }))
    }
}

impl Rule {
    fn of(toml: TomlRule, compiler: &mut Compiler) -> Result<Self> {
        let TomlRule { id, regex, keys, members, secret_group, entropy, least, keywords, .. } =
            toml;
        let except = toml.except_keys.map(|written| compiler.compile(&id, &written));
        let except = except.transpose()?.map(|expression| expression.regex);
        let is_whole = !members.is_empty();
        let names: Vec<String> = keys.iter().chain(&members).map(|name| plain_name(name)).collect();
        let least = least.unwrap_or(if names.is_empty() { 1 } else { 4 });
        let pattern = match (regex, names.is_empty()) {
            (Some(regex), true) => regex,
            (None, false) if is_whole => NEVER.to_owned(),
            (None, false) => named(&keys, least),
            _ => {
                let message = format!("rule {id:?}: expected `regex`, `keys` or `members`");
                return Err(shape(message));
            }
        };
        let expression = compiler.compile(&id, &pattern)?;
        let of_text = toml.allowlists.iter().filter(|allowed| allowed.is_of_text());
        let of_text = of_text.map(|allowed| Allowed::of(allowed, &id, compiler));
        let mut allowed = of_text.collect::<Result<Vec<_>>>()?;
        if !names.is_empty() {
            let regexes = vec![STAND_INS.to_owned()];
            let stand_ins = TomlAllowed { regexes, ..TomlAllowed::default() };
            allowed.push(Allowed::of(&stand_ins, &id, compiler)?);
        }
        let keywords = keywords.iter().map(|word| word.to_ascii_lowercase()).collect();
        let group = secret_group;
        Ok(Self {
            id,
            expression,
            group,
            names,
            except,
            is_whole,
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
            // A sentence is none, and of keys nobody makes one with a space.
            let begins_low = secret.starts_with(|c: char| !c.is_uppercase());
            return is_quoted && self.entropy == 0.0 && begins_low && secret.len() <= 64;
        }
        is_quoted || has(char::is_ascii_digit) && has(|c| !c.is_ascii_digit())
    }

    /// Whether a member of this name holds a secret; `plain` is the name as [`plain_name`] has it.
    pub(super) fn is_named(&self, name: &str, plain: &str) -> bool {
        self.names.iter().any(|name| plain.ends_with(name.as_str())) && !self.is_excepted(name)
    }

    fn is_excepted(&self, name: &str) -> bool {
        self.except.as_ref().is_some_and(|except| except.is_match(snake_name(name).as_str()))
    }
}

impl Allowed {
    fn of(toml: &TomlAllowed, rule: &str, compiler: &mut Compiler) -> Result<Self> {
        let compile = |written: &String| Ok(compiler.compile(rule, written)?.regex);
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

/// The name that a match of a rule with names begins with.
fn name_at_start(found: &str) -> &str {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    found.split(|c| !is_of_name(c)).next().unwrap_or_default()
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

fn named(keys: &[String], least: usize) -> String {
    let names: Vec<String> = keys.iter().map(|name| name.replace(['_', '-'], "[_-]?")).collect();
    NAMED.replace("{names}", &names.join("|")).replace("least", &least.to_string())
}

/// The entropy of a text by its characters, in bits for each.
pub(super) fn entropy(text: &str) -> f64 {
    let mut chars: Vec<char> = text.chars().collect();
    chars.sort_unstable();
    let all = chars.len() as f64;
    let shares = chars.chunk_by(|a, b| a == b).map(|of| of.len() as f64 / all);
    shares.map(|share| -share * share.log2()).sum()
}

/// Whether it is names with points between them, as in code: `config.s3_api_key`.
fn is_dotted(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    text.contains('.') && text.split('.').all(is_name)
}

fn shape(message: String) -> Error {
    Error::new(ErrorKind::Shape, message)
}
