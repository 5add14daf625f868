//! The sidecar as installed, with what goes wrong in it.
//!
//! Runs with `.venv-sidecar`, or the interpreter that `ARPO_SIDECAR_PYTHON` names. `ARPO_NO_REF=1`
//! skips all of it, saying so.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Map, Value, json};

use super::{Limits, Sidecar, SidecarError, SidecarOptions};
use crate::config::Confinement;
use crate::evaluator::differential_tests::found;
use crate::evaluator::found::{Found, FoundFile};
use crate::evaluator::getters::GetterError;
use crate::evaluator::getters::scripted::Scripted;

/// A sidecar of its own for a test, and the folder that it lies in; none where it is skipped.
fn sidecar(test: &str, limits: Limits) -> Option<(Sidecar, tempfile::TempDir)> {
    if std::env::var_os("ARPO_NO_REF").is_some_and(|value| value == "1") {
        println!("skipped, ARPO_NO_REF=1: {test}");
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = std::env::var_os("ARPO_SIDECAR_PYTHON")
        .map_or_else(|| root.join(".venv-sidecar/bin/python"), PathBuf::from);
    assert!(
        python.exists(),
        "{} is missing: `just setup-sidecar` makes it, ARPO_NO_REF=1 does without",
        python.display()
    );
    let folder = tempfile::tempdir().unwrap();
    let options = SidecarOptions {
        python,
        folder: folder.path().join("sidecar"),
        confinement: Confinement::Bubblewrap,
        live_sites: false,
        limits,
    };
    Some((Sidecar::new(options), folder))
}

/// Small enough to be met in a test, large enough for a machine that does much else.
fn small_limits() -> Limits {
    Limits {
        wall_s: 120,
        cpu_s: 2,
        memory_mb: 700,
        scratch_mb: 32,
        processes: 16,
    }
}

/// What a test suite in Python of the agent's says: OSWorld runs it as a metric.
async fn run(sidecar: &Sidecar, program: &str) -> Result<f64, SidecarError> {
    let file = Found::File(FoundFile::new("suite.py", program.as_bytes().to_vec()));
    let metric = "check_python_file_by_test_suite";
    sidecar.score(metric, &file, Some(&file), &Map::new()).await
}

/// What a metric says of the text `a`.
async fn judge(sidecar: &Sidecar, metric: &str, rules: Value) -> Result<f64, SidecarError> {
    let (result, rules) = (Found::Value(json!("a")), Found::Value(rules));
    sidecar
        .score(metric, &result, Some(&rules), &Map::new())
        .await
}

/// An evaluation that goes well.
async fn equal(sidecar: &Sidecar) -> Result<f64, SidecarError> {
    judge(sidecar, "exact_match", json!({ "expected": "a" })).await
}

/// Metrics of every module of OSWorld, those that take files and those that take values.
const SAMPLE: [&str; 14] = [
    "check_csv",
    "check_direct_json_object",
    "check_gnome_favorite_apps",
    "check_include_exclude",
    "check_json_settings",
    "check_qt_bgcone",
    "check_tabstops",
    "check_thunderbird_prefs",
    "compare_docx_files",
    "compare_docx_tables",
    "compare_zip_files",
    "contains_page_break",
    "find_default_font",
    "is_expected_active_tab",
];

/// Cases of each metric that are scored again; `documents.py` and `fill.py` made all of them.
const CASES_EACH: usize = 12;

#[tokio::test]
async fn cases_score_as_they_did_when_they_were_filled_in() {
    let Some((sidecar, _folder)) = sidecar("cases_score_as_filled_in", Limits::default()) else {
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/differential");
    let mut asked = Vec::new();
    for metric in SAMPLE {
        let path = folder.join("metric").join(format!("{metric}.json"));
        let cases: Vec<Value> =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let step = cases.len().div_ceil(CASES_EACH);
        asked.extend(cases.into_iter().step_by(step).map(|case| (metric, case)));
    }
    let scores = asked.iter().map(|(metric, case)| async {
        let has_expected = ["expected", "expected_file"]
            .iter()
            .any(|key| case.get(key).is_some());
        let expected = has_expected.then(|| found(case, "expected"));
        let options = case.get("options").and_then(Value::as_object).cloned();
        let options = options.unwrap_or_default();
        let result = found(case, "result");
        sidecar
            .score(metric, &result, expected.as_ref(), &options)
            .await
    });
    let scores = join_all(scores).await;
    let mut wrong = Vec::new();
    for ((metric, case), score) in asked.iter().zip(scores) {
        let as_told = match (&score, case["error"].as_str()) {
            (Ok(score), None) => case["score"].as_f64() == Some(*score),
            // No score at all is `None` there.
            (Err(SidecarError::Raised { class, .. }), Some(told)) => {
                class == told || told == "None"
            }
            _ => false,
        };
        if !as_told {
            wrong.push(format!("{metric}: {score:?}, but {case}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(asked.len() > 100, "{}", asked.len());
}

#[tokio::test]
async fn what_goes_wrong_in_one_evaluation_is_told_and_ends_with_it() {
    let name = "what_goes_wrong_in_one_evaluation";
    let Some((sidecar, _folder)) = sidecar(name, small_limits()) else {
        return;
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let host_file = std::env::current_exe().unwrap();
    let host_file = host_file.display();
    // What the program does, and what is said of it.
    let cases = [
        ("def test(): return True".to_owned(), "1"),
        ("def test(): raise KeyError('x')".to_owned(), "0"),
        ("import sys\ndef test(): sys.exit(3)".to_owned(), "SystemExit"),
        ("def test():\n while True: pass".to_owned(), "limit of cpu time"),
        (
            "def test():\n held = []\n while True: held.append(bytearray(10**7))".to_owned(),
            "limit of memory",
        ),
        ("import ctypes\ndef test(): ctypes.string_at(0)".to_owned(), "SIGSEGV"),
        (
            "import os\ndef test():\n try: os.fork()\n except BlockingIOError: return True".to_owned(),
            "1",
        ),
        (
            "import subprocess\ndef test():\n try: subprocess.run(['/bin/true'])\n \
             except BlockingIOError: return True"
                .to_owned(),
            "1",
        ),
        (
            "import threading\ndef test():\n one = threading.Thread(target=int)\n one.start()\n \
             one.join()\n return True"
                .to_owned(),
            "1",
        ),
        (
            "def test():\n for folder in ['/', '/usr', '/etc', '/dev', '/opt', '/opt/sidecar', \
             '/opt/packages', '/opt/relay', '/proc/sys/kernel']:\n  try: open(folder + '/x', 'w')\n  \
             except OSError: continue\n  return False\n return True"
                .to_owned(),
            "1",
        ),
        (
            format!(
                "import os\ndef test(): return not any(map(os.path.exists, ['/home', '/root', \
                 '{host_file}']))"
            ),
            "1",
        ),
        (
            format!(
                "import socket\ndef test():\n for address in [('127.0.0.1', {port}), ('1.1.1.1', \
                 80)]:\n  try: socket.create_connection(address, 5)\n  except OSError: continue\n  \
                 return False\n return True"
            ),
            "1",
        ),
        (
            "def test():\n try:\n  for i in range(9): open(f'/tmp/{i}', 'wb').write(bytes(9 << \
             20))\n except OSError: return True"
                .to_owned(),
            "1",
        ),
    ];
    for (program, told) in &cases {
        let said = match run(&sidecar, program).await {
            Ok(score) => score.to_string(),
            Err(error) => error.to_string(),
        };
        assert!(said.contains(told), "{program}: {said}, not {told}");
        // The next one is none the worse.
        assert_eq!(equal(&sidecar).await, Ok(1.0), "after {program}");
    }
    assert_eq!(sidecar.restarts(), 0);
    let absent = judge(&sidecar, "no_such_metric", json!("a")).await;
    let absent = absent.unwrap_err();
    assert!(matches!(absent, SidecarError::Absent(_)), "{absent}");
    let raised = judge(&sidecar, "exact_match", json!("no rules")).await;
    let SidecarError::Raised { class, .. } = raised.unwrap_err() else {
        panic!("a metric that raises has no score");
    };
    assert_eq!(class, "TypeError");
}

#[tokio::test]
async fn a_program_that_hangs_is_ended_by_the_clock() {
    let limits = Limits {
        wall_s: 3,
        ..small_limits()
    };
    let Some((sidecar, _folder)) = sidecar("a_program_that_hangs", limits) else {
        return;
    };
    let hangs = "import time\ndef test(): time.sleep(1000)";
    let error = run(&sidecar, hangs).await.unwrap_err().to_string();
    assert!(error.contains("limit of wall clock"), "{error}");
}

#[tokio::test]
async fn many_at_once_do_not_see_each_other() {
    let Some((sidecar, _folder)) = sidecar("many_at_once", small_limits()) else {
        return;
    };
    // Each leaves files where all could, waits for the others to have done so and looks again.
    let program = |i: usize| {
        format!(
            "import os, time\ndef test():\n places = ['/tmp', '/dev/shm']\n for place in places: \
             open(f'{{place}}/of-{i}', 'w')\n time.sleep(1.5)\n seen = [name for place in places \
             for name in os.listdir(place) if name.startswith('of-')]\n others = [pid for pid in \
             os.listdir('/proc') if pid.isdigit() and int(pid) != os.getpid() and \
             os.path.exists(os.path.join('/proc', pid, 'root', 'tmp', 'suite.py'))]\n return \
             seen == ['of-{i}'] * 2 and not os.listdir('/opt/relay') and not others"
        )
    };
    let programs: Vec<String> = (0..8).map(program).collect();
    let scores = join_all(programs.iter().map(|program| run(&sidecar, program))).await;
    assert_eq!(scores, vec![Ok(1.0); 8]);
}

#[tokio::test]
async fn a_killed_sidecar_is_started_again_once_for_each_request() {
    let Some((sidecar, folder)) = sidecar("a_killed_sidecar", small_limits()) else {
        return;
    };
    assert_eq!(equal(&sidecar).await, Ok(1.0));
    kill(sidecar.pid().await);
    assert_eq!(equal(&sidecar).await, Ok(1.0));
    assert_eq!(sidecar.restarts(), 1);
    // One that is killed in the middle of an evaluation is asked again too.
    let slow = "import time\ndef test():\n time.sleep(2)\n return True";
    let killed = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        kill(sidecar.pid().await);
    };
    let (scored, ()) = tokio::join!(run(&sidecar, slow), killed);
    assert_eq!(scored, Ok(1.0));
    assert_eq!(sidecar.restarts(), 2);
    drop(sidecar);
    assert!(!folder.path().join("sidecar").exists());
}

fn kill(pid: Option<u32>) {
    let pid = rustix::process::Pid::from_raw(pid.unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn getters_reach_the_desktop_that_they_are_asked_about_and_nothing_else() {
    let Some((sidecar, _folder)) = sidecar("getters_reach_the_desktop", small_limits()) else {
        return;
    };
    let case = json!({ "desktop": { "files": { "/home/user/a.txt": { "text": "H2O" } } } });
    let scripted = Scripted::start(&case).await;
    let machine = scripted.real();
    let getter = json!({ "type": "vm_file", "path": "/home/user/a.txt", "dest": "b.txt" });
    let found = sidecar.get(&getter, machine).await.unwrap();
    assert_eq!(found, Found::File(FoundFile::new("b.txt", b"H2O".to_vec())));
    // Nothing listens where VLC would: an exception of OSWorld's, not a desktop that failed.
    let getter = json!({ "type": "vlc_playing_info", "dest": "status.xml" });
    let error = sidecar.get(&getter, machine).await.unwrap_err();
    assert!(matches!(error, GetterError::Raised(_)), "{error:?}");
    // A server that is gone is one, though OSWorld's getter takes it for a missing file.
    let mut gone = Scripted::start(&json!({})).await;
    gone.stop().await;
    let getter = json!({ "type": "vm_file", "path": "/home/user/a.txt", "dest": "b.txt" });
    let error = sidecar.get(&getter, gone.real()).await.unwrap_err();
    assert!(matches!(error, GetterError::Environment(_)), "{error:?}");
}
