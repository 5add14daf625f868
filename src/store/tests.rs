//! Files of a run: damage is found, replacement is whole, names cannot escape.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use crate::event::{LearnedTokens, ReplyId, ReplyTokens, SampleSignal, TokenSignals};
use crate::store::episodes::{decode_tokens, encode_tokens};
use crate::store::learned::{decode_learned, encode_learned};
use crate::store::*;
use crate::types::*;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

fn new_run() -> (tempfile::TempDir, RunDir) {
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::create(&folder.path().join("r"), "seed = 1\n").unwrap();
    (folder, run)
}

fn hash(digit: char) -> ImageHash {
    ImageHash(digit.to_string().repeat(32).into())
}

fn id(number: u64) -> EpisodeId {
    EpisodeId {
        incarnation: 0,
        number,
    }
}

fn tokens() -> TokenStream {
    let mut tokens = TokenStream::default();
    tokens.push_prompt(&[1, 2, 3]);
    tokens.push_sampled(&[4, u32::MAX], &[-0.5, f32::NEG_INFINITY]);
    tokens.push_prompt(&[5]);
    tokens.push_sampled(&[6], &[-1e-30]);
    tokens
}

fn episode(number: u64, picture: char) -> Episode {
    Episode {
        id: id(number),
        task: TaskId("h2o".to_owned()),
        group: None,
        sample: 3,
        seed: u64::MAX,
        steps: vec![Step {
            screenshot: hash(picture),
            reply_tokens: (3, 5),
            reply: "Action: wait()".to_owned(),
            thought: String::new(),
            actions: vec![Action::Wait],
            malformed: None,
            clamped: false,
            policy: PolicyVersion(2),
            timing: StepTiming::default(),
        }],
        final_screenshot: Some(hash('f')),
        tokens: tokens(),
        end: EpisodeEnd::StepLimit,
        state_score: 0.7,
        infeasible: false,
        reward: Reward {
            outcome: 0.7,
            format: 0.0,
        },
        human_touched: false,
        branched_from: None,
    }
}

#[test]
fn a_run_is_made_once_and_locked() {
    let (folder, run) = new_run();
    let root = folder.path().join("r");
    assert_eq!(run.name(), "r");
    assert_eq!(run.profile().unwrap(), "seed = 1\n");
    run.create_log().unwrap();
    let error = RunDir::create(&root, "").unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(RunDir::open(&root).unwrap().writer().is_some());
    drop(run);
    assert_eq!(lock_holder(&root), None);
    let error = RunDir::create(&root, "").unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    RunDir::open_to_write(&root).unwrap();
    let error = RunDir::open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::NotARun { .. }), "{error}");
}

#[test]
fn the_lock_of_a_dead_process_is_stale() {
    let (folder, run) = new_run();
    run.create_log().unwrap();
    drop(run);
    let root = folder.path().join("r");
    let me = LockHolder::this_process();
    let parent = rustix::process::getppid().unwrap();
    let others = [
        // The number is in use, but by a process that started at another time.
        LockHolder {
            started_ticks: me.started_ticks + 1,
            ..me.clone()
        },
        LockHolder {
            boot: "another boot".to_owned(),
            ..me.clone()
        },
        LockHolder {
            pid: parent.as_raw_pid() as u32,
            started_ticks: 1,
            ..me.clone()
        },
    ];
    for dead in others {
        fs::write(root.join("LOCK"), serde_json::to_string(&dead).unwrap()).unwrap();
        assert_eq!(lock_holder(&root), None, "{dead:?}");
        drop(RunDir::open_to_write(&root).unwrap());
    }
    // One on another machine may live, whatever the processes here.
    let elsewhere = LockHolder {
        host: "elsewhere".to_owned(),
        ..me
    };
    fs::write(
        root.join("LOCK"),
        serde_json::to_string(&elsewhere).unwrap(),
    )
    .unwrap();
    let error = RunDir::open_to_write(&root).unwrap_err().to_string();
    assert!(error.contains("elsewhere"), "{error}");
    // Half-written content is nobody's.
    fs::write(root.join("LOCK"), "{\"pid\":1").unwrap();
    RunDir::open_to_write(&root).unwrap();
}

#[test]
fn run_names_carry_the_date() {
    let check = |unix_ms: u64, date: &str| {
        let name = run_name("arpo lora/x", unix_ms);
        let expected = format!("{date}-arpo-lora-x-");
        assert!(name.starts_with(&expected), "{name}");
        assert_eq!(name.len(), expected.len() + 4);
    };
    // date -u -d @SECONDS +%F
    check(0, "1970-01-01");
    check(951_782_400_000, "2000-02-29");
    check(1_709_164_800_000, "2024-02-29");
    check(1_764_460_799_999, "2025-11-29");
    check(4_107_542_400_000, "2100-03-01");
}

