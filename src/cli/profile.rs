//! `arpo profile show` and `arpo profile check`.

use std::process::ExitCode;

use crate::cli::args::ProfileArgs;
use crate::cli::say;

/// Show or check a profile.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print the resolved profile as TOML, with the origin of every value
    Show(ProfileArgs),
    /// Say whether the profile can be run
    Check(ProfileArgs),
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Show(profile) => say(profile.resolve()?.to_toml().trim_end()),
        Action::Check(profile) => {
            let resolved = profile.resolve()?;
            let laid_over = resolved
                .leaves()
                .iter()
                .filter(|leaf| !leaf.is_from_base())
                .count();
            let total = resolved.leaves().len();
            say(format_args!(
                "profile is good: {total} values, {laid_over} laid over the base"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}
