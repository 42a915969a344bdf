//! `afterimage diff`: where two contexts part, who wrote that, and what it costs.

pub(crate) mod args;
mod loaded;
mod page;
mod unit;

use std::io::Write;

use afterimage::{
    export::{Divergence, PrefixReport, PrefixRules, prefix_report},
    hud::Owner,
    json::{Object, ObjectExt, Path, PathElement, Value, to_value},
    request::{CacheBreak, ParameterChange, ReshapedContent, compare, reshaped},
    tokens::TokenCounter,
};

use self::{
    loaded::{LoadedContext, load_both},
    unit::{Change, changes},
};
use crate::{
    failure::{Failure, Outcome},
    json::{object, or_null},
    labels::SessionLabels,
    lens::{Counting, Lens},
    output::Output,
    recorded,
};

pub(crate) fn run(args: &args::Diff) -> Outcome {
    let lens = Lens::new(&args.rendering, Counting::Always)?;
    let (previous, next) = load_both(args)?;
    let (was, is) = (previous.exported.form(), next.exported.form());
    if was != is {
        let failure = Failure::new(format!(
            "two contexts of one form can be compared: the first is of the form {was}, the second {is}"
        ));
        return Err(failure.at("A", &previous.name).at("B", &next.name).into());
    }
    let comparison = Comparison::of(&previous, &next, &*lens.counter, args.cache.rules())?;
    let mut out = Output::new(args.coloring.color);
    if args.json {
        out.json(comparison.to_json())?;
    } else {
        page::print(&comparison, args.full, &mut out)?;
    }
    Ok(out.flush()?)
}

/// Two contexts, and what is between them.
struct Comparison<'c> {
    previous: &'c LoadedContext,
    next: &'c LoadedContext,
    report: PrefixReport,
    previous_tokens: u64,
    changes: Vec<Change>,
    /// The parameters that differ, where both are whole requests, but for the model, which stands
    /// among the changes.
    parameters: Vec<ParameterChange>,
    /// What takes the cache from text that is the same, where both are whole requests.
    breaks: Vec<CacheBreak>,
    /// What says the same in another form, before the first difference.
    forms: Vec<ReshapedContent>,
}

/// Where two contexts part.
struct Place<'d> {
    divergence: &'d Divergence,
    previous_owner: Option<&'d Owner>,
    owner: Option<&'d Owner>,
    /// The index of the message; `None` before the first message, or in a text that has none.
    message: Option<usize>,
    /// The tool whose definition differs.
    tool: Option<&'d str>,
}

impl<'c> Comparison<'c> {
    fn of(
        previous: &'c LoadedContext,
        next: &'c LoadedContext,
        counter: &dyn TokenCounter,
        rules: PrefixRules,
    ) -> Outcome<Self> {
        let (was, is) = (&previous.exported, &next.exported);
        let both = previous.request.as_ref().zip(next.request.as_ref());
        let compared = both.map(|(was, is)| compare(was, is, counter, rules)).transpose()?;
        let (report, mut parameters, breaks) = match compared {
            Some(diff) => (diff.prefix, diff.parameters, diff.breaks),
            None => (prefix_report(was, is, counter, rules), Vec::new(), Vec::new()),
        };
        parameters.retain(|change| change.name != "model");
        let value = |of: &LoadedContext| match &of.request {
            Some(request) => request.value().cloned(),
            None => Ok(of.exported.value()),
        };
        let forms = reshaped(&value(previous)?, &value(next)?);
        let mut comparison = Self {
            previous,
            next,
            report,
            previous_tokens: prefix_report(was, was, counter, rules).tokens,
            changes: changes(was, is),
            parameters,
            breaks,
            forms: Vec::new(),
        };
        let is_before = |content: &ReshapedContent| match comparison.place().map(|at| at.message) {
            None => true,
            Some(first) => content.message().zip(first).is_some_and(|(at, first)| at < first),
        };
        comparison.forms = forms.into_iter().filter(is_before).collect();
        Ok(comparison)
    }

    /// Whether both say the same, in whatever form.
    fn says_same(&self) -> bool {
        self.report.divergence.is_none() && self.changes.is_empty() && self.parameters.is_empty()
    }

    /// The tokens that were sent before and are billed as new ones: what stands after the first
    /// difference, and what of the same beginning the cache does not serve. What is only added at
    /// the end is billed for the first time.
    fn billed_again(&self) -> u64 {
        let PrefixReport { tokens, unchanged, cached, divergence } = &self.report;
        let sent = if divergence.is_some() { tokens } else { unchanged };
        sent.saturating_sub(*cached)
    }

