//! Recorded runs: the same state and the same items as live ones.

use arpo::bus::{EventSink, Source, SourceItem};
use arpo::event::RunState;
use arpo::store::RunDir;

use crate::synthetic::run;

/// A run recorded through the sink, and its folder.
fn recorded() -> (tempfile::TempDir, RunDir) {
    let folder = tempfile::tempdir().unwrap();
    let run_dir = RunDir::create(&folder.path().join("r"), "").unwrap();
    let mut kinds = run(3).into_iter();
    let sink = EventSink::start(&run_dir, kinds.next().unwrap()).unwrap();
    kinds.for_each(|kind| sink.emit(kind));
    sink.close().unwrap();
    (folder, run_dir)
}

fn open(run_dir: &RunDir) -> RunDir {
    RunDir::open(run_dir.root()).unwrap()
}

#[test]
fn a_recorded_run_opens_at_its_end() {
    let (_folder, run_dir) = recorded();
    let mut source = Source::recorded(open(&run_dir)).unwrap();
    assert_eq!(source.run, "r");
    assert!(source.state.is_over());
    assert_eq!(source.state, run_dir.state().unwrap());
    assert!(source.commands.is_none());
    assert!(source.items.blocking_recv().is_none());
}

#[test]
fn playback_from_anywhere_ends_in_the_same_state() {
    let (_folder, run_dir) = recorded();
    let whole = run_dir.state().unwrap();
    for from_seq in (0..=whole.next_seq).step_by(9) {
        let Source {
            mut state,
            mut items,
            ..
        } = Source::playback(open(&run_dir), from_seq).unwrap();
        assert_eq!(state.next_seq, from_seq);
        while let Some(item) = items.blocking_recv() {
            match item {
                SourceItem::Event(event) => state.apply(&event),
                other => panic!("a recorded run sent {other:?}"),
            }
        }
        assert_eq!(state, whole, "from {from_seq}");
    }
    assert_ne!(whole, RunState::default());
}

#[test]
fn pictures_of_a_recorded_run_come_from_its_folder() {
    let (_folder, run_dir) = recorded();
    let png = b"\x89PNG\r\n\x1a\nrest";
    let hash = crate::synthetic::image(1);
    run_dir.put_png(&hash, png).unwrap();
    let source = Source::recorded(open(&run_dir)).unwrap();
    assert_eq!(source.pictures.png_blocking(&hash).unwrap(), png);
    let missing = crate::synthetic::image(2);
    let error = source
        .pictures
        .png_blocking(&missing)
        .unwrap_err()
        .to_string();
    assert!(error.contains("pruned"), "{error}");
}
