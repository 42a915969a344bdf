//! What is known of providers, of clients and of programs that start others: `clients.toml`.

use std::{borrow::Cow, collections::BTreeMap, path::Path, sync::LazyLock};

use serde::Deserialize;

use crate::failure::{Failure, Outcome};

/// All that is known.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Facts {
    suffixes: Vec<String>,
    settings: Vec<String>,
    code: Vec<String>,
    templates: Vec<String>,
    pub(super) providers: Vec<Provider>,
    /// The forms of keys, by their issuers.
    pub(super) keys: BTreeMap<String, String>,
    /// The issuers of the tokens that rules of redaction find.
    pub(super) tokens: BTreeMap<String, String>,
    pub(super) clients: Vec<ClientFacts>,
    wrappers: Vec<Wrapper>,
}

/// A provider, and the variables that hold its base URL.
#[derive(Debug, Deserialize)]
pub(super) struct Provider {
    pub(super) name: String,
    vendors: Vec<String>,
    #[serde(default)]
    pub(super) variables: Vec<String>,
    /// A variable that other services read too: the recorder does not change it.
    pub(super) shared: Option<String>,
    pub(super) own: Option<OwnBase>,
    /// The provider whose own variable is not set where this one is named.
    pub(super) instead_of: Option<String>,
    signed: Option<SignedHosts>,
    bare: Option<BareHost>,
}

/// The hosts for which requests are signed, and the variables that say they are not.
#[derive(Debug, Deserialize)]
struct SignedHosts {
    hosts: Vec<String>,
    unless: Vec<String>,
}

/// A variable that may hold a host without a scheme, and the port that it then has.
#[derive(Debug, Deserialize)]
struct BareHost {
    variable: String,
    port: u16,
}

impl Provider {
    /// The base URL that a variable holds.
    pub(super) fn base_url<'u>(&self, variable: &str, value: &'u str) -> Cow<'u, str> {
        let host = value.trim();
        let bare = self.bare.as_ref().filter(|of| of.variable == variable);
        let Some(BareHost { port, .. }) =
            bare.filter(|_| !host.contains("://") && !host.is_empty())
        else {
            return value.into();
        };
        let (host, path) = host.split_at(host.find('/').unwrap_or(host.len()));
        let (host, port) = match host.rsplit_once(':').filter(|(_, port)| !port.contains(']')) {
            Some((host, port)) => (host, port.to_owned()),
            None => (host, port.to_string()),
        };
        // A server listens everywhere, and is asked here.
        let host = if matches!(host, "" | "0.0.0.0") { "127.0.0.1" } else { host };
        format!("http://{host}:{port}{path}").into()
    }

    /// Why requests to a base URL cannot be led elsewhere, where that is so in this environment.
    pub(super) fn is_signed(&self, url: &str) -> Option<String> {
        let SignedHosts { hosts, unless } = self.signed.as_ref()?;
        let host = url.split("://").nth(1)?.split(['/', ':']).next()?;
        let is_set = |name: &String| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_it = hosts.iter().any(|end| host.ends_with(end)) && !unless.iter().any(is_set);
        is_it.then(|| {
            format!(
                "requests there are signed for their host, but where {} is set",
                unless.join(" or ")
            )
        })
    }
}

/// The variable of a provider's SDK, and where that goes by itself.
#[derive(Debug, Deserialize)]
pub(super) struct OwnBase {
    pub(super) variable: String,
    pub(super) url: String,
}

/// A program that asks models.
#[derive(Debug, Deserialize)]
pub(super) struct ClientFacts {
    pub(super) name: String,
    #[serde(default)]
    packages: Vec<String>,
    /// The providers whose own variable it takes.
    #[serde(default)]
    pub(super) sets: Vec<String>,
    #[serde(default)]
    pub(super) files: Vec<EnvFiles>,
    /// Whether all of these files are loaded, and not the first one alone.
    #[serde(default)]
    pub(super) all: bool,
    #[serde(default)]
    pub(super) settings: Vec<String>,
    /// Whether its own files name base URLs that outrank variables.
    #[serde(default)]
    pub(super) is_configured: bool,
    /// What leads it, beside variables.
    #[serde(default)]
    pub(super) launcher: Launcher,
    /// How it is led by itself; empty where it is not.
    #[serde(default)]
    pub(super) led: String,
    /// What leads it, where it is not led by itself.
    #[serde(default)]
    pub(super) hint: String,
}

