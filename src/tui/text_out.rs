//! Text that leaves the console: what is selected, and what a screen shows, as lines for people
//! and tables for programs. Pure.

use std::fmt::Write as _;

use crate::event::{Clip, EpisodeState, ReplyTokens, StepState};
use crate::tui::app::{App, RolloutPage, Screen};
use crate::tui::fleet::{episode_name, instruction, rollout_episode, rows_in_order};
use crate::tui::logs::{log_rows, source_name};
use crate::tui::text::one_line;
use crate::tui::tokens::{shown_tokens, token_rows};
use crate::tui::{figures, wording};
use crate::types::{EpisodeId, PolicyVersion};

/// The episode that is looked at.
pub fn episode_id(app: &App) -> Option<EpisodeId> {
    if app.ui.screen != Screen::Logs {
        return rollout_episode(app).map(|episode| episode.id);
    }
    let rows = log_rows(app);
    let place = rows.len().checked_sub(app.ui.logs.up + 1)?;
    rows[place].episode
}

/// The step that is looked at.
pub fn step(app: &App) -> Option<&StepState> {
    let steps = &rollout_episode(app)?.steps;
    let newest = steps.len().checked_sub(1)?;
    let at = match app.ui.screen {
        Screen::Rollout => app.ui.rollout.step.unwrap_or(newest),
        _ => newest,
    };
    steps.get(at.min(newest))
}

/// The `arpo ctl` line of the newest command, of this console or of another one.
pub fn ctl_line(app: &App) -> Option<String> {
    let sent = app.ui.sent.last().map(|sent| &sent.request);
    let newest = sent.or_else(|| app.run.commands.back().map(|known| &known.request));
    newest.map(|command| wording::ctl_line(app.run_name(), command))
}

/// What the screen shows, in full.
pub fn view(app: &App) -> String {
    match app.ui.screen {
        Screen::Fleet => fleet(app),
        Screen::Rollout => rollout_episode(app).map_or(String::new(), |e| rollout(app, e)),
        Screen::Train => train(app),
        Screen::Evals => evals(app),
        Screen::Replay => replay(app),
        Screen::Logs => logs(app),
    }
}

fn evals(app: &App) -> String {
    let mut text =
        "evaluation\tname\tstatus\tdone\ttotal\tprotocol\tsuccess\tlow\thigh\n".to_owned();
    for row in crate::tui::evals::rows(app) {
        let state = row.state;
        let number = state.number.map_or("-".to_owned(), |n| n.to_string());
        let scored = match crate::tui::evals::headline(state) {
            Some((protocol, score)) => format!(
                "{}\t{}\t{}\t{}",
                protocol.name(),
                score.success,
                score.interval.0,
                score.interval.1
            ),
            None => "-\t-\t-\t-".to_owned(),
        };
        let name = one_line(&state.name);
        let status = wording::evaluation(&state.status);
        let _ = writeln!(
            text,
            "{number}\t{name}\t{status}\t{}\t{}\t{scored}",
            state.done, state.total
        );
    }
    text
}

fn replay(app: &App) -> String {
    let mut text = "task\tstored\tnewest\toldest\tuses\n".to_owned();
    for row in crate::tui::replay::rows(&app.run, &app.ui.replay) {
        let version = |version: Option<PolicyVersion>| {
            version.map_or("-".to_owned(), |version| format!("v{}", version.0))
        };
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{}\t{}",
            row.task.0,
            row.state.successes.len(),
            version(row.newest),
            version(row.oldest),
            row.uses
        );
    }
    text
}

fn fleet(app: &App) -> String {
    let mut text = "row\ttask\tsample\tepisode\tstate\tmean\tstd\n".to_owned();
    for row in rows_in_order(app) {
        let number = |value: Option<f64>| value.map_or("-".to_owned(), figures::fraction);
        for (sample, cell) in row.cells.iter().enumerate() {
            let id = cell.episode.map_or("-".to_owned(), |id| id.to_string());
            let _ = writeln!(
                text,
                "{}\t{}\t{sample}\t{id}\t{}\t{}\t{}",
                row.key.number(),
                row.task.0,
                cell.code(),
                number(row.mean),
                number(row.std)
            );
        }
    }
    text
}

fn rollout(app: &App, shown: &EpisodeState) -> String {
    match (app.ui.rollout.page, shown_tokens(app, shown)) {
        (RolloutPage::Tokens, Ok(found)) => tokens(found),
        _ => episode(app, shown),
    }
}

/// Figures with all their digits; what is not known is left empty.
fn tokens(tokens: &ReplyTokens) -> String {
    let mut text = "token\tsampled\tlearned\tratio\tclipped\tentropy\n".to_owned();
    for row in token_rows(tokens) {
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let learned = row.learned;
        let clipped = match learned.and_then(|learned| learned.clip) {
            Some(Clip::High) => "high",
            Some(Clip::Low) => "low",
            None => "",
        };
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{}\t{clipped}\t{}",
            row.text,
            number(row.sampler),
            number(learned.map(|learned| learned.logprob)),
            number(learned.map(|learned| learned.ratio)),
            number(learned.map(|learned| learned.entropy)),
        );
    }
    text
}

fn episode(app: &App, episode: &EpisodeState) -> String {
    let mut text = format!(
        "{}  {}  {}\n",
        episode_name(episode),
        episode.id,
        episode.task.0
    );
    if let Some(instruction) = instruction(&app.run, episode) {
        let _ = writeln!(text, "{instruction}");
    }
    for (number, step) in episode.steps.iter().enumerate() {
        let _ = writeln!(text, "\nstep {}", number + 1);
        let _ = writeln!(text, "{}", step.thought.trim_end());
        let action = match &step.malformed {
            Some(reason) => format!("did not parse: {reason}"),
            None => wording::actions(&step.actions),
        };
        let _ = writeln!(text, "> {action}");
        let _ = writeln!(
            text,
            "  {} tokens, wrote in {}, acted in {}",
            step.reply_tokens,
            figures::duration(step.generate_ms),
            figures::duration(step.act_ms)
        );
    }
    text
}

fn train(app: &App) -> String {
    let mut text = "iteration\treward\tgroup_std\tgroups\tdead\treplaced\n".to_owned();
    for report in &app.run.history {
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{}\t{}\t{}",
            report.iteration.0 + 1,
            report.reward_mean.0,
            report.group_std.0,
            report.groups,
            report.groups_zero_variance,
            report.replaced
        );
    }
    text
}

fn logs(app: &App) -> String {
    let mut text = String::new();
    for row in log_rows(app) {
        let count = if row.count > 1 {
            format!(" (x{})", row.count)
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "{}  {}  {}{count}",
            figures::time(row.at_ms),
            source_name(row.source),
            one_line(&row.text)
        );
    }
    text
}
