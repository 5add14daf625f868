//! A run of any kind that is asked to stop does, and says so.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn arpo(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arpo"));
    command
        .env("ARPO_RUNTIME_DIR", folder.join("sockets"))
        .env_remove("LIBTORCH")
        .env_remove("LD_LIBRARY_PATH")
        .current_dir(ROOT)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// Looks until something is there, which must not take for ever.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How a process ended; killed where it does not.
struct Ended(Child);

impl Ended {
    fn code(&mut self, what: &str) -> Option<i32> {
        until(what, || self.0.try_wait().unwrap()).code()
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        // It has ended where all is well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_run_of_any_kind_stops_when_it_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept.json");
    let kept = kept.to_str().unwrap();
    // More than can be done meanwhile; the third waits for decisions that nobody takes.
    let kinds: [(&str, &[&str]); 3] = [
        ("eval", &["--trials", "1000"]),
        (
            "select",
            &[
                "--tasks",
                "assets/protocols/tasks",
                "--rollouts",
                "1000",
                "--out",
                kept,
            ],
        ),
        ("step", &["--task", "protocols/feasible_done", "--detached"]),
    ];
    for (kind, arguments) in kinds {
        let run = folder.path().join(kind);
        let engine = arpo(folder.path())
            .args([kind, "-p", "profiles/protocols.toml", "--run"])
            .arg(&run)
            .args(arguments)
            .spawn();
        let mut engine = Ended(engine.unwrap());
        let socket = folder.path().join(format!("sockets/{kind}.sock"));
        until(kind, || socket.exists().then_some(()));
        let asking = arpo(folder.path()).args(["runs", "stop"]).arg(&run).spawn();
        let mut asking = Ended(asking.unwrap());
        assert_eq!(asking.code(kind), Some(0), "{kind}");
        assert_eq!(engine.code(kind), Some(130), "{kind}");
        let state = arpo::store::RunDir::open(&run).unwrap().state().unwrap();
        assert!(state.is_over(), "{kind}");
    }
}
