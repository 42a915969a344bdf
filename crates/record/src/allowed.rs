//! What of a request's target and of headers may be written down. Everything else may be a secret.

/// Headers that hold no secret: what a body is, which client and which version spoke, limits, ids of
/// requests. By name, in lower case.
const HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "anthropic-beta",
    "anthropic-version",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "openai-beta",
    "openai-model",
    "openai-processing-ms",
    "openai-version",
    "request-id",
    "retry-after",
    "retry-after-ms",
    "transfer-encoding",
    "user-agent",
    "x-request-id",
    "x-should-retry",
];
/// How the names of others begin that hold none.
const FAMILIES: &[&str] = &["anthropic-ratelimit-", "x-ratelimit-", "x-stainless-"];
/// A value that is longer is no such header's.
const MOST_VALUE: usize = 1024;

/// Words of the paths of providers and gateways. A word of a few letters may be a key as well.
const WORDS: &[&str] = &[
    "anthropic",
    "api",
    "assistants",
    "audio",
    "backend-api",
    "batches",
    "cancel",
    "chat",
    "codex",
    "compact",
    "completions",
    "complete",
    "content",
    "conversations",
    "converse",
    "converse-stream",
    "count_tokens",
    "deployments",
    "edits",
    "embeddings",
    "files",
    "generate",
    "generations",
    "google",
    "images",
    "inference",
    "input_items",
    "input_tokens",
    "interactions",
    "invoke",
    "invoke-with-response-stream",
    "locations",
    "messages",
    "model",
    "models",
    "moderations",
    "openai",
    "projects",
    "publishers",
    "realtime",
    "rerank",
    "responses",
    "runs",
    "sessions",
    "speech",
    "tags",
    "threads",
    "tools",
    "transcriptions",
    "translations",
    "uploads",
    "vector_stores",
];
/// What stands behind a colon.
const VERBS: &[&str] = &[
    "batchEmbedContents",
    "batchGenerateContent",
    "countTokens",
    "embedContent",
    "generateContent",
    "generateMessage",
    "predict",
    "rawPredict",
    "serverStreamingPredict",
    "streamGenerateContent",
    "streamRawPredict",
];

/// Parameters that hold no secret.
const PARAMETERS: &[&str] = &["alt", "api-version", "beta", "include", "limit", "order", "stream"];
/// How the names of models begin that addresses of Google and of Amazon say, behind a region.
const MODELS: &[&str] = &[
    "claude-",
    "gemini-",
    "gemma-",
    "ai21.jamba",
    "amazon.nova",
    "amazon.titan",
    "anthropic.claude",
    "cohere.command",
    "deepseek.",
    "meta.llama",
    "mistral.",
    "openai.gpt",
    "qwen.qwen",
];
const REGIONS: &[&str] = &["us", "eu", "apac", "jp", "au", "ca", "global", "us-gov"];
/// A longer name is none.
const MOST_MODEL: usize = 80;
/// A longer value may be a key.
const MOST_WORD: usize = 24;

/// Of some headers those that are written, with their names in lower case. O(headers).
///
/// ```
/// use afterimage_record::allowed_headers;
///
/// let headers = [("Content-Type", &b"text/event-stream"[..]), ("Authorization", b"Bearer x")];
/// assert_eq!(allowed_headers(headers), [("content-type".into(), "text/event-stream".into())]);
/// ```
pub fn allowed_headers<'h>(
    headers: impl IntoIterator<Item = (&'h str, &'h [u8])>,
) -> Vec<(String, String)> {
    let allowed = |(name, value): (&str, &[u8])| {
        let name = name.to_ascii_lowercase();
        let is_known = HEADERS.contains(&name.as_str())
            || FAMILIES.iter().any(|family| name.starts_with(family));
        let value = std::str::from_utf8(value).ok()?;
        (is_known && value.len() <= MOST_VALUE).then(|| (name, value.to_owned()))
    };
    headers.into_iter().filter_map(allowed).collect()
}

/// Of the path of a request what is written: known words, versions, and names of models that their
/// beginning tells. Other parts become `*`, and so does what stands before a verb. Of parameters those are kept that have a known name and a short,
/// plain value. O(path).
///
/// ```
/// use afterimage_record::allowed_path;
///
/// assert_eq!(allowed_path("/v1/messages?beta=true&key=AIza"), "/v1/messages?beta=true");
/// assert_eq!(allowed_path("/v1beta/models/gemini-2:generateContent"), "/v1beta/models/gemini-2:generateContent");
/// assert_eq!(allowed_path("/v1beta/models/tuned-7:generateContent"), "/v1beta/models/*:generateContent");
/// assert_eq!(allowed_path("/v1/responses/resp_68ab"), "/v1/responses/*");
/// ```
pub fn allowed_path(target: &str) -> String {
    let target = target.split('#').next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut before = "";
    let allowed_here = |word| match std::mem::replace(&mut before, word) {
        "locations" if is_location(word) => word.to_owned(),
        _ => allowed_word(word),
    };
    let words: Vec<String> = path.split('/').map(allowed_here).collect();
    let mut allowed = words.join("/");
    let mut separator = '?';
    for parameter in query.split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if PARAMETERS.contains(&name) && is_plain(value) {
            allowed.push(separator);
            allowed.push_str(parameter);
            separator = '&';
        }
    }
    allowed
}

