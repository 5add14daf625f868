//! OSWorld's own tasks in virtual machines, by the ordinary way through `arpo eval`: what solves one
//! scores 1 there, and what does not 0; and four machines at a time.

use arpo::env::{Provider, Reporter};
use arpo::tasks::{Library, TaskFile};

use super::{config, provider, settings, told, turn, wait_for_turn, wanted};
use crate::desktops::{play, wrong};

/// «Change all the places in this document that say "text" to "test"» and «change the 2 in "H2O" to
/// a subscript».
const TASKS: [&str; 2] = [
    "0ed39f63-6049-43d4-ba4d-5fa2fe04a951",
    "0b17a146-2934-46c7-8727-73ff6b6483e8",
];

#[test]
fn an_editors_and_a_writers_task_score_as_played() {
    if !wanted("an_editors_and_a_writers_task_score_as_played") {
        return;
    }
    let _turn = wait_for_turn();
    let library = Library::shipped().unwrap();
    let tasks: Vec<&TaskFile> = TASKS.map(|id| library.find(id).unwrap()).into();
    // Spare machines would start while applications do.
    let sets = [settings(), vec!["env.qemu.spare=false".to_owned()]].concat();
    let play = |listed: &[&TaskFile]| play("profiles/qemu.toml", &sets, listed);
    let (again, _) = wrong(&play(&tasks), &tasks);
    if again.is_empty() {
        return;
    }
    // A script does not look: on a busy machine keys may come before the window that they are
    // meant for. Such ones get another try.
    let (still, told) = wrong(&play(&again), &again);
    assert!(still.is_empty(), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_machines_run_at_once() {
    if !wanted("four_machines_run_at_once") {
        return;
    }
    let _turn = turn().await;
    let provider = provider(config(&["env.qemu.spare=false"]));
    let machines = (0..4).map(|number| provider.machine(number, Reporter::silent()).unwrap());
    let mut machines: Vec<_> = machines.collect();
    let reverts = machines.iter_mut().map(|machine| machine.revert());
    for outcome in futures::future::join_all(reverts).await {
        outcome.unwrap();
    }
    for (number, machine) in machines.iter().enumerate() {
        told(machine.as_ref(), &format!("touch Desktop/{number}")).await;
        machine.guest().screenshot().await.unwrap();
    }
    for (number, machine) in machines.iter_mut().enumerate() {
        let files = told(machine.as_ref(), "ls Desktop").await;
        assert_eq!(files, number.to_string());
        machine.close().await.unwrap();
    }
}
