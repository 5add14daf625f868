//! The debugger: holding, deciding, breakpoints, branches.

use crate::event::{BreakOn, Command, DebugCommand, Decision, HoldTarget};
use crate::tui::app::{App, Screen};
use crate::tui::debug::{held_here, look_at_next, looked_at, open_editor};
use crate::tui::fleet::{rollout_episode, selected_episode};
use crate::tui::theme::Role;
use crate::tui::update::Effect;
use crate::types::EpisodeId;

use super::send;

/// Candidates asked for where no number is given.
const CANDIDATES: u32 = 3;

/// Carries out the reply looked at.
pub(super) fn accept(app: &mut App, _: &str) -> Vec<Effect> {
    let place = held_here(app).map_or(0, |(id, held)| looked_at(app, id, held));
    match place {
        0 => decide(app, Decision::Accept),
        place => choose_place(app, place as u32),
    }
}

pub(super) fn edit(app: &mut App, argument: &str) -> Vec<Effect> {
    write_reply(app, argument, false)
}

pub(super) fn write(app: &mut App, argument: &str) -> Vec<Effect> {
    write_reply(app, argument, true)
}

/// With an argument sends it, without one opens the editor.
fn write_reply(app: &mut App, argument: &str, is_new: bool) -> Vec<Effect> {
    let reply = argument.to_owned();
    match (argument, is_new) {
        ("", _) if open_editor(app, is_new) => Vec::new(),
        ("", _) => nothing_held(app),
        (_, true) => decide(app, Decision::Write { reply }),
        (_, false) => decide(app, Decision::Edit { reply }),
    }
}

pub(super) fn regenerate(app: &mut App, argument: &str) -> Vec<Effect> {
    let count = match argument {
        "" => Some(CANDIDATES),
        text => text.parse().ok(),
    };
    match count {
        Some(count) => decide(app, Decision::Regenerate { count }),
        None => refuse(app, "write how many, as in: regenerate 3"),
    }
}

pub(super) fn choose(app: &mut App, argument: &str) -> Vec<Effect> {
    match argument.parse() {
        Ok(candidate) => choose_place(app, candidate),
        Err(_) => refuse(app, "write which candidate, as in: choose 2"),
    }
}

fn choose_place(app: &mut App, candidate: u32) -> Vec<Effect> {
    decide(app, Decision::Choose { candidate })
}

pub(super) fn next_candidate(app: &mut App, _: &str) -> Vec<Effect> {
    look_at_next(app);
    Vec::new()
}

pub(super) fn skip(app: &mut App, _: &str) -> Vec<Effect> {
    decide(app, Decision::Skip)
}

pub(super) fn go_on(app: &mut App, _: &str) -> Vec<Effect> {
    decide(app, Decision::Continue)
}

pub(super) fn abort(app: &mut App, _: &str) -> Vec<Effect> {
    decide(app, Decision::Abort)
}

fn decide(app: &mut App, decision: Decision) -> Vec<Effect> {
    let Some((episode, held)) = held_here(app) else {
        return nothing_held(app);
    };
    let step = held.step;
    checked(
        app,
        DebugCommand::Decide {
            episode,
            step,
            decision,
        },
    )
}

fn nothing_held(app: &mut App) -> Vec<Effect> {
    refuse(
        app,
        "this episode is not held; i holds it before its next action",
    )
}

pub(super) fn hold(app: &mut App, argument: &str) -> Vec<Effect> {
    let (whom, others) = match argument.strip_suffix("others") {
        Some(whom) => (whom.trim(), true),
        None => (argument, false),
    };
    match target(app, whom) {
        Ok(target) => send(app, Command::Debug(DebugCommand::Hold { target, others })),
        Err(reason) => refuse(app, &reason),
    }
}

pub(super) fn release(app: &mut App, argument: &str) -> Vec<Effect> {
    match target(app, argument) {
        Ok(target) => send(app, Command::Debug(DebugCommand::Release { target })),
        Err(reason) => refuse(app, &reason),
    }
}

/// Who is meant; without a name the episode looked at.
fn target(app: &App, name: &str) -> Result<HoldTarget, String> {
    if name == "all" {
        return Ok(HoldTarget::All);
    }
    if name.is_empty() {
        let episode = if app.ui.screen == Screen::Rollout {
            rollout_episode(app).map(|episode| episode.id)
        } else {
            selected_episode(app)
        };
        let episode = episode.ok_or("no episode is selected")?;
        return Ok(HoldTarget::Episode { episode });
    }
    if let Some(desktop) = name.strip_prefix("desktop:") {
        let desktop = desktop.parse();
        let desktop = desktop.map_err(|_| "write a desktop as desktop:NUMBER")?;
        return Ok(HoldTarget::Desktop { desktop });
    }
    let episode = parse_episode(name).ok_or("write an episode (0-000531), desktop:3 or all")?;
    Ok(HoldTarget::Episode { episode })
}

