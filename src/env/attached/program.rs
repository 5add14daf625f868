//! A program of the operator's, run to its end: without a shell, with a deadline, its output cut.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::env::lines::plain;

/// The most that is kept of what it writes, bytes each of output and errors.
const MAX_OUTPUT: usize = 1 << 20;

/// How long output is waited for once the program has ended: what it started may hold it open.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs it; what it printed, or why that is of no use.
pub(super) async fn run(argv: &[String], limit: Duration) -> Result<Vec<u8>, String> {
    let [program, arguments @ ..] = argv else {
        return Err("no program is named".to_owned());
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // So that what it starts ends with it.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("{program} cannot be started: {error}"))?;
    let group = Group(child.id().and_then(|id| Pid::from_raw(id as i32)));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let ending = async {
        let reading = async {
            tokio::join!(read(stdout, &mut output), read(stderr, &mut errors));
        };
        let mut reading = std::pin::pin!(reading);
        tokio::select! {
            status = child.wait() => {
                let _ = timeout(LAST_WORDS, reading).await;
                status
            }
            () = &mut reading => child.wait().await,
        }
    };
    let ended = timeout(limit, ending).await;
    drop(group);
    match ended {
        Ok(Ok(status)) if status.success() && output.len() < MAX_OUTPUT => Ok(output),
        Ok(Ok(status)) if status.success() => {
            Err(format!("{program} printed more than {MAX_OUTPUT} bytes"))
        }
        Ok(Ok(status)) => Err(format!("{program} {}", failed(status, &output, &errors))),
        Ok(Err(error)) => Err(format!("{program} cannot be waited for: {error}")),
        Err(_) => Err(format!(
            "{program} did not end within {} s",
            limit.as_secs_f64()
        )),
    }
}

/// The program with all that it has started; killed when dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Fails where all of it has ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Reads to the end, and keeps the beginning.
async fn read(stream: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut stream) = stream else {
        return;
    };
    let mut buffer = vec![0; 8192];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) => return,
            Ok(read) => {
                let room = MAX_OUTPUT - kept.len();
                kept.extend_from_slice(&buffer[..read.min(room)]);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                sleep(Duration::from_millis(1)).await;
            }
            Err(_) => return,
        }
    }
}

/// How it failed, with the last line that it wrote.
fn failed(status: ExitStatus, output: &[u8], errors: &[u8]) -> String {
    let last = |bytes: &[u8]| {
        let mut lines = bytes.rsplit(|byte| *byte == b'\n').map(plain);
        lines.find(|line| !line.is_empty())
    };
    match last(errors).or_else(|| last(output)) {
        Some(line) => format!("ended with {status}: {line}"),
        None => format!("ended with {status} and said nothing"),
    }
}

#[cfg(test)]
mod tests {
    use super::run;
    use std::time::Duration;

    async fn shell(script: &str, limit_s: f64) -> Result<String, String> {
        let argv = ["sh", "-c", script].map(str::to_owned);
        let output = run(&argv, Duration::from_secs_f64(limit_s)).await?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    #[tokio::test]
    async fn a_program_ends_or_is_ended() {
        let table = [
            ("echo a; echo b >&2; echo c", Ok("a\nc\n")),
            ("echo a; exit 3", Err("ended with exit status: 3: a")),
            (
                "echo a; echo 'b\x1b[1m' >&2; false",
                Err("exit status: 1: b [1m"),
            ),
            ("kill -9 $$", Err("signal: 9 (SIGKILL) and said nothing")),
            (
                "head -c 3000000 /dev/zero",
                Err("printed more than 1048576 bytes"),
            ),
            // Asks nothing of whoever started it.
            ("cat; echo end", Ok("end\n")),
        ];
        for (script, expected) in table {
            match (shell(script, 60.0).await, expected) {
                (Ok(output), Ok(whole)) => assert_eq!(output, whole, "{script}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{script}: {error}"),
                (got, _) => panic!("{script}: {got:?}"),
            }
        }
        let absent = run(&["/nowhere/x".to_owned()], Duration::from_secs(60)).await;
        let error = absent.unwrap_err();
        assert!(
            error.starts_with("/nowhere/x cannot be started: "),
            "{error}"
        );
    }

    #[tokio::test]
    async fn what_it_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}; wait", path.display());
        let error = shell(&script, 1.0).await.unwrap_err();
        assert_eq!(error, "sh did not end within 1 s");
        let pid = std::fs::read_to_string(&path).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        // Killed; a moment may pass until it is gone, or for good a zombie.
        while let Ok(stat) = std::fs::read_to_string(&stat) {
            if stat.contains(") Z ") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Output that a survivor holds open is not waited for.
        let printed = shell("setsid sleep 3 & echo done", 60.0).await;
        assert_eq!(printed.unwrap(), "done\n");
    }
}
