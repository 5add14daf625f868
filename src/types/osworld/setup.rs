//! Steps that prepare a desktop, with their parameters, as OSWorld's `SetupController` takes them.
//!
//! What a step does on a desktop is the guest's business. Source: OSWorld as in
//! `assets/osworld/README.md`, `desktop_env/controllers/setup.py`.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{FileName, TaskFault, check_placeholders, names, typed};
use crate::types::{OneOrMany, SetupStep};

/// The steps that exist. `act`, `replay` and `tidy_desktop` are named in OSWorld's code and raise
/// `NotImplementedError`, so they do not.
pub const SETUP_NAMES: [&str; 17] = [
    "activate_window",
    "change_wallpaper",
    "chrome_close_tabs",
    "chrome_open_tabs",
    "close_window",
    "command",
    "download",
    "execute",
    "execute_with_verification",
    "googledrive",
    "launch",
    "login",
    "open",
    "proxy",
    "sleep",
    "update_browse_history",
    "upload_file",
];

/// The empty history that `update_browse_history` writes into, which OSWorld's controller names.
pub const HISTORY_FILE: &str = "https://huggingface.co/datasets/xlangai/ubuntu_osworld_file_cache/resolve/main/chrome/44ee5668-ecd5-4366-a6ce-c1c9b8d4e938/history_empty.sqlite?download=true";

/// One step. The first thirteen are what OSWorld's tasks use.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", content = "parameters", rename_all = "snake_case")]
#[serde(deny_unknown_fields)]
pub enum Setup {
    /// Bring files onto the desktop; the host downloads and uploads them.
    Download {
        /// In order.
        files: Vec<DownloadFile>,
    },
    /// Start a program and do not wait for it.
    Launch {
        /// A text that is no shell's is split at spaces.
        command: OneOrMany<String>,
        /// Whether a shell reads it.
        #[serde(default, deserialize_with = "truth")]
        shell: bool,
    },
    /// Open a file or a program and wait for its window.
    Open {
        /// Of the file.
        path: String,
    },
    /// Run a program to its end.
    Execute(Execute),
    /// OSWorld's other name of `execute`.
    Command(Execute),
    /// Bring a window to the front.
    ActivateWindow(WindowName),
    /// Close a window.
    CloseWindow(WindowName),
    /// Wait on the host.
    Sleep {
        /// How long.
        seconds: f64,
    },
    /// Open pages in Chrome and close the tab it began with.
    ChromeOpenTabs {
        /// Their addresses.
        urls_to_open: Vec<String>,
    },
    /// Close pages in Chrome.
    ChromeCloseTabs {
        /// Their addresses.
        urls_to_close: Vec<String>,
    },
    /// Put a Google Drive into a known state; needs its credentials.
    #[serde(rename = "googledrive")]
    GoogleDrive(GoogleDrive),
    /// Sign in on a web site; needs its credentials.
    Login {
        /// File with the credentials.
        settings_file: String,
        /// Where.
        platform: LoginPlatform,
    },
    /// Write pages into Chrome's history.
    UpdateBrowseHistory {
        /// The pages.
        history: Vec<Visit>,
    },
    /// Set the desktop's picture.
    ChangeWallpaper {
        /// Of the picture.
        path: String,
    },
    /// Bring files of the host onto the desktop.
    UploadFile {
        /// In order.
        files: Vec<UploadFile>,
    },
    /// `execute`, until a condition holds.
    ExecuteWithVerification {
        /// As in `execute`.
        command: OneOrMany<String>,
        /// As in `execute`.
        #[serde(default, deserialize_with = "truth")]
        shell: bool,
        /// What has to hold: `window_exists` or `command_success`.
        #[serde(default)]
        verification: Map<String, Value>,
        /// How long it may take, seconds.
        max_wait_time: Option<f64>,
        /// Time between looks, seconds.
        check_interval: Option<f64>,
    },
    /// Send the desktop's traffic through the operator's proxy. `proxy: true` of a task asks for
    /// it, too.
    Proxy {
        /// For `sudo`; the desktop's own where it is absent.
        client_password: Option<String>,
    },
}

/// A web site that OSWorld can sign in on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum LoginPlatform {
    /// Google Drive.
    #[serde(rename = "googledrive")]
    GoogleDrive,
}

/// A file from the web to the desktop.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DownloadFile {
    /// Where it comes from.
    pub url: String,
    /// Where it goes, on the desktop.
    pub path: String,
}

/// A file from the host to the desktop.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadFile {
    /// Where it lies, on the host.
    pub local_path: String,
    /// Where it goes, on the desktop.
    pub path: String,
}

