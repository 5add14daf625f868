//! `arpo bench rollout`: an epoch of episodes on slow desktops, rehearsed in virtual time, beside
//! the bound that latency and decode rate set; the lock-step schedule beside it.
//!
//! Desktops, tasks, rendering, schedule and evaluation are the real ones; the expert answers at
//! the price of the profile's cost table, which was measured apart. Figures of virtual time
//! depend on profile and seed alone; wall time and memory on the machine.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::cli::args::ProfileArgs;
use crate::cli::bench::{desktops, memory, resolve_or};
use crate::cli::{async_runtime, note, say, wiring};
use crate::config::{CostTable, EnvKind, Profile, Schedule};
use crate::session::{Rehearsal, RehearsalSpec, rehearse};
use crate::types::Task;

/// Episodes a desktop where their number is not told. At the end of an epoch desktops stand idle
/// while the last slow step is awaited, half a minute or more; of so many episodes, of two actions
/// each, that is a small part.
const EPISODES_A_DESKTOP: usize = 128;

const MIB: f64 = (1 << 20) as f64;

/// `arpo bench rollout`.
#[derive(Debug, clap::Args)]
pub struct RolloutArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// What episodes run on
    #[arg(long, value_enum, default_value_t = Env::Simulated)]
    env: Env,
    /// Desktops instead of the profile's; the largest fleet of real ones, of up to 4
    #[arg(long, value_name = "N")]
    desktops: Option<usize>,
    /// Episodes of the epoch; 128 a desktop if absent
    #[arg(long, value_name = "N")]
    episodes: Option<NonZeroUsize>,
    /// The figures as one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// What can be rehearsed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Env {
    /// Drawn in this process, on a virtual clock
    Simulated,
    /// Sandboxes of this machine
    X11,
    /// Virtual machines of this machine
    Qemu,
}

impl Env {
    /// As it is written on the command line.
    fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::X11 => "x11",
            Self::Qemu => "qemu",
        }
    }

    /// The profile where none is named.
    fn profile(self) -> &'static str {
        match self {
            Self::Simulated => "rehearsal",
            Self::X11 => "x11",
            Self::Qemu => "qemu",
        }
    }

    fn kind(self) -> EnvKind {
        match self {
            Self::Simulated => EnvKind::Simulated,
            Self::X11 => EnvKind::Xvfb,
            Self::Qemu => EnvKind::Qemu,
        }
    }
}

impl RolloutArgs {
    /// The profile with this command's options laid over it.
    fn resolve(&self) -> anyhow::Result<Profile> {
        let mut profile = self.profile.clone();
        let desktops = self.desktops.map(|count| format!("env.desktops={count}"));
        profile.sets.extend(desktops);
        Ok(resolve_or(&profile, self.env.profile())?.profile)
    }
}

/// What both rehearsals share.
struct Rehearsing {
    profile: Profile,
    tasks: Vec<Arc<Task>>,
    episodes: usize,
}

pub(super) fn run(args: &RolloutArgs) -> anyhow::Result<ExitCode> {
    let profile = args.resolve()?;
    anyhow::ensure!(
        profile.env.kind == args.env.kind(),
        "the profile is of other desktops than --env: leave one of them out, or set env.kind"
    );
    if args.env != Env::Simulated {
        return run_real(args, &profile);
    }
    let tasks = wiring::tasks_of(&profile.tasks.pool)?;
    anyhow::ensure!(!tasks.is_empty(), "the task pool is empty; set tasks.pool");
    let desktops = profile.env.desktops;
    let episodes = args
        .episodes
        .map_or(EPISODES_A_DESKTOP * desktops, NonZeroUsize::get);
    let runtime = async_runtime()?;
    // First: memory that a rehearsal gave back would be taken again unseen.
    let desktop = runtime.block_on(memory::idle_desktop(&profile, &tasks))?;
    let rehearsing = Rehearsing {
        profile,
        tasks,
        episodes,
    };
    drop(runtime);
    let (eager, lock_step) = rehearsing.run_both()?;
    let figures = rehearsing.figures(&eager, &lock_step, desktop);
    rehearsing.tell(&eager, &lock_step, desktop);
    if args.json {
        say(figures);
    }
    Ok(ExitCode::SUCCESS)
}

/// Desktops of this machine, by the wall's clock.
fn run_real(args: &RolloutArgs, profile: &Profile) -> anyhow::Result<ExitCode> {
    let most = args.desktops.unwrap_or(usize::MAX);
    let figures = async_runtime()?.block_on(desktops::measure(args.env.name(), profile, most))?;
    if args.json {
        say(figures);
    }
    Ok(ExitCode::SUCCESS)
}

