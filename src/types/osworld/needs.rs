//! What a task needs beside a desktop: files from the web, the live web, a proxy, credentials.
//!
//! Files are fetched by the host and can be cached. Use of the live web is derived from what the
//! task names; a task that names nothing may still ask for it in words.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use super::setup::HISTORY_FILE;
use super::{Getter, OsworldTask, Setup};
use crate::types::{OneOrMany, Task};

/// Commands that reach the web: packages, downloads, clones.
static FETCHES: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"\b(?:(?:apt|apt-get|pip3?|conda|npm|snap)\s(?:-\S+\s)*(?:install|update)|wget\s|curl\s|git clone)";
    Regex::new(pattern).expect("the pattern is a regular expression")
});

/// An address on the web and its host.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"https?://([\w.-]+)").expect("the pattern is a regular expression")
});

/// How a task uses the live web.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InternetUse {
    /// It asks for the proxy.
    Proxy,
    /// Its set-up opens pages.
    Tabs,
    /// Its set-up installs or downloads within the desktop.
    Commands,
    /// Its evaluator reads a live page, or the address of one.
    Pages,
    /// Its files or its account are on Google Drive.
    Google,
    /// Its instruction names an address.
    Instruction,
}

/// What a task needs beside a desktop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskNeeds {
    /// Addresses of files that the host fetches, each once, in the order of the task.
    pub files: Vec<String>,
    /// How it uses the live web, each way once.
    pub internet: Vec<InternetUse>,
    /// Whether it needs credentials of Google.
    pub google: bool,
}

impl TaskNeeds {
    /// The needs of a task.
    pub fn of(task: &Task, typed: &OsworldTask) -> Self {
        let google = typed
            .steps()
            .any(|step| matches!(step, Setup::GoogleDrive(_) | Setup::Login { .. }))
            || typed
                .getters()
                .any(|getter| matches!(getter, Getter::GoogleDriveFile(_)));
        let mut internet = Vec::new();
        internet.extend(typed.proxy.then_some(InternetUse::Proxy));
        internet.extend(typed.steps().filter_map(use_of_step));
        internet.extend(typed.getters().filter_map(use_of_getter));
        internet.extend(google.then_some(InternetUse::Google));
        let named = is_remote(&task.instruction).then_some(InternetUse::Instruction);
        internet.extend(named);
        internet.sort_unstable();
        internet.dedup();
        Self {
            files: files(typed),
            internet,
            google,
        }
    }
}

/// Whether a text names an address that is not the desktop itself.
fn is_remote(text: &str) -> bool {
    let mut hosts = ADDRESS.captures_iter(text);
    hosts.any(|host| !host[1].starts_with("localhost") && !host[1].starts_with("127."))
}

fn use_of_step(step: &Setup) -> Option<InternetUse> {
    let command = |command: &OneOrMany<String>| {
        let parts: Vec<&str> = command.iter().map(String::as_str).collect();
        let line = parts.join(" ");
        (FETCHES.is_match(&line) || is_remote(&line)).then_some(InternetUse::Commands)
    };
    match step {
        Setup::Proxy { .. } => Some(InternetUse::Proxy),
        Setup::ChromeOpenTabs { urls_to_open } => {
            let is_page = urls_to_open.iter().any(|url| is_remote(url));
            is_page.then_some(InternetUse::Tabs)
        }
        Setup::Launch { command: line, .. }
        | Setup::ExecuteWithVerification { command: line, .. } => command(line),
        Setup::Execute(execute) | Setup::Command(execute) => command(&execute.command),
        Setup::GoogleDrive(_) | Setup::Login { .. } => Some(InternetUse::Google),
        Setup::Download { .. }
        | Setup::Open { .. }
        | Setup::ActivateWindow(_)
        | Setup::CloseWindow(_)
        | Setup::Sleep { .. }
        | Setup::ChromeCloseTabs { .. }
        | Setup::UpdateBrowseHistory { .. }
        | Setup::ChangeWallpaper { .. }
        | Setup::UploadFile { .. } => None,
    }
}

/// Getters of Chrome's page need the page; those of its address need one unless what stands
/// before the address says that it is Chrome's own.
fn use_of_getter(getter: &Getter) -> Option<InternetUse> {
    let is_page = match getter {
        Getter::ActiveTabHtmlParse(_)
        | Getter::ActiveTabInfo(_)
        | Getter::GoogleDriveFile(_)
        | Getter::InfoFromWebsite { .. }
        | Getter::OpenTabsInfo {}
        | Getter::PageInfo { .. }
        | Getter::PdfFromUrl { .. }
        | Getter::RecreationPage { .. } => true,
        Getter::ActiveUrl(prefix) => prefix.goto_prefix.starts_with("http"),
        Getter::ActiveTabUrlParse(parse) | Getter::UrlPathParse(parse) => {
            parse.goto_prefix.starts_with("http")
        }
        Getter::UrlDashPart(part) => part.goto_prefix.starts_with("http"),
        _ => false,
    };
    is_page.then_some(InternetUse::Pages)
}

fn files(typed: &OsworldTask) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    let mut add = |url: &str| {
        if !files.iter().any(|known| known == url) {
            files.push(url.to_owned());
        }
    };
    for step in typed.steps() {
        match step {
            Setup::Download { files } => files.iter().for_each(|file| add(&file.url)),
            Setup::GoogleDrive(drive) => {
                drive
                    .args
                    .iter()
                    .filter_map(|one| one.url.as_ref())
                    .for_each(|url| add(url));
            }
            Setup::UpdateBrowseHistory { .. } => add(HISTORY_FILE),
            _ => {}
        }
    }
    for getter in typed.getters() {
        if let Getter::CloudFile(cloud) = getter {
            cloud.files.iter().for_each(|file| add(&file.path));
        }
    }
    files
}
