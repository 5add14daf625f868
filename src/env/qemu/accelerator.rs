//! Whether this machine's processor runs guests. That /dev/kvm is there proves nothing, nor that it
//! opens: a guest is started on it.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::arguments::{self, Disk, Files, Hardware, Processor};
use super::image::Image;
use super::running::follow;
use super::serial::Progress;
use super::vm::{Launch, Vm, open};
use crate::config::{Accelerator, QemuConfig};
use crate::env::sandbox::{State, await_end};
use crate::store::{Durability, LockHolder, write_whole};

/// What KVM is reached by.
const KVM: &str = "/dev/kvm";

/// For the trial: a guest on a processor needs a second.
const LIMIT: Duration = Duration::from_secs(20);

/// How long it holds that no guest started: a busy machine is no broken one.
const FAILURE_HOLDS_S: i64 = 600;

/// The last stage of a guest that is started for a trial.
const LAST_STAGE: &str = "probe";

/// What was chosen, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) processor: Processor,
    pub(super) why: String,
}

/// How a trial came out, written down: a success holds until the next boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Verdict {
    /// The host's boot.
    boot: String,
    /// QEMU's version.
    qemu: String,
    /// Key of the image that was tried.
    image: String,
    works: bool,
    told: String,
    /// When it was found, seconds since 1970; 0 where that was not written down.
    #[serde(default)]
    found_s: i64,
}

impl Verdict {
    /// Whether it still says something about a machine like this.
    fn holds(&self, boot: &str, qemu: &str, image: &str, now_s: i64) -> bool {
        let is_of_this = (&*self.boot, &*self.qemu, &*self.image) == (boot, qemu, image);
        let age_s = now_s.saturating_sub(self.found_s);
        is_of_this && (self.works || (0..FAILURE_HOLDS_S).contains(&age_s))
    }
}

/// What came of a guest that was started for a trial.
enum Trial {
    Works,
    Fails(String),
}

/// /dev/kvm, opened.
pub(super) fn open_kvm() -> Result<OwnedFd, String> {
    let opened = File::options().read(true).write(true).open(KVM);
    opened
        .map(OwnedFd::from)
        .map_err(|error| format!("{KVM} does not open: {error}"))
}

/// What runs guests here, as the profile wants it. Tries it, where no trial since the boot still holds.
pub(super) async fn choose(
    config: &QemuConfig,
    image: &Image,
    qemu: &str,
    state: &State,
) -> Result<Choice, String> {
    let choice = |processor, why: String| Choice { processor, why };
    if config.accelerator == Accelerator::Tcg {
        let why = "env.qemu.accelerator says so".to_owned();
        return Ok(choice(Processor::Tcg, why));
    }
    let verdict = match open_kvm() {
        Ok(_) => verdict(config, image, qemu, state).await,
        Err(reason) => Err(reason),
    };
    match (verdict, config.accelerator) {
        (Ok(told), _) => Ok(choice(Processor::Kvm, told)),
        (Err(reason), Accelerator::Auto | Accelerator::Tcg) => Ok(choice(Processor::Tcg, reason)),
        (Err(reason), Accelerator::Kvm) => Err(format!(
            "env.qemu.accelerator is \"kvm\", and {reason}: set it to \"auto\" or \"tcg\""
        )),
    }
}

/// Whether a guest runs on KVM, by a trial of this boot. One that could not begin is no trial.
async fn verdict(
    config: &QemuConfig,
    image: &Image,
    qemu: &str,
    state: &State,
) -> Result<String, String> {
    let path = state.root().join("accelerator.json");
    let boot = LockHolder::this_process().boot;
    let now_s = || jiff::Timestamp::now().as_second();
    let known = known(&path).filter(|known| known.holds(&boot, qemu, &image.key, now_s()));
    let verdict = if let Some(verdict) = known {
        verdict
    } else {
        let begun = Instant::now();
        let trial = try_guest(config, image, state).await;
        let trial = trial.map_err(|reason| format!("{KVM} could not be tried: {reason}"))?;
        let verdict = Verdict {
            boot,
            qemu: qemu.to_owned(),
            image: image.key.clone(),
            works: matches!(trial, Trial::Works),
            told: match trial {
                Trial::Works => {
                    let took = begun.elapsed().as_secs_f64();
                    format!("a guest started on {KVM} in {took:.1} s")
                }
                Trial::Fails(reason) => format!("no guest starts on {KVM}: {reason}"),
            },
            found_s: now_s(),
        };
        let text = serde_json::to_vec(&verdict).expect("strings are always JSON");
        if let Err(error) = write_whole(&path, &text, Durability::Process) {
            tracing::warn!(%error, "KVM is tried again the next time");
        }
        verdict
    };
    if verdict.works {
        return Ok(verdict.told);
    }
    Err(verdict.told)
}

