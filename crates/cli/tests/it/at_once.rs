//! `stats` of several files, which are read at once, says what it says of each alone.

use std::fs;

use afterimage_testkit::data;

use crate::support::run;

/// Larger recordings say no more of this, and take long without optimisation.
const SMALL: u64 = 300_000;

#[test]
fn stats_of_several_files_are_those_of_each_in_their_order() {
    let Some(folder) = data::recordings("") else { return };
    let is_small = |path: &std::path::PathBuf| fs::metadata(path).is_ok_and(|of| of.len() < SMALL);
    let files = data::files_under(&folder).into_iter().filter(is_small);
    let files: Vec<String> = files.map(|path| path.display().to_string()).step_by(4).collect();
    assert!(files.len() > 10, "{}", files.len());
    let all: Vec<&str> =
        ["stats", "--json"].into_iter().chain(files.iter().map(|file| &**file)).collect();
    let together = run(&all);
    let (mut out, mut failures, mut notes) = (String::new(), 0, 0);
    for file in &files {
        let alone = run(&["stats", "--json", file]);
        out += &alone.out;
        failures += alone.err.matches("error: ").count();
        notes += alone.err.matches("note: ").count();
    }
    assert_eq!(together.out, out);
    assert_eq!(together.err.matches("error: ").count(), failures, "{}", together.err);
    assert_eq!(together.err.matches("note: ").count(), notes, "{}", together.err);
    assert_eq!(together.code == Some(0), failures == 0, "{}", together.err);
    // The order of what is said is that of the files too, whichever is read first.
    for _ in 0..3 {
        let again = run(&all);
        assert_eq!((&again.out, &again.err), (&together.out, &together.err));
    }
}