#[test]
fn episodes_come_back_as_they_went() {
    let (_folder, run) = new_run();
    let episode = episode(12_345, 'a');
    run.put_episode(&episode).unwrap();
    assert_eq!(run.episode(id(12_345)).unwrap(), episode);
    let without = run.episode_without_tokens(id(12_345)).unwrap();
    assert_eq!(without.steps, episode.steps);
    assert!(without.tokens.is_empty());
    let json = run.root().join("episodes/0012/0-012345.json");
    let text = fs::read_to_string(json).unwrap();
    assert!(text.contains("\"outcome\": 0.7"), "{text}");
    let error = run.episode(id(1)).unwrap_err();
    assert!(matches!(error, StoreError::NoEpisode { .. }), "{error}");

    let failed = FailedEpisode {
        id: id(7),
        task: TaskId("h2o".to_owned()),
        group: None,
        sample: 0,
        class: ErrorClass::Crash,
        message: "gone".to_owned(),
        steps: 2,
    };
    run.put_failed_episode(&failed).unwrap();
    assert_eq!(run.failed_episode(id(7)).unwrap(), failed);
    assert!(!run.has_episode(id(7)));
}

#[test]
fn any_damage_to_a_token_file_is_found() {
    let bytes = encode_tokens(&tokens());
    let path = Path::new("x.tokens");
    assert_eq!(decode_tokens(path, &bytes).unwrap(), tokens());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        decode_tokens(path, &damaged).unwrap_err();
        decode_tokens(path, &bytes[..at]).unwrap_err();
    }
}

proptest! {
    #[test]
    fn tokens_survive_bit_for_bit(parts in prop::collection::vec(
        (any::<bool>(), prop::collection::vec((any::<u32>(), any::<u32>()), 0..9)), 0..9)
    ) {
        let mut tokens = TokenStream::default();
        for (sampled, part) in parts {
            let (ids, bits): (Vec<u32>, Vec<u32>) = part.into_iter().unzip();
            if sampled {
                let logprobs: Vec<f32> = bits.into_iter().map(f32::from_bits).collect();
                tokens.push_sampled(&ids, &logprobs);
            } else {
                tokens.push_prompt(&ids);
            }
        }
        let bytes = encode_tokens(&tokens);
        let back = decode_tokens(Path::new("x"), &bytes).unwrap();
        // Bytes, since a log-prob may be NaN.
        prop_assert_eq!(encode_tokens(&back), bytes);
    }
}

/// What an update made of the three sampled tokens of `tokens`.
fn signals(scale: f32) -> TokenSignals {
    TokenSignals {
        advantage: -1.5,
        clip_low: 0.2,
        clip_high: 0.3,
        logprobs: vec![-0.5 * scale, f32::NEG_INFINITY, -1e-30],
        old_logprobs: vec![-0.6, -2.0, 0.0],
        entropies: vec![0.1, 0.2, 0.3],
    }
}

fn learned(number: u64, replayed: bool, signals: TokenSignals) -> SampleSignal {
    SampleSignal {
        episode: id(number),
        replayed,
        steps: Vec::new(),
        tokens: signals,
    }
}

#[test]
fn a_replys_tokens_come_with_what_is_known_of_them() {
    let (_folder, run) = new_run();
    let reply = |step| ReplyId {
        episode: id(1),
        step,
    };
    let error = run.reply_tokens(reply(0)).unwrap_err();
    assert!(matches!(error, StoreError::NoEpisode { .. }), "{error}");
    let mut stored = episode(1, 'a');
    let mut last = stored.steps[0].clone();
    last.reply_tokens = (6, 7);
    stored.steps.push(last);
    // A person wrote this one.
    let mut written = stored.steps[0].clone();
    written.reply_tokens = (5, 6);
    stored.steps.insert(1, written);
    run.put_episode(&stored).unwrap();
    // A run of an older version has no texts; nothing was learned yet.
    let mut expected = ReplyTokens {
        ids: vec![4, u32::MAX],
        pieces: Vec::new(),
        sampler_logprobs: vec![-0.5, f32::NEG_INFINITY],
        learned: None,
    };
    assert_eq!(run.reply_tokens(reply(0)).unwrap(), expected);
    let texts = ["a", "b", "", "d", " \u{6807}", "f", "g"].map(|text| text.as_bytes().to_vec());
    run.put_vocabulary(&texts).unwrap();
    // No token has the second id.
    expected.pieces = vec![texts[4].clone(), Vec::new()];
    assert_eq!(run.reply_tokens(reply(0)).unwrap(), expected);
    let first = learned(1, false, signals(1.0));
    run.put_learned(Iteration(3), &first).unwrap();
    // Learned from again, out of the buffer: the newest stays.
    let newest = learned(1, true, signals(2.0));
    run.put_learned(Iteration(8), &newest).unwrap();
    let part = |range: std::ops::Range<usize>| LearnedTokens {
        iteration: Iteration(8),
        replayed: true,
        signals: signals(2.0).part(range),
    };
    expected.learned = Some(part(0..2));
    assert_eq!(run.reply_tokens(reply(0)).unwrap(), expected);
    assert_eq!(
        run.reply_tokens(reply(2)).unwrap().learned,
        Some(part(2..3))
    );
    let by_person = run.reply_tokens(reply(1)).unwrap();
    assert_eq!(by_person.ids, [5]);
    assert!(by_person.sampler_logprobs.is_empty() && by_person.learned.is_none());
    let error = run.reply_tokens(reply(3)).unwrap_err().to_string();
    assert_eq!(error, "episode 0-000001 has no step 4: it has 3");
    // Of another trajectory than the token file.
    let fewer = learned(1, false, signals(1.0).part(0..2));
    run.put_learned(Iteration(9), &fewer).unwrap();
    let error = run.reply_tokens(reply(0)).unwrap_err().to_string();
    assert!(error.contains("it has 2 tokens, not 3"), "{error}");
}

