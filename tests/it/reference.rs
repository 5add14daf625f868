//! The live references in Python: `transformers` and the package `ui-tars`.
//!
//! They run in `.venv-ref`, or with the interpreter that `ARPO_REF_PYTHON` names.
//! `ARPO_NO_REF=1` skips whatever needs them, saying so; committed answers of theirs are
//! tested in any case.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The files beside these tests.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures")
}

/// Runs the Python file `script` (under `fixtures`) with `input` on its standard input and
/// gives its standard output; `None` where references are switched off.
#[expect(clippy::print_stderr, reason = "a skipped test says so by name")]
pub(crate) fn run(script: &str, input: &str) -> Option<String> {
    if std::env::var_os("ARPO_NO_REF").is_some_and(|value| value == "1") {
        eprintln!("skipped, ARPO_NO_REF=1: {script}");
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = std::env::var_os("ARPO_REF_PYTHON")
        .map_or_else(|| root.join(".venv-ref/bin/python"), PathBuf::from);
    assert!(
        python.exists(),
        "{} is missing: `just test` makes it, ARPO_NO_REF=1 does without",
        python.display()
    );
    let mut child = Command::new(python)
        .arg(fixtures().join(script))
        // Small products on one thread: the others may be busy.
        .env("OMP_NUM_THREADS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the reference Python starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin
        .write_all(input.as_bytes())
        .expect("the script reads its input");
    drop(stdin);
    let output = child.wait_with_output().expect("the script ends");
    assert!(output.status.success(), "{script} failed, see above");
    Some(String::from_utf8(output.stdout).expect("the script writes UTF-8"))
}

/// Whether committed answers are to be rewritten.
pub(crate) fn is_update() -> bool {
    std::env::var_os("UPDATE").is_some_and(|value| value == "1")
}
