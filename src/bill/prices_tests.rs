use super::*;
use crate::{
    bill::Bill,
    json::{self, Value},
};

const TABLE: &str = r#"
    date = "2026-11-23"
    currency = "USD"
    [[provider]]
    name = "Harbour"
    source = "https://harbour.example/prices"
    prefixes = ["harbour/"]
    suffixes = ["-########", "-latest"]
    [[provider.model]]
    names = ["tide-4", "tide-4-1"]
    input = 3
    cache_read = 0.3
    cache_write_5m = "3.75"
    cache_write_1h = 6
    output = 15.0
    over = [{ tokens = 1000, input = 6, output = 22.5 }]
"#;

fn exchange(model: Option<&str>, usage: &str) -> Exchange {
    Exchange {
        model: model.map(Into::into),
        usage: Usage::of(&json::read(usage.as_bytes()).unwrap()),
        session: "s".into(),
        ..Exchange::default()
    }
}

#[track_caller]
fn check(model: Option<&str>, usage: &str, expected: &str) {
    let prices = Prices::from_toml(TABLE).unwrap();
    let cost = prices.cost(&exchange(model, usage));
    let found = cost.map_or_else(|wrong| format!("{wrong:?}"), Money::decimal);
    assert_eq!(found, expected);
}

#[test]
fn each_kind_of_token_has_its_price_and_long_requests_have_their_own() {
    let tide = Some("tide-4");
    check(tide, r#"{"prompt_tokens":100,"completion_tokens":10}"#, "0.00045");
    check(
        tide,
        r#"{"input_tokens":3,"cache_read_input_tokens":40,"cache_creation_input_tokens":200,"cache_creation":{"ephemeral_5m_input_tokens":150,"ephemeral_1h_input_tokens":50},"output_tokens":5}"#,
        // 3 × 3 + 40 × 0.3 + 150 × 3.75 + 50 × 6 + 5 × 15, in millionths.
        "0.0009585",
    );
    // Who does not say for how long writes for five minutes.
    check(tide, r#"{"input":0,"cacheRead":0,"cacheWrite":4,"output":0}"#, "0.000015");
    check(tide, r#"{"prompt_tokens":1000,"completion_tokens":0}"#, "0.003");
    check(tide, r#"{"prompt_tokens":1001,"completion_tokens":2}"#, "0.006051");
}

#[test]
fn each_run_of_the_model_is_priced_by_its_own_length() {
    // 900 and 200 tokens; together they would be a long request.
    let usage = r#"{"input_tokens":200,"output_tokens":2,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"iterations":[
        {"type":"compaction","input_tokens":100,"output_tokens":10,"cache_read_input_tokens":0,"cache_creation_input_tokens":800}]}"#;
    // 100 × 3 + 800 × 3.75 + 10 × 15 + 200 × 3 + 2 × 15, in millionths.
    check(Some("tide-4"), usage, "0.00408");
}

#[test]
fn a_name_is_matched_as_the_table_says_and_never_by_likeness() {
    let prices = Prices::from_toml(TABLE).unwrap();
    for name in ["tide-4", "tide-4-20260101", "tide-4-latest", "harbour/tide-4-1-20260101"] {
        assert!(prices.of(name).is_some(), "{name}");
    }
    for name in [
        "tide",
        "tide-4-2",
        "tide-4-2026010",
        "tide-4-2026010x",
        "tide-4-latest-latest",
        "x/tide-4",
        "Tide-4",
        "",
    ] {
        assert!(prices.of(name).is_none(), "{name}");
    }
}

#[test]
fn what_has_no_price_is_in_no_sum_and_told() {
    check(Some("novel"), r#"{"prompt_tokens":1,"completion_tokens":1}"#, "UnknownModel");
    check(None, r#"{"prompt_tokens":1,"completion_tokens":1}"#, "UnknownModel");
    check(Some("tide-4"), "null", "NoUsage");
    check(Some("tide-4"), r#"{"completion_tokens":1}"#, "Incomplete");
    check(Some("tide-4"), r#"{"prompt_tokens":-1,"completion_tokens":1}"#, "Incomplete");
    // A client that answers itself names no model, and no tokens.
    check(Some("<synthetic>"), r#"{"input_tokens":0,"output_tokens":0}"#, "0");

    let prices = Prices::from_toml(TABLE).unwrap();
    let mut failed = exchange(None, "null");
    failed.failure = Some(String::new());
    let exchanges = [
        exchange(
            Some("tide-4"),
            r#"{"prompt_tokens":100,"completion_tokens":10,"cost":7,"currency":"EUR"}"#,
        ),
        failed,
    ];
    let bill = Bill::of(&prices, &exchanges);
    assert_eq!((bill.total().to_string(), bill.is_partial()), ("0.00045 USD".to_owned(), false));
    let bill = Bill::of(
        &prices,
        exchanges.iter().chain(&[exchange(Some("novel"), r#"{"input":1,"output":1}"#)]),
    );
    assert!(bill.is_partial());
    assert_eq!(
        Value::from(bill.to_json()).to_string(),
        r#"{"date":"2026-11-23","total":{"amount":"0.00045","currency":"USD"},"partial":true,"priced":1,"incomplete":0,"unpriced":{"novel":1},"unpricedTerms":{},"byModel":{"tide-4":{"amount":"0.00045","currency":"USD"}}}"#
    );
}

#[test]
fn a_table_that_is_wrong_says_where() {
    let said = |table: &str| Prices::from_toml(table).unwrap_err().to_string();
    assert!(said("date = ").contains("not a table of prices"));
    assert!(said(&TABLE.replace("USD", "dollars")).contains("three capital letters"));
    assert!(
        said(&TABLE.replace("= 0.3", "= 0.0000003")).contains("six digits"),
        "{}",
        said(&TABLE.replace("= 0.3", "= 0.0000003"))
    );
    for (price, says) in [
        ("-0.3", "zero or more, found -0.3"),
        ("-1", "zero or more, found -1"),
        ("inf", "six digits behind the point, found inf"),
        ("nan", "six digits behind the point, found NaN"),
        ("true", "expected a price, found boolean"),
        ("2026-11-23", "expected a price, found datetime"),
        ("[1]", "expected a price, found array"),
    ] {
        let error = said(&TABLE.replace("= 0.3", &format!("= {price}")));
        assert!(error.contains(says) && error.contains("line"), "{price}: {error}");
    }
    let date = |date: &str| {
        let line = TABLE.lines().find(|line| line.contains("date =")).unwrap();
        Prices::from_toml(&TABLE.replace(line, &format!("date = {date}")))
    };
    assert_eq!(date("2026-11-23").unwrap().date(), "2026-11-23");
    for wrong in ["\"\"", "\"yesterday\"", "2026", "2026-11-23T08:00:00Z", "[]"] {
        let error = date(wrong).unwrap_err().to_string();
        assert!(error.contains("the day of the prices"), "{wrong}: {error}");
    }
    assert!(said("date = \"2026-11-23\"\ncurrency = \"USD\"").contains("found none"));
    let nameless = TABLE.replace("[\"tide-4\", \"tide-4-1\"]", "[]");
    assert!(nameless != TABLE && said(&nameless).contains("without a name"), "{nameless}");
    assert!(said(&TABLE.replace("\"tide-4-1\"", "\"tide-4\"")).contains("two prices"));
    assert!(said(&TABLE.replace("tokens = 1000", "tokens = 0")).contains("does not rise"));
    assert!(said(&TABLE.replace("prefixes", "prefix")).contains("prefix"));
}

#[test]
fn the_table_that_comes_along_is_dated_and_names_its_sources() {
    let prices = Prices::embedded().unwrap();
    assert_eq!((prices.date().len(), prices.currency()), (10, Currency::USD));
    assert!(
        prices.sources().all(|(name, source)| !name.is_empty() && source.starts_with("https://"))
    );
    for (name, is_known) in [
        ("claude-sonnet-4-20250514", true),
        ("claude-sonnet-4-5-20250929", true),
        ("claude-opus-4-5", true),
        ("anthropic/claude-opus-4.5", true),
        ("gpt-5-mini-2025-08-07", true),
        ("google/gemini-3-pro-preview", true),
        ("gemini-2.5-pro-preview-05-06", true),
        ("claude-sonnet-4-20250514-extended", false),
        ("gpt-5-super", false),
        ("<synthetic>", false),
    ] {
        assert_eq!(prices.of(name).is_some(), is_known, "{name}");
    }
}

#[test]
fn a_model_that_platforms_serve_costs_what_it_does_there() {
    let prices = Prices::embedded().unwrap();
    let cost = |model: &str| {
        let cost = prices.cost(&exchange(Some(model), r#"{"input":1000000,"output":0}"#));
        cost.map_or_else(|wrong| format!("{wrong:?}"), Money::decimal)
    };
    for (model, expected) in [
        // A region costs a tenth more from Claude 4.5 on.
        ("global.anthropic.claude-opus-4-5-20251101-v1:0", "5"),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", "5.5"),
        ("anthropic.claude-haiku-4-5-20251001-v1:0", "1.1"),
        ("eu.anthropic.claude-opus-4-1-20250805-v1:0", "15"),
        ("claude-opus-4-5@20251101", "5"),
        // What no page states has no price there.
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "UnknownModel"),
        ("us.anthropic.claude-novel-9-v1:0", "UnknownModel"),
    ] {
        assert_eq!(cost(model), expected, "{model}");
    }
    let own = TABLE.replace("tide-4\"", "claude-tide-4\"");
    let own = Prices::from_toml(&own).unwrap();
    assert!(own.of("global.anthropic.claude-tide-4-v1:0").is_some());
    assert!(own.of("us.anthropic.claude-tide-4-v1:0").is_none(), "the table has no such term");
}
