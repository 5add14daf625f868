//! `arpo bench watched`: how much longer the engine's iterations take with a console attached, and
//! with one whose terminal stands still.
//!
//! The same run four times. A run on the CPU is a function of its profile and seed, so iteration
//! `k` is the same work in each; blocks of iterations are watched in turns such that every `k` is
//! watched in each way once, and two of the ways are nobody: what those two differ by is the
//! machine's noise. Times are compared iteration by iteration, never over whole runs, so that a
//! machine that gets slower for a while is slower for all ways alike.
//!
//! A run stands still while consoles change, all ways alike, and goes on when the new console has
//! its first screen and its pictures: what is measured is being watched. What a console costs to
//! start is `arpo bench console`'s. Consoles and engine share the machine's cores here, as they do
//! where an operator works on the machine that trains; the engine's own time on cores, told beside
//! the ratio, leaves out what it waits for one.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::args::ProfileArgs;
use crate::cli::bench::folder::Folder;
use crate::cli::bench::line::{Attached, LineSpec, Room};
use crate::cli::bench::paired::Paired;
use crate::cli::bench::stepped::{Closing, StepSpec, Stepped};
use crate::cli::bench::{median, resolve_or};
use crate::cli::{INTERRUPTED, async_runtime, note, say};

/// The profile where none is named.
const PROFILE: &str = "demo";
/// Iterations that no figure counts: memory is taken for the first time, files are read.
const WARM_UP: usize = 2;
/// Iterations watched in the same way before it is another's turn: seconds in which a console that
/// cannot write would fill whatever lies between it and the engine.
const BLOCK: usize = 3;
/// The run stands for so long after its console's first screen: pictures are fetched.
const SETTLE: Duration = Duration::from_secs(1);
/// A console that has not drawn, or not left, by then never will.
const PATIENCE: Duration = Duration::from_secs(60);
/// The consoles' terminal.
const ROOM: Room = Room {
    columns: 160,
    rows: 48,
};

/// `arpo bench watched`.
#[derive(Debug, clap::Args)]
pub struct WatchedArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// Iterations compared, of each of the four runs; multiples of 12 share them out evenly
    #[arg(long, value_name = "N", default_value_t = 24,
          value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,
    /// The figures as one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Who watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watching {
    Nobody,
    /// A console whose terminal takes everything.
    One,
    /// A console whose terminal takes nothing after the first screen.
    Stalled,
    /// For the noise.
    NobodyAgain,
}

const TURNS: [Watching; 4] = [
    Watching::Nobody,
    Watching::One,
    Watching::Stalled,
    Watching::NobodyAgain,
];

/// Who watches iteration `counted` of run `run`, both from 0, warm-up left out: a Latin square.
fn watching(run: usize, counted: usize) -> Watching {
    TURNS[(run + counted / BLOCK) % TURNS.len()]
}

/// The run in which iteration `counted` was watched so.
fn run_where(who: Watching, counted: usize) -> usize {
    let mut runs = 0..TURNS.len();
    let found = runs.find(|run| watching(*run, counted) == who);
    found.expect("every iteration is watched in each way once")
}

/// What is told of one way of being watched.
#[derive(Debug, Serialize)]
struct Figures {
    /// Of wall time.
    #[serde(flatten)]
    wall: Paired,
    /// Whether its interval overlaps that of no console at all; absent for the latter.
    #[serde(skip_serializing_if = "Option::is_none")]
    within_noise: Option<bool>,
    /// The same of the time that the engine kept cores busy: waiting for a core does not count.
    engine_cpu: Paired,
}

pub(super) fn run(args: &WatchedArgs) -> anyhow::Result<ExitCode> {
    // A bad profile is told without starting the engine.
    resolve_or(&args.profile, PROFILE)?;
    let folder = Folder::new()?;
    let runtime = async_runtime()?;
    let runs = runtime.block_on(async {
        tokio::select! {
            // First, since an interrupt of the terminal ends the engine too.
            biased;
            heard = interrupted() => heard.map(|()| None),
            runs = measure(args, folder.path()) => runs.map(Some),
        }
    })?;
    let Some(runs) = runs else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    tell(&runs, args.json);
    Ok(ExitCode::SUCCESS)
}