fn known(path: &Path) -> Option<Verdict> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

/// Starts a kernel on KVM that ends when it has got as far as its modules. Fails where there was no
/// slot, no sandbox or no QEMU to start it in.
async fn try_guest(config: &QemuConfig, image: &Image, state: &State) -> Result<Trial, String> {
    let deadline = Instant::now() + LIMIT;
    let hardware = Hardware {
        processor: Processor::Kvm,
        screen: config.screen(),
        memory_mb: config.memory_mb,
        append: format!("{} arpo.probe", image.append),
    };
    let slot = state
        .take()
        .map_err(|error| format!("cannot take a slot: {error}"))?;
    let slot = Mutex::new(slot);
    let launch = Launch {
        hardware: &hardware,
        disk: Disk::None,
        files: Files {
            kernel: open(&image.kernel())?,
            initrd: open(&image.initrd())?,
            base: None,
            snapshot: None,
            kvm: Some(open_kvm()?),
        },
        limits: arguments::limits(config, config.disk_mb),
        fresh: None,
    };
    let vm = Vm::launch(launch, &slot, deadline).await?;
    let trial = match run_guest(&vm, deadline).await {
        Ok(()) => Trial::Works,
        Err(reason) => Trial::Fails(reason),
    };
    await_end(vm.kill(), "qemu trial").await;
    Ok(trial)
}

async fn run_guest(vm: &Vm, deadline: Instant) -> Result<(), String> {
    vm.go_on().await?;
    let mut progress = vm.progress();
    let is_there = |now: &Progress| (now.stage == LAST_STAGE).then_some(());
    follow(&mut progress, vm, deadline, is_there).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: i64 = 1_700_000_000;

    fn verdict(works: bool, found_s: i64) -> Verdict {
        Verdict {
            boot: "boot".to_owned(),
            qemu: "10.0".to_owned(),
            image: "image".to_owned(),
            works,
            told: String::new(),
            found_s,
        }
    }

    #[test]
    fn a_success_holds_until_the_next_boot_and_a_failure_for_a_while() {
        let cases = [
            (true, NOW_S, true),
            (true, NOW_S - 1_000_000, true),
            (true, 0, true),
            (false, NOW_S, true),
            (false, NOW_S - FAILURE_HOLDS_S + 1, true),
            (false, NOW_S - FAILURE_HOLDS_S, false),
            (false, 0, false),
            // The clock was set back.
            (false, NOW_S + 1, false),
            (false, i64::MIN, false),
        ];
        for (works, found_s, holds) in cases {
            let verdict = verdict(works, found_s);
            let held = verdict.holds("boot", "10.0", "image", NOW_S);
            assert_eq!(held, holds, "{verdict:?}");
            for other in [
                verdict.holds("another", "10.0", "image", NOW_S),
                verdict.holds("boot", "10.1", "image", NOW_S),
                verdict.holds("boot", "10.0", "another", NOW_S),
            ] {
                assert!(!other, "{verdict:?}");
            }
        }
    }

    #[test]
    fn a_verdict_is_read_as_it_was_written_also_before_it_had_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accelerator.json");
        assert_eq!(known(&path), None);
        let written = verdict(false, NOW_S);
        let mut json = serde_json::to_value(&written).unwrap();
        fs::write(&path, json.to_string()).unwrap();
        assert_eq!(known(&path), Some(written));
        json.as_object_mut().unwrap().remove("found_s");
        fs::write(&path, json.to_string()).unwrap();
        assert_eq!(known(&path), Some(verdict(false, 0)));
    }
}
