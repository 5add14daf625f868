//! House rules that no compiler keeps: layering, file headers and lengths, who may name which
//! crate, the fixed top level. Each failure names file and line.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Which top-level modules each top-level module may name. The order is the layering.
const MAY_USE: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("action", &["types"]),
    ("screen", &["types"]),
    ("event", &["types"]),
    ("http", &[]),
    ("config", &["types"]),
    ("grpo", &["types", "config"]),
    ("store", &["types", "event", "config"]),
    ("tasks", &["types", "http", "config", "store"]),
    ("bus", &["types", "event", "store"]),
    ("prompt", &["types", "action", "screen", "config"]),
    // Its own server of a desktop, inside the sandbox or on another machine.
    ("guest", &["types", "action", "screen", "http"]),
    (
        "env",
        &[
            "types", "action", "screen", "http", "config", "store", "tasks",
        ],
    ),
    ("evaluator", &["types", "http", "env", "config", "tasks"]),
    (
        "policy",
        &["types", "action", "prompt", "config", "screen", "env"],
    ),
    ("rollout", BELOW_ROLLOUT),
    ("session", BELOW_SESSION),
    // The console sees events, never what makes them.
    (
        "tui",
        &["types", "event", "bus", "store", "config", "screen"],
    ),
    ("cli", ALL),
];

const BELOW_ROLLOUT: &[&str] = &[
    "types",
    "action",
    "screen",
    "event",
    "http",
    "config",
    "grpo",
    "store",
    "tasks",
    "bus",
    "prompt",
    "guest",
    "env",
    "evaluator",
    "policy",
];

const BELOW_SESSION: &[&str] = &[
    "types",
    "action",
    "screen",
    "event",
    "http",
    "config",
    "grpo",
    "store",
    "tasks",
    "bus",
    "prompt",
    "guest",
    "env",
    "evaluator",
    "policy",
    "rollout",
];

const ALL: &[&str] = &[
    "types",
    "action",
    "screen",
    "event",
    "http",
    "config",
    "grpo",
    "store",
    "tasks",
    "bus",
    "prompt",
    "guest",
    "env",
    "evaluator",
    "policy",
    "rollout",
    "session",
    "tui",
];

/// Within `policy`, only this file knows a desktop: its expert reads the state.
const POLICY_FILE_THAT_KNOWS_DESKTOPS: &str = "src/policy/scripted";

/// Words and where alone they may stand (path prefixes). Split, so that this file is clean.
const CONFINED: &[(&str, &[&str])] = &[
    (concat!("tch", "::"), &["src/bin/arpo-engine/"]),
    (concat!("ratatui", "::"), &["src/tui/", "tests/it/"]),
    (concat!("crossterm", "::"), &["src/tui/", "tests/it/"]),
    (concat!("any", "how::"), COMMANDS),
    (concat!("print", "ln!("), PRINTERS),
    (concat!("db", "g!("), &[]),
    (concat!("to", "do!("), &[]),
    (concat!("unimpl", "emented!("), &[]),
    (concat!("FIX", "ME"), &[]),
    (concat!("TO", "DO"), &[]),
    (concat!("#[al", "low("), &[]),
    (concat!("#[ig", "nore"), &[]),
    (concat!("#[should_", "panic"), &[]),
];

/// What commands are written in: their errors end at a person, not at a caller.
const COMMANDS: &[&str] = &[
    "src/cli/",
    "src/main.rs",
    "src/bin/arpo-engine/main.rs",
    "src/bin/arpo-engine/bench/",
    "src/bin/arpo-engine/run/",
];

/// Tests may print too: cargo keeps it back unless they fail.
const PRINTERS: &[&str] = &["src/cli/", "src/build.rs", "tests/it/"];

/// Longest file. Above it, a folder with parts reads better.
const MAX_LINES: usize = 800;

/// Largest file outside `assets/agent`, bytes.
const MAX_BYTES: u64 = 512 * 1024;

