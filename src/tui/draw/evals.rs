//! Evals: is it better, honestly? Evaluations of this run and of the one compared with; scores by
//! domain under the three protocols; what two of them solved differently.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::event::{EvaluationStatus, Score};
use crate::tui::evals::{
    Comparison, DomainScores, EvalRow, FEW, compare, compared_pair, domain_scores, headline, rows,
    selected_place,
};
use crate::tui::figures;
use crate::tui::layout::SizeClass;
use crate::tui::text::{one_line, pad, pad_left};
use crate::tui::theme::Role;
use crate::tui::update::Target;
use crate::types::Protocol;

use super::Sketch;
use super::sketch::FrameTitle;

/// Columns of the list.
const LIST: (u16, u16) = (31, 40);
/// Inner columns from which on every score has its interval.
const WITH_INTERVALS: u16 = 74;
/// Columns of a score with its interval, and without.
const SCORE: (usize, usize) = (15, 6);

pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, class: SizeClass) {
    let app = sketch.app;
    let all = rows(app);
    if all.is_empty() {
        sketch.center(area, "no evaluation yet; e asks for one", Role::Muted);
        return;
    }
    let selected = selected_place(app, &all);
    if class < SizeClass::Full {
        draw_list(sketch, area, &all, selected);
        return;
    }
    let list = (area.width * 3 / 10).clamp(LIST.0, LIST.1);
    let [left, right] =
        Layout::horizontal([Constraint::Length(list), Constraint::Fill(1)]).areas(area);
    let title = FrameTitle {
        left: format!("{} evaluations", all.len()),
        right: Some(("success".to_owned(), Role::Muted)),
        focused: true,
    };
    let inner = sketch.frame(left, &title);
    draw_list(sketch, inner, &all, selected);
    if class < SizeClass::Wide {
        if app.ui.evals.shows_flips {
            draw_flips(sketch, right, &all);
        } else {
            draw_scores(sketch, right, &all[selected]);
        }
        return;
    }
    let [scores, flips] = Layout::vertical([Constraint::Fill(3), Constraint::Fill(2)]).areas(right);
    draw_scores(sketch, scores, &all[selected]);
    draw_flips(sketch, flips, &all);
}

/// Two rows an evaluation: number, weights, name and score; then where it stands.
fn draw_list(sketch: &mut Sketch<'_>, area: Rect, all: &[EvalRow<'_>], selected: usize) {
    let shown = usize::from(area.height / 2).max(1);
    let first = (selected + 1).saturating_sub(shown);
    for (line, (place, row)) in all.iter().enumerate().skip(first).take(shown).enumerate() {
        let row_area = Rect {
            y: area.y + 2 * line as u16,
            height: 2,
            ..area
        }
        .intersection(area);
        draw_row(sketch, row_area, row);
        if place == selected {
            sketch.select(row_area);
        }
        sketch.drawn.targets.push((row_area, Target::Eval(place)));
    }
}

/// How an evaluation is called: `#3`, or `other #3` in the run compared with.
fn label(row: &EvalRow<'_>) -> String {
    let other = if row.key.is_other { "other " } else { "" };
    match row.state.number {
        Some(number) => format!("{other}#{number}"),
        None => format!("{other}-"),
    }
}

/// The weights it measured.
fn weights(row: &EvalRow<'_>) -> String {
    let manifest = row.state.manifest.as_ref().map(|it| it.policy);
    let policy = manifest.or(row.state.report.as_ref().map(|it| it.policy));
    policy.map_or(figures::NOTHING.to_owned(), |policy| {
        format!("v{}", policy.0)
    })
}

fn draw_row(sketch: &mut Sketch<'_>, area: Rect, row: &EvalRow<'_>) {
    let is_marked = sketch.app.ui.evals.marked.contains(&row.key);
    let mark = if is_marked { "*" } else { " " };
    let name = format!(
        "{mark}{} {} {}",
        label(row),
        weights(row),
        one_line(&row.state.name)
    );
    sketch.put(area, 0, 0, &name, Role::Text);
    let (protocol, score) = match headline(row.state) {
        Some((protocol, score)) => (protocol.name(), figures::fraction(score.success)),
        None => ("", figures::NOTHING.to_owned()),
    };
    let first = Rect { height: 1, ..area };
    sketch.put_right(first, 0, &[(format!(" {score} "), Role::Text)]);
    let state = row.state;
    let (words, role) = match &state.status {
        EvaluationStatus::Waiting => ("waits for its desktops".to_owned(), Role::Waiting),
        EvaluationStatus::Running => {
            let since = sketch.app.run_now_ms().saturating_sub(state.since_ms);
            (
                format!("{}/{} {}", state.done, state.total, figures::age(since)),
                Role::Running,
            )
        }
        EvaluationStatus::Cancelled { .. } => (
            format!("cancelled at {}/{}", state.done, state.total),
            Role::Warning,
        ),
        EvaluationStatus::Finished => {
            let n = headline(state).map_or(0, |(_, score)| score.n);
            (format!("{n} scored"), Role::Muted)
        }
    };
    sketch.put(area, 3, 1, &words, role);
    if area.height > 1 {
        sketch.put_right(area, 1, &[(format!("{protocol} "), Role::Muted)]);
    }
}

