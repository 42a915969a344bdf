use super::*;

const TABLE: &str = r#"
date = "2026-11-23"
[[provider]]
name = "Harbour"
source = "https://harbour.example/caches"
apis = ["messages"]
order = ["tools", "system", "messages"]
prefixes = ["harbour/"]
suffixes = ["-####"]
breakpoints = "marks"
most = 4
look_back = 20
ttl = 300
write = 1.25
[[provider.family]]
names = ["tide-1", "tide-2"]
minimum = 512
documented = ["minimum"]
"#;

#[track_caller]
fn refused(from: &str, to: &str, expected: &str) {
    assert!(TABLE.contains(from), "{from}");
    let error = CacheRules::from_toml(&TABLE.replacen(from, to, 1)).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_model_has_the_rules_of_its_family_by_name_prefix_and_suffix() {
    let rules = CacheRules::from_toml(TABLE).unwrap();
    for name in ["tide-1", "harbour/tide-2", "tide-1-2026", "harbour/tide-1-2026"] {
        assert!(rules.of(name).is_some(), "{name}");
    }
    for name in ["tide-3", "tide-1-20x6", "tide", "ebb/tide-1", ""] {
        assert!(rules.of(name).is_none(), "{name}");
    }
}

#[test]
fn a_table_that_does_not_say_what_it_must_is_refused_with_its_line() {
    refused(
        "minimum = 512",
        "",
        "tide-1, tide-2: `minimum` is said to be known, and has no value (line 16)",
    );
    refused(
        "documented = [\"minimum\"]",
        "",
        "tide-1, tide-2: `minimum` is said to be neither documented nor measured (line 16)",
    );
    refused(
        "documented = [\"minimum\"]",
        "documented = [\"minimum\"]\nunknown = [\"minimum\"]",
        "tide-1, tide-2: it is said twice where `minimum` comes from (line 16)",
    );
    refused(
        "\"tide-2\"",
        "\"tide-1\"",
        "tide-1, tide-1: the model \"tide-1\" has two families (line 16)",
    );
    refused(
        "look_back = 20",
        "",
        "tide-1, tide-2: expected the setting `look_back`, found none (line 16)",
    );
    refused(
        "\"system\", \"messages\"]\npre",
        "\"tools\", \"messages\"]\npre",
        "tide-1, tide-2: the order names a part of a request twice (line 16)",
    );
    refused(
        "write = 1.25",
        "write = -1",
        "tide-1, tide-2: expected what a write costs as a factor, found -1 (line 16)",
    );
    refused(
        "\"2026-11-23\"",
        "\"today\"",
        "expected the day of the rules as in \"2026-11-23\", found \"today\"",
    );
    let error = CacheRules::from_toml("date = \"2026-11-23\"").unwrap_err();
    assert_eq!(error.to_string(), "expected the rules of a family of models, found none");
}

#[test]
fn the_table_that_comes_along_names_each_anthropic_and_openai_model_that_has_a_price() {
    let rules = CacheRules::embedded().unwrap();
    let prices = include_str!("../bill/prices.toml");
    let names = prices.split('"').filter(|name| {
        name.starts_with("claude-") || name.starts_with("gpt-") || matches!(*name, "o1" | "o3")
    });
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 60);
    for name in names {
        // The page has never named it.
        assert_eq!(rules.of(name).is_some(), name != "claude-3-sonnet", "{name}");
    }
    assert_eq!(rules.sources().count(), 3);
}

#[test]
fn a_write_costs_by_the_rules_what_it_costs_by_the_prices() {
    let rules = CacheRules::embedded().unwrap();
    let prices = crate::bill::Prices::embedded().unwrap();
    let usage = |write: u64, long: u64| crate::transcript::Usage {
        input: Some(1_000),
        output: Some(0),
        cache_write: Some(write),
        cache_write_1h: Some(long),
        ..Default::default()
    };
    let mut compared = 0;
    for (names, of) in rules.models.providers.iter().flat_map(|provider| &provider.models) {
        for name in names {
            let Some(price) = prices.of(name) else { continue };
            let cost = |write, long| price.of(&usage(write, long)).unwrap();
            let plain = cost(0, 0) * u128::from(of.write);
            // Claude 3 Haiku alone is rounded: 0.30 dollars for 1.25 times 0.25.
            if name != "claude-3-haiku" {
                assert_eq!(cost(1_000, 0) * u128::from(PARTS), plain, "{name}");
                let long = cost(0, 0) * u128::from(of.write_long);
                assert_eq!(cost(1_000, 1_000) * u128::from(PARTS), long, "{name}");
            }
            compared += 1;
        }
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn a_model_that_platforms_serve_has_the_rules_of_its_own_name() {
    let rules = CacheRules::embedded().unwrap();
    let own = rules.of("claude-opus-4-5").unwrap();
    for name in ["us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5@20251101"] {
        assert_eq!(rules.of(name), Some(own), "{name}");
    }
}
