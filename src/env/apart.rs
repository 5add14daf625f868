//! Asynchronous questions asked where a caller waits for the answer: before a run's desktops are
//! opened, and by `arpo doctor`.

use std::thread;

/// Answers it on a thread of its own, since the caller's may belong to a runtime already. What it
/// leaves running is let go.
pub(super) fn answer<T: Send>(question: impl Future<Output = T> + Send) -> T {
    let asking = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("timers and sockets are there");
        let answer = runtime.block_on(question);
        // Looking up a name cannot be called off.
        runtime.shutdown_background();
        answer
    };
    thread::scope(|scope| {
        let answered = scope.spawn(asking).join();
        answered.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
