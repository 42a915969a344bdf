//! The providers that a recorder leads to.

use afterimage::record::wire::{Route, Upstream};

use super::args::Record;
use crate::{
    failure::{Failure, Outcome},
    output::note,
};

/// The providers whose base URLs any command gets: a name, the variable, the provider's own URL.
const KNOWN: [(&str, &str, &str); 2] = [
    (OPENAI, "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    (ANTHROPIC, "ANTHROPIC_BASE_URL", ANTHROPIC_URL),
];
pub(super) const OPENAI: &str = "openai";
pub(super) const ANTHROPIC: &str = "anthropic";
pub(super) const ANTHROPIC_URL: &str = "https://api.anthropic.com";

/// The routes so far, and what the command is told of them.
#[derive(Debug, Default)]
pub(super) struct Routes {
    all: Vec<(Route, Upstream)>,
    variables: Vec<Variable>,
    /// The known providers that `--upstream` names.
    given: Vec<&'static str>,
}

/// A variable of the command, and the name of the route that it leads to.
pub(super) type Variable = (String, String);

impl Routes {
    /// The routes that the command line and the environment name, with the variables for them.
    ///
    /// A client that ignores the variables does not call what they name, with a key that is not meant
    /// for it: its routes lead to the providers' own URLs. What it starts may take the variables, so
    /// these have routes of their own.
    pub(super) fn of(args: &Record, ignores_variables: bool) -> Outcome<Self> {
        let mut routes = Self::default();
        let named = named_upstreams(args)?;
        for (name, variable, own) in KNOWN {
            let is_meant = |of: Option<&str>| of.is_none_or(|of| of == name);
            let given = named.iter().rev().find(|(of, _)| is_meant(*of)).map(|(_, url)| *url);
            let set = std::env::var(variable).ok().filter(|url| !url.trim().is_empty());
            let own = upstream(variable, own)?;
            let (upstream, is_led) = match (given, set) {
                (Some(url), _) => {
                    routes.given.push(name);
                    (Some(upstream("--upstream", url)?), true)
                }
                // It was set for other calls too, which must go on.
                (None, Some(url)) => (possible(variable, &url), !ignores_variables),
                (None, None) => (Some(own.clone()), true),
            };
            let of_client = upstream.clone().filter(|_| is_led).unwrap_or(own);
            routes.all.push((Route::new(name, of_client.clone()), of_client));
            let route = match upstream {
                Some(_) if is_led => name.to_owned(),
                Some(upstream) => routes.route(name, upstream),
                None => continue,
            };
            routes.variables.push((variable.to_owned(), route));
        }
        for text in &args.env {
            let Some((variable, url)) = text.split_once('=').filter(|(name, _)| !name.is_empty())
            else {
                return Err(Failure::new(format!("expected NAME=URL, found {text:?}")).into());
            };
            let route = routes.add(variable, url)?;
            routes.variables.retain(|(name, _)| name != variable);
            routes.variables.push((variable.to_owned(), route));
        }
        Ok(routes)
    }

    /// Whether `--upstream` names the upstream of a known provider. It is asked for now, and
    /// configurations were written at some time.
    pub(super) fn is_given(&self, name: &str) -> bool {
        self.given.contains(&name)
    }

    pub(super) fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// A route to a base URL, which may be there already. Its name is made of `name`.
    pub(super) fn add(&mut self, name: &str, url: &str) -> Outcome<String> {
        Ok(self.route(name, upstream(name, url)?))
    }

    fn route(&mut self, name: &str, upstream: Upstream) -> String {
        if let Some((route, _)) = self.all.iter().find(|(_, other)| *other == upstream) {
            return route.name().to_owned();
        }
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
            .collect();
        self.push(&name, upstream)
    }

    /// Adds a route with this name, or with a number behind it.
    fn push(&mut self, name: &str, upstream: Upstream) -> String {
        let is_taken = |name: &str| self.all.iter().any(|(route, _)| route.name() == name);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let name = names.find(|name| !is_taken(name)).unwrap_or_default();
        self.all.push((Route::new(&name, upstream.clone()), upstream));
        name
    }

    /// As [`Routes::add`]; `None` where the recorder does not take the base URL, which `origin` has.
    /// That is said, and calls there are not recorded.
    pub(super) fn add_if_possible(
        &mut self,
        origin: &str,
        name: &str,
        url: &str,
    ) -> Option<String> {
        let upstream = possible(origin, url)?;
        Some(self.route(name, upstream))
    }

    /// As [`Routes::add_if_possible`], of a client that looks for the provider's host in its base URL:
    /// the route is named by that host.
    pub(super) fn add_by_host_if_possible(&mut self, origin: &str, url: &str) -> Option<String> {
        let upstream = possible(origin, url)?;
        let is_kept = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        let host: String = upstream.host().chars().filter(is_kept).collect();
        let is_it = |(route, other): &&(Route, Upstream)| {
            *other == upstream && route.name().starts_with(&*host)
        };
        if let Some((route, _)) = self.all.iter().find(is_it) {
            return Some(route.name().to_owned());
        }
        Some(self.push(&host, upstream))
    }

    /// Makes the route of a known provider lead to another base URL. A variable that led there leads
    /// where it did, by a route of its own. False where the recorder does not take the base URL, as of
    /// [`Routes::add_if_possible`].
    pub(super) fn redirect_if_possible(&mut self, origin: &str, name: &str, url: &str) -> bool {
        possible(origin, url).map(|upstream| self.redirect(name, upstream)).is_some()
    }

    fn redirect(&mut self, name: &str, upstream: Upstream) {
        let Some(found) = self.all.iter_mut().find(|(route, _)| route.name() == name) else {
            return;
        };
        let (_, before) = std::mem::replace(found, (Route::new(name, upstream.clone()), upstream));
        if self.variables.iter().any(|(_, route)| route == name) {
            let route = self.route(name, before);
            let led = self.variables.iter_mut().filter(|(_, of)| of == name);
            led.for_each(|(_, of)| of.clone_from(&route));
        }
    }

    pub(super) fn into_routes(self) -> Vec<Route> {
        self.all.into_iter().map(|(route, _)| route).collect()
    }
}

/// The upstreams that the command line names, with the provider where it names one.
fn named_upstreams(args: &Record) -> Outcome<Vec<(Option<&str>, &str)>> {
    let mut named = Vec::new();
    for text in &args.upstream {
        let (name, url) = match text.split_once('=') {
            Some((name, url)) if !name.contains(['/', ':']) => (Some(name), url),
            _ => (None, text.as_str()),
        };
        if let Some(unknown) = name.filter(|name| KNOWN.iter().all(|(known, ..)| known != name)) {
            let failure = Failure::new(format!("there is no provider {unknown:?}"));
            return Err(failure.hint("`openai` or `anthropic`; --env takes any other").into());
        }
        named.push((name, url));
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
