//! Tests of codes, notes and order.

use super::cell::{Cell, CellKind};
use super::order::Attention;
use super::row::Note;

fn cell(kind: CellKind) -> Cell {
    Cell {
        episode: None,
        kind,
        since_ms: 0,
    }
}

#[test]
fn codes_need_no_color_and_fit_four_cells() {
    let kinds = [
        (CellKind::Waiting, "·", '·'),
        (CellKind::Booting, "b", 'b'),
        (CellKind::Overdue, "b!", '!'),
        (CellKind::Running(7), "r07", 'r'),
        (CellKind::Paused(12), "P12", 'P'),
        (CellKind::Held(4), "H04", 'H'),
        (CellKind::Stuck(3), "!03", '!'),
        (CellKind::Scoring, "v", 'v'),
        (CellKind::Done(1.0), "D1.0", '1'),
        (CellKind::Done(0.0), "D.00", '0'),
        (CellKind::Malformed(0.0), "F.00", 'F'),
        (CellKind::Fault, "X!", 'X'),
        (CellKind::Replayed(Some(1.0)), "~1.0", '~'),
        (CellKind::Replayed(None), "~", '~'),
    ];
    for (kind, code, letter) in kinds {
        let cell = cell(kind);
        assert_eq!((cell.code().as_str(), cell.letter()), (code, letter));
        assert!(crate::tui::text::width(&cell.code()) <= 4);
        assert!(crate::tui::text::width(&cell.short_code()) <= 3);
    }
}

#[test]
fn short_codes_keep_one_digit() {
    for (outcome, code) in [
        (1.0, "D1"),
        (0.0, "D0"),
        (0.62, "D.6"),
        (0.97, "D1"),
        (0.94, "D.9"),
        (0.06, "D.1"),
    ] {
        assert_eq!(cell(CellKind::Done(outcome)).short_code(), code);
    }
}

#[test]
fn attention_goes_to_trouble_first() {
    let at_work = [cell(CellKind::Running(1))];
    let done = [cell(CellKind::Done(1.0))];
    let waiting = [cell(CellKind::Waiting)];
    let order = [
        Attention::of(&Note::Failing, &at_work),
        Attention::of(&Note::Faults(1), &at_work),
        Attention::of(&Note::Stuck(40_000), &at_work),
        Attention::of(&Note::Running, &at_work),
        Attention::of(&Note::AllFail, &done),
        Attention::of(&Note::Signal, &done),
        Attention::of(&Note::Running, &waiting),
    ];
    assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
}
