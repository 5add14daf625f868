//! Steps that run programs: `launch`, `execute`, `command`.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Stage, StepError, refused};
use crate::env::guest::{Command, Output};
use crate::types::OneOrMany;
use crate::types::osworld::resolve_placeholders;
use crate::types::osworld::setup::{Execute, Until};

/// Between two runs of a program that is run until something holds.
const UNTIL_PAUSE: Duration = Duration::from_millis(300);

/// Runs that the guest may fail meanwhile.
const UNTIL_FAILURES: u32 = 5;

/// After this it is given up; OSWorld never does.
const UNTIL_LIMIT: Duration = Duration::from_secs(120);

/// A command as its task has it: what it leaves to the server to split is left to it.
pub(super) fn written(command: &OneOrMany<String>, shell: bool) -> Command {
    Command::Written {
        command: command.clone(),
        shell,
    }
}

/// A text of several words that no shell reads is split at spaces before it is sent, whatever the
/// quotes in it.
fn split(command: &OneOrMany<String>, shell: bool) -> OneOrMany<String> {
    match command {
        OneOrMany::One(line) if !shell && line.split_whitespace().nth(1).is_some() => {
            OneOrMany::Many(line.split_whitespace().map(str::to_owned).collect())
        }
        command => command.clone(),
    }
}

impl Stage<'_> {
    pub(super) async fn launch(
        &self,
        command: &OneOrMany<String>,
        shell: bool,
    ) -> Result<(), StepError> {
        let command = written(&split(command, shell), shell);
        let launched = self.guest().launch(&command).await;
        self.judged(launched)?;
        Ok(())
    }

    pub(super) async fn execute(&mut self, execute: &Execute) -> Result<(), StepError> {
        let command = self.filled_in(&execute.command)?;
        let command = written(&command, execute.shell);
        match execute.until.as_ref().filter(|until| !until.is_empty()) {
            None => {
                let ran = self.guest().execute(&command).await;
                if let Some(output) = self.judged(ran)? {
                    self.keep(execute, output);
                }
                Ok(())
            }
            Some(until) => self.execute_until(execute, &command, until).await,
        }
    }

    async fn execute_until(
        &mut self,
        execute: &Execute,
        command: &Command,
        until: &Until,
    ) -> Result<(), StepError> {
        let end = Instant::now() + UNTIL_LIMIT;
        let mut failures = 0;
        while Instant::now() < end {
            match self.guest().execute(command).await {
                Ok(output) => {
                    let is_done = until.holds(&output);
                    self.keep(execute, output);
                    if is_done {
                        return Ok(());
                    }
                }
                Err(error) => {
                    failures += 1;
                    if failures >= UNTIL_FAILURES {
                        self.judged::<()>(Err(error))?;
                        return Ok(());
                    }
                }
            }
            sleep(UNTIL_PAUSE).await;
        }
        Err(StepError::Failed(format!(
            "what it waits for did not come within {} s",
            UNTIL_LIMIT.as_secs()
        )))
    }

    fn filled_in(&self, command: &OneOrMany<String>) -> Result<OneOrMany<String>, StepError> {
        let values = self.machine.placeholders();
        let fill = |text: &String| {
            let filled = resolve_placeholders(text, &values);
            filled.map_err(|unknown| refused("command", unknown.to_string()))
        };
        Ok(match command {
            OneOrMany::One(text) => OneOrMany::One(fill(text)?),
            OneOrMany::Many(parts) => {
                OneOrMany::Many(parts.iter().map(fill).collect::<Result<_, _>>()?)
            }
        })
    }

    /// Keeps a program's output under the names that the step gives it.
    fn keep(&mut self, execute: &Execute, output: Output) {
        let texts = [
            (&execute.stdout, output.stdout),
            (&execute.stderr, output.stderr),
        ];
        for (name, text) in texts {
            if let Some(name) = name {
                self.kept
                    .insert(name.as_str().to_owned(), text.into_bytes());
            }
        }
    }
}

impl Until {
    fn is_empty(&self) -> bool {
        self.returncode.is_none() && self.stdout.is_none() && self.stderr.is_none()
    }

    fn holds(&self, output: &Output) -> bool {
        let within = |part: &Option<String>, text: &str| {
            part.as_ref()
                .is_some_and(|part| text.contains(part.as_str()))
        };
        self.returncode == Some(output.returncode)
            || within(&self.stdout, &output.stdout)
            || within(&self.stderr, &output.stderr)
    }
}
