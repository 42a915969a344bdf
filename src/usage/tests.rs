use super::*;
use crate::json;

#[track_caller]
fn check(usage: &str, expected: &str) {
    let usage = Usage::of(&json::read(usage.as_bytes()).unwrap());
    let said = |usage: &Usage| usage.to_json().to_string();
    let found = usage.as_ref().map_or_else(|| "nothing".to_owned(), said);
    assert_eq!(found, expected);
    if let Some(usage) = usage {
        assert_eq!(Usage::from_json(&usage.to_json()), usage);
    }
}

#[test]
fn the_figures_mean_the_same_whoever_reports_them() {
    // Anthropic, with what stays for five minutes and for an hour.
    check(
        r#"{"input_tokens":3,"cache_read_input_tokens":40,"cache_creation_input_tokens":200,"cache_creation":{"ephemeral_5m_input_tokens":150,"ephemeral_1h_input_tokens":50},"output_tokens":5}"#,
        r#"{"input":243,"cacheRead":40,"cacheWrite":200,"cacheWrite5m":150,"cacheWrite1h":50,"output":5}"#,
    );
    // Where the sum is missing, its parts make it.
    check(
        r#"{"input_tokens":10,"cache_read_input_tokens":90,"cache_creation":{"ephemeral_5m_input_tokens":50},"output_tokens":5}"#,
        r#"{"input":150,"cacheRead":90,"cacheWrite":50,"cacheWrite5m":50,"output":5}"#,
    );
    // OpenAI: Responses, Chat Completions, Codex.
    check(
        r#"{"input_tokens":100,"input_tokens_details":{"cached_tokens":64},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":2}}"#,
        r#"{"input":100,"cacheRead":64,"output":7,"reasoning":2}"#,
    );
    check(
        r#"{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":0}}"#,
        r#"{"input":100,"cacheRead":0,"output":7}"#,
    );
    check(
        r#"{"input_tokens":100,"cached_input_tokens":64,"cache_write_input_tokens":0,"output_tokens":7,"reasoning_output_tokens":0}"#,
        r#"{"input":100,"cacheRead":64,"cacheWrite":0,"output":7,"reasoning":0}"#,
    );
    // A proxy that speaks Chat Completions for Anthropic: its prompt holds what was cached.
    check(
        r#"{"prompt_tokens":3601,"completion_tokens":9,"cache_creation_input_tokens":160,"cache_read_input_tokens":3435}"#,
        r#"{"input":3601,"cacheRead":3435,"cacheWrite":160,"output":9}"#,
    );
    check(
        r#"{"prompt_tokens":1397,"completion_tokens":219,"cost":0.005422,"completion_tokens_details":{"reasoning_tokens":136}}"#,
        r#"{"input":1397,"output":219,"reasoning":136,"cost":{"amount":"0.005422","currency":"USD"}}"#,
    );
    // Continue, and the AI SDK of version 4; of Anthropic's it names what was written to the cache.
    check(
        r#"{"promptTokens":30,"completionTokens":9,"promptTokensDetails":{"cachedTokens":10},"completionTokensDetails":{"reasoningTokens":4}}"#,
        r#"{"input":30,"cacheRead":10,"output":9,"reasoning":4}"#,
    );
    check(
        r#"{"promptTokens":3,"completionTokens":9,"promptTokensDetails":{"cachedTokens":40,"cacheWriteTokens":200}}"#,
        r#"{"input":243,"cacheRead":40,"cacheWrite":200,"output":9}"#,
    );
    // DeepSeek and Moonshot.
    check(
        r#"{"prompt_tokens":563,"completion_tokens":116,"prompt_cache_hit_tokens":512,"prompt_cache_miss_tokens":51}"#,
        r#"{"input":563,"cacheRead":512,"output":116}"#,
    );
    check(
        r#"{"prompt_tokens":940,"completion_tokens":56,"input_tokens":0,"output_tokens":0,"input_tokens_details":null}"#,
        r#"{"input":940,"output":56}"#,
    );
    check(
        r#"{"prompt_tokens":19,"completion_tokens":21,"cached_tokens":10}"#,
        r#"{"input":19,"cacheRead":10,"output":21}"#,
    );
}

