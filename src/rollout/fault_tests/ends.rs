//! How episodes and collections come to their end where desktops fail: what counts as a failed start,
//! what waits, and what is left to others.

use super::*;
use crate::policy::PolicyError;
use crate::rollout::care::Start;
use crate::rollout::collect::shown;

const SICK: Faults = Faults {
    starts: FOR_EVER,
    ..SOUND
};

impl Case {
    /// Lends the desktops to so many jobs; those of them that have come to an outcome.
    fn lend(&mut self, jobs: usize) -> Arc<Mutex<Vec<usize>>> {
        let settled = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&settled);
        let settle = move |index: usize, _: Outcome| told.lock().unwrap().push(index);
        let jobs = (0..jobs).map(|index| (index, job(index))).collect();
        self.lease.grant(u32::MAX, jobs, Arc::new(settle));
        self.leased_only = true;
        settled
    }
}

#[tokio::test]
async fn a_branch_beside_an_evaluation_has_its_outcome_whatever_its_desktop_does() {
    for (starts, is_scored) in [(0, true), (2, true), (FOR_EVER, false)] {
        for desktops in 1..=2 {
            let faults = Faults { starts, ..SOUND };
            let mut case = Case::new(1, &vec![faults; desktops]);
            // The evaluation itself has no trial left.
            case.lend(0);
            let ran = case.run().await;
            ran.check_conservation(1);
            let told = format!("{starts} failed starts of {desktops}");
            assert_eq!(ran.scored(), usize::from(is_scored), "{told}");
            assert_eq!(ran.collection.stranded.is_none(), is_scored, "{told}");
        }
    }
}

#[tokio::test]
async fn trials_that_never_began_are_left_to_whoever_goes_on_with_them() {
    for (desktops, jobs) in [(1, 0), (3, 0), (2, 1)] {
        let mut case = Case::new(jobs, &vec![SICK; desktops]);
        let settled = case.lend(4);
        let ran = case.run().await;
        let reason = ran.collection.stranded.unwrap();
        assert!(reason.contains("its disk is full"), "{reason}");
        assert_eq!(*settled.lock().unwrap(), [0; 0]);
        // What is nobody's trial has its outcome all the same.
        assert_eq!(ran.collection.outcomes.len(), jobs);
        assert!(case.lease.is_done());
    }
    let mut case = Case::new(0, &[SOUND, SICK]);
    let settled = case.lend(4);
    assert_eq!(case.run().await.collection.stranded, None);
    let mut settled = settled.lock().unwrap().clone();
    settled.sort_unstable();
    assert_eq!(settled, [0, 1, 2, 3]);
}

#[tokio::test]
async fn a_desktop_left_alone_does_not_outstay_an_evaluation_that_is_called_off() {
    // How long the other desktop waits after it did not start; whether it is told that it need not.
    let table = [
        (Duration::from_secs(3600), true),
        (Duration::from_millis(50), false),
    ];
    for (wait, is_told) in table {
        let mut case = Case::new(0, &[SICK, SICK]);
        case.backoff = [wait; 3];
        let settled = case.lend(2);
        case.fleet.start_failed(0, 1, "its disk is full");
        let lease = case.lease.clone();
        let running = Box::pin(case.run_beside(|fleet, log| async move {
            while log.lock().unwrap().is_empty() || !lease.is_idle() {
                tokio::task::yield_now().await;
            }
            assert_eq!(lease.revoke().len(), 2);
            if is_told {
                fleet.nudge();
            }
        }));
        let ran = tokio::time::timeout(Duration::from_secs(60), running).await;
        let ran = ran.expect("nobody waits for ever");
        assert_eq!(ran.collection.stranded, None);
        assert_eq!((ran.count(0, "reset"), ran.count(1, "reset")), (0, 1));
        assert_eq!(*settled.lock().unwrap(), [0; 0]);
    }
}

