use std::{collections::BTreeMap, sync::Arc};

use indexmap::IndexMap;

use crate::{
    json::{Object, ObjectExt, Value, object},
    request::Exchange,
    transcript::{Currency, Money, Usage},
};

crate::json::serialize_through_json!(UsageSum, UsageSums);

/// The usage of exchanges, added up. A sum that outgrows 64 bits stays at their largest number.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageSum {
    /// The exchanges that report usage.
    pub with_usage: u64,
    /// Those that report none.
    pub without_usage: u64,
    /// Those of both that failed.
    pub failed: u64,
    /// Those of both that no list of requests has: their answer shows nothing.
    pub unlisted: u64,
    /// Those with a figure that nobody can read, which is in no sum.
    pub unreadable: u64,
    /// Those that report usage, and not the input and the output.
    pub incomplete: u64,
    /// The tokens of all of them; `None` of what no exchange states.
    pub tokens: Usage,
    /// The exchanges that report what they cost.
    pub with_cost: u64,
    /// How many state it in each currency, and what these cost, in 10^-12 of it.
    cost: BTreeMap<Currency, (u64, u128)>,
}

impl UsageSum {
    /// Adds an exchange: what it reports, wherever that counts.
    pub fn add(&mut self, exchange: &Exchange) {
        self.failed += u64::from(exchange.failure.is_some());
        self.unlisted += u64::from(exchange.is_unlisted);
        let Some(usage) = exchange.figures() else {
            self.without_usage += 1;
            return;
        };
        self.with_usage += 1;
        self.unreadable += u64::from(!usage.unreadable.is_empty());
        self.incomplete += u64::from(usage.input.is_none() || usage.output.is_none());
        self.tokens.add(usage);
        if let Some(cost) = usage.cost {
            self.with_cost += 1;
            let (count, sum) = self.cost.entry(cost.currency()).or_default();
            (*count, *sum) = (*count + 1, sum.saturating_add(cost.pico()));
        }
    }

    /// How many exchanges there are.
    pub fn exchanges(&self) -> u64 {
        self.with_usage.saturating_add(self.without_usage)
    }

    /// What the source says that the exchanges cost, in each currency.
    pub fn cost(&self) -> impl Iterator<Item = Money> {
        self.cost.iter().map(|(currency, (_, pico))| Money::from_pico(*pico, *currency))
    }

    /// How many exchanges say what they cost in this currency.
    pub fn with_cost_in(&self, currency: Currency) -> u64 {
        self.cost.get(&currency).map_or(0, |(count, _)| *count)
    }

    /// The wire form: every figure. O(size).
    pub fn to_json(&self) -> Object {
        let mut json = object! {
            "exchanges": self.exchanges(),
            "withUsage": self.with_usage,
            "withoutUsage": self.without_usage,
            "failed": self.failed,
            "unlisted": self.unlisted,
            "unreadable": self.unreadable,
            "incomplete": self.incomplete,
        };
        json.extend(self.tokens.named().map(|(name, figure)| (name.to_owned(), figure.into())));
        json.put("withCost", self.with_cost);
        json.put("cost", self.cost().map(Value::from).collect::<Value>());
        json
    }
}

/// The usage of exchanges: all of it, by model and by session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageSums {
    /// All of it.
    pub total: UsageSum,
    /// That of each model, in the order of their first exchanges; `None` where the source names
    /// none.
    pub by_model: IndexMap<Option<Arc<str>>, UsageSum>,
    /// That of each session, in the order of their first exchanges.
    pub by_session: IndexMap<Arc<str>, UsageSum>,
    /// What copies of other sessions' answers report, which is in none of these sums: by the session
    /// that they were copied from, `None` where the source does not name it.
    pub copied: IndexMap<Option<Arc<str>>, UsageSum>,
}

impl UsageSums {
    /// Adds an exchange: a look-up of its model and one of its session.
    pub fn add(&mut self, exchange: &Exchange) {
        if let Some(copied) = &exchange.copied {
            return self.copied.entry(copied.from.clone()).or_default().add(exchange);
        }
        self.total.add(exchange);
        self.by_model.entry(exchange.model.clone()).or_default().add(exchange);
        self.by_session.entry(Arc::clone(&exchange.session)).or_default().add(exchange);
    }