    fn place(&self) -> Option<Place<'_>> {
        let divergence = self.report.divergence.as_ref()?;
        let message = divergence.path.elements().iter().find_map(|element| match element {
            PathElement::Index(index) => Some(*index),
            PathElement::Key(_) => None,
        });
        // The blocks of a system prompt are no messages, nor are tools.
        let is_apart = matches!(
            divergence.path.elements().first(),
            Some(PathElement::Key(key)) if !matches!(key.as_str(), "messages" | "input")
        );
        let owner = divergence.owner.as_ref().or(divergence.previous_owner.as_ref());
        let tool = owner.and_then(|owner| match owner {
            Owner::Recorded { facet, .. } => facet.as_str().strip_prefix("tool:"),
            _ => None,
        });
        Some(Place {
            divergence,
            previous_owner: speaker(self.previous, divergence, divergence.previous_owner.as_ref()),
            owner: speaker(self.next, divergence, divergence.owner.as_ref()),
            message: message.filter(|_| !is_apart),
            tool,
        })
    }

    /// A change, with the place in the source of the first frame of its message.
    fn change_json(&self, change: &Change) -> Object {
        let mut json = change.to_json();
        if let Some((first, last)) = change.shown().frames {
            json.put("frames", Value::from_iter([first.get(), last.get()]));
            self.labels_of(change).of(first, None).put_place(&mut json);
        }
        json
    }

    /// What is known of the frames of the message that a change shows.
    fn labels_of(&self, change: &Change) -> &SessionLabels {
        match change {
            Change::Removed(_) => &self.previous.labels,
            Change::Added(_) | Change::Replaced(..) => &self.next.labels,
        }
    }

    fn to_json(&self) -> Object {
        let owner = |owner: Option<&Owner>| or_null(owner.map(Owner::to_json));
        let divergence = self.place().map(|place| {
            let Place { divergence, message, previous_owner, owner: now, tool } = place;
            let label = |of: &LoadedContext, owner: Option<&Owner>| {
                let label = owner.and_then(|owner| of.labels.of_owner(owner));
                or_null(label.and_then(|label| to_value(&label.placed_call()).ok()))
            };
            object! {
                "path": divergence.path.to_string(),
                "message": or_null(message.map(|message| message as u64)),
                "tool": or_null(tool),
                "byte": or_null(divergence.offset.map(|offset| offset as u64)),
                "token": self.report.unchanged,
                "previousOwner": owner(previous_owner),
                "owner": owner(now),
                "previousSource": label(self.previous, previous_owner),
                "source": label(self.next, now),
            }
        });
        object! {
            "previous": self.previous.to_json(),
            "next": self.next.to_json(),
            "form": self.next.exported.form().as_str(),
            "same": self.says_same() && self.forms.is_empty(),
            "divergence": or_null(divergence),
            "tokens": object! {
                "previous": self.previous_tokens,
                "next": self.report.tokens,
                "unchanged": self.report.unchanged,
                "cached": self.report.cached,
                "billedAgain": self.billed_again(),
            },
            "changes": self.changes.iter().map(|change| self.change_json(change)).collect::<Value>(),
            "parameters": self.parameters.iter().map(|change| {
                Value::from(object! {
                    "name": change.name.as_str(),
                    "previous": or_null(change.previous.clone()),
                    "next": or_null(change.next.clone()),
                })
            }).collect::<Value>(),
            "breaks": to_value(&recorded::breaks(&self.breaks)).unwrap_or_default(),
            "forms": self.forms.iter().map(|content| {
                Value::from(object! {
                    "owner": content.owner.as_str(),
                    "role": or_null(content.role.as_deref()),
                    "change": content.change.as_str(),
                })
            }).collect::<Value>(),
        }
    }
}

/// Who wrote the byte: where it is a word of the form, as a role, whoever speaks the message.
fn speaker<'d>(
    of: &'d LoadedContext,
    divergence: &'d Divergence,
    owner: Option<&'d Owner>,
) -> Option<&'d Owner> {
    let owner = owner?;
    if *owner != Owner::Framing("form") {
        return Some(owner);
    }
    let is_index = |element: &PathElement| matches!(element, PathElement::Index(_));
    let elements = divergence.path.elements();
    let end = elements.iter().position(is_index).map_or(0, |at| at + 1);
    let message: Path = elements.iter().take(end).cloned().collect();
    let texts = of.exported.root().pointer(&message.to_string())?.texts();
    let spans = texts.into_iter().flat_map(|(_, text)| text.spans());
    let said = spans.map(|span| &span.owner).find(|owner| **owner != Owner::Framing("form"));
    Some(said.unwrap_or(owner))
}
