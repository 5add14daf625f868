//! A reply's tokens as a console gets them: over the socket, out of a folder, from engines of
//! another age.

use std::path::{Path, PathBuf};

use arpo::bus::{Role, Source, attach};
use arpo::event::{LearnedTokens, ReplyId, ReplyTokens, SampleSignal, TokenSignals};
use arpo::store::RunDir;
use arpo::types::{
    Action, Episode, EpisodeEnd, EpisodeId, Iteration, PolicyVersion, Reward, Step, StepTiming,
    TaskId, TokenStream,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use crate::attach::Engine;
use crate::synthetic::image;

const EPISODE: EpisodeId = EpisodeId {
    incarnation: 0,
    number: 4,
};

/// One reply of three tokens; the last two are parts of one character.
fn put_episode(run: &RunDir) {
    let mut tokens = TokenStream::default();
    tokens.push_prompt(&[0, 0]);
    tokens.push_sampled(&[1, 2, 3], &[-0.25, f32::NEG_INFINITY, -3.0]);
    let step = Step {
        screenshot: image(1),
        reply_tokens: (2, 5),
        reply: " 标".to_owned(),
        thought: String::new(),
        actions: vec![Action::Wait],
        malformed: None,
        clamped: false,
        policy: PolicyVersion(0),
        timing: StepTiming::default(),
    };
    let episode = Episode {
        id: EPISODE,
        task: TaskId("t".to_owned()),
        group: None,
        sample: 0,
        seed: 0,
        steps: vec![step],
        final_screenshot: None,
        tokens,
        end: EpisodeEnd::StepLimit,
        state_score: 0.0,
        infeasible: false,
        reward: Reward {
            outcome: 0.0,
            format: 0.0,
        },
        human_touched: false,
        branched_from: None,
    };
    run.put_episode(&episode).unwrap();
    let texts: [&[u8]; 4] = [b"<s>", b" ", b"\xe6", b"\xa0\x87"];
    run.put_vocabulary(&texts.map(<[u8]>::to_vec)).unwrap();
}

fn signals() -> TokenSignals {
    TokenSignals {
        advantage: 0.7,
        clip_low: 0.2,
        clip_high: 0.3,
        logprobs: vec![-0.1, -0.2, -2.5],
        old_logprobs: vec![-0.25, -0.2, -3.0],
        entropies: vec![0.5, 0.0, 1.5],
    }
}

fn put_learned(run: &RunDir) {
    let sample = SampleSignal {
        episode: EPISODE,
        replayed: false,
        steps: Vec::new(),
        tokens: signals(),
    };
    run.put_learned(Iteration(6), &sample).unwrap();
}

fn expected(learned: bool) -> ReplyTokens {
    ReplyTokens {
        ids: vec![1, 2, 3],
        pieces: vec![b" ".to_vec(), b"\xe6".to_vec(), b"\xa0\x87".to_vec()],
        sampler_logprobs: vec![-0.25, f32::NEG_INFINITY, -3.0],
        learned: learned.then(|| LearnedTokens {
            iteration: Iteration(6),
            replayed: false,
            signals: signals(),
        }),
    }
}

/// Asks as the console's thread for files does.
async fn ask(source: &Source, step: u32) -> Result<ReplyTokens, String> {
    let pictures = source.pictures.clone();
    let reply = ReplyId {
        episode: EPISODE,
        step,
    };
    let asked = tokio::task::spawn_blocking(move || pictures.tokens_blocking(reply));
    asked.await.unwrap().map_err(|error| error.to_string())
}

#[tokio::test]
async fn tokens_come_over_the_socket_and_out_of_the_folder_alike() {
    let engine = Engine::start().await;
    let attached = attach(&engine.socket, Role::Watch, "console")
        .await
        .unwrap();
    let missing = ask(&attached, 0).await.unwrap_err();
    assert!(
        missing.contains("never ended there, or was pruned"),
        "{missing}"
    );
    put_episode(&engine.run_dir);
    assert_eq!(ask(&attached, 0).await, Ok(expected(false)));
    put_learned(&engine.run_dir);
    assert_eq!(ask(&attached, 0).await, Ok(expected(true)));
    // Pictures share the connection.
    let png = b"\x89PNG\r\n\x1a\nrest";
    engine.run_dir.put_png(&image(1), png).unwrap();
    assert_eq!(attached.pictures.png(&image(1)).await.unwrap(), png);
    let missing = ask(&attached, 1).await.unwrap_err();
    assert_eq!(missing, "episode 0-000004 has no step 2: it has 1");
    // Too much for one answer: a text of two megabytes.
    let texts = vec![vec![b'x'; 2 << 20]; 4];
    engine.run_dir.put_vocabulary(&texts).unwrap();
    let refused = ask(&attached, 0).await.unwrap_err();
    assert!(refused.contains("bytes; up to"), "{refused}");
    put_episode(&engine.run_dir);
    assert_eq!(ask(&attached, 0).await, Ok(expected(true)));

    let (_folder, run_dir) = engine.end().await;
    let root = run_dir.root().to_owned();
    let recorded = Source::recorded(RunDir::open(&root).unwrap()).unwrap();
    assert_eq!(ask(&recorded, 0).await, Ok(expected(true)));
    std::fs::write(root.join("episodes/0000/0-000004.learned"), "torn").unwrap();
    let damaged = ask(&recorded, 0).await.unwrap_err();
    assert!(damaged.contains("no file of what was learned"), "{damaged}");
    drop(run_dir);
    RunDir::open(&root).unwrap().prune().unwrap();
    let pruned = ask(&recorded, 0).await.unwrap_err();
    assert!(pruned.contains("pruned"), "{pruned}");
}

/// Writes a frame as every version does.
async fn send(stream: &mut UnixStream, kind: u8, payload: &[u8]) {
    let length = (payload.len() as u32 + 1).to_le_bytes();
    stream.write_all(&length).await.unwrap();
    stream.write_all(&[kind]).await.unwrap();
    stream.write_all(payload).await.unwrap();
}

/// Reads one; `None` once the other side is gone.
async fn receive(stream: &mut UnixStream) -> Option<(u8, Vec<u8>)> {
    let length = stream.read_u32_le().await.ok()?;
    let kind = stream.read_u8().await.ok()?;
    let mut payload = vec![0; length as usize - 1];
    stream.read_exact(&mut payload).await.ok()?;
    Some((kind, payload))
}

/// An engine of the time before tokens: its welcome does not name them, and it skips frames that
/// it does not know.
async fn old_engine(socket: PathBuf) {
    let listener = UnixListener::bind(&socket).unwrap();
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let (_, hello) = receive(&mut stream).await.unwrap();
            let hello: Value = serde_json::from_slice(&hello).unwrap();
            let welcome =
                json!({"schema": 1, "version": "0.0.9", "run": "old", "root": "/r", "pid": 1});
            send(&mut stream, 16, welcome.to_string().as_bytes()).await;
            if hello["role"] == "watch" {
                let state = serde_json::to_vec(&arpo::event::RunState::default()).unwrap();
                send(&mut stream, 17, &state).await;
            }
            while let Some((kind, payload)) = receive(&mut stream).await {
                if kind == 3 {
                    send(&mut stream, 20, &[&payload[..], b"png"].concat()).await;
                }
            }
        });
    }
}

