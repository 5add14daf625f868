//! Asking for one episode or one desktop, and for what of training can be set beside the rates.

use crate::event::Command;
use crate::tui::app::{App, Screen};
use crate::tui::fleet::{episode_name, rollout_episode, selected_desktop, selected_episode};
use crate::tui::machines;
use crate::tui::theme::Role;
use crate::tui::update::Effect;
use crate::types::EpisodeId;

use super::operate::send;

/// Room for how a machine stands in a question that shall fit into 80 columns.
const STATE_CELLS: usize = 30;

/// The episode an argument names, or the one looked at.
fn episode(app: &App, argument: &str) -> Result<EpisodeId, String> {
    if !argument.is_empty() {
        return argument
            .parse()
            .map_err(|_| format!("{argument} is no episode; write its id, as in: kill 0-17"));
    }
    let shown = match app.ui.screen {
        Screen::Rollout => rollout_episode(app).map(|episode| episode.id),
        _ => selected_episode(app),
    };
    shown.ok_or_else(|| "no episode is selected; write its id, as in: kill 0-17".to_owned())
}

/// The episode as it is asked about.
pub(super) fn episode_victim(app: &App, argument: &str) -> Result<String, String> {
    let id = episode(app, argument)?;
    match app.run.episodes.get(&id) {
        Some(episode) if episode.is_running() => Ok(format!(
            "{} ({id}, {} steps of {})",
            episode_name(episode),
            episode.steps.len(),
            episode.task
        )),
        Some(_) => Err(format!("episode {id} has ended already")),
        None => Err(format!("episode {id} is not known here")),
    }
}

pub(super) fn kill(app: &mut App, argument: &str) -> Vec<Effect> {
    match episode(app, argument) {
        Ok(episode) => send(app, Command::KillEpisode { episode }),
        Err(reason) => refuse(app, reason),
    }
}

pub(super) fn reroll(app: &mut App, argument: &str) -> Vec<Effect> {
    match episode(app, argument) {
        Ok(episode) => send(app, Command::RerollEpisode { episode }),
        Err(reason) => refuse(app, reason),
    }
}

/// The desktop an argument names, or the one looked at, with or without an episode on it.
pub(super) fn desktop(app: &App, argument: &str, command: &str) -> Result<u32, String> {
    if !argument.is_empty() {
        return argument.parse().map_err(|_| {
            format!("{argument} is no desktop; write its number, as in: {command} 3")
        });
    }
    let shown = match app.ui.screen {
        Screen::Rollout => rollout_episode(app).map(|episode| episode.desktop),
        _ => selected_desktop(app),
    };
    shown.ok_or_else(|| format!("no desktop is selected; write its number, as in: {command} 3"))
}

/// The desktop as it is asked about.
pub(super) fn desktop_victim(app: &App, argument: &str) -> Result<String, String> {
    let number = desktop(app, argument, "reboot")?;
    let known = app.run.desktops.get(number as usize);
    let Some(state) = known else {
        return Err(format!("there is no desktop {number}"));
    };
    let running = state
        .episode
        .and_then(|id| app.run.episodes.get(&id))
        .filter(|episode| episode.is_running());
    let mut words = match running {
        Some(episode) => format!("desktop {number} with {}", episode_name(episode)),
        None => format!("desktop {number}"),
    };
    if let Some(machine) = &state.machine {
        let stands = machines::words(machine, app.run_now_ms(), STATE_CELLS);
        words = format!("{words}, {stands}");
    }
    Ok(words)
}

pub(super) fn reboot(app: &mut App, argument: &str) -> Vec<Effect> {
    match desktop(app, argument, "reboot") {
        Ok(desktop) => send(app, Command::RebootDesktop { desktop }),
        Err(reason) => refuse(app, reason),
    }
}

pub(super) fn clip(app: &mut App, argument: &str) -> Vec<Effect> {
    let numbers: Vec<f64> = argument
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [low, high] = numbers[..] else {
        return refuse(app, "write both clips, as in: clip 0.2 0.3".to_owned());
    };
    let command = Command::SetClip { low, high };
    match command.check() {
        Ok(()) => send(app, command),
        Err(reason) => refuse(app, reason),
    }
}

pub(super) fn replay_buffer(app: &mut App, argument: &str) -> Vec<Effect> {
    let enabled = match argument {
        "on" => true,
        "off" => false,
        _ => return refuse(app, "write on or off, as in: replay-buffer off".to_owned()),
    };
    send(app, Command::SetReplay { enabled })
}

fn refuse(app: &mut App, text: String) -> Vec<Effect> {
    app.say(Role::Danger, text);
    Vec::new()
}