impl ClientFacts {
    /// Whether base URLs in the environment mean nothing to it.
    pub(super) fn takes_no_variable(&self) -> bool {
        matches!(self.launcher, Launcher::Codex | Launcher::Pi)
    }

    /// Whether arguments alone lead it.
    pub(super) fn is_led_by_arguments(&self) -> bool {
        self.launcher == Launcher::Aider
    }
}

/// What is done for a client that variables alone do not lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Launcher {
    #[default]
    Variables,
    Aider,
    Claude,
    Codex,
    Continue,
    Kimi,
    Llm,
    OpenCode,
    Pi,
}

/// Where a client looks for a `.env` file.
#[derive(Debug, Deserialize)]
pub(super) struct EnvFiles {
    pub(super) from: String,
    pub(super) names: Vec<String>,
}

/// A program that starts another one.
#[derive(Debug, Deserialize)]
pub(super) struct Wrapper {
    names: Vec<String>,
    #[serde(default)]
    pub(super) values: Vec<String>,
    #[serde(default)]
    pub(super) words: Vec<String>,
    #[serde(default)]
    pub(super) plain: usize,
    pub(super) module: Option<String>,
    #[serde(default)]
    pub(super) reads: Vec<String>,
    /// The variables that name files or folders of its own.
    #[serde(default)]
    pub(super) variables: Vec<String>,
    /// The words behind which no program stands, but the name of a script in its files.
    #[serde(default)]
    pub(super) scripts: Vec<String>,
    /// Whether all that it starts are such scripts.
    #[serde(default)]
    pub(super) tasks: bool,
    #[serde(default)]
    pub(super) loads: bool,
}

impl Wrapper {
    /// The value of an option: empty where it is the next word. `-sC` is `-s` and `-C`.
    pub(super) fn value_in<'w>(&self, word: &'w str) -> Option<&'w str> {
        let is_known = |option: &str| self.values.iter().any(|known| known == option);
        if is_known(word) {
            return Some("");
        }
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
        let (at, letter) =
            letters.char_indices().find(|(_, letter)| is_known(&format!("-{letter}")))?;
        letters.get(at + letter.len_utf8()..).map(|value| value.trim_start_matches('='))
    }
}

static FACTS: LazyLock<Result<Facts, String>> = LazyLock::new(|| {
    toml::from_str(include_str!("clients.toml")).map_err(|error| error.to_string())
});

impl Facts {
    pub(super) fn get() -> Outcome<&'static Self> {
        Ok(FACTS.as_ref().map_err(|error| Failure::new(format!("clients.toml: {error}")))?)
    }

    /// The provider whose base URL a variable holds: that of the longest vendor's name.
    pub(super) fn provider_of(&self, variable: &str) -> Option<&Provider> {
        let name = variable.to_ascii_uppercase();
        let before = |suffix: &String| name.strip_suffix(suffix.as_str())?.strip_suffix('_');
        let is_end = |whole: &str, end: &str| {
            whole.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
        };
        let length = |provider: &Provider| {
            let heads = self.suffixes.iter().filter_map(before);
            let vendors = heads.flat_map(|head| {
                provider.vendors.iter().filter(move |vendor| is_end(head, vendor))
            });
            let whole = provider.variables.iter().filter(|known| **known == name);
            vendors.chain(whole).map(String::len).max()
        };
        let named = self.providers.iter().filter_map(|of| Some((length(of)?, of)));
        named.max_by_key(|(length, _)| *length).map(|(_, provider)| provider)
    }

    pub(super) fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.name == name)
    }

    /// The client that a word starts: the name of its command or of its package, or a path of one.
    pub(super) fn client(&self, word: &str) -> Option<&ClientFacts> {
        let name = stem(word);
        let package = word.rfind('@').filter(|at| *at > 0).and_then(|at| word.get(..at));
        let package = package.unwrap_or(word).split(['[', '=']).next().unwrap_or_default();
        let is_it = |client: &&ClientFacts| {
            let mut packages = client.packages.iter();
            client.name == name
                || packages.any(|known| {
                    known == package || known == name || word.contains(&format!("/{known}/"))
                })
        };
        self.clients.iter().find(is_it)
    }

    pub(super) fn wrapper(&self, word: &str) -> Option<&Wrapper> {
        let name = stem(word);
        let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        self.wrappers.iter().find(|of| of.names.iter().any(|known| known == unversioned))
    }

    /// Whether a file that another one names may set variables: by its name, or since it is loaded there
    /// and is no program.
    pub(super) fn is_settings(&self, name: &str, is_loaded: bool) -> bool {
        self.settings.iter().any(|part| name.contains(part.as_str()))
            || is_loaded && !self.code.iter().any(|end| name.ends_with(end.as_str()))
    }

    /// Whether a file of this name may be loaded as `.env` files are.
    pub(super) fn is_env_file(&self, name: &str) -> bool {
        let of = name.strip_prefix(".env.").and_then(|rest| rest.rsplit('.').next());
        name == ".env" || of.is_some_and(|of| self.templates.iter().all(|template| template != of))
    }
}

