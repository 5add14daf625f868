//! Intervals and task order.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::env::simulated::suite;
use crate::event::score::wilson_interval;

#[test]
fn wilson_intervals_are_the_published_ones() {
    // python: statsmodels.stats.proportion.proportion_confint(k, n, method="wilson")
    for (successes, n, low, high) in [(0, 10, 0.0, 0.277_53), (5, 10, 0.236_59, 0.763_41)] {
        let (found_low, found_high) = wilson_interval(successes, n);
        assert!(
            (found_low - low).abs() < 1e-4,
            "{successes}/{n}: {found_low}"
        );
        assert!(
            (found_high - high).abs() < 1e-4,
            "{successes}/{n}: {found_high}"
        );
    }
    assert_eq!(wilson_interval(0, 0), (0.0, 1.0));
}

#[test]
fn every_epoch_visits_every_task_once() {
    let tasks: Vec<_> = (0..6)
        .map(|i| Arc::new(suite::task("ed_sub", i).expect("a family")))
        .collect();
    let pool = TaskPool::new(tasks, 3, true).expect("not empty");
    for epoch in 0..3 {
        let mut seen: Vec<_> = (0..3)
            .flat_map(|batch| pool.batch(epoch * 3 + batch, 2))
            .map(|task| task.id.clone())
            .collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 6);
    }
    assert!(TaskPool::new(Vec::new(), 0, true).is_err());
}

#[test]
fn thinned_tasks_are_spread_over_how_often_they_were_solved() {
    let record = |(i, successes): (usize, &u32)| TaskRecord {
        task: crate::types::TaskId(format!("t{i}")),
        successes: *successes,
        scored: 16,
        kept: *successes > 0,
    };
    for (successes, most, expected) in [
        (&[9, 1, 0, 5, 1, 3][..], 9, &[9, 1, 5, 1, 3][..]),
        (&[9, 1, 0, 5, 1, 3], 5, &[9, 1, 5, 1, 3]),
        (&[9, 1, 0, 5, 1, 3], 2, &[5, 1]),
        (&[9, 1, 0, 5, 1, 3], 1, &[3]),
        (&[9, 1, 0, 5, 1, 3], 0, &[]),
    ] {
        let mut tasks: Vec<_> = successes.iter().enumerate().map(record).collect();
        select::thin(&mut tasks, most);
        let kept = tasks.iter().filter(|task| task.kept);
        let kept: Vec<u32> = kept.map(|task| task.successes).collect();
        assert_eq!(kept, expected, "{most} of {successes:?}");
    }
}

#[test]
fn a_set_of_osworld_s_tasks_is_one_here_too() {
    let tasks = find_tasks("arpo_128 - arpo_96").unwrap();
    assert_eq!(tasks.len(), 32);
    assert_eq!(tasks[0].domain(), "chrome");
    let told = find_tasks("arpo_127").unwrap_err().to_string();
    assert!(
        told.contains("no task set") && told.contains("\"arpo_128\""),
        "{told}"
    );
}

#[test]
fn lists_and_folders_of_osworld_s_tasks_are_sets_too() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/osworld");
    let find = |path: &Path| find_tasks(path.to_str().unwrap());
    let by_domain = find(&shipped.join("arpo_32.json")).unwrap();
    assert_eq!(by_domain.len(), 32);
    assert_eq!(find(&shipped).unwrap().len(), 369);
    let folder = tempfile::tempdir().unwrap();
    let list = |text: &str| {
        let path = folder.path().join("a list.json");
        std::fs::write(&path, text).unwrap();
        find(&path)
    };
    let plain = list(&format!("[{:?}]", by_domain[3].id.0)).unwrap();
    assert_eq!(plain, by_domain[3..4]);
    let told = list("[\"00000000-0000-0000-0000-000000000000\"]").unwrap_err();
    assert!(told.to_string().contains("no task has the id"), "{told}");
}

#[test]
fn a_folder_of_task_files_is_a_task_set_in_the_order_of_names() {
    let folder = tempfile::tempdir().unwrap();
    let told = load_tasks(folder.path()).unwrap_err().to_string();
    assert!(told.contains("no task file in it"), "{told}");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    for (name, instance) in [("b.json", 1), ("a.json", 2)] {
        let task = suite::task("ed_sub", instance).unwrap();
        write(name, &serde_json::to_string(&task).unwrap());
    }
    write("notes.txt", "no task");
    let tasks = load_tasks(folder.path()).unwrap();
    let ids: Vec<&str> = tasks.iter().map(|task| task.id.0.as_str()).collect();
    assert_eq!(ids, ["compact/ed_sub/2", "compact/ed_sub/1"]);
    write("c.json", "[]");
    let told = load_tasks(folder.path()).unwrap_err().to_string();
    assert!(told.contains("c.json: not a task"), "{told}");
}
