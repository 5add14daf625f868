//! `arpo bench rollout --env x11` and `--env qemu`: what real desktops of this machine take to start,
//! to be brought back, to be seen and to react, and what a fleet of them gets through.
//!
//! Everything is asked as rollouts ask it. The peer is the same machine brought back as OSWorld's
//! Docker provider does it, by a start from nothing: `ratio` is that time over a revert's.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};

use crate::cli::bench::median;
use crate::cli::eval::open_scripted;
use crate::cli::{note, wiring};
use crate::config::{EnvKind, Profile};
use crate::env::guest::{Command, Guest};
use crate::env::{Environment, Machine, MachineEars, MachineNews, Reporter, qemu};
use crate::session::{Desktops, Timed, TimingSpec, time_episodes};
use crate::types::{Action, MachinePhase, Screenshot, Task};

/// Reverts that are timed, after the first, which may have to make what the others begin from.
const REVERTS: usize = 12;
/// Looks, and actions, that are timed.
const LOOKS: usize = 20;
/// How long an idle machine's processes are watched.
const IDLE: Duration = Duration::from_secs(10);
/// Fleets that play, and episodes each of their desktops plays.
const FLEETS: [usize; 3] = [1, 2, 4];
const EPISODES_A_DESKTOP: usize = 2;
/// For a picture to change.
const PATIENCE: Duration = Duration::from_secs(30);

const MIB: f64 = (1 << 20) as f64;

/// All of it; `profile` is of real desktops, which go by `name`.
pub(super) async fn measure(name: &str, profile: &Profile, most: usize) -> anyhow::Result<Value> {
    let mut figures = one_machine(name, profile).await?;
    let tasks = wiring::tasks_of(&profile.tasks.pool)?;
    // The shortest, so that desktops, not scripts, are what is timed.
    let tasks = shortest(profile, tasks)?;
    let mut rates = Vec::new();
    for desktops in FLEETS.into_iter().filter(|count| *count <= most) {
        let timed = fleet(profile, &tasks, desktops).await?;
        let an_hour = timed.episodes as f64 * 3600.0 / timed.wall_s;
        note(format!(
            "{desktops} at once: {} episodes of {} steps in {:.0} s, {an_hour:.0} an hour, {} \
             solved, {} errors",
            timed.episodes,
            timed.steps / timed.episodes.max(1),
            timed.wall_s,
            timed.successes,
            timed.errors
        ));
        rates.push(json!({
            "desktops": desktops,
            "episodes": timed.episodes,
            "successes": timed.successes,
            "errors": timed.errors,
            "wall_s": timed.wall_s,
            "episodes_per_hour": an_hour,
        }));
    }
    figures["fleets"] = json!(rates);
    Ok(figures)
}

/// What a machine tells of itself while it starts.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Story>>);

#[derive(Default)]
struct Story {
    phases: Vec<(Instant, MachinePhase)>,
    kind: String,
}

impl Heard {
    fn ears(&self) -> MachineEars {
        let story = Arc::clone(&self.0);
        Arc::new(move |_, news| {
            let mut story = story.lock().unwrap_or_else(PoisonError::into_inner);
            match news {
                MachineNews::Status(status) => {
                    story.phases.push((Instant::now(), status.phase));
                }
                MachineNews::Health(health) => story.kind = health.kind,
                MachineNews::Picture(_) | MachineNews::Said(_) => {}
            }
        })
    }

    /// From the start of its program to a system that answers.
    fn boot(&self) -> Option<Duration> {
        let is_boot = |phase| matches!(phase, MachinePhase::Starting | MachinePhase::Booting);
        let story = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut phases = story.phases.iter();
        let (began, _) = phases.find(|(_, phase)| is_boot(*phase))?;
        let (ended, _) = phases.find(|(_, phase)| !is_boot(*phase))?;
        Some(*ended - *began)
    }

    fn kind(&self) -> String {
        let story = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        story.kind.clone()
    }
}

