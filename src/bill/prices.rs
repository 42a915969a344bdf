use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    Price,
    dated_table::{ModelTable, Provider, day, on_line, read, shape},
    price::{Factor, Rates, TermPrice},
};
use crate::{
    Result,
    request::Exchange,
    transcript::{Currency, HostedName, Money, Usage},
    usage::{REGIONAL, WEB_SEARCH},
};

/// The table that comes along, which says its date and its sources itself.
const EMBEDDED: &str = include_str!("prices.toml");
/// Tokens that a price is of.
const MILLION: u128 = 1_000_000;

/// What the tokens of models cost: a table that is data, and says its date.
///
/// A model has a price where the table names it: exactly, or with one of its provider's prefixes
/// before, and one of its suffixes behind the name. In a suffix `#` stands for a digit. No other
/// name is taken for one that is like it.
///
/// ```
/// use afterimage::bill::Prices;
///
/// let prices = Prices::from_toml(r####"
///     date = "2026-11-23"
///     currency = "USD"
///     [[provider]]
///     name = "Harbour"
///     source = "https://harbour.example/prices"
///     prefixes = ["harbour/"]
///     suffixes = ["-####"]
///     [[provider.model]]
///     names = ["tide-1"]
///     input = 2.5
///     cache_read = 0.25
///     output = 10
/// "####)?;
/// assert!(prices.of("harbour/tide-1-2026").is_some());
/// assert!(prices.of("tide-1-mini").is_none());
/// assert!(Prices::embedded()?.of("claude-opus-4-5-20251101").is_some());
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Prices {
    date: String,
    currency: Currency,
    models: ModelTable<Price>,
    /// The same where a model runs in a region; without those for which the table does not say that.
    regional: ModelTable<Price>,
}

/// Why an exchange has no price.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpriced {
    /// It reports no usage.
    NoUsage,
    /// It reports no input or no output, or a figure that nobody can read.
    Incomplete,
    /// Its model has no price, or no name.
    UnknownModel,
    /// It was run under a term that the table has no price for: this one.
    Term(String),
}

impl Prices {
    /// The table that comes along. Parses it each time: O(its text).
    ///
    /// # Errors
    /// None in a build whose tests pass: [`ErrorKind::Shape`](crate::ErrorKind::Shape).
    pub fn embedded() -> Result<Self> {
        Self::from_toml(EMBEDDED)
    }

    /// Reads a table that is written as TOML.
    ///
    /// Cost: O(the text).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) with the line where the text is not TOML or has
    /// another shape. The same for a date that is no day, for a currency that is not three capital
    /// letters, for a table or an entry that names no model, and for a name that is there twice. A
    /// price must be a decimal number of zero or more with up to six digits behind the point.
    pub fn from_toml(text: &str) -> Result<Self> {
        let TomlPrices { date, currency, provider } = read(text, "prices")?;
        let date = day(&date, "prices")?;
        let currency = Currency::from_name(&currency).ok_or_else(|| {
            shape(format!("expected a currency of three capital letters, found {currency:?}"))
        })?;
        let (mut providers, mut regional) = (Vec::new(), Vec::new());
        for TomlProvider { name, source, prefixes, suffixes, terms, web_search, model } in provider
        {
            let mut models = Vec::new();
            let of_provider = |wrong| shape(format!("{name}: {wrong}"));
            let terms = factors(&terms).map_err(of_provider)?;
            let searches = web_search.map(|price| price.pico()).transpose().map_err(of_provider)?;
            let search = searches.map(|pico| (WEB_SEARCH.to_owned(), TermPrice::Each(pico / 1000)));
            for model in model {
                let at = Some(model.names.span().start);
                let names = model.names.get_ref().join(", ");
                if names.is_empty() || model.names.get_ref().iter().any(String::is_empty) {
                    let error = shape(format!("{name}: a price is of a model without a name"));
                    return Err(on_line(error, text, at));
                }
                let of_all = terms.clone().into_iter().chain(search.clone());
                let price = model
                    .price(of_all.collect())
                    .map_err(|wrong| on_line(shape(format!("{names}: {wrong}")), text, at))?;
                models.push((model.names.into_inner(), price));
            }
            let provider = Provider { name, source, prefixes, suffixes, models };
            let in_region = |(names, price): &(Vec<String>, Price)| {
                Some((names.clone(), price.with_term(REGIONAL)?))
            };
            let models = provider.models.iter().filter_map(in_region).collect();
            regional.push(Provider { models, ..provider.clone() });
            providers.push(provider);
        }
        let [models, regional] = [providers, regional].map(|providers| ModelTable { providers });
        if models.is_empty() {
            return Err(shape("expected the price of a model, found none".to_owned()));
        }
        let mut seen = std::collections::HashSet::new();
        let names = models.providers.iter().flat_map(|provider| &provider.models);
        for name in names.flat_map(|(names, _)| names) {
            if !seen.insert(name) {
                return Err(shape(format!("the model {name:?} has two prices")));
            }
        }
        Ok(Self { date, currency, models, regional })
    }

    /// The day on which the prices were as they are here.
    pub fn date(&self) -> &str {
        &self.date
    }

    /// The currency of all prices.
    pub fn currency(&self) -> Currency {
        self.currency
    }

