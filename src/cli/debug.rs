//! The debugger on the command line: what `arpo ctl` asks of it, and decisions as lines of text.

use anyhow::{Context, anyhow, bail};

use crate::cli::say;
use crate::event::{BreakOn, Candidate, Command, DebugCommand, Decision, HoldTarget, RunState};
use crate::types::EpisodeId;

/// Requests to the debugger.
#[derive(Clone, Debug, clap::Subcommand)]
pub(super) enum DebugRequest {
    /// Hold before each action: nothing reaches the desktop until somebody decides
    Hold {
        /// An episode (0-000531), a desktop's running one (desktop:3), or all
        #[arg(value_parser = parse_target)]
        target: HoldTarget,
        /// All others stand still meanwhile, until `resume`
        #[arg(long)]
        others: bool,
    },
    /// Hold no more; replies that wait are carried out
    Release {
        /// An episode (0-000531), a desktop's running one (desktop:3), or all
        #[arg(value_parser = parse_target)]
        target: HoldTarget,
    },
    /// Say what a held episode does
    Decide {
        /// The episode, or `held` for the only one that is held
        episode: String,
        /// accept, edit REPLY, write REPLY, regenerate N, choose N, skip, continue or abort; a
        /// reply of several lines as one JSON string
        #[arg(required = true)]
        decision: Vec<String>,
    },
    /// Set, list or clear breakpoints
    Breakpoint {
        #[command(subcommand)]
        request: BreakpointRequest,
    },
    /// Replay an episode's first steps on a fresh desktop, with the next rollouts, and hold there
    Branch {
        /// An episode of this run
        #[arg(value_parser = parse_episode)]
        episode: EpisodeId,
        /// The step to hold at, from 1; those before it are replayed
        #[arg(long, value_name = "STEP", value_parser = clap::value_parser!(u32).range(1..))]
        at: u32,
    },
}

#[derive(Clone, Debug, clap::Subcommand)]
pub(super) enum BreakpointRequest {
    /// Print those in force
    List,
    /// Clear one, or all
    Clear {
        /// Its number
        id: Option<u32>,
    },
    /// Hold at a step, from 1
    Step {
        /// Which
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        step: u32,
        /// Of this episode only
        #[arg(long, value_parser = parse_episode)]
        episode: Option<EpisodeId>,
    },
    /// Hold before an action of a kind, for instance click
    Kind {
        /// The grammar's name
        action: String,
        /// Of this episode only
        #[arg(long, value_parser = parse_episode)]
        episode: Option<EpisodeId>,
    },
    /// Hold where a reply does not parse
    ParseError {
        /// Of this episode only
        #[arg(long, value_parser = parse_episode)]
        episode: Option<EpisodeId>,
    },
    /// Hold where a reply's mean log-probability is below a threshold
    LowLogprob {
        /// 0 or below
        #[arg(allow_negative_numbers = true)]
        below: f64,
        /// Of this episode only
        #[arg(long, value_parser = parse_episode)]
        episode: Option<EpisodeId>,
    },
    /// Hold where the screen is as before the last action
    Unchanged {
        /// Of this episode only
        #[arg(long, value_parser = parse_episode)]
        episode: Option<EpisodeId>,
    },
}

impl DebugRequest {
    /// The command it stands for, given the run as it is; none if it only asks.
    pub(super) fn command(&self, run: &RunState) -> anyhow::Result<Option<Command>> {
        let command = match self {
            DebugRequest::Hold { target, others } => DebugCommand::Hold {
                target: *target,
                others: *others,
            },
            DebugRequest::Release { target } => DebugCommand::Release { target: *target },
            DebugRequest::Decide { episode, decision } => {
                let (episode, step) = held(run, episode)?;
                let decision = parse_decision(&decision.join(" ")).map_err(|e| anyhow!(e))?;
                DebugCommand::Decide {
                    episode,
                    step,
                    decision,
                }
            }
            DebugRequest::Breakpoint { request } => match request.command() {
                Some(command) => command,
                None => return Ok(None),
            },
            DebugRequest::Branch { episode, at } => DebugCommand::Branch {
                episode: *episode,
                step: at - 1,
            },
        };
        Ok(Some(Command::Debug(command)))
    }
}

