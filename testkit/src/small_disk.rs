//! Tests that run once more on a small file system of their own, where one may be mounted.

use std::{
    env,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

const MOUNTED: &str = "AFTERIMAGE_TEST_SMALL_DISK";
/// What the shell answers where nothing may be mounted.
const NOT_PERMITTED: i32 = 77;

/// Runs another test of this program on a new file system of so many kilobytes, and asserts that it
/// says this.
pub fn on_a_small_disk(kilobytes: u32, test: &str, says: &str) {
    let scratch = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size={kilobytes}k tmpfs \"$1\" || exit {NOT_PERMITTED}
        exec \"$0\" --exact {test} --nocapture"
    );
    let run = Command::new("unshare")
        .args(["-rm", "sh", "-c", &script])
        .arg(env::current_exe().unwrap())
        .arg(scratch.path())
        .env(MOUNTED, scratch.path())
        .output();
    match run {
        Ok(output) if output.status.success() => {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.contains(says), "{said}");
        }
        Ok(output) if output.status.code() == Some(101) => {
            panic!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(matches!(output.status.code(), Some(1 | NOT_PERMITTED)), "{error}");
            eprintln!("skipped: no file system of one's own is permitted: {error}");
        }
        Err(error) => eprintln!("skipped: no `unshare`: {error}"),
    }
}

/// The small disk, in a test that runs on it.
pub fn small_disk() -> Option<PathBuf> {
    env::var_os(MOUNTED).map(PathBuf::from)
}

/// Takes what room there is, to the last byte.
pub fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    for size in [4096, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}