/// Domains by protocol, and what the numbers can bear.
fn draw_scores(sketch: &mut Sketch<'_>, area: Rect, row: &EvalRow<'_>) {
    let state = row.state;
    let title = FrameTitle {
        left: format!("{} {}, scores by domain", label(row), weights(row)),
        right: Some(("95% Wilson intervals".to_owned(), Role::Muted)),
        focused: false,
    };
    let inner = sketch.frame(area, &title);
    let scores = domain_scores(state);
    if scores.is_empty() {
        let text = match &state.status {
            EvaluationStatus::Waiting => "waits for its desktops",
            EvaluationStatus::Cancelled { reason } if !reason.is_empty() => reason.as_str(),
            _ => "no trial is scored yet",
        };
        sketch.center(inner, text, Role::Muted);
        return;
    }
    let is_wide = inner.width >= WITH_INTERVALS;
    let cells = if is_wide { SCORE.0 } else { SCORE.1 };
    // Number of trials, gap and FAIL endings beside the three scores.
    let fixed = 6 + 3 * cells + if is_wide { 9 + 8 } else { 6 + 5 };
    let name_cells = usize::from(inner.width).saturating_sub(fixed).clamp(6, 18);
    let names = ["standard", "hard", "plain"];
    let mut heading = format!(" {}{} ", pad("domain", name_cells), pad_left("n", 4));
    for (name, short) in names.iter().zip(["std", "hard", "plain"]) {
        heading.push_str(&pad(if is_wide { name } else { short }, cells));
    }
    heading.push_str(if is_wide {
        "hard-std FAIL r/w"
    } else {
        "gap   FAIL"
    });
    sketch.put(inner, 0, 0, &heading, Role::Muted);
    let notes = note_rows(row, &scores, is_wide);
    let room = usize::from(inner.height).saturating_sub(1 + notes.len());
    // The three totals below the domains are never cut.
    let domains = scores.len().saturating_sub(3);
    let kept = domains.min(room.saturating_sub(3));
    let mut line = 1;
    for domain in scores[..kept].iter().chain(&scores[domains..]) {
        let role = if domain.name == "all" {
            Role::Text
        } else {
            Role::Muted
        };
        draw_domain(sketch, inner, line, domain, name_cells, role);
        line += 1;
    }
    if kept < domains {
        let text = format!(" {} more domains", domains - kept);
        sketch.put(inner, 0, line, &text, Role::Warning);
    }
    let first = inner.height.saturating_sub(notes.len() as u16);
    for (place, (text, role)) in notes.into_iter().enumerate() {
        sketch.put(inner, 1, first + place as u16, &text, role);
    }
}

fn draw_domain(
    sketch: &mut Sketch<'_>,
    area: Rect,
    line: u16,
    domain: &DomainScores,
    name_cells: usize,
    role: Role,
) {
    let is_wide = area.width >= WITH_INTERVALS;
    let n = domain.scores[0].n;
    let name = format!(
        " {}{} ",
        pad(&one_line(&domain.name), name_cells),
        pad_left(&n.to_string(), 4)
    );
    let mut at = sketch.put(area, 0, line, &name, role);
    for score in &domain.scores {
        let text = if is_wide {
            pad(&with_interval(score), SCORE.0)
        } else {
            pad(&share(score), SCORE.1)
        };
        at = sketch.put(area, at, line, &text, Role::Text);
    }
    let gap = domain.scores[1].success - domain.scores[0].success;
    let gap = if n == 0 {
        figures::NOTHING.to_owned()
    } else {
        figures::signed(gap)
    };
    let at = sketch.put(
        area,
        at,
        line,
        &pad(&gap, if is_wide { 9 } else { 6 }),
        Role::Text,
    );
    let fails = domain
        .fail_last
        .map_or(figures::NOTHING.to_owned(), |(ok, bad)| {
            format!("{ok}/{bad}")
        });
    sketch.put(area, at, line, &fails, Role::Muted);
}

fn share(score: &Score) -> String {
    if score.n == 0 {
        return figures::NOTHING.to_owned();
    }
    figures::fraction(score.success)
}