    /// The providers, and where their prices come from. O(providers) for all of them.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.models.sources()
    }

    /// The price of a model; `None` where the table does not name it. A model of Anthropic's that
    /// Bedrock or Vertex AI serves has that of its own name, with the term `endpoint=regional` where the
    /// name says that it runs in a region.
    ///
    /// Cost: O(names in the table) for each form of the name.
    pub fn of(&self, model: &str) -> Option<&Price> {
        self.models.of(model).or_else(|| {
            let HostedName { model, is_regional } = HostedName::of(model)?;
            if is_regional { &self.regional } else { &self.models }.of(&model)
        })
    }

    /// What an exchange cost by these prices. Looks the model up, as [`Prices::of`].
    ///
    /// # Errors
    /// [`Unpriced`] where that is not known.
    pub fn cost(&self, exchange: &Exchange) -> Result<Money, Unpriced> {
        let usage = exchange.usage.as_ref().ok_or(Unpriced::NoUsage)?;
        let free = Money::from_pico(0, self.currency);
        if usage.unreadable.is_empty() && is_nothing(usage) {
            return Ok(free);
        }
        let model = exchange.model.as_deref().ok_or(Unpriced::UnknownModel)?;
        let price = self.of(model).ok_or(Unpriced::UnknownModel)?;
        if let Some(term) = price.unpriced_terms(usage).next() {
            return Err(Unpriced::Term(term.to_owned()));
        }
        let pico = price.of(usage).ok_or(Unpriced::Incomplete)?;
        Ok(Money::from_pico(pico, self.currency))
    }
}

/// Whether no tokens are reported: what a client answered itself costs nothing, whatever it calls
/// the model.
fn is_nothing(usage: &Usage) -> bool {
    usage.input == Some(0) && usage.output == Some(0)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlPrices {
    date: toml::Value,
    currency: String,
    #[serde(default)]
    provider: Vec<TomlProvider>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlProvider {
    name: String,
    source: String,
    #[serde(default)]
    prefixes: Vec<String>,
    #[serde(default)]
    suffixes: Vec<String>,
    /// What tokens cost more, or less, under a term: a factor.
    #[serde(default)]
    terms: BTreeMap<String, Decimal>,
    /// What a thousand web searches of the provider's cost.
    web_search: Option<Decimal>,
    #[serde(default)]
    model: Vec<TomlModel>,
}

/// A model's prices of a million tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlModel {
    names: toml::Spanned<Vec<String>>,
    input: Decimal,
    cache_read: Option<Decimal>,
    cache_write_5m: Option<Decimal>,
    cache_write_1h: Option<Decimal>,
    output: Decimal,
    #[serde(default)]
    terms: BTreeMap<String, Decimal>,
    #[serde(default)]
    over: Vec<TomlTier>,
}

/// The prices of a request whose input is longer than `tokens`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlTier {
    tokens: u64,
    input: Decimal,
    cache_read: Option<Decimal>,
    cache_write_5m: Option<Decimal>,
    cache_write_1h: Option<Decimal>,
    output: Decimal,
}

/// A price as it is written: a number, or a text with one.
#[derive(Deserialize)]
struct Decimal(toml::Value);

impl Decimal {
    /// The price of one token, in 10^-12 of the currency.
    fn rate(&self) -> Result<u128, String> {
        Ok(self.pico()? / MILLION)
    }

    /// The number, in 10^-12.
    fn pico(&self) -> Result<u128, String> {
        let text = match &self.0 {
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Float(number) => number.to_string(),
            toml::Value::String(text) => text.clone(),
            other => return Err(format!("expected a price, found {}", other.type_str())),
        };
        if text.starts_with('-') {
            return Err(format!("expected a price of zero or more, found {text}"));
        }
        let money = Money::from_decimal(&text, Currency::USD);
        let pico = money.map(Money::pico).filter(|pico| pico % MILLION == 0);
        let pico = pico.filter(|pico| *pico <= u128::from(u64::MAX));
        pico.ok_or_else(|| {
            format!("expected a price with up to six digits behind the point, found {text}")
        })
    }
}

impl TomlModel {
    /// Its price. A term of its own replaces the one that the provider has for all of its models.
    fn price(&self, mut terms: BTreeMap<String, TermPrice>) -> Result<Price, String> {
        let Self { input, cache_read, cache_write_5m, cache_write_1h, output, .. } = self;
        let mut tiers =
            vec![rates(0, [input, output], [cache_read, cache_write_5m, cache_write_1h])?];
        for tier in &self.over {
            if tiers.last().is_some_and(|last| tier.tokens <= last.over) {
                return Err(format!("the tier over {} tokens does not rise", tier.tokens));
            }
            let cache = [&tier.cache_read, &tier.cache_write_5m, &tier.cache_write_1h];
            tiers.push(rates(tier.tokens, [&tier.input, &tier.output], cache)?);
        }
        terms.extend(factors(&self.terms)?);
        Ok(Price::new(tiers, terms))
    }
}

/// The terms under which tokens cost more, or less.
fn factors(terms: &BTreeMap<String, Decimal>) -> Result<BTreeMap<String, TermPrice>, String> {
    let price = |factor: &Decimal| factor.pico().map(Factor::from_pico).map(TermPrice::Tokens);
    terms.iter().map(|(name, factor)| Ok((name.clone(), price(factor)?))).collect()
}

/// What has no price of its own costs what the input does; what stays for an hour, what stays for
/// five minutes does.
fn rates(
    over: u64,
    [input, output]: [&Decimal; 2],
    [read, write_5m, write_1h]: [&Option<Decimal>; 3],
) -> Result<Rates, String> {
    let rate = |price: &Option<Decimal>, other| price.as_ref().map_or(Ok(other), Decimal::rate);
    let (input, output) = (input.rate()?, output.rate()?);
    let cache_write_5m = rate(write_5m, input)?;
    Ok(Rates {
        over,
        input,
        cache_read: rate(read, input)?,
        cache_write_5m,
        cache_write_1h: rate(write_1h, cache_write_5m)?,
        output,
    })
}

#[cfg(test)]
#[path = "prices_tests.rs"]
mod tests;
