//! What is reported of exchanges, as the list of an archive keeps it.

use std::sync::Arc;

use indexmap::IndexSet;

use crate::{
    json::{Object, Value, object},
    request::Exchange,
    transcript::Usage,
};

/// The bits of what an exchange is.
const FAILED: u64 = 1;
const UNLISTED: u64 = 2;

/// The usage is that of a copy.
const COPIED: u64 = 4;

/// The names once, and a row for each exchange: session, model, bits, usage, what tells the answer from
/// others, and the session that it was copied from.
pub(super) fn to_json(exchanges: &[Exchange]) -> Object {
    let (mut sessions, mut models) = (IndexSet::new(), IndexSet::new());
    let row = |exchange: &Exchange| -> Value {
        let (session, _) = sessions.insert_full(Arc::clone(&exchange.session));
        let model = exchange.model.as_ref().map(|model| models.insert_full(Arc::clone(model)).0);
        let bits = if exchange.failure.is_some() { FAILED } else { 0 }
            | if exchange.is_unlisted { UNLISTED } else { 0 }
            | if exchange.copied.is_some() { COPIED } else { 0 };
        let usage = exchange.figures().map(Usage::to_json);
        let from = exchange.copied.as_ref().and_then(|copied| copied.from.as_deref());
        let row: [Value; 6] = [
            session.into(),
            model.into(),
            bits.into(),
            usage.into(),
            exchange.print.into(),
            from.map(str::to_owned).into(),
        ];
        row.into_iter().collect::<Value>()
    };
    let rows: Value = exchanges.iter().map(row).collect();
    let names = |names: IndexSet<Arc<str>>| names.iter().map(|name| &**name).collect::<Value>();
    object! { "sessions": names(sessions), "models": names(models), "rows": rows }
}

/// The exchanges of such a list; `None` where it is damaged.
pub(super) fn from_json(value: &Value) -> Option<Vec<Exchange>> {
    let names = |key: &str| -> Option<Vec<Arc<str>>> {
        value.get(key)?.as_array()?.iter().map(|name| Some(name.as_str()?.into())).collect()
    };
    let (sessions, models) = (names("sessions")?, names("models")?);
    let name = |names: &[Arc<str>], index: &Value| {
        names.get(usize::try_from(index.as_u64()?).ok()?).map(Arc::clone)
    };
    let row = |row: &Value| {
        let [session, model, bits, usage, rest @ ..] = row.as_array()? else { return None };
        let bits = bits.as_u64()?;
        let from = rest.get(1).and_then(Value::as_str).map(Arc::from);
        let model = if model.is_null() { None } else { Some(name(&models, model)?) };
        let mut exchange = Exchange {
            model,
            session: name(&sessions, session)?,
            usage: (!usage.is_null()).then(|| Usage::from_json(usage)),
            print: rest.first().and_then(Value::as_u64),
            failure: (bits & FAILED != 0).then(String::new),
            is_unlisted: bits & UNLISTED != 0,
            ..Exchange::default()
        };
        if bits & COPIED != 0 {
            exchange.count_in(from);
        }
        Some(exchange)
    };
    value.get("rows")?.as_array()?.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn exchanges_come_back_and_damage_is_seen() {
        let usage = json::read(br#"{"input":1,"output":-2,"cacheWrite":5,"cost":0.25}"#).unwrap();
        let of = |session: &str| Exchange { session: session.into(), ..Default::default() };
        let mut copy = Exchange { usage: Usage::of(&usage), ..of("a") };
        copy.count_in(Some("c".into()));
        let exchanges = [
            Exchange { failure: Some(String::new()), ..of("a") },
            copy,
            Exchange {
                model: Some("m".into()),
                usage: Usage::of(&usage),
                is_unlisted: true,
                print: Some(7),
                ..of("b")
            },
        ];
        let json = Value::from(to_json(&exchanges));
        assert_eq!(from_json(&json).unwrap(), exchanges);
        assert_eq!(from_json(&to_json(&[]).into()).unwrap(), []);
        for damaged in [
            r#"{"sessions":[],"models":[]}"#,
            r#"{"sessions":[],"models":[],"rows":[[0,null,0,null]]}"#,
            r#"{"sessions":["a"],"models":[],"rows":[[0,0,0,null]]}"#,
            r#"{"sessions":["a"],"models":[],"rows":[[0,null,0]]}"#,
        ] {
            assert_eq!(from_json(&json::read(damaged.as_bytes()).unwrap()), None);
        }
    }
}
