//! A recording that ends anywhere, and a recorder that is killed at any moment.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    thread,
};

use afterimage_record::{
    Exchange, FILE_NAME, Limits, Outcome, Recorder, Recording, RecordingWriter,
};

use crate::support::{Kills, bodies, check, start, write};

const FOLDER: &str = "AFTERIMAGE_TEST_RECORDING";

#[test]
fn wherever_the_file_ends_what_ended_before_is_whole_and_the_rest_is_cut() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let file = folder.join(FILE_NAME);
    let (mut writer, _) = RecordingWriter::open_private(&folder).unwrap();
    let mut ends = Vec::new();
    for number in 0..5 {
        write(&mut writer, number).unwrap();
        ends.push(fs::metadata(&file).unwrap().len());
    }
    drop(writer);
    let bytes = fs::read(&file).unwrap();
    for length in 32..=bytes.len() {
        fs::write(&file, &bytes[..length]).unwrap();
        let recording = Recording::open(&folder).unwrap().unwrap();
        let expected: Vec<u64> =
            (0..5).filter(|number| ends[*number as usize] <= length as u64).collect();
        assert_eq!(check(&recording), expected, "{length} bytes");
    }
}

#[test]
fn whichever_byte_is_damaged_no_exchange_is_given_as_another() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let file = folder.join(FILE_NAME);
    let (mut writer, _) = RecordingWriter::open_private(&folder).unwrap();
    for number in 0..4 {
        write(&mut writer, number).unwrap();
    }
    drop(writer);
    let bytes = fs::read(&file).unwrap();
    for at in (32..bytes.len()).step_by(3) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x20;
        fs::write(&file, &bytes).unwrap();
        let recording = Recording::open(&folder).unwrap().unwrap();
        // Bodies of later requests may refer to the damaged one.
        assert!(check(&recording).len() < 4, "byte {at}");
    }
}

#[test]
fn a_recording_that_is_written_can_be_read_and_a_later_run_appends() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let (mut writer, _) = RecordingWriter::open_private(&folder).unwrap();
    write(&mut writer, 0).unwrap();
    let id = writer.start(&start(1)).unwrap();
    let recording = Recording::open(&folder).unwrap().unwrap();
    assert!(recording.is_live());
    assert_eq!(recording.exchanges()[1].outcome(), Outcome::Running);
    assert_eq!(check(&recording), [0]);
    let second = RecordingWriter::open_private(&folder).unwrap_err();
    assert_eq!(second.kind(), afterimage_record::ErrorKind::Locked);
    drop((writer, id));

    let (mut writer, _) = RecordingWriter::open_private(&folder).unwrap();
    write(&mut writer, 2).unwrap();
    drop(writer);
    let recording = Recording::open(&folder).unwrap().unwrap();
    assert!(!recording.is_live());
    let outcomes: Vec<Outcome> = recording.exchanges().iter().map(Exchange::outcome).collect();
    let reason = "its end is not recorded: the recorder was stopped, or could not write".to_owned();
    assert_eq!(outcomes, [Outcome::Complete, Outcome::Cut { reason }, Outcome::Complete]);
    assert_eq!(check(&recording), [0, 2]);
}

#[test]
fn a_folder_with_other_files_is_refused_and_one_without_a_recording_is_none() {
    let scratch = tempfile::tempdir().unwrap();
    assert!(Recording::open(scratch.path()).unwrap().is_none());
    fs::write(scratch.path().join("notes.txt"), "mine").unwrap();
    let error = RecordingWriter::open_private(scratch.path()).unwrap_err();
    assert_eq!(error.kind(), afterimage_record::ErrorKind::UnknownFormat);
    assert!(error.to_string().contains("notes.txt"), "{error}");
}

#[cfg(unix)]
#[test]
fn the_owner_alone_can_read_a_recording() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let (mut writer, _) = RecordingWriter::open_private(&folder).unwrap();
    write(&mut writer, 0).unwrap();
    drop(writer);
    // Somebody opens it to others, and a later run closes it again.
    for entry in fs::read_dir(&folder).unwrap() {
        fs::set_permissions(entry.unwrap().path(), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let (mut writer, _) = RecordingWriter::open_private(&folder).unwrap();
    write(&mut writer, 1).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

/// What the killed process does: records exchanges, four at once, and says which ended.
#[test]
fn child_records_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let open = move || Ok(RecordingWriter::open_private(&folder)?.0);
    let recorder = Recorder::start(Limits::default(), open, |said| panic!("{said}")).unwrap();
    let next = std::sync::atomic::AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 60;
                    let (body, answer) = bodies(number);
                    let (mut request, mut response) = recorder.exchange(start(number));
                    request.push(&body);
                    request.end();
                    response.head(200, Vec::new());
                    answer.chunks(300).for_each(|part| response.push(part));
                    let (done, wait) = std::sync::mpsc::channel();
                    response.end(None, move || done.send(()).unwrap());
                    wait.recv().unwrap();
                    // So that one line is one write.
                    std::io::stdout().write_all(format!("ended {number}\n").as_bytes()).unwrap();
                }
            });
        }
    });
}

#[test]
fn durable_a_recorder_killed_at_any_moment_keeps_every_exchange_that_ended() {
    let mut kills = Kills::new(20);
    let scratch = tempfile::tempdir().unwrap();
    let (mut ended, mut folder) = (0, scratch.path().to_owned());
    for kill in 0.. {
        let Some((wanted, after)) = kills.next(40) else { break };
        // A recording is killed a few times, and is read each time.
        if kill % 5 == 0 {
            (ended, folder) = (0, scratch.path().join(kill.to_string()));
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["crash::child_records_until_it_is_killed", "--exact", "--nocapture"])
            .env(FOLDER, &folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = 0;
        for line in lines {
            if line.unwrap().contains("ended ") {
                said += 1;
                if said == wanted {
                    thread::sleep(after);
                    child.kill().unwrap();
                }
            }
        }
        child.wait().unwrap();
        ended += said;
        let recording = Recording::open(&folder).unwrap().unwrap();
        assert!(recording.damage().is_empty());
        let whole = check(&recording).len() as u64;
        assert!(whole >= ended, "{ended} ended, {whole} are whole");
        // What ended and could not be said any more.
        ended = whole;
        for exchange in recording.exchanges() {
            assert_ne!(exchange.outcome(), Outcome::Running);
        }
    }
}
