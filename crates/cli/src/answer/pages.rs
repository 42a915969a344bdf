//! The tables of `docs/FORMAT.md` on what the program prints as JSON are made from the answers. Each
//! stands between marks that name its answer.
//!
//! ```text
//! <!-- members of requests::row::RequestRow -->
//! | member | type | meaning |
//! <!-- end of members -->
//! ```

use std::{collections::HashSet, fmt::Write, fs, path::Path};

use super::{Described, Member};

macro_rules! tables {
    ($($($name:ident)::+),* $(,)?) => {
        [$((stringify!($($name)::+).replace(' ', ""), table::<crate::$($name)::+>())),*]
    };
}

fn table<T: Described>() -> String {
    let mut members = Vec::new();
    T::members(&mut members);
    let mut table = "\n| member | type | meaning |\n|---|---|---|\n".to_owned();
    let mut names = HashSet::new();
    for Member { name, kind, meaning } in members {
        assert!(names.insert(name.clone()), "{name} is there twice");
        writeln!(table, "| `{name}` | {kind} | {meaning} |").unwrap();
    }
    table + "\n"
}

#[test]
fn the_tables_of_members_are_those_of_the_answers() {
    let tables = tables![
        archive::ArchiveAnswer,
        audit::AuditAnswer,
        checkpoint::json::CheckpointAnswer,
        checkpoint::json::DeltaAnswer,
        checkpoint::json::Due,
        checkpoint::json::HistoryAnswer,
        checkpoint::json::LenientAnswer,
        checkpoint::json::Linted,
        checkpoint::json::Pruned,
        checkpoint::json::ShrunkAnswer,
        checkpoint::json::Validated,
        compress::preview::PreviewAnswer,
        compress::report::CompressAnswer,
        compress::report::ContextWithBlocks,
        demo::DemoAnswer,
        diff::DiffAnswer,
        formats::FormatAnswer,
        guard::GuardRow,
        journal::AcceptedLoss,
        journal::JournaledSession,
        journal::LoadAnswer,
        journal::LoadedSession,
        journal::RemovedSession,
        journal::RepairedSession,
        journal::TakenSnapshot,
        sessions::page::SessionRow,
        sessions::totals::TotalRow,
        world::change::CreatedWorld,
        world::change::DurableTurn,
        world::change::ReversedTurn,
        world::keep::PrunedTurns,
        world::keep::WorldStats,
        world::keep::WrittenSnapshot,
        world::show::Blamed,
        observe::AsideAnswer,
        observe::ClearedAccount,
        observe::FoundObservation,
        observe::ReleasedAccount,
        observe::replay::ReplayedSession,
        observe::tables::AccountAnswer,
        observe::tables::ObservedFigures,
        record::list::ClientAnswer,
        render::ResponseAnswer,
        render::SnapshotLine,
        hit::HitAnswer,
        replay::session_budget::BudgetAnswer,
        requests::broken::BrokenRow,
        requests::broken::OtherBroken,
        requests::row::Difference,
        requests::row::RequestRow,
        requests::row::RequestTotals,
        stats::residency::row::ResidencyRow,
        stats::residency::row::RestAnswer,
        stats::residency::row::ShareAnswer,
        stats::row::FileRow,
        stats::row::RequestRow,
        trace::request::RequestHitAnswer,
    ];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/FORMAT.md");
    let page = fs::read_to_string(&path).unwrap();
    let mut made = page.clone();
    for (name, table) in tables {
        let begin = format!("<!-- members of {name} -->\n");
        let (before, after) =
            made.split_once(&begin).unwrap_or_else(|| panic!("docs/FORMAT.md lacks {begin}"));
        let (_, after) = after.split_once("<!-- end of members -->").unwrap();
        made = format!("{before}{begin}{table}<!-- end of members -->{after}");
    }
    if std::env::var_os("AFTERIMAGE_BLESS").is_some() {
        fs::write(&path, &made).unwrap();
        return;
    }
    for (line, (is, to_be)) in page.lines().zip(made.lines()).enumerate() {
        assert_eq!(is, to_be, "docs/FORMAT.md:{}: renew it with AFTERIMAGE_BLESS=1", line + 1);
    }
    assert_eq!(page.len(), made.len(), "docs/FORMAT.md: renew it with AFTERIMAGE_BLESS=1");
}
