//! Recorded runs: the same state and the same items as live ones.

use arpo::bus::{EventSink, PlayRequest, Source, SourceItem};
use arpo::event::{Event, RunState};
use arpo::store::{Line, Moment, RunDir, Timeline};

use crate::synthetic::{GROUPS, SAMPLES, iteration, run, run_started};

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

/// Episodes an iteration of the synthetic run.
const EPISODES_AN_ITERATION: u64 = (GROUPS * SAMPLES) as u64;

/// A log of this many episodes, written as the engine writes it.
fn long_log(episodes: u64) -> (tempfile::TempDir, RunDir, Vec<Event>) {
    let folder = tempfile::tempdir().unwrap();
    let run_dir = RunDir::create(&folder.path().join("long"), "").unwrap();
    let mut log = run_dir.create_log().unwrap();
    let iterations = (0..episodes.div_ceil(EPISODES_AN_ITERATION)).flat_map(|n| iteration(n, 0));
    let mut events = Vec::new();
    let mut lines = Vec::new();
    for (seq, kind) in std::iter::once(run_started()).chain(iterations).enumerate() {
        let event = Event {
            seq: seq as u64,
            at_ms: 40 * seq as u64,
            kind,
        };
        lines.push(Line::new(event.clone()));
        events.push(event);
    }
    for lines in lines.chunks(256) {
        log.append(lines).unwrap();
    }
    log.sync().unwrap();
    drop(log);
    (folder, run_dir, events)
}

#[test]
fn seeking_equals_folding_from_the_start() {
    let (_folder, run_dir, events) = long_log(20_000);
    let timeline = Timeline::read(open(&run_dir)).unwrap();
    assert_eq!(timeline.end_seq(), events.len() as u64);
    assert_eq!(timeline.end_ms(), events.last().unwrap().at_ms);
    assert_eq!(
        timeline.marks().len() as u64,
        20_000_u64.div_ceil(EPISODES_AN_ITERATION)
    );
    let end = timeline.end_seq();
    let mut targets: Vec<u64> = (0..=24).map(|part| end * part / 24).collect();
    targets.extend([1, 2_048, 2_049, end / 3 + 7]);
    targets.sort_unstable();
    let mut folded = RunState::default();
    let mut rest = events.iter();
    for target in targets {
        while folded.next_seq < target {
            folded.apply(rest.next().unwrap());
        }
        assert_eq!(
            timeline.state_at(Moment::Seq(target)).unwrap(),
            folded,
            "before {target}"
        );
        // Times stand for the events up to them.
        let by_time = timeline.state_at(Moment::Time(folded.at_ms)).unwrap();
        assert_eq!(
            by_time,
            if target == 0 {
                RunState::from_events(&events[..1])
            } else {
                folded.clone()
            }
        );
    }
}

#[test]
fn a_replayable_run_tells_its_time_line_seeks_and_plays() {
    let (_folder, run_dir, events) = long_log(60);
    let mut source = Source::replayable(open(&run_dir)).unwrap();
    assert_eq!(source.state, RunState::from_events(&events));
    let Some(SourceItem::Timeline(info)) = source.items.blocking_recv() else {
        panic!("no time line")
    };
    assert_eq!(info.end_seq, events.len() as u64);
    let player = source.player.clone().unwrap();
    let mark = info.marks[3];
    player.send(PlayRequest::Seek(Moment::Seq(mark.seq + 1)));
    let Some(SourceItem::Resync {
        mut state,
        missed: 0,
    }) = source.items.blocking_recv()
    else {
        panic!("no state")
    };
    assert_eq!(*state, RunState::from_events(&events[..=mark.seq as usize]));
    assert_eq!(state.iteration.unwrap().0, mark.iteration);
    // Played to its end it is what it was.
    player.send(PlayRequest::Play(1e9));
    while state.next_seq < info.end_seq {
        match source.items.blocking_recv().unwrap() {
            SourceItem::Event(event) => state.apply(&event),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(*state, source.state);
}