/// Returns when the operator wants it to end.
async fn interrupted() -> anyhow::Result<()> {
    let heed = |kind| signal(kind).context("cannot heed interrupts");
    let mut interrupt = heed(SignalKind::interrupt())?;
    let mut terminate = heed(SignalKind::terminate())?;
    let mut hangup = heed(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(())
}

/// One of the four runs.
struct Measured {
    /// Seconds of wall time by counted iteration.
    wall_s: Vec<f64>,
    /// The engine's seconds on cores.
    cpu_s: Vec<f64>,
    closing: Closing,
}

async fn measure(args: &WatchedArgs, folder: &Path) -> anyhow::Result<Vec<Measured>> {
    let words = words(args);
    let mut runs = Vec::with_capacity(TURNS.len());
    for number in 0..TURNS.len() {
        note(format!(
            "run {} of {}: {WARM_UP} iterations to warm up and {} that count",
            number + 1,
            TURNS.len(),
            args.iterations
        ));
        let spec = StepSpec {
            words: &words,
            run: folder.join(format!("runs/watched-{}", number + 1)),
            sockets: folder.join("sockets"),
        };
        runs.push(measure_run(spec, number, args.iterations as usize).await?);
    }
    Ok(runs)
}

/// Arguments of `arpo train`. Nothing but iterations is measured, and on the CPU, where the same
/// seed is the same work.
fn words(args: &WatchedArgs) -> Vec<String> {
    let mut words = Vec::new();
    let profiles = &args.profile.profiles;
    let default = [PROFILE.to_owned()];
    let profiles = if profiles.is_empty() {
        &default[..]
    } else {
        profiles
    };
    for profile in profiles {
        words.extend(["-p".to_owned(), profile.clone()]);
    }
    let ours = ["eval.heldout_instances=0", "engine.device=cpu"].map(str::to_owned);
    for set in args.profile.sets.iter().chain(&ours) {
        words.extend(["--set".to_owned(), set.clone()]);
    }
    let iterations = WARM_UP + args.iterations as usize;
    words.extend(["--iterations".to_owned(), iterations.to_string()]);
    words
}

async fn measure_run(
    spec: StepSpec<'_>,
    number: usize,
    iterations: usize,
) -> anyhow::Result<Measured> {
    let mut run = Stepped::start(spec).await?;
    for warming in 0..WARM_UP {
        let standing = run.stand(warming).await?;
        run.step(standing).await?;
    }
    let mut cpu_s = Vec::with_capacity(iterations);
    let mut console = None;
    for counted in 0..iterations {
        let standing = run.stand(WARM_UP + counted).await?;
        if counted.is_multiple_of(BLOCK) {
            leave(console.take());
            console = attach(watching(number, counted), run.socket())?;
            tokio::time::sleep(SETTLE).await;
        }
        cpu_s.push(run.step(standing).await?.cpu_s);
    }
    leave(console);
    let closing = run.finish().await?;
    let counted = closing.reports.iter().skip(WARM_UP);
    Ok(Measured {
        wall_s: counted.map(|report| report.wall_ms as f64 / 1e3).collect(),
        cpu_s,
        closing,
    })
}

/// A console and who it is.
type Watcher = (Watching, Attached);

/// The console that watches, if one does, with its first screen.
fn attach(who: Watching, socket: &Path) -> anyhow::Result<Option<Watcher>> {
    if matches!(who, Watching::Nobody | Watching::NobodyAgain) {
        return Ok(None);
    }
    let console = Attached::start(&[Path::new("attach"), socket], ROOM, LineSpec::LOCAL)?;
    console.first_frame(PATIENCE)?;
    if who == Watching::Stalled {
        console.stall();
    }
    Ok(Some((who, console)))
}

/// A console that can still write leaves; the other is ended.
fn leave(console: Option<Watcher>) {
    if let Some((Watching::One, console)) = console {
        console.leave(PATIENCE);
    }
}

/// Seconds of an iteration in a way of being watched, beside those of the same one unwatched.
fn pairs(
    runs: &[Measured],
    who: Watching,
    seconds: impl Fn(&Measured) -> &Vec<f64>,
) -> Vec<(f64, f64)> {
    let of = |who, counted| seconds(&runs[run_where(who, counted)])[counted];
    let iterations = 0..seconds(&runs[0]).len();
    iterations
        .map(|counted| (of(who, counted), of(Watching::Nobody, counted)))
        .collect()
}

/// The figures, for people and as JSON.
fn tell(runs: &[Measured], as_json: bool) {
    let wall = |who| Paired::of(&pairs(runs, who, |run| &run.wall_s));
    let noise = wall(Watching::NobodyAgain);
    let figures = |who| {
        let wall = wall(who);
        Figures {
            within_noise: (who != Watching::NobodyAgain).then(|| wall.overlaps(&noise)),
            wall,
            engine_cpu: Paired::of(&pairs(runs, who, |run| &run.cpu_s)),
        }
    };
    let again = figures(Watching::NobodyAgain);
    let (one, stalled) = (figures(Watching::One), figures(Watching::Stalled));
    let unwatched = pairs(runs, Watching::Nobody, |run| &run.wall_s);
    let iteration_s = median(unwatched.iter().map(|(wall_s, _)| *wall_s).collect());
    let first = &runs[0].closing;
    let same = runs.iter().all(|run| run.closing.is_same(first));
    note(format!("iteration with no console: {iteration_s:.3} s"));
    for (name, figures) in [
        ("no console again, the noise", &again),
        ("one console", &one),
        ("one whose terminal is stalled", &stalled),
    ] {
        note(line(name, figures));
    }
    note(format!(
        "same figures in all runs: {} (target: yes)",
        if same { "yes" } else { "no" }
    ));
    if as_json {
        say(json!({
            "iterations": unwatched.len(),
            "iteration_s": iteration_s,
            "one": one,
            "stalled": stalled,
            "none_again": again,
            "same_figures": same,
        }));
    }
}

fn line(name: &str, figures: &Figures) -> String {
    let ratio =
        |ratio: &Paired| format!("{:.3} [{:.3}, {:.3}]", ratio.ratio, ratio.low, ratio.high);
    let target = match figures.within_noise {
        Some(true) => " (target: overlaps the noise; it does)",
        Some(false) => " (target: overlaps the noise; it does not)",
        None => "",
    };
    format!(
        "{name}: {} of its time{target}, {} of the engine's time on cores",
        ratio(&figures.wall),
        ratio(&figures.engine_cpu),
    )
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, TURNS, Watching, run_where, watching};

    #[test]
    fn every_iteration_is_watched_in_each_way_once() {
        for counted in 0..5 * BLOCK * TURNS.len() {
            let mut runs = TURNS.map(|who| run_where(who, counted)).to_vec();
            for (who, run) in TURNS.iter().zip(&runs) {
                assert_eq!(watching(*run, counted), *who, "iteration {counted}");
            }
            runs.sort_unstable();
            assert_eq!(runs, [0, 1, 2, 3], "iteration {counted}");
        }
    }

    #[test]
    fn every_run_is_watched_in_each_way_equally_long() {
        let round = BLOCK * TURNS.len();
        for run in 0..TURNS.len() {
            for who in TURNS {
                let watched = (0..round).filter(|counted| watching(run, *counted) == who);
                assert_eq!(watched.count(), BLOCK, "run {run}, {who:?}");
            }
        }
    }

    #[test]
    fn a_console_stays_for_a_block() {
        assert_eq!(watching(0, 0), Watching::Nobody);
        for run in 0..TURNS.len() {
            for counted in 0..5 * BLOCK {
                let stays = watching(run, counted) == watching(run, counted + 1);
                assert_eq!(
                    stays,
                    !(counted + 1).is_multiple_of(BLOCK),
                    "{run}, {counted}"
                );
            }
        }
    }
}
