//! The providers that a recorder leads to, and the variables that lead there.
//!
//! No call may reach a host that it would not reach without the recorder. A variable that is set, by
//! the environment or by a file that the command loads, is replaced by a route to its own value. Only
//! where nothing names a base URL of a provider does its SDK's own variable lead to its own host.

use afterimage::record::wire::{KeyCheck, Route, Upstream};

use super::{
    args::Record,
    dotenv::{self, NamedBase},
    facts::{Facts, OwnBase, Provider},
    keys::ForeignKeys,
    scene::Scene,
};
use crate::{
    failure::{Failure, Outcome},
    output::note,
};

pub(super) const OPENAI: &str = "openai";
pub(super) const ANTHROPIC: &str = "anthropic";
pub(super) const ANTHROPIC_URL: &str = "https://api.anthropic.com";

/// The routes so far, and what the command is told of them.
#[derive(Debug)]
pub(super) struct Routes {
    facts: &'static Facts,
    all: Vec<(Route, Upstream)>,
    variables: Vec<Variable>,
    /// What `--upstream` names, and for which provider.
    given: Vec<(String, Upstream)>,
    /// The variables that `--env` names.
    asked: Vec<String>,
    /// The providers whose base URLs are named by something else than variables.
    settled: Vec<String>,
    /// Base URLs in settings of clients, each with its upstream and with a route of its own.
    configured: Vec<(String, Upstream, String)>,
}

/// A variable of the command.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    /// The name of the route that it leads to.
    pub(super) route: String,
    /// The slash at the end of what it held.
    pub(super) end: &'static str,
    /// Whether nothing named it before.
    is_own: bool,
}

impl Routes {
    /// The routes that the command line names.
    pub(super) fn of(facts: &'static Facts, args: &Record) -> Outcome<Self> {
        let given = named_upstreams(facts, args)?;
        let (all, variables, asked, settled, configured) = (vec![], vec![], vec![], vec![], vec![]);
        let mut routes = Self { facts, all, variables, given, asked, settled, configured };
        for text in &args.env {
            let Some((variable, url)) = text.split_once('=').filter(|(name, _)| !name.is_empty())
            else {
                return Err(Failure::new(format!("expected NAME=URL, found {text:?}")).into());
            };
            let base = facts.provider_of(variable).map(|of| of.base_url(variable, url));
            let base = base.unwrap_or(url.into());
            let route = routes.route(variable, upstream(variable, &base)?);
            routes.variables.retain(|of| of.name != variable);
            routes.asked.push(variable.to_owned());
            routes.push_variable(variable, route, url);
        }
        Ok(routes)
    }