fn parse_episode(text: &str) -> Option<EpisodeId> {
    let (incarnation, number) = text.trim_start_matches('e').split_once('-')?;
    Some(EpisodeId {
        incarnation: incarnation.parse().ok()?,
        number: number.parse().ok()?,
    })
}

/// Sets a breakpoint, clears some, or lists them where nothing is said.
pub(super) fn breakpoint(app: &mut App, argument: &str) -> Vec<Effect> {
    if argument.is_empty() {
        let list: Vec<String> = app
            .run
            .breakpoints
            .iter()
            .map(|one| format!("{} {}", one.id, one.on.words()))
            .collect();
        let text = if list.is_empty() {
            "no breakpoints; break step 3, kind click, parse-error, low-logprob -1.5, unchanged"
                .to_owned()
        } else {
            format!("breakpoints: {}", list.join(", "))
        };
        app.say(Role::Text, text);
        return Vec::new();
    }
    match breakpoint_command(app, argument) {
        Ok(command) => checked(app, command),
        Err(reason) => refuse(app, &reason),
    }
}

fn breakpoint_command(app: &App, argument: &str) -> Result<DebugCommand, String> {
    let (words, here) = match argument.strip_suffix(" here") {
        Some(words) => (words, true),
        None => (argument, false),
    };
    let (kind, value) = words.split_once(' ').unwrap_or((words, ""));
    let value = value.trim();
    let on = match (kind, value) {
        ("clear", "") => return Ok(DebugCommand::ClearBreakpoint { id: None }),
        ("clear", id) => {
            let id = id
                .parse()
                .map_err(|_| "write a number, as in: break clear 2")?;
            return Ok(DebugCommand::ClearBreakpoint { id: Some(id) });
        }
        ("step", step) => {
            let step = step.parse().ok().filter(|step| *step > 0);
            let step: u32 = step.ok_or("write a step from 1, as in: break step 3")?;
            BreakOn::Step { step: step - 1 }
        }
        ("kind", action) => BreakOn::Kind {
            action: action.to_owned(),
        },
        ("parse-error", "") => BreakOn::ParseError,
        ("low-logprob", below) => {
            let below = below.parse();
            let below = below.map_err(|_| "write a threshold, as in: break low-logprob -1.5")?;
            BreakOn::LowLogprob { below }
        }
        ("unchanged", "") => BreakOn::UnchangedScreen,
        _ => {
            return Err(
                "break step N, kind ACTION, parse-error, low-logprob X, unchanged or clear"
                    .to_owned(),
            );
        }
    };
    let episode = here.then(|| rollout_episode(app).map(|episode| episode.id));
    Ok(DebugCommand::SetBreakpoint {
        on,
        episode: episode.flatten(),
    })
}

/// Branches the episode shown at a step, or at the one shown.
pub(super) fn branch(app: &mut App, argument: &str) -> Vec<Effect> {
    let Some(episode) = rollout_episode(app) else {
        return refuse(app, "no episode is shown");
    };
    let id = episode.id;
    if episode.is_running() {
        return refuse(
            app,
            "this episode still runs; only one that was scored can be branched",
        );
    }
    let newest = episode.steps.len().saturating_sub(1);
    let shown = app.ui.rollout.step.unwrap_or(newest).min(newest) as u32;
    let step = match argument {
        "" => Some(shown),
        text => text
            .parse::<u32>()
            .ok()
            .and_then(|step| step.checked_sub(1)),
    };
    match step {
        Some(step) => checked(app, DebugCommand::Branch { episode: id, step }),
        None => refuse(app, "write a step from 1, as in: branch 3"),
    }
}

/// Sends a command that makes sense, else says why it does not.
fn checked(app: &mut App, command: DebugCommand) -> Vec<Effect> {
    match command.check() {
        Ok(()) => send(app, Command::Debug(command)),
        Err(reason) => refuse(app, &reason),
    }
}

fn refuse(app: &mut App, text: &str) -> Vec<Effect> {
    app.say(Role::Danger, text);
    Vec::new()
}
