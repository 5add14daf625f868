//! Getters: what is read of a real desktop, as OSWorld's functions of these names bring it.
//!
//! Missing files, refused commands and broken settings are what OSWorld makes of them: nothing, a
//! default, an exception, which is no score. Departs: where the guest's server itself fails, OSWorld
//! mostly goes on with nothing; here the desktop has failed, and there is no score. Source:
//! `desktop_env/evaluators/getters` of desktop-env 1.0.2; cases are in
//! `tests/it/fixtures/differential`.

mod chrome;
mod code;
mod commands;
mod files;
mod players;
mod screen;
mod slides;
mod time;

#[cfg(test)]
pub(super) mod scripted;

use serde_json::Value;

use super::found::Found;
use crate::env::guest::GuestError;
use crate::env::{EnvError, RealDesktop};
use crate::types::osworld::Getter;
use crate::types::osworld::getter::UntypedGetter;

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
    #[error("cannot read {path}: {source}")]
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
        source: Box::new(source),
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
        Getter::ActiveTabUrlParse(how) => chrome::url_parse(desktop, how).await,
        Getter::ActiveUrl(prefix) => chrome::active_url(desktop, &prefix.goto_prefix).await,
        Getter::AudioInSlide(part) => slides::audio(desktop, part).await,
        Getter::BackgroundImageInSlide(part) => slides::background_image(desktop, part).await,
        Getter::Bookmarks {} => chrome::bookmarks(desktop).await,
        Getter::ChromeFontSize {} => chrome::font_size(desktop).await,
        Getter::CookieData(_) => chrome::cookies(desktop).await,
        Getter::DataDeleteAutomatically {} => chrome::data_delete(desktop).await,
        Getter::DefaultSearchEngine {} => chrome::default_search_engine(desktop).await,
        Getter::DefaultVideoPlayer {} => players::default_video_player(desktop).await,
        Getter::EnableDoNotTrack {} => chrome::tracking_is_refused(desktop).await,
        Getter::EnableSafeBrowsing {} => chrome::safe_browsing(desktop).await,
        Getter::FindInstalledExtensionName {} => chrome::extension_names(desktop).await,
        Getter::FindUnpackedExtensionPath {} => chrome::extension_paths(desktop).await,
        Getter::History(_) => chrome::history(desktop).await,
        Getter::NewStartupPage {} => chrome::new_startup_page(desktop).await,
        Getter::ProfileName {} => chrome::profile_name(desktop).await,
        Getter::ShortcutsOnDesktop {} => chrome::shortcuts_on_desktop(desktop).await,
        Getter::UrlDashPart(part) => chrome::url_dash_part(desktop, part).await,
        Getter::UrlPathParse(how) => chrome::url_path_parse(desktop, how).await,
        Getter::VlcPlayingInfo(dest) => players::vlc_playing(desktop, &dest.dest).await,
        Getter::VscodeConfig {
            vscode_extension_command: command,
            path,
            dest,
        } => code::config(desktop, command, path, dest).await,
        Getter::Untyped(getter) => untyped(getter, desktop).await,
        // Live sites, pages that only a browser's driver gets at, accounts of somebody's.
        Getter::ActiveTabHtmlParse(_)
        | Getter::ActiveTabInfo(_)
        | Getter::ChromeAppearanceModeUi {}
        | Getter::ContentFromVmFile { .. }
        | Getter::GoogleDriveFile(_)
        | Getter::RecreationPage { .. }
        | Getter::InfoFromWebsite { .. }
        | Getter::OpenTabsInfo {}
        | Getter::PageInfo { .. }
        | Getter::PdfFromUrl { .. } => Err(GetterError::Elsewhere),
    }
}

/// One that no task of OSWorld uses.
async fn untyped(getter: &UntypedGetter, desktop: RealDesktop<'_>) -> Result<Found, GetterError> {
    match getter.name {
        "chrome_language" => chrome::language(desktop).await,
        "enable_enhanced_safety_browsing" => chrome::safety_is_enhanced(desktop).await,
        "enabled_experiments" => chrome::enabled_experiments(desktop).await,
        "time_diff_range" => {
            let range = getter.parameters.get("diff_range_in_minutes");
            Ok(Found::Value(range.cloned().unwrap_or_default()))
        }
        _ => Err(GetterError::Elsewhere),
    }
}

/// A value that was found.
fn value(value: impl Into<Value>) -> Found {
    Found::Value(value.into())
}
