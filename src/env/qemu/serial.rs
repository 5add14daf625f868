//! What a guest says on its serial line: how far its start is, and its kernel's words.

use std::time::Duration;

use tokio::io::{AsyncRead, BufReader};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::lines::next_line;
use crate::env::sandbox::on_one_line;

/// Most bytes of a line.
const MAX_LINE: u64 = 4096;

/// Lines a second that are read; a guest that says more waits.
const MAX_LINES: u32 = 200;

/// How far a guest is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The newest stage that it told of.
    pub(super) stage: String,
    /// How often it told of one.
    pub(super) told: u64,
    /// Why it gave up.
    pub(super) failed: Option<String>,
    /// Its kernel's last words.
    pub(super) panic: Option<String>,
}

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    Stage(String),
    Failed(String),
    Panic(String),
    Other,
}

/// Follows a serial line to its end; each line goes to `pass`.
pub(super) async fn follow(
    stream: impl AsyncRead + Unpin,
    progress: watch::Sender<Progress>,
    pass: impl Fn(String),
) {
    let mut reader = BufReader::new(stream);
    let (mut second, mut read) = (Instant::now(), 0);
    while let Ok(Some(line)) = next_line(&mut reader, MAX_LINE).await {
        let line = String::from_utf8_lossy(&line);
        match understand(&line) {
            Said::Stage(stage) => progress.send_modify(|progress| {
                progress.stage = stage;
                progress.told += 1;
            }),
            Said::Failed(reason) => progress.send_modify(|progress| progress.failed = Some(reason)),
            Said::Panic(words) => progress.send_modify(|progress| progress.panic = Some(words)),
            Said::Other => {}
        }
        pass(on_one_line(&line));
        read += 1;
        if read == MAX_LINES {
            sleep_until(second + Duration::from_secs(1)).await;
            (second, read) = (Instant::now(), 0);
        }
    }
}

fn understand(line: &str) -> Said {
    if let Some(rest) = line.strip_prefix("ARPO-BOOT ") {
        let stage = rest.split_whitespace().next().unwrap_or_default();
        return Said::Stage(on_one_line(stage));
    }
    if let Some(rest) = line.strip_prefix("ARPO-FAIL ") {
        let (stage, reason) = rest.split_once(' ').unwrap_or((rest, "no reason given"));
        return Said::Failed(on_one_line(&format!("{reason} (stage {stage})")));
    }
    if let Some((_, words)) = line.split_once("Kernel panic - not syncing: ") {
        return Said::Panic(on_one_line(words));
    }
    Said::Other
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn lines_are_understood_and_passed_on() {
        let cases = [
            ("ARPO-BOOT modules 1.25\r\n", "modules", 1, None, None),
            (
                "\nARPO-BOOT x 1\nARPO-BOOT ready 12.5\n",
                "ready",
                2,
                None,
                None,
            ),
            (
                "ARPO-FAIL disk there is no /dev/vda\n",
                "",
                0,
                Some("there is no /dev/vda (stage disk)"),
                None,
            ),
            (
                "ARPO-FAIL\u{1b}[2J\nARPO-FAIL x\n",
                "",
                0,
                Some("no reason given (stage x)"),
                None,
            ),
            (
                "[    3.1] Kernel panic - not syncing: sysrq triggered\u{7}\n",
                "",
                0,
                None,
                Some("sysrq triggered "),
            ),
            ("ARPO-BOOT \n", "", 1, None, None),
            ("xARPO-BOOT ready 1", "", 0, None, None),
        ];
        for (said, stage, told, failed, panic) in cases {
            let (sender, progress) = watch::channel(Progress::default());
            let passed = Mutex::new(Vec::new());
            follow(said.as_bytes(), sender, |line| {
                passed.lock().unwrap().push(line);
            })
            .await;
            let expected = Progress {
                stage: stage.to_owned(),
                told,
                failed: failed.map(str::to_owned),
                panic: panic.map(str::to_owned),
            };
            assert_eq!(*progress.borrow(), expected, "{said:?}");
            let passed = passed.into_inner().unwrap();
            assert_eq!(passed.len(), said.lines().count(), "{said:?}");
            assert!(passed.iter().all(|line| !line.contains(char::is_control)));
        }
    }

    #[tokio::test]
    async fn a_flood_waits() {
        let lines = "\n".repeat(MAX_LINES as usize);
        let flood = "x".repeat(3 * MAX_LINE as usize) + &lines;
        let (sender, _) = watch::channel(Progress::default());
        let longest = Mutex::new(0);
        let begun = Instant::now();
        follow(flood.as_bytes(), sender, |line| {
            let mut longest = longest.lock().unwrap();
            *longest = line.len().max(*longest);
        })
        .await;
        assert!(longest.into_inner().unwrap() <= MAX_LINE as usize);
        assert!(begun.elapsed() >= Duration::from_secs(1));
    }
}