/// All that may lie beside dot files and what git ignores.
const TOP_LEVEL: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "assets",
    "justfile",
    "profiles",
    "src",
    "tests",
];

/// A text file by its path from the root.
struct SourceFile {
    path: String,
    text: String,
}

impl SourceFile {
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }
}

fn files_below(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(ROOT).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn from_root(path: &Path) -> String {
    path.strip_prefix(ROOT).unwrap().display().to_string()
}

fn rust_files() -> Vec<SourceFile> {
    let paths = [files_below("src"), files_below("tests")].concat();
    let rust = paths
        .iter()
        .filter(|path| path.extension().is_some_and(|ext| ext == "rs"));
    rust.map(|path| SourceFile {
        path: from_root(path),
        text: fs::read_to_string(path).unwrap(),
    })
    .collect()
}

/// Fails with one violation a line.
#[track_caller]
fn assert_none(violations: &[String]) {
    let mut list = String::new();
    for violation in violations {
        let _ = write!(list, "\n  {violation}");
    }
    assert!(
        violations.is_empty(),
        "{} violations:{list}",
        violations.len()
    );
}

/// `crate::NAME` of a line, each name once.
fn named_modules(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::").skip(1).map(|rest| {
        rest.split(|c: char| !c.is_alphanumeric() && c != '_')
            .next()
            .unwrap_or_default()
    })
}

/// The complaint about a file of `module` that names `other`, if there is one.
fn layering_violation(path: &str, module: &str, other: &str) -> Option<String> {
    if other == module || !MAY_USE.iter().any(|(name, _)| *name == other) {
        return None;
    }
    let (_, may_use) = MAY_USE.iter().find(|(name, _)| *name == module)?;
    let knows_desktops = path.starts_with(POLICY_FILE_THAT_KNOWS_DESKTOPS);
    let is_allowed = may_use.contains(&other)
        && (module != "policy" || other != "env" || knows_desktops || path.ends_with("tests.rs"));
    (!is_allowed).then(|| format!("{module} may not use {other}"))
}

fn layering_violations(file: &SourceFile) -> Vec<String> {
    let Some(rest) = file.path.strip_prefix("src/") else {
        return Vec::new();
    };
    let module = rest.split(['/', '.']).next().unwrap_or_default();
    let mut violations = Vec::new();
    for (number, line) in file.lines() {
        if line.trim_start().starts_with("use crate::{") {
            violations.push(format!(
                "{}:{number}: one `use crate::module` a module",
                file.path
            ));
        }
        for other in named_modules(line) {
            let complaint = layering_violation(&file.path, module, other);
            violations.extend(complaint.map(|text| format!("{}:{number}: {text}", file.path)));
        }
        if module == "bin" && line.contains("arpo::tui") {
            violations.push(format!("{}:{number}: the engine has no console", file.path));
        }
    }
    violations
}

#[test]
fn modules_use_only_what_lies_below_them() {
    let violations: Vec<String> = rust_files().iter().flat_map(layering_violations).collect();
    assert_none(&violations);
    for folder in fs::read_dir(Path::new(ROOT).join("src")).unwrap() {
        let path = folder.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_listed = name == "bin" || MAY_USE.iter().any(|(module, _)| *module == name);
        assert!(
            !path.is_dir() || is_listed,
            "src/{name} has no place in MAY_USE"
        );
    }
}

#[test]
fn layering_is_noticed() {
    let planted = SourceFile {
        path: "src/tui/mod.rs".into(),
        text: "//! x\nuse crate::types::Task;\nuse crate::env::Probe;\n".into(),
    };
    assert_eq!(
        layering_violations(&planted),
        ["src/tui/mod.rs:3: tui may not use env"]
    );
}