#[test]
fn any_damage_to_learned_figures_is_found() {
    let bytes = encode_learned(Iteration(3), &learned(1, true, signals(1.0)));
    let path = Path::new("x.learned");
    let expected = LearnedTokens {
        iteration: Iteration(3),
        replayed: true,
        signals: signals(1.0),
    };
    assert_eq!(decode_learned(path, &bytes).unwrap(), expected);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        decode_learned(path, &damaged).unwrap_err();
        decode_learned(path, &bytes[..at]).unwrap_err();
    }
    // A version of the future, sealed as it would be.
    let mut newer = bytes[..bytes.len() - 32].to_vec();
    newer[8] = 2;
    let checksum = blake3::hash(&newer);
    newer.extend_from_slice(checksum.as_bytes());
    let error = decode_learned(path, &newer).unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { found: 2, .. }),
        "{error}"
    );
}

#[test]
fn a_torn_vocabulary_is_found() {
    let (_folder, run) = new_run();
    run.put_episode(&episode(1, 'a')).unwrap();
    run.put_vocabulary(&[b"a".to_vec(), b"b".to_vec()]).unwrap();
    let path = run.root().join("vocabulary");
    let bytes = fs::read(&path).unwrap();
    let reply = ReplyId {
        episode: id(1),
        step: 0,
    };
    for at in [0, 11, bytes.len() - 1] {
        fs::write(&path, &bytes[..at]).unwrap();
        let error = run.reply_tokens(reply).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    }
}

#[test]
fn pictures_are_written_once_and_names_cannot_escape() {
    let (_folder, run) = new_run();
    assert!(run.put_png(&hash('a'), PNG).unwrap());
    assert!(!run.put_png(&hash('a'), b"\x89PNG\r\n\x1a\nother").unwrap());
    assert_eq!(run.png(&hash('a')).unwrap(), PNG);
    assert!(
        run.png_path(&hash('a'))
            .unwrap()
            .ends_with(format!("blobs/aa/{}.png", hash('a')))
    );
    run.put_png(&hash('b'), b"no picture").unwrap_err();
    let bad = ["../../../../../../../etc/passwd1", "", "é", "aa"];
    for name in bad {
        let hash = ImageHash(name.into());
        assert!(matches!(run.png(&hash), Err(StoreError::NoPicture { .. })));
        run.put_png(&hash, PNG).unwrap_err();
    }
}

fn checkpoint(run: &RunDir, iterations_done: u64, weights: &[u8]) -> Checkpoint {
    let draft = run.begin_checkpoint(iterations_done, 1000).unwrap();
    draft.write("weights.bin", weights).unwrap();
    let manifest = Manifest {
        iterations_done,
        next_seq: iterations_done * 10,
        ..Manifest::default()
    };
    draft.publish(manifest).unwrap()
}