fn with_interval(score: &Score) -> String {
    if score.n == 0 {
        return figures::NOTHING.to_owned();
    }
    format!(
        "{} [{}-{}]",
        figures::fraction(score.success),
        figures::fraction(score.interval.0),
        figures::fraction(score.interval.1)
    )
}

/// What the table needs to be read: intervals where it has none, errors, small numbers.
fn note_rows(row: &EvalRow<'_>, scores: &[DomainScores], is_wide: bool) -> Vec<(String, Role)> {
    let mut notes = Vec::new();
    let all = scores.iter().find(|domain| domain.name == "all");
    let Some(all) = all.map(|all| all.scores) else {
        return notes;
    };
    if !is_wide {
        for (protocol, score) in Protocol::ALL.iter().zip(&all) {
            let text = format!("{} {}", pad(protocol.name(), 9), with_interval(score));
            notes.push((text, Role::Muted));
        }
    }
    if all[0].errors > 0 {
        let (low, high) = all[2].success_bounds;
        let text = format!(
            "{} errors left out; with them plain is {} to {}",
            all[0].errors,
            figures::fraction(low),
            figures::fraction(high)
        );
        notes.push((text, Role::Warning));
    }
    if row.state.is_open() {
        notes.push(("so far; it still runs".to_owned(), Role::Running));
    }
    if all[0].n < FEW {
        let text = format!(
            "n = {} < {FEW}: too few to tell small differences",
            all[0].n
        );
        notes.push((text, Role::Warning));
    }
    if let Some(manifest) = &row.state.manifest {
        let text = format!(
            "{}: {} tasks x {}, temperature {}, at most {} steps, seed {}",
            one_line(&manifest.tasks),
            manifest.num_tasks,
            manifest.trials,
            manifest.temperature.0,
            manifest.max_steps,
            manifest.seed
        );
        notes.push((text, Role::Muted));
    }
    notes
}

/// What the second of two evaluations solved and the first did not, and the other way round.
fn draw_flips(sketch: &mut Sketch<'_>, area: Rect, all: &[EvalRow<'_>]) {
    let app = sketch.app;
    let protocol = app.ui.evals.protocol;
    let pair = compared_pair(app, all);
    let comparison = compare(pair, protocol);
    let names = pair.map_or("Flips".to_owned(), |(first, second)| {
        format!(
            "Flips {} → {}  {}",
            label(&first),
            label(&second),
            protocol.name()
        )
    });
    let right = match &comparison {
        Comparison::Alike(flips) => format!(
            "+{} -{}  sign test p {}",
            flips.gained,
            flips.lost,
            figures::short(flips.p)
        ),
        Comparison::Unlike(_) => "unlike conditions".to_owned(),
        Comparison::NotMarked | Comparison::NoTrials => String::new(),
    };
    let title = FrameTitle {
        left: names,
        right: Some((right, Role::Text)),
        focused: app.ui.evals.shows_flips,
    };
    let inner = sketch.frame(area, &title);
    match comparison {
        Comparison::NotMarked => {
            sketch.center(inner, "space marks two evaluations to compare", Role::Muted);
        }
        Comparison::NoTrials => {
            let text = "their trials are not kept, so nothing can be compared one by one";
            sketch.text(inner, text, Role::Muted, 0);
        }
        Comparison::Unlike(differences) => {
            let text = "No difference is shown: these were made under other conditions.";
            let top = sketch.text(inner, text, Role::Warning, 0);
            for (line, one) in differences.iter().enumerate() {
                let text = format!(
                    "{} {} → {}",
                    pad(&one.what, 18),
                    one_line(&one.first),
                    one_line(&one.second)
                );
                sketch.put(inner, 1, top + line as u16, &text, Role::Text);
            }
        }
        Comparison::Alike(flips) => {
            let same = flips.pairs - flips.gained - flips.lost;
            let text = format!("{} trials in both, {same} came out the same", flips.pairs);
            sketch.put(inner, 1, 0, &text, Role::Muted);
            let room = usize::from(inner.height.saturating_sub(1));
            for (line, flip) in flips.flips.iter().take(room).enumerate() {
                let (sign, role) = if flip.gained {
                    ("+", Role::Good)
                } else {
                    ("-", Role::Bad)
                };
                let text = format!("{sign} {}", pad(&one_line(&flip.task.0), 36));
                let row = line as u16 + 1;
                let at = sketch.put(inner, 1, row, &text, role);
                let text = format!(" trial {}  {}", flip.trial + 1, one_line(&flip.domain));
                sketch.put(inner, at, row, &text, Role::Muted);
            }
        }
    }
}
