//! What an engine that is killed leaves of its virtual machines: nothing, once the next one has
//! started; and nothing of another engine is touched.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use arpo::env::xvfb::State;
use arpo::env::{MachineNews, MachineState, Provider, Reporter};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use super::{config, provider, qemu_of, state, told, turn, wanted};
use crate::processes::{self, children_of, descendants, gone, slots_of};

/// Set in the process that owns machines for another test: the folder of their image.
const OWNER: &str = "ARPO_TEST_VM_OWNER";

/// What a sandbox's first processes have in their environment, with their engine.
const MARK: &str = "ARPO_DESKTOP";

/// Engines that are killed.
const ROUNDS: u64 = 20;

/// What an owner says first, once the snapshot is made, and how often it has said it by then.
const MOMENTS: [(&str, usize); 6] = [
    ("Restoring", 1),
    ("Checking", 1),
    // Acting, while its spare starts.
    ("Ready", 1),
    ("acted", 1),
    // Its spare takes over, and another starts.
    ("Stopping", 1),
    ("Ready", 2),
];

/// Does nothing as a test: it is the process that the other starts and kills.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owner() {
    let Some(image) = std::env::var_os(OWNER) else {
        return;
    };
    let mut config = config(&[]);
    config.image = image.into_string().unwrap();
    let says = Reporter::new(
        0,
        Arc::new(|_, news| {
            if let MachineNews::Status(status) = news {
                println!("\n{:?}", status.phase);
            }
        }),
    );
    let mut machine = provider(config).machine(0, says).unwrap();
    loop {
        machine.revert().await.unwrap();
        let script = "(sleep 1000; true) >/dev/null 2>&1 & dd if=/dev/zero of=x bs=1M count=8";
        told(machine.as_ref(), script).await;
        println!("\nacted");
    }
}

/// A process with machines of its own, and what it says.
struct Owner {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Owner {
    fn start(image: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "qemu::leaks::owner", "--nocapture"])
            .env(OWNER, image)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, said }
    }

    /// Reads until it has said a word so often.
    fn wait_for(&mut self, word: &str, times: usize) {
        let mut line = String::new();
        for _ in 0..times {
            line.clear();
            while line.trim() != word {
                line.clear();
                let read = self.said.read_line(&mut line).unwrap();
                assert!(read > 0, "the owner ended before {word}");
            }
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Has ended where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processes that bear the mark of an engine.
fn marked(engine: u32) -> Vec<u32> {
    let mark = format!("{MARK}={engine}.");
    let bears = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable.starts_with(mark.as_bytes()))
    };
    processes::all().into_iter().filter(bears).collect()
}

/// The same image, without snapshots.
fn unbooted(folder: &Path) -> PathBuf {
    let image = config(&[]).image_folder().canonicalize().unwrap();
    for name in ["disk.qcow2", "vmlinux", "initrd.cpio", "image.json"] {
        symlink(image.join(name), folder.join(name)).unwrap();
    }
    folder.to_owned()
}

/// Files of a folder of snapshots that are half made, and that are whole.
fn snapshots(image: &Path) -> (usize, usize) {
    let names = fs::read_dir(image.join("snapshots")).unwrap();
    let names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let drafts = names.iter().filter(|name| name.starts_with('.'));
    let whole = names
        .iter()
        .filter(|name| !name.contains("lock") && !name.starts_with('.'));
    (drafts.count(), whole.count())
}

/// Kills an engine and makes sure that the next one finds nothing of it.
async fn kill(mut owner: Owner, what: &str) {
    let pid = owner.child.id();
    let slots = slots_of(&state(), pid);
    assert!(!slots.is_empty(), "{what}: the owner has no slot");
    let children: Vec<_> = slots.iter().flat_map(|slot| children_of(slot)).collect();
    let roots: Vec<u32> = children.iter().map(|(pid, _)| *pid).collect();
    let all = descendants(&[&roots[..], &[pid]].concat());
    let mounts = processes::mounts();
    owner.child.kill().unwrap();
    owner.child.wait().unwrap();
    State::open(&state()).unwrap();
    assert_eq!(slots_of(&state(), pid), Vec::<PathBuf>::new(), "{what}");
    for pid in all {
        gone(pid).await;
    }
    for pid in marked(pid) {
        gone(pid).await;
    }
    assert_eq!(processes::mounts(), mounts, "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_engine_leaves_nothing_and_harms_nobody() {
    if !wanted("a_killed_engine_leaves_nothing_and_harms_nobody") {
        return;
    }
    let _turn = turn().await;
    let own = provider(config(&["env.qemu.spare=false"]));
    let mut ours = own.machine(0, Reporter::silent()).unwrap();
    ours.revert().await.unwrap();
    told(ours.as_ref(), "touch Desktop/ours").await;
    let qemu = qemu_of(ours.as_ref());

    let folder = tempfile::tempdir().unwrap();
    let unbooted = unbooted(folder.path());
    let booted = config(&[]).image_folder();
    let mut random = Pcg32::seed_from_u64(7);
    for round in 0..ROUNDS {
        // Of the first two, the second finds the half-made snapshot of the first.
        let (image, moment, times) = match round {
            0 | 1 => (&unbooted, "Booting", 2),
            _ => {
                let (moment, times) = MOMENTS[round as usize % MOMENTS.len()];
                (&booted, moment, times)
            }
        };
        let delay = Duration::from_millis(random.random_range(0..1000));
        let what = format!("round {round}, {delay:?} after {moment} {times}");
        let mut owner = Owner::start(image);
        owner.wait_for(moment, times);
        tokio::time::sleep(delay).await;
        kill(owner, &what).await;
        if round < 2 {
            assert_eq!(snapshots(image), (1, 0), "{what}");
        }
        assert_eq!(ours.state(), MachineState::Running, "{what}");
        assert_eq!(told(ours.as_ref(), "ls Desktop").await, "ours", "{what}");
    }
    assert_eq!(qemu_of(ours.as_ref()), qemu);
    let slots = slots_of(&state(), std::process::id());
    ours.close().await.unwrap();
    gone(qemu).await;
    drop(ours);
    // Other tests of this process may have some, too.
    let left = slots.iter().filter(|slot| slot.exists()).count();
    assert_eq!(left, slots.len() - 1);
}