#[test]
fn every_file_opens_with_its_header() {
    let files = rust_files();
    let bare = files.iter().filter(|file| {
        // The crate's own header is ARCHITECTURE.md.
        !file.text.starts_with("//! ") && file.path != "src/lib.rs"
    });
    let violations: Vec<String> = bare
        .map(|file| format!("{}:1: no //! header", file.path))
        .collect();
    assert_none(&violations);
}

#[test]
fn files_are_short() {
    let mut violations = Vec::new();
    for file in rust_files() {
        let lines = file.text.lines().count();
        if lines > MAX_LINES && !file.path.ends_with("/tests.rs") {
            violations.push(format!("{}: {lines} lines, at most {MAX_LINES}", file.path));
        }
    }
    assert_none(&violations);
}

/// Whether `word` stands in `line`, not as the end of a longer name.
fn names(line: &str, word: &str) -> bool {
    let is_apart = |at: usize| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    };
    line.match_indices(word).any(|(at, _)| is_apart(at))
}

#[test]
fn words_stand_where_they_belong() {
    let mut violations = Vec::new();
    for file in rust_files() {
        for (number, line) in file.lines() {
            for (word, places) in CONFINED {
                let is_home = places.iter().any(|place| file.path.starts_with(place))
                    || (*places == PRINTERS && file.path.ends_with("/tests.rs"));
                if names(line, word) && !is_home {
                    violations.push(format!("{}:{number}: {word}", file.path));
                }
            }
        }
    }
    assert_none(&violations);
}

#[test]
fn unsafe_code_is_in_files_named_for_it() {
    let mut violations = Vec::new();
    for file in rust_files() {
        let is_home = file.path.ends_with("/ffi.rs") || file.path.ends_with("/sys.rs");
        for (number, line) in file.lines() {
            let opens = ["{", "fn ", "impl ", "extern "];
            let is_unsafe = opens
                .iter()
                .any(|open| line.contains(&format!("{} {open}", concat!("uns", "afe"))));
            if is_unsafe && !is_home {
                violations.push(format!(
                    "{}:{number}: belongs into ffi.rs or sys.rs",
                    file.path
                ));
            }
        }
    }
    assert_none(&violations);
}

#[test]
fn every_dependency_says_what_it_is_for() {
    let text = fs::read_to_string(Path::new(ROOT).join("Cargo.toml")).unwrap();
    let mut violations = Vec::new();
    let mut is_dependency = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            is_dependency = line.trim_end().ends_with("dependencies]");
        } else if is_dependency && line.contains(" = ") && !line.contains(" # ") {
            violations.push(format!("Cargo.toml:{}: no reason for {line}", index + 1));
        }
    }
    assert_none(&violations);
}

#[test]
fn the_top_level_is_fixed() {
    let ignored = fs::read_to_string(Path::new(ROOT).join(".gitignore")).unwrap();
    let mut violations = Vec::new();
    for entry in fs::read_dir(ROOT).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        let is_ignored = ignored.lines().any(|line| line.trim_matches('/') == name);
        if !name.starts_with('.') && !is_ignored && !TOP_LEVEL.contains(&name.as_str()) {
            violations.push(name);
        }
    }
    assert_none(&violations);
}

#[test]
fn files_are_small() {
    let mut violations = Vec::new();
    for path in ["src", "tests", "profiles", "assets"]
        .iter()
        .flat_map(|top| files_below(top))
    {
        let bytes = path.metadata().unwrap().len();
        let name = from_root(&path);
        if bytes > MAX_BYTES && !name.starts_with("assets/agent/") {
            violations.push(format!("{name}: {bytes} bytes, at most {MAX_BYTES}"));
        }
    }
    assert_none(&violations);
}

#[test]
fn arpo_does_not_link_libtorch() {
    let output = Command::new("ldd")
        .arg(env!("CARGO_BIN_EXE_arpo"))
        .output()
        .unwrap();
    let libraries = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && libraries.contains("libc"),
        "ldd says: {libraries}"
    );
    assert!(!libraries.contains("torch"), "{libraries}");
}