impl Rehearsing {
    /// The two schedules, each on a thread of its own.
    fn run_both(&self) -> anyhow::Result<(Rehearsal, Rehearsal)> {
        let (episodes, desktops) = (self.episodes, self.profile.env.desktops);
        note(format!(
            "rehearsing {episodes} episodes on {desktops} desktops, twice"
        ));
        std::thread::scope(|scope| {
            let eager = scope.spawn(|| self.run(Schedule::Async));
            let lock_step = self.run(Schedule::LockStep);
            let eager = eager.join().unwrap_or_else(|panic| resume_unwind(panic));
            Ok((eager?, lock_step?))
        })
    }

    fn run(&self, schedule: Schedule) -> anyhow::Result<Rehearsal> {
        let spec = RehearsalSpec {
            profile: self.profile.clone(),
            prompt: wiring::open_prompt(&self.profile)?,
            tasks: self.tasks.clone(),
            episodes: self.episodes,
            schedule,
        };
        let rehearsal = async_runtime()?.block_on(rehearse(&spec))?;
        anyhow::ensure!(
            rehearsal.episodes > 0,
            "no episode came to its end; see env.simulated.faults and deadline_s"
        );
        Ok(rehearsal)
    }

    /// The figures for people.
    fn tell(&self, eager: &Rehearsal, lock_step: &Rehearsal, desktop: memory::Desktop) {
        let law = self.profile.env.simulated.step_latency;
        note(format!(
            "a step takes {} s (log-normal, sigma {}), {} % of steps {} times that",
            law.median_s,
            law.sigma,
            law.tail_probability * 100.0,
            law.tail_factor
        ));
        note(format!(
            "bound {:.1} s: desktops {:.1} s ({:.1} s by the law), policy {:.1} s at {:.0} \
             tokens/s, longest episode {:.1} s",
            eager.bound_s,
            eager.desktops_s,
            eager.expected_desktops_s,
            eager.policy_s,
            decode_rate(&self.profile.engine.cost, self.profile.env.desktops),
            eager.longest_s
        ));
        for (rehearsal, schedule) in [(eager, Schedule::Async), (lock_step, Schedule::LockStep)] {
            note(format!(
                "{}: epoch {:.1} s, {:.1} % of the bound's pace; {} steps, {} errors, {:.1} s of \
                 wall time",
                words(schedule),
                rehearsal.epoch_s,
                rehearsal.efficiency * 100.0,
                rehearsal.steps,
                rehearsal.errors,
                rehearsal.wall_s
            ));
        }
        note(format!(
            "an idle desktop takes {:.0} kB beside its screenshot of {:.0} kB",
            desktop.bytes as f64 / 1e3,
            desktop.screenshot_bytes as f64 / 1e3
        ));
    }

    fn figures(&self, eager: &Rehearsal, lock_step: &Rehearsal, desktop: memory::Desktop) -> Value {
        let desktops = self.profile.env.desktops;
        let cost = &self.profile.engine.cost;
        let mut figures = json!({
            "env": "simulated",
            "desktops": desktops,
            "episodes": eager.episodes,
            "steps": eager.steps,
            "errors": eager.errors,
            "epoch_s": eager.epoch_s,
            "lockstep_epoch_s": lock_step.epoch_s,
            "bound_s": eager.bound_s,
            "policy_s": eager.policy_s,
            "desktops_s": eager.desktops_s,
            "expected_desktops_s": eager.expected_desktops_s,
            "longest_s": eager.longest_s,
            "step_latency": self.profile.env.simulated.step_latency,
            "cost": cost,
            "full_batch_tokens_per_s": decode_rate(cost, desktops),
            "wall_s": eager.wall_s,
            "lockstep_wall_s": lock_step.wall_s,
            "rss_mb": memory::peak_bytes().map(|bytes| bytes as f64 / MIB),
            "bytes_per_desktop": desktop.bytes,
            "screenshot_bytes": desktop.screenshot_bytes,
        });
        figures[format!("efficiency_{desktops}")] = json!(eager.efficiency);
        figures[format!("lockstep_efficiency_{desktops}")] = json!(lock_step.efficiency);
        figures
    }
}

fn words(schedule: Schedule) -> &'static str {
    match schedule {
        Schedule::Async => "each going on when it can",
        Schedule::LockStep => "in lock step",
    }
}

/// Tokens a second that a batch of all desktops decodes.
fn decode_rate(cost: &CostTable, desktops: usize) -> f64 {
    desktops as f64 * 1e6 / (cost.batch_us(0, 0, desktops) as f64).max(1.0)
}
