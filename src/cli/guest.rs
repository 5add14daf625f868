//! `arpo guest`: a desktop's server, in the foreground.

use std::process::ExitCode;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{async_runtime, say};
use crate::guest::{Listen, Options, TOKEN_VARIABLE, Token, serve};

/// Serve an X display to OSWorld's controllers and to arpo
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The display; $DISPLAY without it
    #[arg(long, value_name = ":N")]
    display: Option<String>,
    /// Where to listen: HOST:PORT, or unix:PATH
    #[arg(long, default_value = "127.0.0.1:5000", value_name = "ADDR")]
    listen: Listen,
    /// What requests have to bear as `Authorization: Bearer TOKEN`; needed where other machines
    /// can reach the server; $ARPO_GUEST_TOKEN without it, which keeps it out of lists of processes
    #[arg(long)]
    token: Option<String>,
    /// A port of this machine that the socket PORT.sock beside the server's own leads to; may be
    /// given more than once
    #[arg(long = "relay", value_name = "PORT")]
    relays: Vec<u16>,
}

pub(super) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let display = args.display.or_else(|| variable("DISPLAY"));
    let token = args.token.or_else(|| variable(TOKEN_VARIABLE));
    let options = Options {
        display: display.context("no display: set --display or $DISPLAY")?,
        listen: args.listen,
        token: token.as_deref().map(Token::new),
        relays: args.relays,
    };
    async_runtime()?.block_on(async {
        let mut ends = Vec::new();
        for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
            ends.push(signal(kind).context("cannot wait for signals")?);
        }
        let stop = async {
            let each = ends.iter_mut().map(|end| Box::pin(end.recv()));
            futures::future::select_all(each).await;
        };
        serve(
            options,
            |listen| say(format_args!("listening on {listen}")),
            stop,
        )
        .await?;
        Ok(ExitCode::SUCCESS)
    })
}