/// One machine alone, from nothing.
async fn one_machine(name: &str, profile: &Profile) -> anyhow::Result<Value> {
    let heard = Heard::default();
    let bare = without_spare(profile);
    let folder = from_nothing(&bare)?;
    let bare = folder
        .as_ref()
        .map_or(bare.clone(), |folder| folder.of(&bare));
    let Desktops::Real { provider, .. } = Desktops::of(&bare, heard.ears())? else {
        anyhow::bail!("env.kind: these desktops are no machines");
    };
    let mut machine = provider.machine(0, Reporter::new(0, heard.ears()))?;
    note("starting one from nothing".to_owned());
    let began = Instant::now();
    machine.revert().await?;
    let first_s = began.elapsed().as_secs_f64();
    let boot_s = heard.boot().map_or(first_s, |boot| boot.as_secs_f64());
    note(format!(
        "booted in {boot_s:.1} s{}; ready after {first_s:.1} s",
        match heard.kind().as_str() {
            "" => String::new(),
            kind => format!(" ({kind})"),
        }
    ));
    let reverts = reverts(machine.as_mut()).await?;
    let (p50, p95) = (median(reverts.clone()), at_95_percent(reverts));
    note(format!("reverted in {p50:.2} s, 95 % within {p95:.2} s"));
    let looks = looks(machine.as_ref()).await?;
    let step_s = steps(machine.guest()).await?;
    let idle = idle(machine.as_ref()).await;
    let changes_ms = changes(machine.guest()).await?;
    let memory_mb = machine.memory_bytes().map(|bytes| bytes as f64 / MIB);
    machine.close().await?;
    note(format!(
        "a picture in {:.0} ms, an action in {step_s:.2} s, seen after {changes_ms:.0} ms",
        looks.guest_ms
    ));
    Ok(json!({
        "env": name,
        "accelerator": heard.kind(),
        "ratio": boot_s / p50,
        "boot_s": boot_s,
        "ready_s": first_s,
        "revert_p50_s": p50,
        "revert_p95_s": p95,
        "screenshot_ms": looks.guest_ms,
        "picture_ms": looks.outside_ms,
        "step_s": step_s,
        "change_ms": changes_ms,
        "memory_mb": memory_mb,
        "idle_cpu": idle,
    }))
}

/// The profile with machines that are started only when they are asked for.
fn without_spare(profile: &Profile) -> Profile {
    let mut profile = profile.clone();
    profile.env.xvfb.spare = false;
    profile.env.qemu.spare = false;
    profile
}

/// An image of which no snapshot was made yet, where machines start from one.
struct Unstarted(tempfile::TempDir);

impl Unstarted {
    fn of(&self, profile: &Profile) -> Profile {
        let mut profile = profile.clone();
        profile.env.qemu.image = self.0.path().display().to_string();
        profile
    }
}

/// The same image under another name.
fn from_nothing(profile: &Profile) -> anyhow::Result<Option<Unstarted>> {
    use std::os::unix::fs::PermissionsExt;
    if profile.env.kind != EnvKind::Qemu {
        return Ok(None);
    }
    qemu::needs::check_image(&profile.env.qemu).map_err(anyhow::Error::msg)?;
    let image = profile.env.qemu.image_folder();
    let shown = image.display();
    let folder = tempfile::Builder::new()
        .prefix("bench-")
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir_in(&image);
    let folder = folder.with_context(|| {
        format!("cannot make a folder in {shown}: name an image of yours with env.qemu.image")
    })?;
    for file in std::fs::read_dir(&image).with_context(|| format!("cannot read {shown}"))? {
        let file = file?;
        if file.file_type()?.is_file() {
            std::fs::hard_link(file.path(), folder.path().join(file.file_name()))?;
        }
    }
    Ok(Some(Unstarted(folder)))
}

/// Times of reverts, s.
async fn reverts(machine: &mut dyn Machine) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::with_capacity(REVERTS);
    for _ in 0..REVERTS {
        let began = Instant::now();
        machine.revert().await?;
        times.push(began.elapsed().as_secs_f64());
    }
    Ok(times)
}

/// The value that 95 % are not above.
fn at_95_percent(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let index = (values.len() * 95).div_ceil(100).saturating_sub(1);
    values.get(index).copied().unwrap_or(f64::NAN)
}

/// How long a picture takes, ms.
struct Looks {
    /// From the guest's server.
    guest_ms: f64,
    /// Past it, where that can be.
    outside_ms: Option<f64>,
}