    /// Adds the variables that are set, and those that nothing names.
    ///
    /// # Errors
    /// A failure where a file names a base URL, and nobody knows whether the command reads it.
    pub(super) fn lead_variables(&mut self, scene: Option<&Scene>) -> Outcome {
        let facts = self.facts;
        let mut set: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| !self.asked.contains(name) && facts.provider_of(name).is_some())
            .collect();
        set.sort();
        // An empty one is set for a loader of files, and names nothing.
        let is_set = |name: &str| set.iter().any(|(set, _)| set == name);
        let mut named = Vec::new();
        if let Some(scene) = scene {
            named = self.named_by_files(scene)?;
            named.retain(|of| !is_set(&of.variable));
        }
        set.retain(|(_, url)| !url.trim().is_empty());
        let found = named.into_iter().filter_map(|of| Some((of.variable, of.origin, of.value?)));
        let set = set.into_iter().map(|(name, url)| (name.clone(), name, url));
        for (variable, origin, url) in set.chain(found) {
            if self.variables.iter().any(|of| of.name == variable) {
                continue;
            }
            let Some(provider) = facts.provider_of(&variable) else { continue };
            self.settle(provider);
            let origin =
                if origin == variable { origin } else { format!("{variable} of {origin}") };
            let url = provider.base_url(&variable, &url);
            if let Some(why) = provider.is_signed(&url).filter(|_| !self.is_given(&provider.name)) {
                note(&format!("{origin} stays as it is, and calls there are not recorded: {why}"));
                continue;
            }
            if let Some(route) = self.lead(&origin, &provider.name, &url) {
                self.push_variable(&variable, route, &url);
            }
        }
        if scene.and_then(|scene| scene.client).is_none_or(|client| !client.takes_no_variable()) {
            self.note_shared();
        }
        self.lead_own_variables(scene)
    }

    /// Says of variables of several services that calls of a provider follow them, where nothing else
    /// names its base URL.
    fn note_shared(&self) {
        for provider in &self.facts.providers {
            let (Some(shared), Some(own)) = (&provider.shared, provider.variables.first()) else {
                continue;
            };
            let is_set = std::env::var(shared).is_ok_and(|url| !url.trim().is_empty());
            let is_of_it = |of: &Variable| {
                of.name == *shared
                    || self.facts.provider_of(&of.name).is_some_and(|of| of.name == provider.name)
            };
            let is_named = self.settled.contains(&provider.name);
            if is_set && !is_named && !self.variables.iter().any(is_of_it) {
                note(&format!(
                    "{shared} is set: calls of {} go there, past the recorder. To record them, give \
                     its URL as --env {own}=URL",
                    provider.name
                ));
            }
        }
    }

    /// Sets the variables of the providers that nothing names.
    fn lead_own_variables(&mut self, scene: Option<&Scene>) -> Outcome {
        for variable in self.asked.clone() {
            match self.facts.provider_of(&variable) {
                Some(provider) => self.settle(provider),
                // Nobody knows which calls it leads, nor what the command prefers to it.
                None => {
                    self.settled.extend(self.facts.providers.iter().map(|of| of.name.clone()));
                }
            }
        }
        let client = scene.and_then(|scene| scene.client);
        for provider in &self.facts.providers {
            let Some(OwnBase { variable, .. }) = &provider.own else { continue };
            let is_given = self.given(&provider.name).is_some();
            let is_there = self.variables.iter().any(|of| of.name == *variable);
            let is_taken = client.is_none_or(|client| {
                client.sets.contains(&provider.name) || is_given && !client.takes_no_variable()
            });
            let is_settled = self.settled.contains(&provider.name) && !is_given;
            if is_taken && !is_there && !is_settled {
                let route = self.own(&provider.name)?;
                let (name, end) = (variable.clone(), "");
                self.variables.push(Variable { name, route, end, is_own: !is_given });
            }
        }
        Ok(())
    }

    /// The base URLs in files that the command loads, but those that the command line settles.
    fn named_by_files(&mut self, scene: &Scene) -> Outcome<Vec<NamedBase>> {
        let Some(client) = scene.client else {
            for of in dotenv::of_any(self.facts, scene) {
                self.refuse_unless_named(self.facts, &of)?;
            }
            return Ok(Vec::new());
        };
        for of in dotenv::in_texts(self.facts, scene) {
            self.refuse_unless_named(self.facts, &of)?;
        }
        for path in dotenv::settings(client) {
            let path = path.display();
            note(&format!(
                "{path} names a base URL: calls there are not recorded; {}",
                client.hint
            ));
            self.settled.extend([OPENAI.to_owned(), ANTHROPIC.to_owned()]);
        }
        let named = dotenv::of_client(self.facts, client, scene);
        for of in named.iter().filter(|of| of.value.is_none()) {
            self.refuse_unless_named(self.facts, of)?;
        }
        Ok(named)
    }

    /// Refuses to go on where a base URL is named in a place that the recorder cannot follow, unless
    /// the command line says where its calls go, or the environment does.
    pub(super) fn refuse_unless_named(&mut self, facts: &Facts, of: &NamedBase) -> Outcome {
        let Some(provider) = facts.provider_of(&of.variable) else { return Ok(()) };
        let variable = &of.variable;
        let is_set = !of.is_forced && std::env::var_os(variable).is_some();
        let of_it =
            |asked: &String| facts.provider_of(asked).is_some_and(|of| of.name == provider.name);
        if let Some(upstream) = self.given(&provider.name).cloned() {
            let route = self.route(&provider.name, upstream);
            if !is_set && !self.variables.iter().any(|of| of.name == *variable) {
                self.push_variable(variable, route, "");
            }
        } else if !is_set && !self.asked.iter().any(of_it) {
            let upstream =
                provider.own.as_ref().map(|_| format!(", or --upstream {}=URL", provider.name));
            let failure = Failure::new(format!(
                "{} sets {variable}: the recorder cannot tell whether the command goes there, and \
                 leads no call away",
                of.origin
            ));
            let upstream = upstream.unwrap_or_default();
            return Err(failure
                .hint(format!("say where its calls go: --env {variable}=URL{upstream}"))
                .into());
        }
        self.settle(provider);
        Ok(())
    }

    /// Notes that the base URL of a provider is named.
    fn settle(&mut self, provider: &Provider) {
        self.settled.extend([&provider.name].into_iter().chain(&provider.instead_of).cloned());
    }

    /// Notes that a client has the base URL of a provider from elsewhere.
    pub(super) fn settle_by_client(&mut self, provider: &str) {
        self.settled.push(provider.to_owned());
    }

    fn push_variable(&mut self, name: &str, route: String, url: &str) {
        let end = if url.trim().ends_with('/') { "/" } else { "" };
        self.variables.push(Variable { name: name.to_owned(), route, end, is_own: false });
    }

    fn given(&self, provider: &str) -> Option<&Upstream> {
        self.given.iter().rev().find(|(name, _)| name == provider).map(|(_, upstream)| upstream)
    }

    /// Whether `--upstream` names the upstream of a known provider. It is asked for now, and
    /// configurations were written at some time.
    pub(super) fn is_given(&self, name: &str) -> bool {
        self.given(name).is_some()
    }

    pub(super) fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Whether `--env` sets a variable.
    pub(super) fn is_asked(&self, variable: &str) -> bool {
        self.asked.iter().any(|asked| asked == variable)
    }

    /// The route of a provider: to what `--upstream` names, or to this base URL. `None` where the
    /// recorder does not take it, as of [`Routes::add_if_possible`].
    pub(super) fn lead(&mut self, origin: &str, provider: &str, url: &str) -> Option<String> {
        match self.given(provider).cloned() {
            Some(upstream) => Some(self.route(provider, upstream)),
            None => self.add_if_possible(origin, provider, url),
        }
    }

    /// The route for a variable that something else than the environment sets to a base URL.
    pub(super) fn lead_variable(
        &mut self,
        facts: &Facts,
        variable: &str,
        origin: &str,
        url: &str,
    ) -> Option<String> {
        if let Some(asked) = self.variables.iter().find(|of| of.name == variable) {
            return Some(asked.route.clone());
        }
        let provider = facts.provider_of(variable)?;
        self.settle(provider);
        self.lead(&format!("{variable} of {origin}"), &provider.name, url)
    }

    /// The route of a provider that nothing names but `--upstream`: to its own host, and keys of
    /// another issuer's form do not go there.
    pub(super) fn own(&mut self, name: &str) -> Outcome<String> {
        if let Some(given) = self.given(name).cloned() {
            return Ok(self.route(name, given));
        }
        let upstream = upstream(name, self.own_url(name))?;
        let known = self.all.iter().find(|(route, of)| route.is_guarded() && *of == upstream);
        if let Some((route, _)) = known {
            return Ok(route.name().to_owned());
        }
        let (keys, of) = (ForeignKeys::of(self.facts, name)?, name.to_owned());
        let check = KeyCheck::new(move |carriers| {
            keys.issuer(carriers).map(|issuer| {
                format!(
                    "the key has the form of {issuer}, and nobody named {of} as the upstream: it was \
                     not passed on. `afterimage record` leads elsewhere by --env NAME=URL or \
                     --upstream {of}=URL"
                )
            })
        });
        Ok(self.push(name, upstream, Some(check)))
    }

    /// The base URL that the SDK of a provider has by itself.
    pub(super) fn own_url(&self, name: &str) -> &'static str {
        let own = self.facts.provider(name).and_then(|of| of.own.as_ref());
        own.map_or("", |own| &own.url)
    }

    fn route(&mut self, name: &str, upstream: Upstream) -> String {
        let is_of_settings =
            |route: &Route| self.configured.iter().any(|(_, _, name)| name == route.name());
        let is_it = |(route, of): &&(Route, Upstream)| {
            *of == upstream && !route.is_guarded() && !is_of_settings(route)
        };
        if let Some((route, _)) = self.all.iter().find(is_it) {
            return route.name().to_owned();
        }
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
            .collect();
        self.push(&name, upstream, None)
    }

    /// Adds a route with this name, or with a number behind it.
    fn push(&mut self, name: &str, upstream: Upstream, check: Option<KeyCheck>) -> String {
        let is_taken = |name: &str| self.all.iter().any(|(route, _)| route.name() == name);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let name = names.find(|name| !is_taken(name)).unwrap_or_default();
        let route = Route::new(&name, upstream.clone());
        let route = check.into_iter().fold(route, Route::with_key_check);
        self.all.push((route, upstream));
        name
    }

    /// A route to a base URL, which may be there already. Its name is made of `name`. `None` where the
    /// recorder does not take the base URL, which `origin` has. That is said, and calls there are not
    /// recorded.
    pub(super) fn add_if_possible(
        &mut self,
        origin: &str,
        name: &str,
        url: &str,
    ) -> Option<String> {
        let upstream = possible(origin, url)?;
        Some(self.route(name, upstream))
    }

    /// As [`Routes::lead`], of a client that may write its settings back, and may look for the
    /// provider's host in a base URL there: each has a route that leads nothing else, named by the host.
    pub(super) fn lead_configured(
        &mut self,
        origin: &str,
        provider: &str,
        url: &str,
    ) -> Option<String> {
        let given = self.given(provider).cloned();
        let name = given.as_ref().map(|_| provider.to_owned());
        let upstream = given.or_else(|| possible(origin, url))?;
        let url = url.strip_suffix('/').unwrap_or(url);
        let is_it = |(known, of, _): &&(String, Upstream, String)| known == url && *of == upstream;
        if let Some((_, _, route)) = self.configured.iter().find(is_it) {
            return Some(route.clone());
        }
        let is_kept = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        let name = name.unwrap_or_else(|| upstream.host().chars().filter(is_kept).collect());
        let route = self.push(&name, upstream.clone(), None);
        self.configured.push((url.to_owned(), upstream, route.clone()));
        Some(route)
    }

    /// Says where each route leads.
    pub(super) fn say(&self) {
        for (route, upstream) in &self.all {
            let of_route = self.variables.iter().filter(|of| of.route == route.name());
            let names: Vec<&str> = of_route.clone().map(|of| of.name.as_str()).collect();
            let (shown, by) = (upstream.shown(), names.join(", "));
            note(&match (names.is_empty(), of_route.clone().any(|of| of.is_own)) {
                (true, _) => format!("calls of {} go on to {shown}", route.name()),
                (_, true) => format!(
                    "nothing names a base URL for {}: {by} is set, and leads to its own {shown}; keys \
                     of another issuer's form are refused there",
                    route.name()
                ),
                (_, false) => format!("{by}: calls go on to {shown}"),
            });
        }
    }

    pub(super) fn into_routes(self) -> Vec<Route> {
        self.all.into_iter().map(|(route, _)| route).collect()
    }
}

