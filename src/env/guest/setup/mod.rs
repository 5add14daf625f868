//! Set-up steps of OSWorld's tasks, done to a guest.
//!
//! Source: desktop-env 1.0.2 `controllers/setup.py`. Departs: what fails there with a line in a log
//! fails here with an error that names task and step, as long as it cannot be the agent's doing;
//! every loop has an end; what needs something that the operator has not brought is refused before
//! anything is done.

mod chrome;
mod history;
mod programs;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use super::cdp::CdpError;
use super::desktop::DesktopOptions;
use super::{Guest, GuestError, Patience, Verification};
use crate::env::{EnvError, Machine};
use crate::tasks::FileCache;
use crate::types::Task;
use crate::types::osworld::setup::{HISTORY_FILE, UploadFile};
use crate::types::osworld::{OsworldTask, Setup};

/// When steps are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// Before the agent acts: whatever fails is not its doing.
    Reset,
    /// After it, before judging: a program that the guest cannot run may be its doing, and is for
    /// the metric to see. OSWorld goes on as well.
    Judging,
}

/// What steps are run with.
pub(super) struct Stage<'a> {
    pub(super) machine: &'a dyn Machine,
    pub(super) files: &'a FileCache,
    /// Programs' output, by the name that steps give it.
    pub(super) kept: &'a mut BTreeMap<String, Vec<u8>>,
    pub(super) options: &'a DesktopOptions,
    pub(super) moment: Moment,
}

/// Why a step was not done.
enum StepError {
    /// The guest did not do it.
    Guest(GuestError),
    /// Chrome did not do it.
    Chrome(CdpError),
    /// The operator has to change something, named by the step's parameter; none is the step.
    Refused { parameter: String, reason: String },
    /// Something else.
    Failed(String),
}

impl From<GuestError> for StepError {
    fn from(error: GuestError) -> Self {
        Self::Guest(error)
    }
}

impl From<CdpError> for StepError {
    fn from(error: CdpError) -> Self {
        Self::Chrome(error)
    }
}

fn refused(parameter: impl Into<String>, reason: impl Into<String>) -> StepError {
    StepError::Refused {
        parameter: parameter.into(),
        reason: reason.into(),
    }
}

impl StepError {
    /// As the environment's, with where it happened. `key` is the step's.
    fn at(self, machine: &str, task: &Task, key: &str, step: &Setup) -> EnvError {
        let name = step.name();
        let failed = |reason: String| EnvError::Machine {
            machine: machine.to_owned(),
            reason: format!("task {}: {key} ({name}): {reason}", task.id.0),
        };
        match self {
            Self::Guest(source) => EnvError::Guest {
                what: format!("task {}: {key} ({name})", task.id.0),
                source: Box::new(source),
            },
            Self::Refused { parameter, reason } => {
                let place = match parameter.as_str() {
                    "" => key.to_owned(),
                    parameter => format!("{key}.parameters.{parameter}"),
                };
                EnvError::Task {
                    task: task.id.0.clone(),
                    reason: format!("{place} ({name}): {reason}"),
                }
            }
            Self::Chrome(error) => failed(error.to_string()),
            Self::Failed(reason) => failed(reason),
        }
    }
}

/// Refuses a task that asks for what there is not: before its machine is touched.
pub(super) fn check(files: &FileCache, task: &Task, typed: &OsworldTask) -> Result<(), EnvError> {
    if typed.proxy {
        return Err(EnvError::Task {
            task: task.id.0.clone(),
            reason: format!("proxy: {NO_PROXY}"),
        });
    }
    check_steps(files, task, &typed.setup, "config")?;
    check_steps(files, task, &typed.postconfig, "evaluator.postconfig")
}

fn check_steps(files: &FileCache, task: &Task, steps: &[Setup], key: &str) -> Result<(), EnvError> {
    for (i, step) in steps.iter().enumerate() {
        check_step(files, task, step)
            .map_err(|error| error.at("", task, &format!("{key}[{i}]"), step))?;
    }
    Ok(())
}

/// Runs steps in order, up to the first that fails; `key` is where in the task's file they stand.
pub(super) async fn run(
    stage: &mut Stage<'_>,
    task: &Task,
    steps: &[Setup],
    key: &str,
) -> Result<(), EnvError> {
    check_steps(stage.files, task, steps, key)?;
    for (i, step) in steps.iter().enumerate() {
        tracing::debug!(task = task.id.0, key, i, step = step.name(), "set-up");
        if let Err(error) = stage.run(step).await {
            let machine = stage.machine.name();
            return Err(error.at(&machine, task, &format!("{key}[{i}]"), step));
        }
    }
    Ok(())
}

const NO_PROXY: &str = "needs credentials: an HTTP proxy with its user and password, which no key \
    of the profile brings yet; leave such tasks out with \"- proxy\" in the task set";

fn no_google(settings: &str) -> StepError {
    let reason = format!(
        "needs credentials: a Google account of your own and its OAuth client in {settings}, as \
         OSWorld's ACCOUNT_GUIDELINE.md says; no key of the profile brings them yet; leave such \
         tasks out with \"- google\" in the task set"
    );
    refused("settings_file", reason)
}

