//! Finds keys of other providers in a request.

use afterimage::redact::{RedactionRules, Redactor};
use regex_automata::meta::Regex;

use super::facts::Facts;
use crate::failure::{Failure, Outcome};

/// Shorter words are not read as base64: they hold no key.
const LEAST: usize = 16;

/// Finds keys of other issuers than one provider.
#[derive(Debug)]
pub(super) struct ForeignKeys {
    facts: &'static Facts,
    provider: String,
    forms: Vec<(&'static str, Regex)>,
    tokens: RedactionRules,
}

impl ForeignKeys {
    pub(super) fn of(facts: &'static Facts, provider: &str) -> Outcome<Self> {
        let form = |(issuer, form): (&'static String, &String)| {
            let form = Regex::new(form);
            let form = form.map_err(|error| Failure::new(format!("clients.toml: {error}")))?;
            Ok((issuer.as_str(), form))
        };
        let forms = facts.keys.iter().map(form).collect::<Outcome<_>>()?;
        let tokens = RedactionRules::of_tokens()?;
        Ok(Self { facts, provider: provider.to_owned(), forms, tokens })
    }

    /// The issuer of a key in `text` that is not the provider's own; `None` if there is none. Looks
    /// at the text with its percent-encoding undone, and at its words decoded from base64.
    pub(super) fn issuer(&self, text: &str) -> Option<&str> {
        let text = unescaped(text);
        let is_of_base64 = |c: char| c.is_ascii_alphanumeric() || "+/-_".contains(c);
        let words = text.split(|c| !is_of_base64(c)).filter(|word| word.len() >= LEAST);
        let packed: Vec<String> = words.map(of_base64).collect();
        let text = format!("{text}\n{}", packed.join("\n"));
        self.by_form(&text).or_else(|| self.by_token(&text))
    }

    fn by_form(&self, text: &str) -> Option<&str> {
        let is_of_key = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        // A subprotocol has its key behind a point.
        let words = text.split(|c| !is_of_key(c)).flat_map(|word| {
            let behind = word.match_indices('.').filter_map(|(at, _)| word.get(at + 1..));
            std::iter::once(word).chain(behind)
        });
        words.filter(|word| !word.is_empty()).find_map(|word| {
            let mut issuers = self
                .forms
                .iter()
                .filter(|(_, form)| form.is_match(word))
                .map(|(issuer, _)| *issuer);
            let first = issuers.next()?;
            let is_own = first == self.provider || issuers.any(|issuer| issuer == self.provider);
            (!is_own).then_some(first)
        })
    }

    fn by_token(&self, text: &str) -> Option<&str> {
        let mut redactor = Redactor::new(&self.tokens);
        redactor.text(text, "");
        let mut found = redactor.report().found.iter();
        let issuer = found.find_map(|of| {
            let issuer = self.facts.tokens.get(&of.rule)?;
            (*issuer != self.provider).then_some(issuer)
        });
        issuer.map(String::as_str)
    }
}

/// A text with its percent-encoded bytes decoded.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).filter(|of| of.bytes().all(|of| of.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(b'%'));
        bytes.extend(part.as_bytes().iter().skip(if byte.is_some() { 2 } else { 0 }));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Decodes a word of either alphabet of base64.
fn of_base64(word: &str) -> String {
    const SIGNS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut held, mut bytes) = (0_u32, 0, Vec::new());
    for byte in word.bytes() {
        let sign = match byte {
            b'-' => b'+',
            b'_' => b'/',
            byte => byte,
        };
        let value = SIGNS.iter().position(|known| *known == sign).unwrap_or_default();
        (bits, held) = (bits << 6 | value as u32, held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails")]

    use super::*;

    #[test]
    fn a_key_of_another_issuers_form_is_known() {
        let [openai, anthropic] = keys();
        for (provider, key, expected) in [
            (&openai, "sk-ant-api03-abcdef", Some("anthropic")),
            (&openai, "sk-or-v1-0123", Some("OpenRouter")),
            (&openai, "gsk_abc", Some("Groq")),
            (&openai, "sk-0123456789abcdef0123456789abcdef", Some("DeepSeek or DashScope")),
            (&openai, "sk-proj-abc", None),
            (&openai, "sk-1234", None),
            (&openai, "dummy", None),
            (&anthropic, "sk-proj-abc", Some("openai")),
            (&anthropic, "sk-ant-oat01-abc", None),
            // It has the form of a proxy's key too.
            (&anthropic, "sk-ant-api03-abcdefghijkl", None),
            (&anthropic, "AIzaSyA", Some("Google")),
            // Redaction knows it.
            (&anthropic, "sk_live_4eC39HqLyjWDarjtT1zdp7dc", Some("Stripe")),
        ] {
            assert_eq!(provider.issuer(key), expected, "{key}");
        }
    }

    #[test]
    fn a_key_is_found_wherever_a_request_carries_it() {
        let [openai, _] = keys();
        for text in [
            "Bearer \"sk-ant-api03-planted0planted\"",
            // `user:gsk_planted0planted`, in both alphabets and with a sign of the second.
            "Basic dXNlcjpnc2tfcGxhbnRlZDBwbGFudGVk",
            "Basic fn5+OmdzazpfOmdza19wbGFudGVkMHBsYW50ZWQ=",
            "a=fn5-OmdzazpfOmdza19wbGFudGVkMHBsYW50ZWQ",
            "realtime, openai-insecure-api-key.sk-ant-api03-planted, openai-beta.realtime-v1",
            "theme=dark; session=sk-or-v1-planted",
            "/chat/completions?a=b&auth=gsk_planted",
            "/chat/completions?token=Bearer%20sk%2Dant-api03-planted",
            "/models%3Dgsk_planted",
            "{\"key\":\"sk-ant-api03-planted\"}",
            "text/plain\nsk-ant-api03-planted",
        ] {
            assert!(openai.issuer(text).is_some(), "{text}");
        }
    }

    #[test]
    fn an_ordinary_value_is_no_key() {
        let [openai, anthropic] = keys();
        for text in [
            "OpenAI/Python 1.101.0",
            "unknown/None; hf_hub/0.34.4; python/3.12.3; torch/2.8.0",
            "xai-sdk-python/1.2.0 pplx-70b-online-instruct fw_version_2_0_0_final",
            "sk-SK,sk;q=0.9,en;q=0.8",
            "region=ASIA-EAST1; AKIAS; desk-antenna; ask-or-tell",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "stainless-node-retry-7b8f1a1c-8a1b-4d2e-9d39-0c5a6a1c3e5f",
            "claude-code-20250219,interleaved-thinking-2025-05-14,oauth-2025-04-20",
            "org-4bF92f3577b34dA6a3cE929d  proj_4bF92f3577b34dA6a3cE929d0e0e4736",
            "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:",
            "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ0aWRlIn0.c2lnbmF0dXJlLW9mLW5vYm9keS1hdC1hbGw",
            "__cf_bm=Tq1pXc0Zb7.8aS3kQ-1716239022-1.0.1.1-Yd2Lw9KfVh5uM_3sPz6RnA.xJ4gT8eBq",
            "/v1/messages?beta=true&after=msg_01XFDUDYJgAACzvnptvVoYEL&limit=20",
            "multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW",
        ] {
            assert_eq!((openai.issuer(text), anthropic.issuer(text)), (None, None), "{text}");
        }
    }

    fn keys() -> [ForeignKeys; 2] {
        let facts = Facts::get().unwrap();
        ["openai", "anthropic"].map(|provider| ForeignKeys::of(facts, provider).unwrap())
    }
}
