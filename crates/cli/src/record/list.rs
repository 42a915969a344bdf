//! `afterimage record --list`: the clients that are known, and how each is led.

use std::io::Write;

use super::facts::Facts;
use crate::{answer::answer, args::Color, failure::Outcome, output::Output, style};

answer! {
    /// A client that `afterimage record` knows.
    pub(crate) struct ClientAnswer {
        /// the name of its command
        name: &'static str,
        /// whether its base URLs lead to the recorder by themselves
        led: bool,
        /// by what they do; null where they do not
        by: Option<&'static str>,
        /// what leads it where it is not led by itself; null where that is not known
        hint: Option<&'static str>,
    }
}

pub(super) fn run(is_json: bool) -> Outcome {
    let mut out = Output::new(Color::Auto);
    let (bold, dim) = (out.paint.style(style::HEADING), out.paint.style(style::DIM));
    let clients = &Facts::get()?.clients;
    let width = clients.iter().map(|client| client.name.len()).max().unwrap_or_default();
    for client in clients {
        let some = |text: &'static str| Some(text).filter(|text| !text.is_empty());
        let (name, by, hint) = (client.name.as_str(), some(&client.led), some(&client.hint));
        if is_json {
            out.answer(&ClientAnswer { name, led: by.is_some(), by, hint })?;
            continue;
        }
        let led = by.map_or("not led".to_owned(), |by| format!("led by {by}"));
        writeln!(out, "{bold}{name:<width$}{bold:#}  {led}")?;
        if let Some(hint) = hint {
            writeln!(out, "{:<width$}  {dim}{hint}{dim:#}", "")?;
        }
    }
    Ok(out.flush()?)
}