#[test]
fn clients_report_in_their_own_words() {
    // pi.
    check(
        r#"{"input":1,"output":114,"cacheRead":10,"cacheWrite":33637,"totalTokens":33762,"cost":{"input":0.000005,"total":0.017400000000000002}}"#,
        r#"{"input":33648,"cacheRead":10,"cacheWrite":33637,"output":114,"cost":{"amount":"0.0174","currency":"USD"}}"#,
    );
    // Gemini CLI.
    check(
        r#"{"input":5423,"output":170,"cached":1381,"thoughts":48,"tool":7,"total":5648}"#,
        r#"{"input":5430,"cacheRead":1381,"output":218,"reasoning":48}"#,
    );
    // Kimi.
    check(
        r#"{"inputOther":3064,"output":76,"inputCacheRead":14848,"inputCacheCreation":2}"#,
        r#"{"input":17914,"cacheRead":14848,"cacheWrite":2,"output":76}"#,
    );
    // inspect: the total says whether the input holds what was cached.
    check(
        r#"{"input_tokens":1568,"output_tokens":17,"total_tokens":1585,"input_tokens_cache_read":1024,"reasoning_tokens":0}"#,
        r#"{"input":1568,"cacheRead":1024,"output":17,"reasoning":0}"#,
    );
    check(
        r#"{"input_tokens":10,"output_tokens":17,"total_tokens":1051,"input_tokens_cache_read":1024,"input_tokens_cache_write":0}"#,
        r#"{"input":1034,"cacheRead":1024,"cacheWrite":0,"output":17}"#,
    );
    // Copilot says no more than this of an answer.
    check(r#"{"content":"x","outputTokens":12}"#, r#"{"output":12}"#);
}

#[test]
fn a_whole_number_with_a_point_is_a_figure_and_a_fraction_is_none() {
    check(
        r#"{"prompt_tokens":100.0,"completion_tokens":7.0,"total_tokens":1.27e2,"completion_tokens_details":{"reasoning_tokens":20.0}}"#,
        r#"{"input":100,"output":27,"reasoning":20}"#,
    );
    check(
        r#"{"prompt_tokens":100.5,"completion_tokens":-7.0}"#,
        r#"{"unreadable":["input","output"]}"#,
    );
    check(
        r#"{"prompt_tokens":1e300,"completion_tokens":"7"}"#,
        r#"{"unreadable":["input","output"]}"#,
    );
}

#[test]
fn a_compaction_on_the_server_is_paid_for_too() {
    check(
        r#"{"input_tokens":229,"output_tokens":5,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"iterations":[
            {"type":"compaction","input_tokens":100,"output_tokens":131,"cache_read_input_tokens":0,"cache_creation_input_tokens":55096,"cache_creation":{"ephemeral_5m_input_tokens":55096}},
            {"type":"message","input_tokens":229,"output_tokens":5}]}"#,
        r#"{"input":55425,"cacheRead":0,"cacheWrite":55096,"cacheWrite5m":55096,"output":136,"iterations":[{"input":55196,"cacheRead":0,"cacheWrite":55096,"cacheWrite5m":55096,"output":131},{"input":229,"cacheRead":0,"cacheWrite":0,"output":5}]}"#,
    );
    // Several messages are told apart where they come to what is stated of all.
    let messages = |second: u64| {
        format!(
            r#"{{"input_tokens":30,"output_tokens":3,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"iterations":[
            {{"type":"message","input_tokens":10,"output_tokens":1,"cache_read_input_tokens":0,"cache_creation_input_tokens":0}},
            {{"type":"compaction","input_tokens":100,"output_tokens":7,"cache_read_input_tokens":0,"cache_creation_input_tokens":0}},
            {{"type":"message","input_tokens":{second},"output_tokens":2,"cache_read_input_tokens":0,"cache_creation_input_tokens":0}}]}}"#
        )
    };
    let inputs = |usage: &str| {
        let usage = Usage::of(&json::read(usage.as_bytes()).unwrap()).unwrap();
        let inputs: Vec<_> = usage.runs().iter().map(|run| run.input.unwrap()).collect();
        (usage.input.unwrap(), inputs)
    };
    assert_eq!(inputs(&messages(20)), (130, vec![10, 100, 20]));
    assert_eq!(inputs(&messages(21)), (130, vec![100, 30]));
    // What no request was compacted for is as it is stated.
    let plain = r#"{"input_tokens":30,"cache_read_input_tokens":0,"iterations":[{"type":"message","input_tokens":9}]}"#;
    assert_eq!(inputs(plain), (30, vec![30]));
}