/// A program run to its end. Its exit code is not looked at unless `until` names it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Execute {
    /// Placeholders are filled in, see `resolve_placeholders`; a text that is no shell's is split
    /// as a shell would.
    pub command: OneOrMany<String>,
    /// Whether a shell reads it.
    #[serde(default, deserialize_with = "truth")]
    pub shell: bool,
    /// Name for its output among the task's files, where the getter `cache_file` finds it.
    pub stdout: Option<FileName>,
    /// The same of its errors.
    pub stderr: Option<FileName>,
    /// Run it again until this holds.
    pub until: Option<Until>,
}

/// What ends the repetition of a program; any of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// This exit code.
    pub returncode: Option<i32>,
    /// Output that holds this.
    pub stdout: Option<String>,
    /// Errors that hold this.
    pub stderr: Option<String>,
}

/// A window by its title.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowName {
    /// The title, or a part of it.
    pub window_name: String,
    /// Whether it is the whole title.
    #[serde(default, deserialize_with = "truth")]
    pub strict: bool,
    /// Whether it is the window's class instead.
    #[serde(default, deserialize_with = "truth")]
    pub by_class: bool,
}

/// Operations on a Google Drive and the arguments of each.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoogleDrive {
    /// File with the credentials.
    pub settings_file: String,
    /// In order.
    pub operation: Vec<DriveOperation>,
    /// One each.
    pub args: Vec<DriveArguments>,
}

/// What to do to a Google Drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriveOperation {
    /// Remove what a query finds.
    Delete,
    /// Make folders.
    Mkdirs,
    /// Upload a file from the web.
    Upload,
}

/// The arguments of an operation: `query` and `trash` of delete, `path` of mkdirs, `url` and
/// `path` of upload.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveArguments {
    /// In Google's language; all files where it is absent.
    pub query: Option<String>,
    /// Whether what is found goes into the trash instead.
    #[serde(default, deserialize_with = "truth")]
    pub trash: bool,
    /// Folders, then the file.
    pub path: Option<OneOrMany<String>>,
    /// What to upload.
    pub url: Option<String>,
}

/// A page in Chrome's history.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Visit {
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: String,
    /// How long ago it was visited.
    pub visit_time_from_now_in_seconds: f64,
}

impl Setup {
    /// Reads a step; `key` is where in the file it stands.
    pub fn read(step: &SetupStep, key: &str) -> Result<Self, TaskFault> {
        names::check(
            "set-up type",
            &step.kind,
            &SETUP_NAMES,
            &format!("{key}.type"),
        )?;
        let parameters = Value::Object(step.parameters.clone());
        let setup: Self = typed::read(&step.kind, parameters, key, ".parameters")?;
        setup
            .check()
            .map_err(|(name, reason)| TaskFault::new(format!("{key}.parameters.{name}"), reason))?;
        Ok(setup)
    }

    /// What serde cannot say: which parameter is wrong, and how.
    fn check(&self) -> Result<(), (&'static str, String)> {
        match self {
            Self::Execute(Execute { command, .. })
            | Self::Command(Execute { command, .. })
            | Self::Launch { command, .. }
            | Self::ExecuteWithVerification { command, .. }
                if command.iter().all(String::is_empty) =>
            {
                return Err(("command", "empty; name a program".to_owned()));
            }
            Self::GoogleDrive(drive) if drive.operation.len() != drive.args.len() => {
                let (args, operations) = (drive.args.len(), drive.operation.len());
                let reason = format!("{args} for {operations} operations; give one each");
                return Err(("args", reason));
            }
            Self::Sleep { seconds } if !(0.0..=86_400.0).contains(seconds) => {
                return Err(("seconds", format!("{seconds} is not within a day")));
            }
            _ => {}
        }
        match self {
            Self::Execute(execute) | Self::Command(execute) => {
                let mut texts = execute.command.iter();
                let check = texts.try_for_each(|text| check_placeholders(text));
                check.map_err(|unknown| ("command", unknown.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Its name in task files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Download { .. } => "download",
            Self::Launch { .. } => "launch",
            Self::Open { .. } => "open",
            Self::Execute(_) => "execute",
            Self::Command(_) => "command",
            Self::ActivateWindow(_) => "activate_window",
            Self::CloseWindow(_) => "close_window",
            Self::Sleep { .. } => "sleep",
            Self::ChromeOpenTabs { .. } => "chrome_open_tabs",
            Self::ChromeCloseTabs { .. } => "chrome_close_tabs",
            Self::GoogleDrive(_) => "googledrive",
            Self::Login { .. } => "login",
            Self::UpdateBrowseHistory { .. } => "update_browse_history",
            Self::ChangeWallpaper { .. } => "change_wallpaper",
            Self::UploadFile { .. } => "upload_file",
            Self::ExecuteWithVerification { .. } => "execute_with_verification",
            Self::Proxy { .. } => "proxy",
        }
    }
}

/// A truth value as Python takes it: some files have the text "true" for it.
pub(super) fn truth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Bool(value) => Ok(value),
        Value::String(text) if text == "true" => Ok(true),
        other => Err(serde::de::Error::custom(format!(
            "{other} is neither true nor false"
        ))),
    }
}
