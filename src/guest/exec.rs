//! Programs: run to their end within a limit, or started and left alone.
//!
//! Each has a process group of its own. One that outlives its limit, or writes without end, is
//! killed with its group; what it started in the background is left alone where it ends in time.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::{Instant, timeout, timeout_at};

use super::TOKEN_VARIABLE;

/// How long a program's output is read on after its end: what it left in the background may hold
/// it open for ever.
const AFTERMATH: Duration = Duration::from_secs(1);

/// Bytes that a program may write to each of its two outputs.
const MAX_OUTPUT: usize = 64 << 20;

/// A program and how it is run.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) argv: Vec<String>,
    pub(super) folder: Option<PathBuf>,
    /// Where its windows are.
    pub(super) display: String,
}

/// What a program left.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Negative is a signal.
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("cannot start {program:?}: {source}")]
    Start {
        program: String,
        source: std::io::Error,
    },
    #[error("Command '{program}' timed out after {} seconds", .limit.as_secs_f64())]
    Late { program: String, limit: Duration },
    #[error("Command '{program}' wrote more than {MAX_OUTPUT} bytes")]
    Flood { program: String },
    #[error("cannot read the output of {program:?}: {source}")]
    Output {
        program: String,
        source: std::io::Error,
    },
}

impl Program {
    fn command(&self) -> Command {
        let name = self.argv.first().map_or("", String::as_str);
        let mut command = Command::new(stand_in(name).unwrap_or(name));
        command.args(self.argv.iter().skip(1));
        command.env("DISPLAY", &self.display).process_group(0);
        // No program of the desktop needs to know it.
        command.env_remove(TOKEN_VARIABLE);
        let home = std::env::home_dir().filter(|home| home.is_dir());
        if let Some(folder) = self.folder.clone().or(home) {
            command.current_dir(folder);
        }
        command.stdin(Stdio::null());
        command
    }

    /// In words.
    fn name(&self) -> String {
        self.argv.join(" ")
    }

    fn start_error(&self, source: std::io::Error) -> RunError {
        let program = self.argv.first().cloned().unwrap_or_default();
        RunError::Start { program, source }
    }

    /// Starts it and leaves it alone.
    pub(super) fn launch(&self) -> Result<(), RunError> {
        let mut command = self.command();
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // The runtime waits for it when it ends.
        let child = command.spawn();
        child.map(drop).map_err(|error| self.start_error(error))
    }

    /// Runs it to its end.
    pub(super) async fn run(&self, limit: Duration) -> Result<Outcome, RunError> {
        let mut command = self.command();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| self.start_error(error))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let end = Instant::now() + limit;
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let ended = {
            let mut reading = std::pin::pin!(async {
                tokio::try_join!(read(stdout, &mut out), read(stderr, &mut err))
            });
            // Reading goes on while it is waited for, or it would stop at a full pipe.
            tokio::select! {
                read = &mut reading => match read {
                    Ok(_) => timeout_at(end, child.wait()).await.ok(),
                    Err(error) => Some(Err(error)),
                },
                status = timeout_at(end, child.wait()) => match status {
                    Ok(Ok(status)) => match timeout(AFTERMATH, &mut reading).await {
                        Ok(Err(error)) => Some(Err(error)),
                        Ok(Ok(_)) | Err(_) => Some(Ok(status)),
                    },
                    status => status.ok(),
                },
            }
        };
        let program = self.name();
        let failure = match ended {
            Some(Ok(status)) => return Ok(outcome(status, &out, &err)),
            Some(Err(error)) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                RunError::Flood { program }
            }
            Some(Err(source)) => RunError::Output { program, source },
            None => RunError::Late { program, limit },
        };
        // There is a number as long as it has not been waited for, and so long it is its own.
        if let Some(group) = child.id().and_then(|id| Pid::from_raw(id as i32)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.wait().await;
        Err(failure)
    }
}

async fn read(from: Option<impl AsyncRead + Unpin>, to: &mut Vec<u8>) -> std::io::Result<()> {
    let Some(from) = from else {
        return Ok(());
    };
    from.take(MAX_OUTPUT as u64 + 1).read_to_end(to).await?;
    if to.len() > MAX_OUTPUT {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    Ok(())
}

fn outcome(status: ExitStatus, out: &[u8], err: &[u8]) -> Outcome {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or(status.signal().map(|signal| -signal));
    Outcome {
        code: code.unwrap_or(-1),
        stdout: text(out),
        stderr: text(err),
    }
}

/// As Python reads a program's text, but for what is no UTF-8: the original answers 500 to it.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// The program that is there under another name, where there is none under its own: Debian's Python
/// and its browser.
fn stand_in(name: &str) -> Option<&'static str> {
    let other = match name {
        "python" => "python3",
        "google-chrome" => "chromium",
        _ => return None,
    };
    (find_program(name).is_none() && find_program(other).is_some()).then_some(other)
}

/// Where a program lies.
pub(super) fn find_program(name: &str) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        let data = std::fs::metadata(path);
        data.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let folders = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&folders).map(|folder| folder.join(name));
    places.find(|path| is_program(path))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Outcome, Program, RunError};

    async fn sh(script: &str, limit_s: f64) -> Result<Outcome, RunError> {
        let program = Program {
            argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
            folder: None,
            display: ":0".to_owned(),
        };
        program.run(Duration::from_secs_f64(limit_s)).await
    }

    #[tokio::test]
    async fn what_a_program_left_is_told() {
        let left = sh("echo out; echo err >&2; exit 3", 60.0).await.unwrap();
        assert_eq!(
            (left.code, &*left.stdout, &*left.stderr),
            (3, "out\n", "err\n")
        );
        let killed = sh("kill -9 $$", 60.0).await.unwrap();
        assert_eq!(killed.code, -9);
        let bytes = sh(r"printf 'a\r\n\377b'", 60.0).await.unwrap();
        assert_eq!(bytes.stdout, "a\n\u{fffd}b");
        let much = sh("head -c 3000000 /dev/zero", 60.0).await.unwrap();
        assert_eq!(much.stdout.len(), 3_000_000);
    }

    #[tokio::test]
    async fn a_program_in_the_background_is_not_waited_for() {
        let started = Instant::now();
        let left = sh("sleep 30 & echo $!", 60.0).await.unwrap();
        assert!(started.elapsed() < Duration::from_secs(20));
        let sleeper: i32 = left.stdout.trim().parse().unwrap();
        let pid = rustix::process::Pid::from_raw(sleeper).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }

    #[tokio::test]
    async fn a_program_that_does_not_end_is_killed_with_its_children() {
        let mark = format!("4{}", std::process::id());
        let late = sh(&format!("sleep {mark} & sleep {mark}"), 0.3).await;
        let said = late.unwrap_err().to_string();
        assert!(said.ends_with("timed out after 0.3 seconds"), "{said}");
        let flood = sh("cat /dev/zero", 60.0).await.unwrap_err().to_string();
        assert!(flood.contains("wrote more than"), "{flood}");
        let left = sh(&format!("pgrep -x -f 'sleep {mark}' || true"), 60.0)
            .await
            .unwrap();
        assert_eq!(left.stdout, "");
    }
}