#[test]
fn a_sum_is_unreadable_where_one_of_its_terms_is() {
    let compacted = |own: &str, compaction: &str, expected: &str| {
        let usage = format!(
            r#"{{{own},"cache_read_input_tokens":5,"iterations":[{{"type":"compaction",{compaction}}}]}}"#
        );
        let usage = Usage::of(&json::read(usage.as_bytes()).unwrap()).unwrap();
        let usage = Usage { iterations: Vec::new(), ..usage };
        assert_eq!(usage.to_json().to_string(), expected);
    };
    compacted(
        r#""input_tokens":1,"output_tokens":2"#,
        r#""input_tokens":-10,"output_tokens":20,"cache_read_input_tokens":50"#,
        r#"{"cacheRead":55,"output":22,"unreadable":["input"]}"#,
    );
    compacted(
        r#""input_tokens":1,"output_tokens":0.5"#,
        r#""input_tokens":10,"output_tokens":20,"cache_read_input_tokens":-50"#,
        r#"{"unreadable":["input","cacheRead","output"]}"#,
    );
    // A whole that only one of them states is a part of the sum.
    compacted(
        r#""input_tokens":1,"output_tokens":2"#,
        r#""input_tokens":10"#,
        r#"{"input":16,"cacheRead":5,"unreadable":["output"]}"#,
    );
    // What was written is the sum of its lives, if both can be read.
    check(
        r#"{"input_tokens":3,"cache_creation":{"ephemeral_5m_input_tokens":-1,"ephemeral_1h_input_tokens":50},"output_tokens":5}"#,
        r#"{"output":5,"unreadable":["input","cacheWrite","cacheWrite5m","cacheWrite1h"]}"#,
    );
    // inspect's input may leave out what cannot be read; where the total shows that it does not, it
    // is the whole.
    check(
        r#"{"input_tokens":10,"output_tokens":17,"total_tokens":1051,"input_tokens_cache_read":-1}"#,
        r#"{"output":17,"unreadable":["input","cacheRead"]}"#,
    );
    check(
        r#"{"input_tokens":10,"output_tokens":17,"total_tokens":27,"input_tokens_cache_read":-1}"#,
        r#"{"input":10,"output":17,"unreadable":["cacheRead"]}"#,
    );
}

#[test]
fn what_cannot_be_read_is_missing_and_told() {
    check(
        r#"{"prompt_tokens":-3,"completion_tokens":7}"#,
        r#"{"output":7,"unreadable":["input"]}"#,
    );
    check(
        r#"{"prompt_tokens":12.5,"completion_tokens":"7"}"#,
        r#"{"unreadable":["input","output"]}"#,
    );
    check(
        r#"{"prompt_tokens":9007199254740993,"completion_tokens":9007199254740992}"#,
        r#"{"output":9007199254740992,"unreadable":["input"]}"#,
    );
    // A sum with a part that cannot be read is none.
    check(
        r#"{"input_tokens":3,"cache_read_input_tokens":-40,"cache_creation_input_tokens":200,"output_tokens":5}"#,
        r#"{"cacheWrite":200,"output":5,"unreadable":["input","cacheRead"]}"#,
    );
    // A part is not larger than its whole.
    check(
        r#"{"prompt_tokens":10,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":8}}"#,
        r#"{"input":10,"output":7,"unreadable":["cacheRead","reasoning"]}"#,
    );
    check(
        r#"{"input_tokens":3,"cache_creation_input_tokens":20,"cache_creation":{"ephemeral_5m_input_tokens":21},"output_tokens":5}"#,
        r#"{"input":23,"cacheWrite":20,"output":5,"unreadable":["cacheWrite5m"]}"#,
    );
    check(
        r#"{"input":1,"output":2,"cost":{"total":-0.5}}"#,
        r#"{"input":1,"output":2,"unreadable":["cost"]}"#,
    );
    check(
        r#"{"input":1,"output":2,"cost":1.5,"currency":"EUR"}"#,
        r#"{"input":1,"output":2,"cost":{"amount":"1.5","currency":"EUR"}}"#,
    );
    check(
        r#"{"input":1,"output":2,"cost":1.5,"currency":"credits"}"#,
        r#"{"input":1,"output":2,"unreadable":["cost"]}"#,
    );
    // What is null, or says nothing, is no usage.
    check(r#"{"input_tokens":null,"output_tokens":null}"#, "nothing");
    check(r#"{"total_tokens":-3}"#, "nothing");
    check("null", "nothing");
    check("[1]", "nothing");
}