#[tokio::test]
async fn a_desktop_waits_longer_after_each_failed_start() {
    let mut case = Case::new(100, &[SOUND, SICK]);
    case.max_start_failures = 5;
    case.backoff = [1, 2, 3].map(Duration::from_millis);
    let ran = case.run().await;
    ran.check_conservation(100);
    let limits = ran.statuses(1).into_iter().map(|status| status.limit_ms);
    let expected = [Some(1), Some(2), Some(3), Some(3), None];
    assert_eq!(limits.collect::<Vec<_>>(), expected);
}

#[test]
fn the_shipped_patience_outlasts_a_minute() {
    let profile = Resolved::load::<&str>(&[], &[]).unwrap().profile;
    let care = Care {
        max_start_failures: profile.env.fleet.max_start_failures,
        ..Care::default()
    };
    let waits = (1..care.max_start_failures).map(|failures| care.wait_after(failures));
    let waits: Vec<Duration> = waits.collect();
    assert_eq!(waits, [1, 5, 30, 30].map(Duration::from_secs));
    assert!(waits.iter().sum::<Duration>() > Duration::from_secs(60));
}

#[tokio::test]
async fn failed_starts_are_in_a_row_only_without_one_that_worked_between() {
    // What comes up hangs, so that its episode ends at the deadline.
    let flaky = Faults {
        flaky: true,
        hangs: Some(""),
        ..SOUND
    };
    let mut case = Case::new(4, &[flaky]);
    (case.max_rerolls, case.max_start_failures) = (0, 2);
    case.deadline = Duration::from_millis(100);
    let ran = case.run().await;
    ran.check_conservation(4);
    assert_eq!(ran.collection.stranded, None);
    assert_eq!(ran.count(0, "reset"), 8);
    for outcome in &ran.collection.outcomes {
        let Outcome::Failed(failed) = outcome else {
            unreachable!("its actions never come back")
        };
        assert_eq!(failed.class, ErrorClass::Timeout, "{}", failed.message);
    }
}

#[test]
fn what_ends_an_episode_does_not_undo_its_desktops_start() {
    let refused = EnvError::Task {
        task: "t".to_owned(),
        reason: "it asks for what there is not".to_owned(),
    };
    let mut desktop = Faulty::new(0, SOUND, &Log::default());
    // What ended it, and whether that is put down to a start that has not come to its end.
    let table = [
        (RolloutError::Cancelled, false),
        (RolloutError::Ended(Ending::Kill), false),
        (RolloutError::Ended(Ending::Reroll), false),
        (
            RolloutError::Policy(PolicyError::Failed(String::new())),
            false,
        ),
        (RolloutError::Reset(refused), false),
        (RolloutError::Deadline(Duration::ZERO), true),
        (RolloutError::Reset(desktop.broken()), true),
    ];
    for (error, is_the_starts) in table {
        let told = error.to_string();
        let ran = Err(error);
        (desktop.starting, desktop.came_up) = (false, true);
        assert!(matches!(shown(&ran, &desktop), Start::Worked), "{told}");
        (desktop.starting, desktop.came_up) = (true, false);
        let is_failed = matches!(shown(&ran, &desktop), Start::Failed(_));
        assert_eq!(is_failed, is_the_starts, "{told}");
        // It waited for its turn.
        (desktop.starting, desktop.came_up) = (false, false);
        assert!(matches!(shown(&ran, &desktop), Start::Unknown), "{told}");
    }
}

#[tokio::test]
async fn a_machine_that_ends_while_it_stands_still_is_named() {
    for deadline in [Duration::MAX, Duration::from_millis(50)] {
        let ends = Faults {
            ends_frozen: Some("QEMU was killed"),
            ..SOUND
        };
        let mut case = Case::new(1, &[ends]);
        (case.max_rerolls, case.deadline) = (0, deadline);
        let ran = case.run().await;
        ran.check_conservation(1);
        let Outcome::Failed(failed) = &ran.collection.outcomes[0] else {
            unreachable!("its desktop does not go on")
        };
        assert_eq!(failed.class, ErrorClass::Crash, "{}", failed.message);
        let says = "faulty 0: QEMU was killed (then: ";
        assert!(failed.message.starts_with(says), "{}", failed.message);
    }
}