async fn until_there(socket: &Path) -> Source {
    loop {
        match attach(socket, Role::Watch, "console").await {
            Ok(source) => return source,
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

#[tokio::test]
async fn an_older_engine_is_not_asked_and_the_refusal_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("old.sock");
    let engine = tokio::spawn(old_engine(socket.clone()));
    let source = until_there(&socket).await;
    let refused = ask(&source, 0).await.unwrap_err();
    assert!(
        refused.contains("arpo 0.0.9") && refused.contains("`arpo show`"),
        "{refused}"
    );
    // The connection is as good as before.
    assert_eq!(source.pictures.png(&image(1)).await.unwrap(), b"png");
    engine.abort();
}

#[tokio::test]
async fn an_older_console_is_answered_as_before() {
    let engine = Engine::start().await;
    let png = b"\x89PNG\r\n\x1a\nrest";
    engine.run_dir.put_png(&image(1), png).unwrap();
    let mut stream = UnixStream::connect(&engine.socket).await.unwrap();
    let hello = json!({"schema": 1, "version": "0", "role": "pictures", "origin": "pictures"});
    send(&mut stream, 1, hello.to_string().as_bytes()).await;
    let (kind, welcome) = receive(&mut stream).await.unwrap();
    let welcome: Value = serde_json::from_slice(&welcome).unwrap();
    assert_eq!((kind, &welcome["run"]), (16, &json!("demo-1")));
    let hash = image(1).0.to_string();
    send(&mut stream, 3, hash.as_bytes()).await;
    let (kind, picture) = receive(&mut stream).await.unwrap();
    assert_eq!(kind, 20);
    assert_eq!(picture, [hash.as_bytes(), png].concat());
}
