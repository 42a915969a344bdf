use std::{io, path::Path};

/// A file system that is synced as a whole: for many small files, each of which would wait for the
/// disk by itself.
///
/// It is there where the system promises as much as by syncing each file: Linux from 5.8 on, which
/// says when something could not be written, on ext4, XFS, Btrfs, F2FS and in memory. What other
/// programs wrote to the file system is waited for too.
#[derive(Debug)]
pub struct WholeSync {
    #[cfg(target_os = "linux")]
    directory: std::fs::File,
}

impl WholeSync {
    /// The file system of a directory; `None` where it cannot be synced as a whole. It is to be
    /// asked for before anything is written there: only what fails after that is told of.
    pub fn of(directory: impl AsRef<Path>) -> Option<Self> {
        of(directory.as_ref())
    }

    /// Makes all durable that was written to the file system so far: bytes, lengths and names.
    ///
    /// Cost: waits for all that is not on the disk yet, of other programs too.
    ///
    /// # Errors
    /// What the system refuses, or could not write since [`WholeSync::of`]: whose that was is not
    /// known.
    pub fn sync(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(&self.directory)?;
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn of(directory: &Path) -> Option<WholeSync> {
    /// ext4, XFS, Btrfs, F2FS, tmpfs.
    const KNOWN: [u64; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    if !tells_of_errors(&release) {
        return None;
    }
    let directory = std::fs::File::open(directory).ok()?;
    let kind = u64::try_from(rustix::fs::fstatfs(&directory).ok()?.f_type).ok()?;
    KNOWN.contains(&kind).then_some(WholeSync { directory })
}

/// Whether a kernel of this release tells who syncs a file system of what could not be written.
#[cfg(target_os = "linux")]
fn tells_of_errors(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse().ok());
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (5, 8)
}

#[cfg(not(target_os = "linux"))]
fn of(_directory: &Path) -> Option<WholeSync> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_are_silent_about_errors_are_not_asked() {
        for (release, tells) in [
            ("5.7.19-generic\n", false),
            ("5.8.0\n", true),
            ("5.10.0-28-amd64\n", true),
            ("4.19.0", false),
            ("6.1", true),
            ("", false),
        ] {
            assert_eq!(tells_of_errors(release), tells, "{release}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_has_no_file_system() {
        let scratch = tempfile::tempdir().unwrap();
        assert!(WholeSync::of(scratch.path().join("absent")).is_none());
        if let Some(whole) = WholeSync::of(scratch.path()) {
            std::fs::write(scratch.path().join("file"), b"bytes").unwrap();
            whole.sync().unwrap();
        }
    }
}
