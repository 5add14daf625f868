//! Intervals and task order.

use std::sync::Arc;

use super::*;
use crate::env::simulated::suite;

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
