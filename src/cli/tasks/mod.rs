//! `arpo tasks`: OSWorld's task data, seen, checked and brought onto this machine.

mod check;
mod files;
mod list;
mod sidecar;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use crate::cli::note;
use crate::tasks::{Library, TaskFile};

/// List, show and check OSWorld's tasks, and fetch the files they need
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
    /// Folder with examples/DOMAIN/ID.json, such as OSWorld's `evaluation_examples`; without it,
    /// the tasks that come with arpo
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// The tasks of a set, and what each needs
    List(Chosen),
    /// One task: what it asks, how it is set up and judged
    Show(Shown),
    /// Whether all files load, and who carries out what they name
    Check,
    /// Download the files that a set needs into the cache, going on where it was cut
    Fetch(files::FetchArgs),
    /// Read the cache again and say which tasks lack files or have damaged ones
    Verify(files::VerifyArgs),
    /// Install OSWorld's own evaluators, which score what arpo does not, going on where it was cut
    Sidecar(sidecar::SidecarArgs),
}

/// Which tasks a command is about.
#[derive(Debug, clap::Args)]
struct Chosen {
    /// Terms joined by +, & and -: all, a list (arpo_128), a domain, feasible, infeasible, proxy,
    /// internet, google, a list file, an id
    #[arg(long, default_value = "all")]
    set: String,
    /// Only tasks of this domain
    #[arg(long)]
    domain: Option<String>,
}

/// Which task is shown, and how.
#[derive(Debug, clap::Args)]
struct Shown {
    /// Its id, or the beginning of it
    id: String,
    /// Print its file, unchanged
    #[arg(long, conflicts_with = "json")]
    source: bool,
}

impl Chosen {
    /// The set as one expression.
    fn expression(&self) -> String {
        match &self.domain {
            Some(domain) => format!("{} & {domain}", self.set),
            None => self.set.clone(),
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let library = match &args.data {
        Some(folder) => Library::open(folder),
        None => Library::shipped(),
    };
    let library = library.context("cannot read the tasks")?;
    match &args.action {
        Action::List(chosen) => list::list(args, &library, chosen),
        Action::Show(shown) => list::show(args, &library, shown),
        Action::Check => Ok(check::check(args, &library)),
        Action::Fetch(fetch) => files::fetch(args, &library, fetch),
        Action::Verify(verify) => files::verify(args, &library, verify),
        Action::Sidecar(sidecar) => sidecar::sidecar(sidecar, args.json),
    }
}

/// Says which files a listing leaves out.
fn note_faults(library: &Library) {
    for faulty in library.faults() {
        note(format_args!("left out: {}", faulty.to_error()));
    }
}

/// What a task needs, in words.
fn needs(file: &TaskFile) -> Vec<&'static str> {
    let flags = [
        ("proxy", file.typed.proxy),
        ("internet", !file.needs.internet.is_empty()),
        ("google", file.needs.google),
    ];
    let set = flags.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(name, _)| name).collect()
}
