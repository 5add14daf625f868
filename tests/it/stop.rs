//! A run of any kind that is asked to stop does, and says so.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::desk::{Running, eventually};

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

/// The exit code of a process that is about to end.
fn code(process: &mut Running, what: &str) -> Option<i32> {
    eventually(what, || process.0.try_wait().unwrap()).code()
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
        let mut engine = Running(engine.unwrap());
        let socket = folder.path().join(format!("sockets/{kind}.sock"));
        eventually(kind, || socket.exists().then_some(()));
        let asking = arpo(folder.path()).args(["runs", "stop"]).arg(&run).spawn();
        let mut asking = Running(asking.unwrap());
        assert_eq!(code(&mut asking, kind), Some(0), "{kind}");
        assert_eq!(code(&mut engine, kind), Some(130), "{kind}");
        let state = arpo::store::RunDir::open(&run).unwrap().state().unwrap();
        assert!(state.is_over(), "{kind}");
    }
}
