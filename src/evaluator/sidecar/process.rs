//! The process: started once, asked by lines of JSON, heard until it ends.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};

use super::sandbox::{self, CODE};
use super::{Found, SidecarError, SidecarOptions, Waiting};

/// For its imports: seconds, a minute on a busy machine with cold files.
const START_DEADLINE: Duration = Duration::from_secs(180);

/// Lines of its log that are kept to explain its end.
const LAST_LINES: usize = 6;

/// What it says to a request.
#[derive(Debug)]
pub(super) enum Answer {
    /// A score.
    Score(f64),
    /// What a getter found.
    Found(Found),
}

/// What its reader and its users share.
#[derive(Default)]
struct Heard {
    waiting: Waiting,
    lines: Vec<String>,
    has_ended: bool,
}

/// A started process. Dropping it ends it: it ends with its input.
pub(super) struct Process {
    requests: mpsc::UnboundedSender<Vec<u8>>,
    heard: Arc<Mutex<Heard>>,
    child: Mutex<Child>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Process {
    /// Starts it and waits until it has imported what it needs.
    pub(super) async fn start(options: &SidecarOptions) -> Result<Self, SidecarError> {
        let unavailable = SidecarError::Unavailable;
        if !options.python.exists() {
            return Err(unavailable(format!(
                "there is no {}; install it with `arpo tasks sidecar`",
                options.python.display()
            )));
        }
        lay_down_code(&options.folder).map_err(|error| {
            unavailable(format!(
                "cannot write {}: {error}",
                options.folder.display()
            ))
        })?;
        let mut command = sandbox::command(options)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            unavailable(sandbox::no_start(command.as_std().get_program(), &error))
        })?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(unavailable("its pipes are missing".to_owned()));
        };
        let heard = Arc::new(Mutex::new(Heard::default()));
        let (requests, queue) = mpsc::unbounded_channel();
        let (ready, hello) = oneshot::channel();
        tokio::spawn(write(stdin, queue));
        let log = tokio::spawn(keep_log(stderr, Arc::clone(&heard)));
        tokio::spawn(read(stdout, Arc::clone(&heard), ready, log));
        let process = Self {
            requests,
            heard,
            child: Mutex::new(child),
        };
        process.is_ready(hello).await?;
        if options.live_sites {
            tracing::warn!("evaluations share this machine's network: eval.live_sites is on");
        }
        Ok(process)
    }

    async fn is_ready(&self, hello: oneshot::Receiver<Value>) -> Result<(), SidecarError> {
        let hello = tokio::time::timeout(START_DEADLINE, hello).await;
        let reason = match hello {
            Ok(Ok(hello)) if hello["ready"].is_string() => return Ok(()),
            Ok(Ok(hello)) => hello["refused"]
                .as_str()
                .unwrap_or("it is silent")
                .to_owned(),
            Ok(Err(_)) => sandbox::explain(&self.last_words()),
            Err(_) => format!("it was not ready within {} s", START_DEADLINE.as_secs()),
        };
        self.kill();
        Err(SidecarError::Unavailable(reason))
    }

    /// Its number on this machine while it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        lock(&self.child).id()
    }

    pub(super) fn is_alive(&self) -> bool {
        !lock(&self.heard).has_ended
    }

    /// What it said last to its log.
    pub(super) fn last_words(&self) -> String {
        let lines = lock(&self.heard).lines.join("; ");
        if lines.is_empty() {
            "it said nothing".to_owned()
        } else {
            lines
        }
    }

    /// Ends it now.
    pub(super) fn kill(&self) {
        lock(&self.heard).has_ended = true;
        // Gone already is as good.
        let _ = lock(&self.child).start_kill();
    }

    /// The answer to a request of this number.
    pub(super) async fn ask(&self, id: u64, request: &Value) -> Result<Answer, SidecarError> {
        let (sender, answer) = oneshot::channel();
        {
            let mut heard = lock(&self.heard);
            if heard.has_ended {
                drop(heard);
                return Err(SidecarError::Ended(self.last_words()));
            }
            heard.waiting.insert(id, sender);
        }
        let mut line = serde_json::to_vec(request).expect("values are always JSON");
        line.push(b'\n');
        // Where it is not taken any more, the end has been or will be heard.
        let _ = self.requests.send(line);
        match answer.await {
            Ok(answer) => answer_of(answer),
            Err(_) => Err(SidecarError::Ended(self.last_words())),
        }
    }
}

/// What an answer says.
fn answer_of(mut answer: Value) -> Result<Answer, SidecarError> {
    let text = |key: &str| answer[key].as_str().map(str::to_owned);
    if let Some(score) = answer["score"].as_f64() {
        return Ok(Answer::Score(score));
    }
    if let Some(class) = text("raised") {
        let text = text("text").unwrap_or_default();
        return Err(SidecarError::Raised { class, text });
    }
    if let Some(limit) = text("limit") {
        let text = text("text").unwrap_or_default();
        return Err(SidecarError::Limit { limit, text });
    }
    if let Some(reason) = text("absent") {
        return Err(SidecarError::Absent(reason));
    }
    if let Some(reason) = text("died") {
        return Err(SidecarError::Died(reason));
    }
    let found = serde_json::from_value(answer["found"].take());
    found
        .map(Answer::Found)
        .map_err(|error| SidecarError::Died(format!("its answer cannot be read: {error}")))
}

/// Its code and the folder of relays, closed to others.
fn lay_down_code(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700).recursive(true);
    builder.create(folder.join("code"))?;
    builder.create(folder.join("relay"))?;
    CODE.iter()
        .try_for_each(|(name, text)| fs::write(folder.join("code").join(name), text))
}

async fn write(mut stdin: ChildStdin, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(line) = queue.recv().await {
        if stdin.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// Hears it until its end, which every request that still waits hears of.
async fn read(
    stdout: ChildStdout,
    heard: Arc<Mutex<Heard>>,
    ready: oneshot::Sender<Value>,
    log: tokio::task::JoinHandle<()>,
) {
    let mut lines = BufReader::new(stdout).split(b'\n');
    let mut ready = Some(ready);
    while let Ok(Some(line)) = lines.next_segment().await {
        let Ok(mut answer) = serde_json::from_slice::<Value>(&line) else {
            lock(&heard)
                .lines
                .push("it said what is no JSON".to_owned());
            break;
        };
        if let Some(ready) = ready.take() {
            let _ = ready.send(answer);
            continue;
        }
        let id = answer["id"].as_u64().unwrap_or_default();
        let sender = lock(&heard).waiting.remove(&id);
        if let Some(sender) = sender {
            // Who does not wait any more does not need it.
            let _ = sender.send(answer["answer"].take());
        }
    }
    // Its last words come another way; what it leaves behind may hold that open.
    let _ = tokio::time::timeout(Duration::from_secs(1), log).await;
    let mut heard = lock(&heard);
    heard.has_ended = true;
    heard.waiting.clear();
    drop(ready);
}

async fn keep_log(stderr: ChildStderr, heard: Arc<Mutex<Heard>>) {
    let mut lines = BufReader::new(stderr).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        let line = String::from_utf8_lossy(&line).into_owned();
        tracing::debug!(target: "arpo::sidecar", "{line}");
        let kept = &mut lock(&heard).lines;
        if kept.len() == LAST_LINES {
            kept.remove(0);
        }
        kept.push(line);
    }
}
