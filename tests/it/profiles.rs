//! Profiles as files and from the command line: all that ship load, bad ones say what is wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use arpo::config::Resolved;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn toml_files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(ROOT).join(folder)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

fn arpo(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_arpo"))
        .args(args)
        .current_dir(ROOT)
        .output()
        .unwrap()
}

#[test]
fn every_shipped_profile_loads() {
    for path in toml_files("profiles") {
        let loaded = Resolved::load::<&str>(&[path.to_str().unwrap()], &[]);
        assert!(
            loaded.is_ok(),
            "{}: {}",
            path.display(),
            loaded.unwrap_err()
        );
    }
}

/// The first line of each file is a comment with what the message must say about it.
#[test]
fn every_bad_profile_is_refused_for_its_reason() {
    for path in toml_files("tests/it/fixtures/bad_profiles") {
        let text = fs::read_to_string(&path).unwrap();
        let expected = text
            .lines()
            .next()
            .unwrap()
            .strip_prefix("# error: ")
            .unwrap();
        let refused = Resolved::load::<&str>(&[path.to_str().unwrap()], &[]);
        let message = refused
            .expect_err("a bad profile must be refused")
            .to_string();
        let place = format!("{}:", path.display());
        assert!(message.starts_with(&place), "no file in: {message}");
        assert_eq!(message[place.len()..], *expected, "{}", path.display());
    }
}

#[test]
fn show_prints_a_profile_that_loads_with_origins() {
    let output = arpo(&["profile", "show", "-p", "demo", "--set", "run.seed=42"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.lines()
            .any(|line| line.starts_with("seed = 42 ") && line.ends_with("# --set"))
    );
    assert!(text.contains("# profiles/base.toml:"));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("profile.toml");
    fs::write(&path, text).unwrap();
    let again = Resolved::load_saved::<&str>(&path, &[]).unwrap();
    assert_eq!(again.profile.run.seed, 42);
}

#[test]
fn check_answers_with_an_exit_code_and_one_line() {
    let good = arpo(&["profile", "check", "-p", "demo"]);
    assert_eq!(good.status.code(), Some(0));
    let bad = arpo(&["profile", "check", "--set", "grpo.group_sise=4"]);
    assert_eq!(bad.status.code(), Some(2));
    let message = String::from_utf8(bad.stderr).unwrap();
    let expected = "arpo: --set grpo.group_sise=4: unknown key grpo.group_sise; \
                    did you mean grpo.group_size?\n";
    assert_eq!(message, expected);
    let unknown = arpo(&["profile", "check", "-p", "nothing"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        String::from_utf8(unknown.stderr).unwrap().contains("demo"),
        "names those that exist"
    );
    assert_eq!(arpo(&["no-such-command"]).status.code(), Some(2));
}