async fn looks(machine: &dyn Machine) -> anyhow::Result<Looks> {
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for _ in 0..LOOKS {
        let began = Instant::now();
        machine.guest().screenshot().await?;
        inside.push(ms(began.elapsed()));
        let began = Instant::now();
        if machine.picture().await.is_some() {
            outside.push(ms(began.elapsed()));
        }
    }
    Ok(Looks {
        guest_ms: median(inside),
        outside_ms: (!outside.is_empty()).then(|| median(outside)),
    })
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// An action and the picture after it, without any wait for the screen to come to rest, s.
async fn steps(guest: &Guest) -> anyhow::Result<f64> {
    let mut times = Vec::with_capacity(LOOKS);
    for place in 0..LOOKS {
        let at = crate::types::Point {
            x: 40.0 + 8.0 * place as f32,
            y: 60.0,
        };
        let began = Instant::now();
        guest.act(&Action::Hover { at }).await?;
        guest.screenshot().await?;
        times.push(began.elapsed().as_secs_f64());
    }
    Ok(median(times))
}

/// The part of a core that an idle machine takes; none where that is not known.
async fn idle(machine: &dyn Machine) -> Option<f64> {
    let before = machine.cpu_time()?;
    let began = Instant::now();
    tokio::time::sleep(IDLE).await;
    let taken = machine.cpu_time()?.saturating_sub(before);
    Some(taken.as_secs_f64() / began.elapsed().as_secs_f64())
}

/// From a key to a picture that shows it, in a terminal, ms. Pictures are asked for one after
/// another, so that one of them is part of it.
async fn changes(guest: &Guest) -> anyhow::Result<f64> {
    let terminal = Command::program(["xterm", "-geometry", "80x24+60+60", "-e", "cat"]);
    let before = guest.screenshot().await?;
    guest.launch(&terminal).await?;
    let mut seen = changed(guest, &before).await?;
    // It may still be drawn.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut times = Vec::with_capacity(LOOKS);
    for _ in 0..LOOKS {
        // What its window drew meanwhile, such as a border.
        let mut last = guest.screenshot().await?;
        while last.hash() != seen.hash() {
            seen = std::mem::replace(&mut last, guest.screenshot().await?);
        }
        let began = Instant::now();
        let content = "x".to_owned();
        guest.act(&Action::Type { content }).await?;
        seen = changed(guest, &last).await?;
        times.push(ms(began.elapsed()));
    }
    Ok(median(times))
}

/// The first picture that is another one.
async fn changed(guest: &Guest, before: &Screenshot) -> anyhow::Result<Screenshot> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let now = guest.screenshot().await?;
        if now.hash() != before.hash() {
            return Ok(now);
        }
    }
    anyhow::bail!(
        "nothing changes on the screen within {} s",
        PATIENCE.as_secs()
    )
}

/// The task of the pool whose script is the shortest.
fn shortest(profile: &Profile, tasks: Vec<Arc<Task>>) -> anyhow::Result<Vec<Arc<Task>>> {
    let script = crate::config::assets::locate(&profile.policy.script);
    let crate::policy::scripted::Script::Replies(script) =
        crate::policy::scripted::Script::read(&script)?
    else {
        return Ok(tasks);
    };
    let length = |task: &Arc<Task>| {
        let trials = script.get(&task.id.0);
        trials
            .and_then(|trials| trials.first())
            .map_or(usize::MAX, Vec::len)
    };
    let task = tasks.into_iter().min_by_key(length);
    Ok(vec![
        task.context("the task pool is empty; set tasks.pool")?,
    ])
}

/// Episodes on so many desktops, the first of which has been up before the clock starts, so that
/// what all of them begin from is there.
async fn fleet(profile: &Profile, tasks: &[Arc<Task>], count: usize) -> anyhow::Result<Timed> {
    let desktops = Desktops::of(profile, Arc::new(|_, _| {}))?;
    let opened = (0..count as u32).map(|number| desktops.open(number));
    let mut envs: Vec<Box<dyn Environment>> = opened.collect::<Result<_, _>>()?;
    if let (Some(first), Some(task)) = (envs.first_mut(), tasks.first()) {
        first.reset(task, 0).await?;
    }
    let prompt = wiring::open_prompt(profile)?;
    let policy = open_scripted(profile)?;
    let spec = TimingSpec {
        profile,
        prompt: &prompt,
        policy: policy.as_ref(),
        tasks,
        episodes: count * EPISODES_A_DESKTOP,
    };
    let timed = time_episodes(&spec, &mut envs).await;
    for env in &mut envs {
        env.close().await?;
    }
    Ok(timed)
}

#[cfg(test)]
mod tests {
    use super::at_95_percent;

    #[test]
    fn of_twenty_one_may_be_slower() {
        let table: [(&[f64], f64); 4] = [
            (&[3.0], 3.0),
            (&[2.0, 1.0], 2.0),
            (&[1.0, 9.0, 2.0], 9.0),
            (&[5.0; 7], 5.0),
        ];
        for (values, expected) in table {
            assert_eq!(at_95_percent(values.to_vec()), expected, "{values:?}");
        }
        let twenty: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(at_95_percent(twenty), 19.0);
        assert!(at_95_percent(Vec::new()).is_nan());
    }
}