impl BreakpointRequest {
    fn command(&self) -> Option<DebugCommand> {
        let (on, episode) = match self {
            BreakpointRequest::List => return None,
            BreakpointRequest::Clear { id } => {
                return Some(DebugCommand::ClearBreakpoint { id: *id });
            }
            BreakpointRequest::Step { step, episode } => {
                (BreakOn::Step { step: step - 1 }, episode)
            }
            BreakpointRequest::Kind { action, episode } => {
                let action = action.clone();
                (BreakOn::Kind { action }, episode)
            }
            BreakpointRequest::ParseError { episode } => (BreakOn::ParseError, episode),
            BreakpointRequest::LowLogprob { below, episode } => {
                (BreakOn::LowLogprob { below: *below }, episode)
            }
            BreakpointRequest::Unchanged { episode } => (BreakOn::UnchangedScreen, episode),
        };
        Some(DebugCommand::SetBreakpoint {
            on,
            episode: *episode,
        })
    }
}

/// Prints the breakpoints in force, for people or as one JSON object.
pub(super) fn print_breakpoints(run: &RunState, json: bool) -> anyhow::Result<()> {
    if json {
        let breakpoints = serde_json::to_value(&run.breakpoints)?;
        say(serde_json::json!({ "breakpoints": breakpoints }));
        return Ok(());
    }
    if run.breakpoints.is_empty() {
        say("no breakpoints");
    }
    for breakpoint in &run.breakpoints {
        let whose = breakpoint
            .episode
            .map_or("all".to_owned(), |id| id.to_string());
        let words = breakpoint.on.words();
        say(format_args!("{}  {words}  of {whose}", breakpoint.id));
    }
    Ok(())
}

fn held(run: &RunState, episode: &str) -> anyhow::Result<(EpisodeId, u32)> {
    if episode == "held" {
        let mut all = run.held.iter();
        return match (all.next(), all.next()) {
            (Some((id, held)), None) => Ok((*id, held.step)),
            (None, _) => bail!("no episode is held"),
            (Some(_), Some(_)) => {
                let names: Vec<String> = run.held.keys().map(EpisodeId::to_string).collect();
                bail!(
                    "several episodes are held; name one of {}",
                    names.join(", ")
                )
            }
        };
    }
    let id = parse_episode(episode).map_err(|reason| anyhow!(reason))?;
    let held = run.held.get(&id);
    let held = held.with_context(|| format!("episode {id} is not held"))?;
    Ok((id, held.step))
}

/// An episode's id as people write it: `0-000531` or `e0-000531`.
pub(super) fn parse_episode(text: &str) -> Result<EpisodeId, String> {
    let parts = text.trim_start_matches('e').split_once('-');
    let parsed = parts.and_then(|(incarnation, number)| {
        Some(EpisodeId {
            incarnation: incarnation.parse().ok()?,
            number: number.parse().ok()?,
        })
    });
    parsed.ok_or_else(|| "write it as incarnation-number, for instance 0-000531".to_owned())
}

fn parse_target(text: &str) -> Result<HoldTarget, String> {
    if text == "all" {
        return Ok(HoldTarget::All);
    }
    if let Some(number) = text.strip_prefix("desktop:") {
        let desktop = number.parse();
        let desktop = desktop.map_err(|_| "write a desktop as desktop:NUMBER".to_owned())?;
        return Ok(HoldTarget::Desktop { desktop });
    }
    let episode = parse_episode(text)
        .map_err(|_| "write an episode (0-000531), desktop:NUMBER, or all".to_owned())?;
    Ok(HoldTarget::Episode { episode })
}

