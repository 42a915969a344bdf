//! The order of a history, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{History, Problem, ProblemKind, ends, not_read, reached};
use crate::{
    algebra::{leads_back, validate},
    full_state::Checkpoint,
    timestamp::{Time, time},
};

impl History {
    /// Finds the order and what is wrong.
    pub(super) fn check(&mut self) {
        let ids = self.checkpoints.iter().enumerate().rev();
        let ids = ids.filter_map(|(at, (_, checkpoint))| Some((checkpoint.id()?.to_owned(), at)));
        self.by_id = ids.collect();
        self.is_exact = self.deltas.iter().map(|(_, delta)| leads_back(delta)).collect();
        self.reachable = self.reachable().into_iter().map(str::to_owned).collect();
        let mut problems = Vec::new();
        for (name, message) in &self.unknown {
            problems.push(problem(ProblemKind::Unknown, Some(name), message));
        }
        self.duplicates(&mut problems);
        self.order = self.in_order(&mut problems);
        self.gaps(&mut problems);
        self.mismatches(&mut problems);
        self.problems = problems;
    }

    fn duplicates(&self, problems: &mut Vec<Problem>) {
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, checkpoint) in &self.checkpoints {
            let Some(id) = checkpoint.id() else { continue };
            if let Some(first) = seen.insert(id, name) {
                let message = format!("{first} and {name} both hold the checkpoint {id:?}");
                problems.push(problem(ProblemKind::Duplicate, Some(name), message));
            }
        }
        for (name, delta) in &self.deltas {
            if ends(delta).is_none() {
                let otherwise = "the front matter does not say what the delta is from and to";
                let message = not_read(delta.document(), otherwise);
                problems.push(problem(ProblemKind::Unnamed, Some(name), message));
            }
        }
    }

    /// The ids, each before what follows it, and otherwise by time and name.
    fn in_order(&self, problems: &mut Vec<Problem>) -> Vec<String> {
        let links = self.links();
        let mut before: BTreeMap<&str, usize> = links.keys().map(|id| (*id, 0)).collect();
        for (from, after) in &links {
            if after.len() > 1 {
                let after: Vec<&str> = after.iter().copied().collect();
                let message = format!("{from:?} is followed by {}", after.join(" and by "));
                problems.push(problem(ProblemKind::Fork, None, message));
            }
            for to in after.iter().filter(|to| *to != from) {
                *before.entry(to).or_default() += 1;
            }
        }
        let mut made = HashMap::new();
        for (_, delta) in &self.deltas {
            if let (Some(to), Some(created)) = (delta.to(), delta.created()) {
                made.entry(to).or_insert(created);
            }
        }
        let key = |id: &str| (self.moment(id, &made), id.to_owned());
        let free = before.iter().filter(|(_, count)| **count == 0);
        let mut open: BTreeSet<_> = free.map(|(id, _)| key(id)).collect();
        let mut order = Vec::new();
        while let Some((_, id)) = open.pop_first() {
            for to in links.get(id.as_str()).into_iter().flatten().filter(|to| **to != id) {
                if let Some(count) = before.get_mut(to) {
                    *count -= 1;
                    if *count == 0 {
                        open.insert(key(to));
                    }
                }
            }
            before.remove(id.as_str());
            order.push(id);
        }
        let itself = links.iter().filter(|(id, after)| after.contains(*id)).map(|(id, _)| *id);
        let circle: BTreeSet<&str> = before.keys().copied().chain(itself).collect();
        if !circle.is_empty() {
            let ids: Vec<&str> = circle.iter().copied().collect();
            let message = format!("no order has {} each before what follows it", ids.join(", "));
            problems.push(problem(ProblemKind::Loop, None, message));
        }
        order.extend(before.keys().map(|id| (*id).to_owned()));
        order
    }

    /// When a checkpoint was made, or a delta to it.
    fn moment(&self, id: &str, made: &HashMap<&str, &str>) -> Option<jiff::Timestamp> {
        let created = self.stored(id).and_then(Checkpoint::created);
        let created = created.or_else(|| made.get(id).copied())?;
        time(created).map(Time::approximate)
    }

    fn gaps(&self, problems: &mut Vec<Problem>) {
        let missing = self.order.iter().map(String::as_str).filter(|id| !self.leads_to(id));
        let missing: BTreeSet<&str> = missing.collect();
        if !missing.is_empty() {
            let files = self.files_that_name();
            problems.extend(missing.into_iter().map(|id| {
                let message =
                    format!("the checkpoint {id:?} is not there, and nothing leads to it");
                problem(ProblemKind::Gap, files.get(id).copied(), message)
            }));
        }
        for pair in self.chains().windows(2) {
            let [(_, last), (next, _)] = pair else { continue };
            let message = format!("nothing links {last:?} and {next:?}");
            problems.push(problem(ProblemKind::Gap, None, message));
        }
    }

    /// The ids of the checkpoints that are there and of those that deltas make of them.
    fn reachable(&self) -> HashSet<&str> {
        let mut after: HashMap<&str, Vec<&str>> = HashMap::new();
        for step in self.steps().into_values().flatten() {
            after.entry(step.from).or_default().push(step.to);
        }
        let after = |at| after.get(at).cloned().unwrap_or_default();
        reached(self.by_id.keys().map(String::as_str), after)
    }

    /// The first file that names each id as what comes before or after it.
    fn files_that_name(&self) -> HashMap<&str, &str> {
        let mut files = HashMap::new();
        let deltas = self.deltas.iter().filter_map(|(name, delta)| Some((name, ends(delta)?)));
        let deltas = deltas.flat_map(|(name, (from, to))| [(from, name), (to, name)]);
        let checkpoints = self.checkpoints.iter();
        let parents = checkpoints.filter_map(|(name, child)| Some((child.parent()?, name)));
        for (id, name) in deltas.chain(parents) {
            files.entry(id).or_insert(name.as_str());
        }
        files
    }

    /// The first and the last id of each set of checkpoints that are linked with each other, in
    /// order.
    fn chains(&self) -> Vec<(&str, &str)> {
        let links = self.links();
        let mut beside: HashMap<&str, Vec<&str>> = HashMap::new();
        for (from, after) in &links {
            for to in after {
                beside.entry(from).or_default().push(to);
                beside.entry(to).or_default().push(from);
            }
        }
        let beside = |at| beside.get(at).cloned().unwrap_or_default();
        let mut chain_of: HashMap<&str, usize> = HashMap::new();
        let mut chains: Vec<(&str, &str)> = Vec::new();
        for id in self.order.iter().map(String::as_str) {
            if let Some(chain) = chain_of.get(id).and_then(|at| chains.get_mut(*at)) {
                chain.1 = id;
                continue;
            }
            let linked = reached(std::iter::once(id), beside);
            chain_of.extend(linked.into_iter().map(|id| (id, chains.len())));
            chains.push((id, id));
        }
        chains
    }

    fn mismatches(&self, problems: &mut Vec<Problem>) {
        for (name, delta) in &self.deltas {
            let Some((from, to)) = ends(delta) else { continue };
            let (Some(a), Some(b)) = (self.stored(from), self.stored(to)) else { continue };
            let message = match validate(a, delta, b) {
                Ok(differences) => match differences.first() {
                    None => continue,
                    Some(first) => format!(
                        "applied to {from:?} it does not give {to:?}: line {} is to be {:?}, not {:?}",
                        first.line,
                        first.expected.as_deref().unwrap_or_default(),
                        first.found.as_deref().unwrap_or_default()
                    ),
                },
                Err(error) => format!("it cannot be applied to {from:?}: {error}"),
            };
            problems.push(problem(ProblemKind::Mismatch, Some(name), message));
        }
    }
}

fn problem(kind: ProblemKind, file: Option<&str>, message: impl Into<String>) -> Problem {
    Problem { kind, file: file.map(str::to_owned), message: message.into() }
}
