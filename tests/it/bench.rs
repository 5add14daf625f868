//! `arpo bench` through the built program. Only what virtual time decides is asserted: it is the
//! same on every machine; of the console's figures and of the watched engine's only that they are
//! there. Figures of decoding and training need PyTorch and are made by hand.

use std::process::{Command, Output};

use serde_json::Value;

fn bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_arpo"))
        .arg("bench")
        .args(args)
        .output()
        .unwrap()
}

/// The figures of a rehearsal, which are the last line.
fn rollout(args: &[&str]) -> Value {
    let output = bench(&[&["rollout", "--json"], args].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

/// What must not depend on the machine.
fn virtual_figures(mut figures: Value) -> Value {
    let fields = figures.as_object_mut().unwrap();
    for name in ["wall_s", "lockstep_wall_s", "rss_mb"] {
        assert!(fields.remove(name).unwrap().as_f64().unwrap() > 0.0);
    }
    // A handful of desktops may fit into pages that the process had already.
    let desktop = fields.remove("bytes_per_desktop").unwrap();
    assert!(desktop.as_u64().unwrap() < 1_000_000, "{desktop}");
    figures
}

#[test]
fn a_rehearsed_epoch_comes_close_to_its_bound_and_lock_step_does_not() {
    let figures = virtual_figures(rollout(&["--desktops", "8", "--episodes", "1024"]));
    let number = |name: &str| figures[name].as_f64().unwrap();
    assert_eq!(figures["desktops"], 8);
    assert_eq!(figures["episodes"], 1024);
    assert_eq!(figures["errors"], 0);
    let parts = ["policy_s", "desktops_s", "longest_s"].map(number);
    let bound = parts.into_iter().fold(0.0, f64::max);
    assert_eq!(number("bound_s"), bound);
    let efficiency = number("efficiency_8");
    assert!((efficiency - bound / number("epoch_s")).abs() < 1e-9);
    assert!(efficiency <= 1.0, "faster than possible: {figures}");
    assert!(efficiency >= 0.9, "desktops stand idle: {figures}");
    assert!(number("lockstep_efficiency_8") < 0.5, "{figures}");
    // What was drawn is what the law says, within the error of so many steps.
    let drawn = number("desktops_s") / number("expected_desktops_s");
    assert!((drawn - 1.0).abs() < 0.1, "{figures}");
}

#[test]
fn the_same_rehearsal_gives_the_same_figures() {
    let small = ["--desktops", "4", "--episodes", "8"];
    let once = virtual_figures(rollout(&small));
    assert_eq!(once, virtual_figures(rollout(&small)));
    let other = rollout(&[&small[..], &["--set", "run.seed=2"]].concat());
    assert_ne!(once["epoch_s"], other["epoch_s"]);
}

#[test]
fn constant_latencies_give_times_that_can_be_added_up() {
    let constant = [
        "env.simulated.step_latency.sigma=0.0",
        "env.simulated.step_latency.tail_probability=0.0",
        "engine.cost.vision_call_us=0",
        "engine.cost.vision_image_us=0",
        "engine.cost.prefill_call_us=0",
        "engine.cost.prefill_token_us=0",
        "engine.cost.decode_call_us=0",
        "engine.cost.decode_row_us=0",
    ];
    let sets = constant.iter().flat_map(|set| ["--set", set]);
    let args: Vec<&str> = ["--desktops", "1", "--episodes", "6"]
        .into_iter()
        .chain(sets)
        .collect();
    let figures = rollout(&args);
    // One desktop and a policy for nothing: the epoch is the desktop's work, in either schedule.
    let work = figures["expected_desktops_s"].as_f64().unwrap();
    for name in ["epoch_s", "lockstep_epoch_s", "bound_s", "desktops_s"] {
        let found = figures[name].as_f64().unwrap();
        assert!((found - work).abs() < 1e-6, "{name}: {figures}");
    }
    assert_eq!(figures["policy_s"], 0.0);
}

#[track_caller]
fn told(args: &[&str], code: i32, words: &str) {
    let output = bench(args);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{errors}");
    assert!(errors.contains(words), "{errors}");
}

#[test]
fn what_cannot_be_rehearsed_is_told() {
    told(&["rollout", "--env", "docker"], 2, "values: simulated");
    let others = ["rollout", "--env", "x11", "-p", "demo"];
    told(&others, 1, "the profile is of other desktops than --env");
    let nowhere = [
        "rollout",
        "--env",
        "qemu",
        "--set",
        "env.qemu.image=/nowhere",
    ];
    told(&nowhere, 1, "just vm-image");
    told(&["rollout", "--episodes", "0"], 2, "--episodes");
    told(&["rollout", "--desktops", "0"], 2, "env.desktops");
    let broken = ["rollout", "--desktops", "2", "--episodes", "2"];
    let broken = [&broken[..], &["--set", "env.simulated.faults.crash=1.0"]].concat();
    told(&broken, 1, "no episode came to its end");
}

#[test]
fn the_consoles_figures_are_complete() {
    let output = bench(&[
        "console",
        "--json",
        "--seconds",
        "1",
        "--keys",
        "2",
        "--episodes",
        "512",
    ]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let figures: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    for load in ["osworld", "stress"] {
        let load = &figures["loads"][load];
        for name in [
            "cpu_share",
            "text_bytes_per_s",
            "picture_bytes_per_s",
            "frames_per_s",
        ] {
            assert!(load[name].as_f64().unwrap() >= 0.0, "{name}: {errors}");
        }
        for name in ["key_to_frame_p95_ms", "link_key_to_frame_p95_ms"] {
            // A key that shows nothing counts as five seconds.
            let ms = load[name].as_f64().unwrap();
            assert!(ms > 0.0 && ms < 5_000.0, "{name} {ms}: {errors}");
        }
    }
    for name in ["attach_ms", "rss_mb"] {
        assert!(figures[name].as_f64().unwrap() > 0.0, "{name}");
    }
    // A run that stands still is not drawn again.
    assert_eq!(figures["idle_bytes_per_s"].as_f64(), Some(0.0));
}

#[test]
fn what_cannot_be_watched_is_told() {
    told(&["watched", "--iterations", "0"], 2, "--iterations");
    told(&["watched", "-p", "nowhere"], 2, "nowhere");
    told(&["watched", "--set", "env.desktops=0"], 2, "env.desktops");
}

#[cfg(feature = "torch")]
mod watched {
    //! The engine beside its consoles: whole runs of a few desktops.

    use std::fs;
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process};
    use serde_json::Value;

    fn start(iterations: &str) -> Child {
        Command::new(env!("CARGO_BIN_EXE_arpo"))
            .args(["bench", "watched", "--json", "--iterations", iterations])
            .args(["--set", "env.desktops=4"])
            .args(["--set", "grpo.tasks_per_iteration=2"])
            .args(["--set", "grpo.group_size=2"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Where it keeps its runs; the name is in the arguments of all that it starts.
    fn folder(bench: &Child) -> PathBuf {
        std::env::temp_dir().join(format!("arpo-bench-{}", bench.id()))
    }

    /// Arguments of the processes that were started for a folder.
    fn processes(folder: &std::path::Path) -> Vec<String> {
        let all = fs::read_dir("/proc").unwrap().flatten();
        // One may end while it is looked at.
        let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        lines
            .filter(|line| line.contains(folder.to_str().unwrap()))
            .collect()
    }

    #[track_caller]
    fn check_nothing_is_left(folder: &std::path::Path) {
        assert_eq!(processes(folder), Vec::<String>::new());
        assert!(!folder.exists(), "{}", folder.display());
    }

    #[test]
    fn an_engine_learns_the_same_whoever_watches() {
        let bench = start("3");
        let folder = folder(&bench);
        let output = bench.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let text = String::from_utf8(output.stdout).unwrap();
        let figures: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(figures["iterations"], 3);
        assert!(figures["iteration_s"].as_f64().unwrap() > 0.0);
        assert_eq!(figures["same_figures"], true, "{errors}");
        for name in ["one", "stalled", "none_again"] {
            let figures = &figures[name];
            assert_eq!(figures["n"], 3, "{name}: {errors}");
            let number = |name: &str| figures[name].as_f64().unwrap();
            assert!(0.0 < number("low"), "{name}: {errors}");
            assert!(number("low") <= number("ratio"), "{name}: {errors}");
            assert!(number("ratio") <= number("high"), "{name}: {errors}");
            assert_eq!(figures["engine_cpu"]["n"], 3, "{name}: {errors}");
            // Noise is not compared with itself.
            let is_compared = figures.get("within_noise").is_some_and(Value::is_boolean);
            assert_eq!(is_compared, name != "none_again", "{errors}");
        }
        check_nothing_is_left(&folder);
    }

    #[test]
    fn an_interrupt_leaves_nothing_behind() {
        let mut bench = start("6");
        let folder = folder(&bench);
        // In the midst of it: an engine runs and a console is attached to it.
        let attached = || {
            processes(&folder)
                .iter()
                .any(|line| line.contains(" attach "))
        };
        while !attached() {
            assert!(bench.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::sleep(Duration::from_millis(20));
        }
        kill_process(Pid::from_child(&bench), Signal::INT).unwrap();
        let output = bench.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        check_nothing_is_left(&folder);
    }
}
