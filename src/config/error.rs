//! What can be wrong with a profile. Each message names the file and line, or the `--set`.

use std::path::PathBuf;

use crate::config::plan::Problem;

/// Why a profile was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read profile {}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// `-p NAME` names neither a file nor a profile that came with arpo.
    #[error(
        "no profile {name}: it is neither a file nor one of those that come with arpo ({known})"
    )]
    NoSuchProfile {
        /// As given.
        name: String,
        /// Names of the profiles found.
        known: String,
    },
    /// Not TOML.
    #[error("{at}: {message}")]
    Syntax {
        /// File and line.
        at: String,
        /// What the parser said.
        message: String,
    },
    /// `--set` without a key and a value.
    #[error("--set {argument}: write it as section.key=value")]
    SetSyntax {
        /// As given.
        argument: String,
    },
    /// A key that does not exist.
    #[error("{at}: unknown key {key}{hint}")]
    UnknownKey {
        /// File and line, or the `--set`.
        at: String,
        /// The key with its sections.
        key: String,
        /// `; did you mean ...?`, or nothing.
        hint: String,
    },
    /// A saved profile lacks a key.
    #[error("{}: key {key} is missing", path.display())]
    MissingKey {
        /// Which file.
        path: PathBuf,
        /// The key with its sections.
        key: String,
    },
    /// A value of another type.
    #[error("{at}: {key} must be {expected}, not {found}")]
    WrongType {
        /// File and line, or the `--set`.
        at: String,
        /// The key with its sections.
        key: String,
        /// A type, in words.
        expected: &'static str,
        /// A type, in words.
        found: &'static str,
    },
    /// A value of the right type that is none of the legal ones.
    #[error("{at}: {key} = {value}: {message}")]
    BadValue {
        /// File and line, or the `--set`.
        at: String,
        /// The key with its sections.
        key: String,
        /// As written.
        value: String,
        /// What would be legal.
        message: String,
    },
    /// Values out of range, or that do not go together.
    #[error("{}", join_problems(.problems))]
    Invalid {
        /// Each with where its value came from.
        problems: Vec<(Problem, String)>,
    },
}

fn join_problems(problems: &[(Problem, String)]) -> String {
    let lines: Vec<String> = problems
        .iter()
        .map(|(problem, at)| format!("{at}: {} {}", problem.key, problem.says))
        .collect();
    lines.join("\n")
}