fn allowed_word(word: &str) -> String {
    if word.is_empty() || WORDS.contains(&word) || is_version(word) || is_model(word) {
        return word.to_owned();
    }
    // What stands before it in an ARN of Amazon's names an account.
    if let Some((_, model)) = word.rsplit_once("%2F").filter(|(_, model)| is_model(model)) {
        return format!("*%2F{model}");
    }
    match word.rsplit_once(':') {
        Some((model, verb)) if VERBS.contains(&verb) && is_model(model) => word.to_owned(),
        Some((_, verb)) if VERBS.contains(&verb) => format!("*:{verb}"),
        _ => "*".to_owned(),
    }
}

/// A name of a model that only an address says, in small letters, as no key is: `gemini-2.5-pro`,
/// `us.anthropic.claude-sonnet-4-5-20250929-v1%3A0`.
fn is_model(word: &str) -> bool {
    let word = word.replace("%3A", ":").replace("%40", "@");
    let (region, rest) = word.split_once('.').unwrap_or_default();
    let name = if REGIONS.contains(&region) { rest } else { &word };
    let is_plain = |byte: u8| {
        byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(byte, b'.' | b':' | b'-' | b'@')
    };
    word.len() <= MOST_MODEL
        && MODELS.iter().any(|start| name.starts_with(start))
        && word.bytes().all(is_plain)
}

/// A place of Google's, on which prices depend: `global`, `us-east5`.
fn is_location(word: &str) -> bool {
    let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    let is_region = name.len() < word.len() && name.contains('-') && word.len() <= MOST_WORD;
    is_plain && (word == "global" || word.len() == 2 || is_region)
}

/// A version of an API: `v1`, `v1beta`, `v2alpha1`.
fn is_version(word: &str) -> bool {
    let Some(rest) = word.strip_prefix('v') else { return false };
    let rest = rest.replace("alpha", "").replace("beta", "");
    (1..=3).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_plain(value: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    value.len() <= MOST_WORD && value.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_are_not_known_are_left_out() {
        let secret = b"planted".as_slice();
        let names = [
            "authorization",
            "Proxy-Authorization",
            "x-api-key",
            "api-key",
            "X-Goog-Api-Key",
            "cookie",
            "Set-Cookie",
            "Sec-WebSocket-Protocol",
            "openai-organization",
            "x-anything",
            "location",
            "referer",
        ];
        assert_eq!(allowed_headers(names.map(|name| (name, secret))), []);
        let long = [b'x'; MOST_VALUE + 1];
        assert_eq!(allowed_headers([("user-agent", long.as_slice())]), []);
        let kept = allowed_headers([("X-RateLimit-Remaining-Tokens", b"7".as_slice())]);
        assert_eq!(kept, [("x-ratelimit-remaining-tokens".to_owned(), "7".to_owned())]);
    }

    #[test]
    fn what_may_be_a_key_leaves_the_path() {
        for (target, expected) in [
            ("/chat/completions", "/chat/completions"),
            (
                "/v1/chat/completions?api-version=2024-10-21",
                "/v1/chat/completions?api-version=2024-10-21",
            ),
            ("/v1/models?key=planted&api_key=planted&token=planted", "/v1/models"),
            ("/v1/models?alt=planted.planted.planted.planted.planted", "/v1/models"),
            ("/v1/models?beta=a%20b", "/v1/models"),
            ("/v1/models?planted", "/v1/models"),
            ("/bot123:ABCDEFGHIJKLMNOPQRSTUVWXYZ/send", "/*/*"),
            ("/planted-secret-key/v1/messages", "/*/v1/messages"),
            (
                "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse",
                "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse",
            ),
            ("/model/planted.anthropic.claude-7/converse", "/model/*/converse"),
            (
                "/model/arn%3Aaws%3Abedrock%3Ax%3A12345678%3Ainference-profile%2Fus.anthropic.claude-7/converse",
                "/model/*%2Fus.anthropic.claude-7/converse",
            ),
            ("/v1/models/gemini-Planted:generateContent", "/v1/models/*:generateContent"),
            ("/v1/models/claude:plantedverb", "/v1/models/*"),
            (
                "/v1/projects/planted-7/locations/us-east5/publishers/anthropic/models/claude-opus-4-5@20251101:rawPredict",
                "/v1/projects/*/locations/us-east5/publishers/anthropic/models/claude-opus-4-5@20251101:rawPredict",
            ),
            ("/v1/projects/us-east5/locations/PLANTED", "/v1/projects/*/locations/*"),
            ("/v1beta/interactions", "/v1beta/interactions"),
            ("/v1beta/interactions/planted", "/v1beta/interactions/*"),
            ("//v1/messages/", "//v1/messages/"),
            ("/sk-ant-1234/messages#planted", "/*/messages"),
            ("/v1/abcdefghijklmnopqrstuvwxyzabcdef", "/v1/*"),
            ("/openai/deployments/gpt-5/responses", "/openai/deployments/*/responses"),
            ("", ""),
        ] {
            assert_eq!(allowed_path(target), expected, "{target}");
        }
    }
}
