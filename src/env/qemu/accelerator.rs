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
use super::vm::{Launch, Vm, open};
use crate::config::{Accelerator, QemuConfig};
use crate::env::sandbox::State;
use crate::store::{Durability, LockHolder, write_whole};

/// What KVM is reached by.
const KVM: &str = "/dev/kvm";

/// For the trial: a guest on a processor needs a second.
const LIMIT: Duration = Duration::from_secs(20);

/// The last stage of a guest that is started for a trial.
const LAST_STAGE: &str = "probe";

/// What was chosen, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) processor: Processor,
    pub(super) why: String,
}

/// How a trial came out, written down: it holds until the next boot.
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
}

/// /dev/kvm, opened.
pub(super) fn open_kvm() -> Result<OwnedFd, String> {
    let opened = File::options().read(true).write(true).open(KVM);
    opened
        .map(OwnedFd::from)
        .map_err(|error| format!("{KVM} does not open: {error}"))
}

/// What runs guests here, as the profile wants it. Tries it, where nobody has since the boot.
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

/// Whether a guest runs on KVM, by a trial of this boot.
async fn verdict(
    config: &QemuConfig,
    image: &Image,
    qemu: &str,
    state: &State,
) -> Result<String, String> {
    let path = state.root().join("accelerator.json");
    let boot = LockHolder::this_process().boot;
    let known = known(&path)
        .filter(|known| (&*known.boot, &*known.qemu, &*known.image) == (&*boot, qemu, &*image.key));
    let verdict = if let Some(verdict) = known {
        verdict
    } else {
        let begun = Instant::now();
        let tried = try_guest(config, image, state).await;
        let verdict = Verdict {
            boot,
            qemu: qemu.to_owned(),
            image: image.key.clone(),
            works: tried.is_ok(),
            told: match tried {
                Ok(()) => {
                    let took = begun.elapsed().as_secs_f64();
                    format!("a guest started on {KVM} in {took:.1} s")
                }
                Err(reason) => format!("no guest starts on {KVM}: {reason}"),
            },
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

/// Starts a kernel on KVM that ends when it has got as far as its modules.
async fn try_guest(config: &QemuConfig, image: &Image, state: &State) -> Result<(), String> {
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
    vm.go_on().await?;
    let mut progress = vm.progress();
    let outcome = follow(&mut progress, &vm, deadline, |now| {
        (now.stage == LAST_STAGE).then_some(())
    });
    let outcome = outcome.await;
    vm.kill().await;
    outcome
}
