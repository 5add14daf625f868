//! The one thread that starts sandboxes.
//!
//! A sandbox asks the kernel to be killed when its parent dies, and that is the thread that started
//! it, not the process (prctl(2), `PR_SET_PDEATHSIG`). This one lives as long as the process does.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

struct Job {
    command: Command,
    runtime: Handle,
    started: oneshot::Sender<io::Result<Child>>,
}

/// Starts a program from the thread that never ends.
pub async fn spawn(command: Command) -> io::Result<Child> {
    static JOBS: OnceLock<io::Result<Sender<Job>>> = OnceLock::new();
    let jobs = JOBS.get_or_init(start_thread);
    let jobs = jobs
        .as_ref()
        .map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
    let (started, outcome) = oneshot::channel();
    let job = Job {
        command,
        runtime: Handle::current(),
        started,
    };
    let gone = || io::Error::other("the thread that starts desktops has ended");
    jobs.send(job).map_err(|_| gone())?;
    outcome.await.map_err(|_| gone())?
}

fn start_thread() -> io::Result<Sender<Job>> {
    let (jobs, queue) = channel::<Job>();
    let thread = std::thread::Builder::new().name("desktops".to_owned());
    thread.spawn(move || {
        for mut job in queue {
            let _runtime = job.runtime.enter();
            // Nobody waits any more: the child is dropped, which kills it.
            let _ = job.started.send(job.command.spawn());
        }
    })?;
    Ok(jobs)
}