/// The upstreams that the command line names, for each provider.
fn named_upstreams(facts: &Facts, args: &Record) -> Outcome<Vec<(String, Upstream)>> {
    let known = || facts.providers.iter().filter(|of| of.own.is_some()).map(|of| of.name.as_str());
    let mut named = Vec::new();
    for text in &args.upstream {
        let (name, url) = match text.split_once('=') {
            Some((name, url)) if !name.contains(['/', ':']) => (Some(name), url),
            _ => (None, text.as_str()),
        };
        if let Some(unknown) = name.filter(|name| known().all(|known| known != *name)) {
            let failure = Failure::new(format!("there is no provider {unknown:?}"));
            return Err(failure.hint("`openai` or `anthropic`; --env takes any other").into());
        }
        let upstream = upstream("--upstream", url)?;
        let meant = known().filter(|known| name.is_none_or(|name| name == *known));
        named.extend(meant.map(|known| (known.to_owned(), upstream.clone())));
    }
    Ok(named)
}

/// As [`upstream`], for one that the user has for other calls too: those must go on.
fn possible(origin: &str, url: &str) -> Option<Upstream> {
    let refused = |error: &afterimage::record::Error| {
        let why = error.message();
        note(&format!("{origin} stays as it is, and calls there are not recorded: {why}"));
    };
    Upstream::parse(url).inspect_err(refused).ok()
}

/// Reads a base URL, which comes from `origin`.
fn upstream(origin: &str, url: &str) -> Outcome<Upstream> {
    // The URL may hold a key, and is not repeated.
    let parsed = Upstream::parse(url);
    Ok(parsed.map_err(|error| Failure::new(error.message()).at("from", origin))?)
}
