//! What an engine that is killed leaves: nothing, once the next one has started; and nothing of
//! another engine is touched.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use arpo::env::xvfb::State;
use arpo::env::{MachineState, Provider, Reporter};

use super::{config, desktop, provider, state, told, wanted};
use crate::processes::{self, children_of, descendants, gone, slots_of};

/// Set in the process that owns desktops for another test.
const OWNER: &str = "ARPO_TEST_DESKTOP_OWNER";

/// Does nothing as a test: it is the process that the others start and kill.
#[tokio::test]
async fn owner() {
    if std::env::var_os(OWNER).is_none() {
        return;
    }
    let provider = provider(config(&[]));
    let mut machine = provider.machine(0, Reporter::silent()).unwrap();
    println!("\nbegun");
    loop {
        machine.revert().await.unwrap();
        println!("\nup");
        told(
            machine.as_ref(),
            "(sleep 1000; true) >/dev/null 2>&1 & true",
        )
        .await;
    }
}

fn start_owner() -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "xvfb::leaks::owner", "--nocapture"])
        .env(OWNER, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Reads until the owner says so.
fn wait_for(owner: &mut Child, word: &str) {
    let mut lines = BufReader::new(owner.stdout.as_mut().unwrap());
    let mut line = String::new();
    while line.trim() != word {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the owner ended");
    }
}

#[tokio::test]
async fn a_killed_engine_leaves_nothing_and_harms_nobody() {
    if !wanted("a_killed_engine_leaves_nothing_and_harms_nobody") {
        return;
    }
    let mut ours = desktop(&[]).await;
    told(ours.as_ref(), "touch Desktop/ours").await;
    for round in 0..20_u64 {
        let mut owner = start_owner();
        let pid = owner.id();
        let moment = ["begun", "up", "begun", "up"][round as usize % 4];
        wait_for(&mut owner, moment);
        // Now and then in the middle of a start.
        tokio::time::sleep(Duration::from_millis(round * 17 % 150)).await;
        let slots = slots_of(&state(), pid);
        assert!(!slots.is_empty(), "the owner has no slot");
        let children: Vec<_> = slots.iter().flat_map(|slot| children_of(slot)).collect();
        let roots: Vec<u32> = children.iter().map(|(pid, _)| *pid).collect();
        let all = descendants(&[&roots[..], &[pid]].concat());
        let mounts = processes::mounts();
        owner.kill().unwrap();
        owner.wait().unwrap();
        State::open(&state()).unwrap();
        let left: Vec<PathBuf> = slots.into_iter().filter(|slot| slot.exists()).collect();
        assert_eq!(left, Vec::<PathBuf>::new(), "round {round}");
        for pid in all {
            gone(pid).await;
        }
        assert_eq!(processes::mounts(), mounts, "round {round}");
        assert_eq!(ours.state(), MachineState::Running);
    }
    assert_eq!(told(ours.as_ref(), "ls Desktop").await, "ours");
    // Not its slot: other tests of this process have some, too.
    let address = ours.guest().address().to_owned();
    let socket = Path::new(address.strip_prefix("unix:").unwrap());
    assert!(socket.exists(), "{address}");
    ours.close().await.unwrap();
    drop(ours);
    assert!(!socket.exists(), "{address}");
}