/// The name of a program, without its folder and its extension.
pub(super) fn stem(program: &str) -> &str {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    [".exe", ".cmd", ".js", ".py"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails")]

    use super::*;

    #[test]
    fn a_client_with_a_launcher_says_how_it_is_led() {
        let clients = &Facts::get().unwrap().clients;
        let more = ["`-c`", "`--", "folder", "CONFIG_CONTENT"];
        for client in clients {
            let is_told = more.iter().any(|word| client.led.contains(word));
            assert_eq!(client.launcher != Launcher::Variables, is_told, "{}", client.name);
        }
    }

    #[test]
    fn a_variable_belongs_to_the_provider_that_its_name_ends_with() {
        let facts = Facts::get().unwrap();
        for (variable, provider) in [
            ("OPENAI_BASE_URL", Some("openai")),
            ("openai_api_base", Some("openai")),
            ("AIDER_OPENAI_API_BASE", Some("openai")),
            ("AZURE_OPENAI_ENDPOINT", Some("azure")),
            ("AZURE_API_BASE", Some("azure")),
            ("OPENROUTER_API_BASE", Some("other")),
            ("GOOGLE_GEMINI_BASE_URL", Some("gemini")),
            ("ANTHROPIC_VERTEX_BASE_URL", Some("anthropic")),
            ("COPILOT_PROVIDER_BASE_URL", Some("copilot")),
            ("LLM_BASE_URL", Some("other")),
            ("ANTHROPIC_BEDROCK_BASE_URL", Some("bedrock")),
            ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", Some("bedrock")),
            ("AWS_BEDROCK_RUNTIME_ENDPOINT", Some("bedrock")),
            // It is that of all services.
            ("AWS_ENDPOINT_URL", None),
            ("AZURE_AUTHORITY_HOST", None),
            ("GITHUB_API_URL", None),
            ("DATABASE_URL", None),
            ("OPENAI_API_KEY", None),
            ("OPENAI_LOG_LEVEL", None),
        ] {
            let found = facts.provider_of(variable).map(|of| of.name.as_str());
            assert_eq!(found, provider, "{variable}");
        }
    }

    #[test]
    fn a_host_alone_is_a_base_url_where_its_client_takes_one() {
        let local = Facts::get().unwrap().provider("local").unwrap();
        for (value, expected) in [
            ("127.0.0.1:11434", "http://127.0.0.1:11434"),
            (" localhost ", "http://localhost:11434"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            (":7", "http://127.0.0.1:7"),
            ("[::1]", "http://[::1]:11434"),
            ("host:7/a/b", "http://host:7/a/b"),
            ("https://host", "https://host"),
            ("", ""),
        ] {
            assert_eq!(local.base_url("OLLAMA_HOST", value), expected, "{value}");
        }
        assert_eq!(local.base_url("VLLM_HOST", "host"), "host");
    }

    #[test]
    fn a_client_is_known_by_its_command_and_by_its_package() {
        let facts = Facts::get().unwrap();
        for (word, client) in [
            ("/usr/bin/qwen", Some("qwen")),
            ("@qwen-code/qwen-code@latest", Some("qwen")),
            ("/x/node_modules/@qwen-code/qwen-code/cli.js", Some("qwen")),
            ("aider-chat[playwright]", Some("aider")),
            ("claude.exe", Some("claude")),
            ("minisweagent", Some("mini")),
            ("agent", None),
            ("", None),
        ] {
            assert_eq!(facts.client(word).map(|of| of.name.as_str()), client, "{word}");
        }
        assert!(facts.wrapper("/usr/bin/python3.12").is_some());
    }
}
