//! The command line.

use std::process::ExitCode;

/// Entry point of `arpo`.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
