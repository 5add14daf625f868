//! The next machine of a desktop, which starts while nobody waits for it.
//!
//! Whoever waits may be dropped at any moment. Its task stays here until its end was seen, so that
//! it ends with its desktop and is never left to itself.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A machine that starts, or waits to be used; ended when dropped.
#[derive(Debug)]
pub struct Spare<M>(Option<JoinHandle<Result<M, String>>>);

impl<M: Send + 'static> Spare<M> {
    /// None yet.
    pub fn none() -> Self {
        Self(None)
    }

    /// Begins to start one, in place of any before.
    pub fn begin(&mut self, starting: impl Future<Output = Result<M, String>> + Send + 'static) {
        if let Some(before) = self.0.replace(tokio::spawn(starting)) {
            before.abort();
        }
    }

    /// Whether there is one that is not up yet.
    pub fn is_starting(&self) -> bool {
        self.0.as_ref().is_some_and(|task| !task.is_finished())
    }

    /// It, if it comes up within the limit. One that does not is ended.
    pub async fn take(&mut self, limit: Duration, machine: &str) -> Option<M> {
        let task = self.0.as_mut()?;
        let outcome = timeout(limit, &mut *task).await;
        if outcome.is_err() {
            task.abort();
        }
        self.0 = None;
        match outcome {
            Ok(Ok(Ok(spare))) => return Some(spare),
            Ok(Ok(Err(reason))) => tracing::warn!(machine, reason, "the spare did not come up"),
            Ok(Err(error)) => tracing::warn!(machine, %error, "the spare was not started"),
            Err(_) => tracing::warn!(machine, ?limit, "the spare did not come up in time"),
        }
        None
    }

    /// Ends its start; it, if that was over.
    pub async fn end(&mut self) -> Option<M> {
        let task = self.0.as_mut()?;
        // What is still starting is killed by being dropped.
        task.abort();
        let outcome = task.await;
        self.0 = None;
        outcome.ok()?.ok()
    }
}

impl<M> Drop for Spare<M> {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(20);

    /// One that never comes up, and what is gone as soon as it is.
    fn endless() -> (Spare<u32>, Arc<()>) {
        let held = Arc::new(());
        let its = held.clone();
        let mut spare = Spare::none();
        spare.begin(async move {
            std::future::pending::<()>().await;
            drop(its);
            Ok(0)
        });
        (spare, held)
    }

    async fn is_gone(held: &Arc<()>) -> bool {
        for _ in 0..1000 {
            if Arc::strong_count(held) == 1 {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        false
    }

    #[tokio::test]
    async fn one_that_came_up_is_taken_once() {
        let mut spare: Spare<u32> = Spare::none();
        assert_eq!(spare.take(LONG, "m").await, None);
        for (outcome, taken) in [(Ok(7), Some(7)), (Err("no".to_owned()), None)] {
            spare.begin(async { outcome });
            assert_eq!(spare.take(LONG, "m").await, taken);
            assert_eq!(spare.take(LONG, "m").await, None);
        }
        spare.begin(async { Ok(8) });
        while spare.is_starting() {
            tokio::task::yield_now().await;
        }
        assert_eq!(spare.end().await, Some(8));
    }

    #[tokio::test]
    async fn one_that_does_not_come_up_in_time_is_ended() {
        let (mut spare, held) = endless();
        assert!(spare.is_starting());
        assert_eq!(spare.take(SHORT, "m").await, None);
        assert!(is_gone(&held).await);
        assert!(!spare.is_starting());
    }

    #[tokio::test]
    async fn one_that_was_waited_for_is_ended_with_its_desktop() {
        let (mut spare, held) = endless();
        let waited = timeout(SHORT, spare.take(LONG, "m")).await;
        assert!(waited.is_err() && spare.is_starting());
        assert_eq!(spare.end().await, None);
        assert!(is_gone(&held).await);

        let (mut spare, held) = endless();
        let _ = timeout(SHORT, spare.take(LONG, "m")).await;
        drop(spare);
        assert!(is_gone(&held).await);
    }
}