/// A decision as a line: its name, then what it needs. A reply may be one JSON string.
pub(super) fn parse_decision(line: &str) -> Result<Decision, String> {
    let line = line.trim();
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let number = |what: &str| {
        rest.parse::<u32>()
            .map_err(|_| format!("{name} needs {what}, as in: {name} 3"))
    };
    let decision = match name {
        "accept" | "skip" | "continue" | "abort" if !rest.is_empty() => {
            return Err(format!("{name} takes nothing more, not {rest:?}"));
        }
        "accept" => Decision::Accept,
        "skip" => Decision::Skip,
        "continue" => Decision::Continue,
        "abort" => Decision::Abort,
        "edit" => Decision::Edit {
            reply: parse_reply_text(rest)?,
        },
        "write" => Decision::Write {
            reply: parse_reply_text(rest)?,
        },
        "regenerate" => Decision::Regenerate {
            count: number("how many")?,
        },
        "choose" => Decision::Choose {
            candidate: number("which candidate")?,
        },
        _ => {
            return Err(format!(
                "no decision is called {name:?}: accept, edit REPLY, write REPLY, regenerate N, \
                 choose N, skip, continue or abort"
            ));
        }
    };
    Ok(decision)
}

fn parse_reply_text(text: &str) -> Result<String, String> {
    if text.starts_with('"') {
        return serde_json::from_str(text)
            .map_err(|error| format!("the reply is no JSON string: {error}"));
    }
    Ok(text.to_owned())
}

/// A reply in one line for people: actions, log-probability, tokens, thought.
pub(super) fn candidate_line(candidate: &Candidate) -> String {
    let does = match &candidate.malformed {
        Some(_) if candidate.tokens == 0 => "no reply yet".to_owned(),
        Some(reason) => format!("does not parse ({})", one_line(reason)),
        None => one_line(&action_part(&candidate.reply)),
    };
    let logprob = candidate.mean_logprob.0;
    let logprob = if logprob.is_finite() {
        format!("  log-prob {logprob:.3}")
    } else {
        String::new()
    };
    let thought = if candidate.thought.is_empty() {
        String::new()
    } else {
        format!("  thought: {}", one_line(&candidate.thought))
    };
    format!("{does}{logprob}  {} tokens{thought}", candidate.tokens)
}

/// The reply from its last `Action:` on.
fn action_part(reply: &str) -> String {
    let at = reply.rfind("Action:").map_or(0, |at| at + "Action:".len());
    reply[at..].trim().to_owned()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_read_from_lines() {
        let reply = |text: &str| text.to_owned();
        for (line, expected) in [
            ("accept", Ok(Decision::Accept)),
            (" skip ", Ok(Decision::Skip)),
            ("continue", Ok(Decision::Continue)),
            ("abort", Ok(Decision::Abort)),
            ("regenerate 3", Ok(Decision::Regenerate { count: 3 })),
            ("choose 2", Ok(Decision::Choose { candidate: 2 })),
            (
                "edit Action: wait()",
                Ok(Decision::Edit {
                    reply: reply("Action: wait()"),
                }),
            ),
            (
                r#"write "Thought: a\nAction: type(content='b\\n')""#,
                Ok(Decision::Write {
                    reply: reply("Thought: a\nAction: type(content='b\\n')"),
                }),
            ),
            ("accept now", Err("takes nothing more")),
            ("regenerate", Err("regenerate needs how many")),
            ("choose x", Err("choose needs which candidate")),
            ("edit \"open", Err("no JSON string")),
            ("dance", Err("no decision is called")),
        ] {
            match (parse_decision(line), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{line}"),
                (Err(found), Err(part)) => assert!(found.contains(part), "{line}: {found}"),
                (found, expected) => panic!("{line}: {found:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn targets_are_read() {
        let episode = EpisodeId {
            incarnation: 1,
            number: 12,
        };
        assert_eq!(parse_target("all"), Ok(HoldTarget::All));
        let desktop = HoldTarget::Desktop { desktop: 3 };
        assert_eq!(parse_target("desktop:3"), Ok(desktop));
        let one = HoldTarget::Episode { episode };
        assert_eq!(parse_target("e1-000012"), Ok(one));
        assert!(parse_target("desktop:x").is_err());
        assert!(parse_target("some").is_err());
    }
}
