//! Getters: what is read of a real desktop, as OSWorld's functions of these names bring it.
//!
//! Missing files, refused commands and broken settings are what OSWorld makes of them: nothing, a
//! default, an exception, which is no score. Departs: where the guest's server itself fails, OSWorld
//! mostly goes on with nothing; here the desktop has failed, and there is no score. Source:
//! `desktop_env/evaluators/getters` of desktop-env 1.0.2; cases are in
//! `tests/it/fixtures/differential`.

mod commands;
mod files;
mod screen;
mod time;

#[cfg(test)]
pub(super) mod scripted;

use serde_json::Value;

use super::found::Found;
use crate::env::guest::GuestError;
use crate::env::{EnvError, RealDesktop};
use crate::types::osworld::Getter;

/// Why a getter brings nothing, not even that nothing is there.
#[derive(Debug, thiserror::Error)]
pub enum GetterError {
    /// The desktop did not answer.
    #[error("cannot read the desktop")]
    Environment(#[source] EnvError),
    /// What is there is nothing that it can read: OSWorld's getter raises an exception.
    #[error("finds what cannot be read: {0}")]
    Raised(String),
    /// The file that it reads is missing: OSWorld's `FileNotFoundError`, which scores 0 where the
    /// desktop should have it.
    #[error("there is no file {0}")]
    NoFile(String),
    /// A file from the web is not on this machine.
    #[error("{url} is not in the file cache; fetch it with `arpo tasks fetch`")]
    NotFetched {
        /// Its address.
        url: String,
    },
    /// A file of this machine cannot be read.
    #[error("cannot read {path}")]
    File {
        /// Which.
        path: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// This program does not carry it.
    #[error("only OSWorld's own code carries it")]
    Elsewhere,
    /// Whoever carries it is not there, or failed.
    #[error("{0}")]
    Unavailable(String),
}

/// What OSWorld's getter would raise an exception at.
fn raised(reason: impl Into<String>) -> GetterError {
    GetterError::Raised(reason.into())
}

/// The guest's server failed.
fn failed(source: GuestError) -> GetterError {
    GetterError::Environment(EnvError::Guest {
        what: "reading the end state".to_owned(),
        source,
    })
}

/// What a getter finds on a desktop; `GetterError::Elsewhere` where it takes OSWorld's own code.
pub async fn get(getter: &Getter, desktop: RealDesktop<'_>) -> Result<Found, GetterError> {
    match getter {
        Getter::AccessibilityTree {} => screen::accessibility_tree(desktop).await,
        Getter::CacheFile { path } => files::cache_file(desktop, path),
        Getter::CloudFile(files) => files::cloud_file(desktop, files).await,
        Getter::GimpConfigFile { file_name, dest } => {
            files::gimp_config_file(desktop, file_name, dest).await
        }
        Getter::ListDirectory { path } => files::list_directory(desktop, path).await,
        Getter::Rule { rules } => Ok(Found::Value(rules.clone())),
        Getter::RuleRelativeTime { rules } => time::rule(desktop, rules).await,
        Getter::VlcConfig(dest) => files::vlc_config(desktop, &dest.dest).await,
        Getter::VmCommandError(command) => commands::error(desktop, command).await,
        Getter::VmCommandLine(command) => commands::output(desktop, command).await,
        Getter::VmFile(files) => files::vm_file(desktop, files).await,
        Getter::VmScreenSize {} => screen::screen_size(desktop).await,
        Getter::VmTerminalOutput {} => screen::terminal_output(desktop).await,
        Getter::VmWallpaper(dest) => screen::wallpaper(desktop, &dest.dest).await,
        Getter::VmWindowSize { app_class_name } => {
            screen::window_size(desktop, app_class_name).await
        }
        Getter::ActiveTabHtmlParse(_)
        | Getter::ActiveTabInfo(_)
        | Getter::ActiveTabUrlParse(_)
        | Getter::ActiveUrl(_)
        | Getter::AudioInSlide(_)
        | Getter::BackgroundImageInSlide(_)
        | Getter::Bookmarks {}
        | Getter::ChromeAppearanceModeUi {}
        | Getter::ChromeFontSize {}
        | Getter::ContentFromVmFile { .. }
        | Getter::CookieData(_)
        | Getter::DataDeleteAutomatically {}
        | Getter::DefaultSearchEngine {}
        | Getter::DefaultVideoPlayer {}
        | Getter::EnableDoNotTrack {}
        | Getter::EnableSafeBrowsing {}
        | Getter::FindInstalledExtensionName {}
        | Getter::FindUnpackedExtensionPath {}
        | Getter::GoogleDriveFile(_)
        | Getter::RecreationPage { .. }
        | Getter::History(_)
        | Getter::InfoFromWebsite { .. }
        | Getter::NewStartupPage {}
        | Getter::OpenTabsInfo {}
        | Getter::PageInfo { .. }
        | Getter::PdfFromUrl { .. }
        | Getter::ProfileName {}
        | Getter::ShortcutsOnDesktop {}
        | Getter::UrlDashPart(_)
        | Getter::UrlPathParse(_)
        | Getter::VlcPlayingInfo(_)
        | Getter::VscodeConfig { .. }
        | Getter::Untyped(_) => Err(GetterError::Elsewhere),
    }
}

/// A value that was found.
fn value(value: impl Into<Value>) -> Found {
    Found::Value(value.into())
}
