//! What one makes for all. Who waits while it fails is told why and does not fail again after the
//! other; who comes later has it tried again.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::OnceCell;

/// Made by the first who needs it.
#[derive(Debug)]
pub(super) struct Once<T> {
    made: OnceCell<T>,
    /// The last failure.
    failed: Mutex<Option<Failure>>,
}

#[derive(Clone, Debug)]
struct Failure {
    at: Instant,
    reason: String,
}

impl<T> Once<T> {
    pub(super) fn new() -> Self {
        Self {
            made: OnceCell::new(),
            failed: Mutex::new(None),
        }
    }

    /// It, if it is made.
    pub(super) fn get(&self) -> Option<&T> {
        self.made.get()
    }

    /// It, made if need be.
    pub(super) async fn get_or_make<F>(&self, make: impl FnOnce() -> F) -> Result<&T, String>
    where
        F: Future<Output = Result<T, String>>,
    {
        let came = Instant::now();
        let attempt = || self.attempt(came, make);
        self.made.get_or_try_init(attempt).await
    }

    /// Makes it, unless somebody else tried that since `came`.
    async fn attempt<F>(&self, came: Instant, make: impl FnOnce() -> F) -> Result<T, String>
    where
        F: Future<Output = Result<T, String>>,
    {
        let failed = || self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let before = failed().clone();
        if let Some(before) = before.filter(|failure| failure.at >= came) {
            return Err(before.reason);
        }
        let made = make().await;
        if let Err(reason) = &made {
            let (at, reason) = (Instant::now(), reason.clone());
            *failed() = Some(Failure { at, reason });
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_failure_is_everybodys_who_waited_for_it_and_nobodys_after() {
        let (once, tries) = (Once::new(), AtomicU32::new(0));
        let make = || async {
            let number = tries.fetch_add(1, Ordering::SeqCst) + 1;
            // Long enough for the others to come.
            tokio::time::sleep(Duration::from_millis(50)).await;
            match number {
                3 => Ok(number),
                _ => Err(format!("try {number}")),
            }
        };
        for number in 1..=2 {
            let all = (0..8).map(|_| once.get_or_make(make));
            for outcome in futures::future::join_all(all).await {
                assert_eq!(outcome, Err(format!("try {number}")));
            }
        }
        assert_eq!(once.get(), None);
        let all = (0..8).map(|_| once.get_or_make(make));
        for outcome in futures::future::join_all(all).await {
            assert_eq!(outcome, Ok(&3));
        }
        assert_eq!((tries.into_inner(), once.get()), (3, Some(&3)));
    }
}
