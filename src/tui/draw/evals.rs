//! Evals: is it better, honestly? Evaluations, and one of them by protocol with its intervals.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::event::{EvalReport, ProtocolScore, Score};
use crate::tui::evals::rows;
use crate::tui::figures;
use crate::tui::layout::SizeClass;
use crate::tui::text::{one_line, pad, pad_left};
use crate::tui::theme::Role;
use crate::tui::update::Target;

use super::Sketch;
use super::sketch::FrameTitle;

/// With fewer scored episodes an interval says little.
const FEW: u64 = 30;

pub(super) fn draw(sketch: &mut Sketch<'_>, area: Rect, class: SizeClass) {
    let all = rows(&sketch.app.run);
    if all.is_empty() {
        sketch.center(area, "no evaluation yet", Role::Muted);
        return;
    }
    let selected = sketch.app.ui.evals.selected.unwrap_or(0).min(all.len() - 1);
    if class < SizeClass::Full {
        draw_list(sketch, area, &all, selected);
        return;
    }
    let list = (area.width / 3).clamp(30, 44);
    let [left, right] =
        Layout::horizontal([Constraint::Length(list), Constraint::Fill(1)]).areas(area);
    let title = FrameTitle {
        left: format!("{} evaluations", all.len()),
        right: None,
        focused: true,
    };
    let inner = sketch.frame(left, &title);
    draw_list(sketch, inner, &all, selected);
    draw_protocols(sketch, right, all[selected]);
}

fn draw_list(sketch: &mut Sketch<'_>, area: Rect, all: &[&EvalReport], selected: usize) {
    let shown = usize::from(area.height);
    let first = (selected + 1).saturating_sub(shown);
    for (line, (place, report)) in all.iter().enumerate().skip(first).take(shown).enumerate() {
        let row = Rect {
            y: area.y + line as u16,
            height: 1,
            ..area
        };
        let version = format!("v{}", report.policy.0);
        let name = format!(" {} {}", pad_left(&version, 5), one_line(&report.name));
        sketch.put(row, 0, 0, &name, Role::Text);
        let success = figures::fraction(report.plain.all.success);
        sketch.put_right(row, 0, &[(format!("{success} "), Role::Text)]);
        if place == selected {
            sketch.select(row);
        }
        sketch.drawn.targets.push((row, Target::Eval(place)));
    }
}

fn draw_protocols(sketch: &mut Sketch<'_>, area: Rect, report: &EvalReport) {
    let title = FrameTitle {
        left: format!("{} on {}", one_line(&report.name), one_line(&report.tasks)),
        right: Some((
            format!("v{}  95% Wilson intervals", report.policy.0),
            Role::Muted,
        )),
        focused: false,
    };
    let inner = sketch.frame(area, &title);
    let mut row = 0;
    for (name, score) in [
        ("standard", &report.standard),
        ("hard", &report.hard),
        ("plain", &report.plain),
    ] {
        row = draw_protocol(sketch, inner, row, name, score) + 1;
    }
    if report.plain.all.n < FEW {
        let text = format!(
            "only {} scored episodes: the intervals are wide, differences within them mean nothing",
            report.plain.all.n
        );
        let body = Rect {
            y: inner.y + row.min(inner.height),
            height: inner.height.saturating_sub(row),
            ..inner
        };
        sketch.text(body, &text, Role::Warning, 0);
    }
}

fn draw_protocol(
    sketch: &mut Sketch<'_>,
    area: Rect,
    row: u16,
    name: &str,
    score: &ProtocolScore,
) -> u16 {
    let parts = [
        (name, &score.all, Role::Text),
        ("  feasible", &score.feasible, Role::Muted),
        ("  infeasible", &score.infeasible, Role::Muted),
    ];
    for (line, (label, part, role)) in parts.into_iter().enumerate() {
        let line = row + line as u16;
        let at = sketch.put(area, 1, line, &pad(label, 13), role);
        sketch.put(area, at, line, &score_words(part), role);
    }
    row + parts.len() as u16
}

fn score_words(score: &Score) -> String {
    if score.n == 0 {
        return "none".to_owned();
    }
    format!(
        "{} [{}, {}]  n {}",
        figures::fraction(score.success),
        figures::fraction(score.interval.0),
        figures::fraction(score.interval.1),
        score.n
    )
}
