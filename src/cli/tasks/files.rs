//! `arpo tasks fetch` and `arpo tasks verify`.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use crate::cli::tasks::{Args, note_faults};
use crate::cli::{FAILED, async_runtime, note, say};
use crate::session::default_files;
use crate::tasks::fetch::{self, FetchOptions, Progress};
use crate::tasks::{FileCache, FileState, Library, Manifest, TaskSet};

/// Which files, and where they lie.
#[derive(Debug, clap::Args)]
pub(super) struct Place {
    /// Tasks whose files are meant, as in `arpo tasks list --set`
    #[arg(default_value = "all")]
    set: String,
    /// The cache; without it, `$XDG_CACHE_HOME/arpo/tasks`
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Manifest that says what the files have to be, such as that of another machine's cache
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct FetchArgs {
    #[command(flatten)]
    place: Place,
    /// Server to ask in place of `https://huggingface.co`
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Files at a time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// Tries a file
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    tries: u16,
}

#[derive(Debug, clap::Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    place: Place,
}

impl Place {
    fn cache(&self) -> anyhow::Result<PathBuf> {
        if let Some(folder) = &self.cache {
            return Ok(folder.clone());
        }
        default_files().context("neither XDG_CACHE_HOME nor HOME is set; say where with --cache")
    }

    fn pinned(&self) -> anyhow::Result<Option<Manifest>> {
        let read = self.manifest.as_deref().map(Manifest::read);
        Ok(read.transpose()?)
    }
}

pub(super) fn fetch(args: &Args, library: &Library, fetch: &FetchArgs) -> anyhow::Result<ExitCode> {
    let set = library.set(&fetch.place.set)?;
    note_faults(library);
    let root = fetch.place.cache()?;
    let options = FetchOptions {
        base_url: fetch.base_url.clone(),
        jobs: usize::from(fetch.jobs),
        tries: u32::from(fetch.tries),
        backoff: Duration::from_millis(500),
        stall: Duration::from_secs(30),
        pinned: fetch.place.pinned()?.unwrap_or_default(),
    };
    let urls = set.urls();
    let mut filling = FileCache::open(&root)?.fill()?;
    let shown = Shown::new(urls.len());
    let show = |event: Progress<'_>| shown.show(event);
    let fetching = fetch::fetch(&mut filling, &urls, &options, &show);
    let report = async_runtime()?
        .block_on(fetching)
        .with_context(|| format!("cannot fetch into {}", root.display()))?;
    shown.bar.finish_and_clear();
    let failed: Vec<Value> = report
        .failed
        .iter()
        .map(|(url, reason)| json!({ "url": url, "reason": reason, "tasks": tasks_of(&set, url) }))
        .collect();
    if args.json {
        say(json!({
            "files": urls.len(), "present": report.present, "fetched": report.fetched,
            "bytes": report.bytes, "failed": failed, "cache": root,
        }));
    } else {
        say(format_args!(
            "{} files: {} were there, {} fetched ({:.1} MB), {} failed; in {}",
            urls.len(),
            report.present,
            report.fetched,
            report.bytes as f64 / 1e6,
            report.failed.len(),
            root.display()
        ));
    }
    Ok(exit_code(report.failed.is_empty()))
}

/// Ids of the tasks that need a file.
fn tasks_of<'a>(set: &TaskSet<'a>, url: &str) -> Vec<&'a str> {
    let needing = set
        .files
        .iter()
        .filter(|file| file.needs.files.iter().any(|own| own == url));
    needing.map(|file| file.id()).collect()
}

/// Progress on stderr: a bar on a terminal, elsewhere a line now and then.
struct Shown {
    bar: ProgressBar,
    is_bar: bool,
    num_files: usize,
    done: Cell<usize>,
    bytes: Cell<u64>,
}

/// Files from one line of progress to the next.
const FILES_A_LINE: usize = 25;