/// What can be said of a step before it is run.
fn check_step(files: &FileCache, task: &Task, step: &Setup) -> Result<(), StepError> {
    let need = |parameter: String, url: &str| match files.path(url) {
        Some(_) => Ok(()),
        None => Err(refused(
            parameter,
            format!(
                "{url} is not in the file cache; bring it there with `arpo tasks fetch {}`",
                task.id.0
            ),
        )),
    };
    let filled = |parameter: String, text: &str, what: &str| match text {
        "" => Err(refused(parameter, format!("empty; name {what}"))),
        _ => Ok(()),
    };
    match step {
        Setup::Download { files } => {
            for (i, file) in files.iter().enumerate() {
                filled(
                    format!("files[{i}].path"),
                    &file.path,
                    "a file on the desktop",
                )?;
                need(format!("files[{i}].url"), &file.url)?;
            }
            Ok(())
        }
        Setup::UploadFile { files } => {
            for (i, UploadFile { local_path, path }) in files.iter().enumerate() {
                filled(format!("files[{i}].path"), path, "a file on the desktop")?;
                if !Path::new(local_path).is_file() {
                    let reason = format!("{local_path} is no file of this machine");
                    return Err(refused(format!("files[{i}].local_path"), reason));
                }
            }
            Ok(())
        }
        Setup::Open { path } => filled("path".into(), path, "a file or a program"),
        Setup::ChangeWallpaper { path } => filled("path".into(), path, "a picture"),
        Setup::ActivateWindow(window) | Setup::CloseWindow(window) => {
            filled("window_name".into(), &window.window_name, "a window")
        }
        Setup::UpdateBrowseHistory { .. } => need(String::new(), HISTORY_FILE),
        Setup::GoogleDrive(drive) => Err(no_google(&drive.settings_file)),
        Setup::Login { settings_file, .. } => Err(no_google(settings_file)),
        Setup::Proxy { .. } => Err(refused("", NO_PROXY)),
        Setup::Launch { .. }
        | Setup::Execute(_)
        | Setup::Command(_)
        | Setup::Sleep { .. }
        | Setup::ChromeOpenTabs { .. }
        | Setup::ChromeCloseTabs { .. }
        | Setup::ExecuteWithVerification { .. } => Ok(()),
    }
}

impl Stage<'_> {
    fn guest(&self) -> &Guest {
        self.machine.guest()
    }

    async fn run(&mut self, step: &Setup) -> Result<(), StepError> {
        match step {
            Setup::Download { files } => {
                for file in files {
                    self.upload_cached(&file.url, &file.path).await?;
                }
                Ok(())
            }
            Setup::UploadFile { files } => {
                for UploadFile { local_path, path } in files {
                    self.guest().upload(Path::new(local_path), path).await?;
                }
                Ok(())
            }
            Setup::Launch { command, shell } => self.launch(command, *shell).await,
            Setup::Open { path } => {
                let within = self.options.open_within;
                Ok(self.guest().open_file(path, within).await?)
            }
            Setup::Execute(execute) | Setup::Command(execute) => self.execute(execute).await,
            Setup::ExecuteWithVerification {
                command,
                shell,
                verification,
                max_wait_time,
                check_interval,
            } => {
                let command = programs::written(command, *shell);
                let verification = Verification::read(verification)
                    .map_err(|reason| refused("verification", reason))?;
                let patience = Patience::read(*max_wait_time, *check_interval)
                    .map_err(|(parameter, reason)| refused(parameter, reason))?;
                let ran = self
                    .guest()
                    .execute_until(&command, &verification, patience);
                ran.await?;
                Ok(())
            }
            Setup::ActivateWindow(window) => {
                unless_gone(self.guest().activate_window(window).await)
            }
            Setup::CloseWindow(window) => unless_gone(self.guest().close_window(window).await),
            Setup::Sleep { seconds } => {
                sleep(Duration::from_secs_f64(*seconds)).await;
                Ok(())
            }
            Setup::ChangeWallpaper { path } => Ok(self.guest().change_wallpaper(path).await?),
            Setup::ChromeOpenTabs { urls_to_open } => self.open_tabs(urls_to_open).await,
            Setup::ChromeCloseTabs { urls_to_close } => self.close_tabs(urls_to_close).await,
            Setup::UpdateBrowseHistory { history } => self.update_history(history).await,
            Setup::GoogleDrive(_) | Setup::Login { .. } | Setup::Proxy { .. } => {
                Err(StepError::Failed("needs credentials".to_owned()))
            }
        }
    }

    async fn upload_cached(&self, url: &str, to: &str) -> Result<(), StepError> {
        let Some(from) = self.files.path(url) else {
            return Err(StepError::Failed(format!("{url} has left the file cache")));
        };
        Ok(self.guest().upload(&from, to).await?)
    }

    /// What the guest says it could not do; nothing where that may be the agent's doing.
    fn judged<T>(&self, result: Result<T, GuestError>) -> Result<Option<T>, GuestError> {
        match result {
            Err(
                error @ (GuestError::Reported { .. } | GuestError::Status { status: 400.., .. }),
            ) if self.moment == Moment::Judging => {
                tracing::warn!(%error, "a step before judging");
                Ok(None)
            }
            result => result.map(Some),
        }
    }
}

/// Some servers say that there is no such window, most do not. Whether there has to be one is for
/// the steps after this to find.
fn unless_gone(result: Result<(), GuestError>) -> Result<(), StepError> {
    match result {
        Err(GuestError::Status { status: 404, .. } | GuestError::Reported { status: 404, .. }) => {
            Ok(())
        }
        result => Ok(result?),
    }
}