#[test]
fn the_newest_whole_checkpoint_is_found() {
    let (_folder, run) = new_run();
    let error = run.newest_checkpoint().unwrap_err();
    assert!(matches!(error, StoreError::NoCheckpoint { .. }), "{error}");
    let first = checkpoint(&run, 1, b"one");
    let second = checkpoint(&run, 2, b"two");
    let third = checkpoint(&run, 3, b"three");
    assert_eq!(run.newest_checkpoint().unwrap(), third);

    // Unpublished, without a manifest, with a file cut short: each is passed over.
    drop(run.begin_checkpoint(4, 0).unwrap());
    fs::create_dir(run.checkpoint_path(5)).unwrap();
    fs::write(third.file("weights.bin"), b"thre").unwrap();
    assert_eq!(run.newest_checkpoint().unwrap(), second);
    fs::write(second.path.join("manifest.toml"), "iterations_done = 2").unwrap();
    assert_eq!(run.newest_checkpoint().unwrap(), first);
    fs::remove_file(first.file("weights.bin")).unwrap();
    let error = run.newest_checkpoint().unwrap_err().to_string();
    assert!(error.contains("weights.bin"), "{error}");
}

#[test]
fn a_checkpoint_replaces_its_namesake_and_old_ones_go() {
    let (_folder, run) = new_run();
    checkpoint(&run, 1, b"one");
    let again = checkpoint(&run, 1, b"uno");
    assert_eq!(fs::read(again.file("weights.bin")).unwrap(), b"uno");
    assert_eq!(run.newest_checkpoint().unwrap(), again);
    for iterations_done in 2..=5 {
        checkpoint(&run, iterations_done, b"w");
    }
    run.retain_checkpoints(3).unwrap();
    let numbers = |run: &RunDir| -> Vec<u64> {
        run.checkpoints()
            .unwrap()
            .into_iter()
            .map(|(n, _)| n)
            .collect()
    };
    assert_eq!(numbers(&run), [3, 4, 5]);
    run.retain_checkpoints(0).unwrap();
    assert_eq!(numbers(&run), [5]);
    let fifth = run.newest_checkpoint().unwrap();
    checkpoint(&run, 6, b"w");
    run.discard_checkpoints_after(&fifth).unwrap();
    assert_eq!(numbers(&run), [5]);
    let left = fs::read_dir(run.root().join("checkpoints")).unwrap();
    assert_eq!(left.count(), 1);
}

#[test]
fn a_checkpoint_of_a_newer_format_is_refused_by_name() {
    let (_folder, run) = new_run();
    let first = checkpoint(&run, 1, b"one");
    let path = first.path.join("manifest.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("format = 1", "format = 9")).unwrap();
    let error = Checkpoint::open(&first.path).unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { found: 9, .. }),
        "{error}"
    );
}

#[test]
fn pruning_keeps_what_checkpoints_pin() {
    let (folder, run) = new_run();
    run.create_log().unwrap();
    for (number, picture) in [(1, 'a'), (2, 'b'), (3, 'c')] {
        run.put_episode(&episode(number, picture)).unwrap();
        let sample = learned(number, false, signals(1.0));
        run.put_learned(Iteration(0), &sample).unwrap();
        run.put_png(&hash(picture), PNG).unwrap();
    }
    run.put_png(&hash('f'), PNG).unwrap();
    let draft = run.begin_checkpoint(1, 0).unwrap();
    let manifest = Manifest {
        pinned: vec![id(2)],
        ..Manifest::default()
    };
    draft.publish(manifest).unwrap();

    let watcher = RunDir::open(&folder.path().join("r")).unwrap();
    assert!(matches!(watcher.prune(), Err(StoreError::Locked { .. })));
    drop(run);
    let report = watcher.prune().unwrap();
    assert_eq!((report.episodes, report.pictures), (2, 2));
    let kept = [1, 2, 3].map(|number| watcher.learned(id(number)).unwrap().is_some());
    assert_eq!(kept, [false, true, false]);
    assert_eq!(watcher.episode(id(2)).unwrap(), episode(2, 'b'));
    assert!(watcher.has_png(&hash('b')) && watcher.has_png(&hash('f')));
    assert!(!watcher.has_png(&hash('a')) && !watcher.has_episode(id(1)));
}

#[test]
fn space_is_asked_for_before_writing() {
    let (_folder, run) = new_run();
    assert!(run.free_bytes().unwrap() > 0);
    let error = run.begin_checkpoint(1, u64::MAX).unwrap_err();
    assert!(error.is_disk_full(), "{error}");
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let error = StoreError::Io {
        what: "write",
        path: "x".into(),
        source: full,
    };
    assert!(error.is_disk_full());
    assert!(error.to_string().contains("--resume"), "{error}");
}

#[test]
fn leftovers_of_a_dead_writer_go_at_the_next_start() {
    let (folder, run) = new_run();
    run.create_log().unwrap();
    let leftover = run.root().join("checkpoints/.iter-000003.1-0.tmp");
    fs::create_dir(&leftover).unwrap();
    fs::write(leftover.join("weights.bin"), b"half").unwrap();
    drop(run);
    RunDir::open_to_write(&folder.path().join("r")).unwrap();
    assert!(!leftover.exists());
}