impl Shown {
    fn new(num_files: usize) -> Self {
        let is_bar = std::io::stderr().is_terminal();
        let bar = if is_bar {
            let style = "{prefix:>9} {wide_bar:.cyan/dim} {pos}/{len} files {msg}";
            let style = ProgressStyle::with_template(style);
            let target = ProgressDrawTarget::stderr();
            ProgressBar::with_draw_target(Some(num_files as u64), target)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
                .with_prefix("fetch")
        } else {
            ProgressBar::hidden()
        };
        Self {
            bar,
            is_bar,
            num_files,
            done: Cell::new(0),
            bytes: Cell::new(0),
        }
    }

    fn show(&self, event: Progress<'_>) {
        match event {
            Progress::Present { .. } => self.done(),
            Progress::Bytes(bytes) => {
                self.bytes.set(self.bytes.get() + bytes);
                self.bar.set_message(self.megabytes());
            }
            Progress::Done { .. } => {
                self.done();
                if !self.is_bar && self.done.get().is_multiple_of(FILES_A_LINE) {
                    let (done, all) = (self.done.get(), self.num_files);
                    note(format_args!("{done} of {all} files, {}", self.megabytes()));
                }
            }
            Progress::Retry { url, reason } => self.line(&format!("trying again {url}: {reason}")),
            Progress::Failed { url, reason } => self.line(&format!("failed {url}: {reason}")),
        }
    }

    fn done(&self) {
        self.done.set(self.done.get() + 1);
        self.bar.inc(1);
    }

    fn megabytes(&self) -> String {
        format!("{:.1} MB", self.bytes.get() as f64 / 1e6)
    }

    fn line(&self, text: &str) {
        // A hidden bar suspends nothing.
        self.bar.suspend(|| note(text));
    }
}

pub(super) fn verify(
    args: &Args,
    library: &Library,
    verify: &VerifyArgs,
) -> anyhow::Result<ExitCode> {
    let set = library.set(&verify.place.set)?;
    note_faults(library);
    let root = verify.place.cache()?;
    let cache = FileCache::open(&root)?;
    let pinned = verify.place.pinned()?;
    let against = pinned.as_ref().unwrap_or(cache.manifest());
    let mut states: BTreeMap<String, FileState> = BTreeMap::new();
    for url in set.urls() {
        let state = cache.verify(&url, against)?;
        states.insert(url, state);
    }
    let mut incomplete = Vec::new();
    for file in &set.files {
        let of = |want: fn(&FileState) -> bool| -> Vec<&String> {
            let own = file.needs.files.iter();
            own.filter(|url| states.get(*url).is_some_and(want))
                .collect()
        };
        let missing = of(|state| matches!(state, FileState::Missing));
        let damaged = of(|state| matches!(state, FileState::Damaged { .. }));
        if !missing.is_empty() || !damaged.is_empty() {
            let (id, domain) = (file.id(), file.task.domain());
            incomplete.push(json!({
                "id": id, "domain": domain, "missing": missing, "damaged": damaged,
            }));
        }
    }
    report_verified(args, &set, &states, &incomplete, &root);
    Ok(exit_code(incomplete.is_empty()))
}

fn report_verified(
    args: &Args,
    set: &TaskSet<'_>,
    states: &BTreeMap<String, FileState>,
    incomplete: &[Value],
    root: &Path,
) {
    let good = states
        .values()
        .filter(|state| **state == FileState::Good)
        .count();
    let complete = set.files.len() - incomplete.len();
    if args.json {
        say(json!({
            "tasks": set.files.len(), "complete": complete, "files": states.len(), "good": good,
            "incomplete": incomplete, "cache": root,
        }));
        return;
    }
    for task in incomplete {
        let urls = |name: &str| task[name].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        say(format_args!(
            "{} {}",
            text(&task["domain"]),
            text(&task["id"])
        ));
        for url in urls("missing") {
            say(format_args!("  missing {}", text(&url)));
        }
        for url in urls("damaged") {
            let url = text(&url);
            if let Some(FileState::Damaged { reason }) = states.get(&url) {
                say(format_args!("  damaged {url}: {reason}"));
            }
        }
    }
    say(format_args!(
        "{complete} of {} tasks have their files, {good} of {} files are good; in {}",
        set.files.len(),
        states.len(),
        root.display()
    ));
    if complete < set.files.len() {
        say("`arpo tasks fetch` brings what is missing and damaged");
    }
}

fn exit_code(is_good: bool) -> ExitCode {
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    }
}