    /// The wire form: `total`, `byModel`, `bySession` where there are several, and `copied` where
    /// there are copies. The key of the exchanges whose source names no model, or no session that they
    /// were copied from, is the empty string, which is no name. O(size).
    pub fn to_json(&self) -> Object {
        let named = |(name, sum): (&Option<Arc<str>>, &UsageSum)| {
            (name.as_deref().unwrap_or_default().to_owned(), Value::from(sum.to_json()))
        };
        let by_model = self.by_model.iter().map(named);
        let mut json = object! {
            "total": self.total.to_json(),
            "byModel": by_model.collect::<Object>(),
        };
        if self.by_session.len() > 1 {
            let by_session = self
                .by_session
                .iter()
                .map(|(session, sum)| (session.to_string(), Value::from(sum.to_json())));
            json.put("bySession", by_session.collect::<Object>());
        }
        if !self.copied.is_empty() {
            json.put("copied", self.copied.iter().map(named).collect::<Object>());
        }
        json
    }
}

impl<'e> FromIterator<&'e Exchange> for UsageSums {
    fn from_iter<I: IntoIterator<Item = &'e Exchange>>(exchanges: I) -> Self {
        let mut sums = Self::default();
        exchanges.into_iter().for_each(|exchange| sums.add(exchange));
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, transcript::Usage};

    fn exchange(session: &str, model: Option<&str>, usage: &str) -> Exchange {
        Exchange {
            model: model.map(Arc::from),
            usage: Usage::of(&json::read(usage.as_bytes()).unwrap()),
            session: session.into(),
            ..Exchange::default()
        }
    }

    #[test]
    fn sums_are_by_model_and_by_session_and_currencies_stay_apart() {
        let mut failed = exchange("b", None, "null");
        failed.failure = Some(String::new());
        let sums: UsageSums = [
            exchange("a", Some("m"), r#"{"input":1,"output":2,"cost":0.1}"#),
            exchange("a", Some("n"), r#"{"input":10,"output":-1,"cost":0.2}"#),
            exchange("b", Some("m"), r#"{"input":100,"cacheRead":7,"cost":5,"currency":"EUR"}"#),
            failed,
        ]
        .iter()
        .collect();
        let costs: Vec<_> = sums.total.cost().map(|cost| cost.to_string()).collect();
        assert_eq!(costs, ["5 EUR", "0.3 USD"]);
        let counts = ["EUR", "USD", "CHF"].map(|name| Currency::from_name(name).unwrap());
        assert_eq!(counts.map(|of| sums.total.with_cost_in(of)), [1, 2, 0]);
        let figures = (sums.total.exchanges(), sums.total.tokens.input, sums.total.tokens.output);
        assert_eq!(figures, (4, Some(118), Some(2)));
        assert_eq!((sums.total.unreadable, sums.total.failed, sums.total.without_usage), (1, 1, 1));
        let inputs: Vec<_> =
            sums.by_model.iter().map(|(model, sum)| (model.as_deref(), sum.tokens.input)).collect();
        assert_eq!(inputs, [(Some("m"), Some(108)), (Some("n"), Some(10)), (None, None)]);
        let inputs: Vec<_> = sums.by_session.values().map(|sum| sum.tokens.input).collect();
        assert_eq!(inputs, [Some(11), Some(107)]);
        let names = sums.to_json().keys().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(names, "total byModel bySession");
    }

    #[test]
    fn a_model_that_is_called_none_is_apart_from_no_model() {
        let sums: UsageSums = [
            exchange("a", Some("none"), r#"{"input":1,"output":2}"#),
            exchange("a", None, r#"{"input":10,"output":20}"#),
        ]
        .iter()
        .collect();
        let json = sums.to_json();
        let input = |name: &str| json.get("byModel")?.get(name)?.get("input")?.as_u64();
        assert_eq!((input("none"), input("")), (Some(1), Some(10)));
    }

    #[test]
    fn a_sum_that_outgrows_its_number_stays_at_the_largest() {
        let most = r#"{"input":9007199254740992,"cost":9007199254740992}"#;
        let mut sums = UsageSums::default();
        for _ in 0..3000 {
            sums.add(&exchange("a", None, most));
        }
        assert_eq!(sums.total.tokens.input, Some(u64::MAX));
        assert_eq!(sums.total.cost().next().unwrap().pico(), 3000 * (1 << 53) * 10_u128.pow(12));
    }
}
