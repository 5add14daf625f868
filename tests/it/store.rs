//! The event log on disk: what is read is what was written, whatever happened in between.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use arpo::event::{Event, EventKind, RunState};
use arpo::store::{Line, LogWriter, Manifest, RunDir};
use arpo::types::Iteration;

use crate::synthetic::{finished, iteration, numbered, run, run_started};

fn new_run() -> (tempfile::TempDir, RunDir) {
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::create(&folder.path().join("r"), "").unwrap();
    (folder, run)
}

fn append(log: &mut LogWriter, events: &[Event]) {
    let lines: Vec<Line> = events.iter().cloned().map(Line::new).collect();
    log.append(&lines).unwrap();
}

fn read(run: &RunDir, from_seq: u64) -> Vec<Event> {
    let events = run.read_events(from_seq).unwrap();
    events.map(Result::unwrap).collect()
}

fn segments(run: &RunDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(run.root().join("events")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_stem().unwrap() != "index");
    paths.retain(|path| path.extension().unwrap() == "ndjson");
    paths.sort();
    paths
}

#[test]
fn the_log_folds_like_the_live_run_at_every_cut() {
    let (_folder, run_dir) = new_run();
    let events = numbered(0, run(3));
    let mut log = run_dir.create_log().unwrap();
    // In batches of different sizes, as the writer's queue makes them.
    let mut rest = &events[..];
    for size in [1, 2, 3, 7, 20].into_iter().cycle() {
        let (batch, after) = rest.split_at(size.min(rest.len()));
        append(&mut log, batch);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    assert_eq!(read(&run_dir, 0), events);
    // One segment before the first iteration, one for each.
    assert_eq!(segments(&run_dir).len(), 4);
    let mut live = RunState::default();
    for (cut, event) in events.iter().enumerate() {
        assert_eq!(
            run_dir.state_before(cut as u64).unwrap(),
            live,
            "cut at {cut}"
        );
        assert_eq!(read(&run_dir, cut as u64), events[cut..]);
        live.apply(event);
    }
    assert_eq!(run_dir.state().unwrap(), live);
    assert_eq!(live.missed + live.superseded, 0);
    assert_eq!(live.history.len(), 3);
}

#[test]
fn a_line_torn_at_any_byte_is_cut_off_and_the_run_goes_on() {
    let events = numbered(0, run(1));
    let (last, before) = events.split_last().unwrap();
    let line = serde_json::to_string(last).unwrap();
    for torn in 0..=line.len() {
        let (_folder, run_dir) = new_run();
        let mut log = run_dir.create_log().unwrap();
        append(&mut log, before);
        drop(log);
        let path = segments(&run_dir).pop().unwrap();
        let mut text = fs::read(&path).unwrap();
        text.extend_from_slice(&line.as_bytes()[..torn]);
        fs::write(&path, text).unwrap();

        // A reader stops before it, a writer cuts it off and writes the same number again.
        assert_eq!(read(&run_dir, 0), before);
        let mut log = run_dir.open_log().unwrap();
        assert_eq!(log.next_seq(), last.seq);
        append(&mut log, std::slice::from_ref(last));
        assert_eq!(read(&run_dir, 0), events);
    }
}

#[test]
fn a_segment_torn_in_its_first_line_is_removed() {
    let (_folder, run_dir) = new_run();
    let events = numbered(0, run(2));
    let first_of_second = events
        .iter()
        .rposition(|event| matches!(event.kind, EventKind::IterationStarted { .. }))
        .unwrap();
    let mut log = run_dir.create_log().unwrap();
    append(&mut log, &events[..first_of_second]);
    drop(log);
    let torn = format!("events/{first_of_second:012}.ndjson");
    fs::write(run_dir.root().join(torn), "{\"seq\":").unwrap();
    assert_eq!(read(&run_dir, 0).len(), first_of_second);
    let log = run_dir.open_log().unwrap();
    assert_eq!(log.next_seq(), first_of_second as u64);
    assert_eq!(segments(&run_dir).len(), 2);
}

#[test]
fn damage_in_the_middle_is_counted_and_passed_over() {
    let (_folder, run_dir) = new_run();
    let events = numbered(0, run(1));
    append(&mut run_dir.create_log().unwrap(), &events);
    let path = segments(&run_dir).pop().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[3] = "\0\0\0\0".to_owned();
    // A kind that is known, but of another shape; and one that is not.
    lines[4] =
        "{\"seq\":6,\"at_ms\":6,\"type\":\"phase_started\",\"phase\":\"dreaming\"}".to_owned();
    lines[5] = "{\"seq\":7,\"at_ms\":7,\"type\":\"desktop_hibernated\"}".to_owned();
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let state = run_dir.state().unwrap();
    assert_eq!(state.missed, 1);
    assert_eq!(state.counters.unknown_events, 2);
    assert_eq!(state.history.len(), 1);
}

#[test]
fn a_snapshot_and_the_tail_make_the_whole() {
    let events = numbered(0, run(3));
    let whole = RunState::from_events(&events);
    for cut in (1..events.len()).step_by(5) {
        let (_folder, run_dir) = new_run();
        let mut log = run_dir.create_log().unwrap();
        append(&mut log, &events[..cut]);
        log.keep_snapshot(&RunState::from_events(&events[..cut]))
            .unwrap();
        append(&mut log, &events[cut..]);
        assert_eq!(run_dir.state().unwrap(), whole, "cut at {cut}");
        let before = run_dir.state_before(cut as u64 - 1).unwrap();
        assert_eq!(before, RunState::from_events(&events[..cut - 1]));

        // Caches: without them, or with broken ones, nothing changes.
        let folder = run_dir.root().join("events");
        fs::write(
            folder.join("state.json"),
            "{\"build\":\"0.0.0\",\"state\":{}}",
        )
        .unwrap();
        assert_eq!(run_dir.state().unwrap(), whole);
        fs::write(folder.join("index.ndjson"), "{\"first_seq\":2,\"at").unwrap();
        assert_eq!(run_dir.state().unwrap(), whole);
        fs::remove_file(folder.join("index.ndjson")).unwrap();
        assert_eq!(read(&run_dir, 0), events);
    }
}

/// Appends kinds to the log as the next events.
fn append_kinds(log: &mut LogWriter, kinds: Vec<EventKind>) -> u64 {
    let events = numbered(log.next_seq(), kinds);
    append(log, &events);
    log.next_seq()
}

fn resumed(from_iteration: u64, discard_from_seq: u64, incarnation: u32) -> EventKind {
    EventKind::RunResumed {
        from_iteration: Iteration(from_iteration),
        discard_from_seq,
        incarnation,
    }
}

#[test]
fn a_resumed_run_counts_nothing_twice() {
    let (_folder, run_dir) = new_run();
    let mut log = run_dir.create_log().unwrap();
    append_kinds(&mut log, vec![run_started()]);
    let checkpoint_seq = append_kinds(&mut log, iteration(0, 0));
    // The second iteration nearly ends, then the engine dies; a snapshot saw it.
    let mut lost = iteration(1, 0);
    lost.pop();
    let died_seq = append_kinds(&mut log, lost);
    let seen = run_dir.state().unwrap();
    assert_eq!(seen.counters.episodes, 8);
    log.keep_snapshot(&seen).unwrap();
    drop(log);

    let first_start = read(&run_dir, 0);
    assert_eq!(run_dir.next_incarnation().unwrap(), 1);
    let mut log = run_dir.open_log().unwrap();
    assert_eq!(log.next_seq(), died_seq);
    append_kinds(&mut log, vec![resumed(1, checkpoint_seq, 1)]);
    // It dies again at once, and is resumed from the same checkpoint.
    append_kinds(&mut log, iteration(1, 1)[..10].to_vec());
    drop(log);
    assert_eq!(run_dir.next_incarnation().unwrap(), 2);
    let mut log = run_dir.open_log().unwrap();
    append_kinds(&mut log, vec![resumed(1, checkpoint_seq, 2)]);
    append_kinds(&mut log, iteration(1, 2));
    let second_checkpoint_seq = log.next_seq();
    append_kinds(&mut log, iteration(2, 2)[..10].to_vec());
    // The third time from the second checkpoint.
    append_kinds(&mut log, vec![resumed(2, second_checkpoint_seq, 3)]);
    append_kinds(&mut log, iteration(2, 3));
    append_kinds(&mut log, finished());

    let state = run_dir.state().unwrap();
    let uninterrupted = RunState::from_events(&numbered(0, run(3)));
    assert_eq!(state.counters, uninterrupted.counters);
    assert_eq!(state.history, uninterrupted.history);
    assert_eq!(state.evaluations, uninterrupted.evaluations);
    assert_eq!(state.summary, uninterrupted.summary);
    assert_eq!(state.episodes.len(), uninterrupted.episodes.len());
    assert_eq!((state.missed, state.superseded), (0, 0));
    assert_eq!(state.incarnation, 3);
    let counts: Vec<u32> = state
        .notices
        .iter()
        .map(|notice| notice.count as u32)
        .collect();
    let expected: Vec<u32> = uninterrupted
        .notices
        .iter()
        .map(|n| n.count as u32)
        .collect();
    assert_eq!(counts, expected);

    // What counted before the first checkpoint is read as it was written.
    let kept = &first_start[..checkpoint_seq as usize];
    assert_eq!(read(&run_dir, 0)[..kept.len()], *kept);
    // A state kept after the resumes holds.
    log.keep_snapshot(&state).unwrap();
    assert_eq!(run_dir.state().unwrap(), state);
}

#[test]
fn a_resume_begins_after_the_checkpoints_own_event() {
    let (_folder, run_dir) = new_run();
    let mut log = run_dir.create_log().unwrap();
    append_kinds(&mut log, vec![run_started()]);
    let mut kinds = iteration(0, 0);
    let saved = kinds.pop().unwrap();
    assert!(matches!(saved, EventKind::CheckpointSaved { .. }));
    let next_seq = append_kinds(&mut log, kinds);
    let draft = run_dir.begin_checkpoint(1, 0).unwrap();
    let manifest = Manifest {
        iterations_done: 1,
        next_seq,
        ..Manifest::default()
    };
    let checkpoint = draft.publish(manifest).unwrap();
    // Killed before the event was written.
    assert_eq!(run_dir.resume_seq(&checkpoint).unwrap(), next_seq);
    append_kinds(&mut log, vec![saved]);
    assert_eq!(run_dir.resume_seq(&checkpoint).unwrap(), next_seq + 1);
    append_kinds(&mut log, iteration(1, 0));
    assert_eq!(run_dir.resume_seq(&checkpoint).unwrap(), next_seq + 1);
}

#[test]
fn an_iteration_long_gone_from_the_state_is_still_in_the_log() {
    let (_folder, run_dir) = new_run();
    let events = numbered(0, run(8));
    append(&mut run_dir.create_log().unwrap(), &events);
    let state = run_dir.state().unwrap();
    assert_eq!(state.groups_of(Iteration(1)).count(), 0);
    let old = run_dir.iteration_state(Iteration(1)).unwrap().unwrap();
    assert_eq!(old.groups_of(Iteration(1)).count(), 2);
    assert_eq!(old.episodes.len(), 6);
    assert_eq!(old.history.len(), 1);
    assert_eq!(old.header, state.header);
    assert_eq!(old.missed, 0);
    assert_eq!(run_dir.iteration_state(Iteration(8)).unwrap(), None);
}

#[test]
fn a_full_disk_loses_no_event() {
    let (_folder, run_dir) = new_run();
    let mut log = run_dir.create_log().unwrap();
    // What is written to /dev/full fails as on a full disk.
    let path = run_dir.root().join("events/000000000000.ndjson");
    symlink("/dev/full", &path).unwrap();
    let events = numbered(0, iteration(0, 0));
    let lines: Vec<Line> = events.iter().cloned().map(Line::new).collect();
    let error = log.append(&lines).unwrap_err();
    assert!(error.is_disk_full(), "{error}");
    assert_eq!(log.next_seq(), 0);
    fs::remove_file(&path).unwrap();
    log.append(&lines).unwrap();
    assert_eq!(read(&run_dir, 0), events);
}

#[test]
fn a_log_of_a_newer_vocabulary_is_refused_by_name() {
    let (_folder, run_dir) = new_run();
    append(&mut run_dir.create_log().unwrap(), &numbered(0, run(1)));
    let path = &segments(&run_dir)[0];
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, text.replace("\"schema\":1", "\"schema\":99")).unwrap();
    let error = run_dir.state().unwrap_err().to_string();
    assert!(error.contains("99"), "{error}");
}

#[test]
fn a_long_iteration_is_split_into_segments() {
    let (_folder, run_dir) = new_run();
    let mut log = run_dir.create_log().unwrap();
    let text = "x".repeat(4 << 20);
    let notices = (0..12).map(|_| EventKind::Notice {
        level: arpo::event::NoticeLevel::Info,
        text: text.clone(),
    });
    let events = numbered(0, notices);
    append(&mut log, &events);
    assert!(segments(&run_dir).len() > 1);
    assert_eq!(read(&run_dir, 0), events);
    assert_eq!(read(&run_dir, 11), events[11..]);
    let bytes = segments(&run_dir)
        .into_iter()
        .map(|path| File::open(path).unwrap().metadata());
    assert!(
        bytes
            .map(Result::unwrap)
            .all(|metadata| metadata.len() < 24 << 20)
    );
}
