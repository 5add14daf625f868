//! The rows of the table, a file a screen and three for what holds on all of them.

mod evals;
mod everywhere;
mod fleet;
mod logs;
mod moving;
mod operating;
mod replay;
mod rollout;
mod train;

use super::CommandRow;

/// In the order of the hint bar: a screen's own before those of every screen.
const PARTS: [&[CommandRow]; 9] = [
    fleet::ROWS,
    rollout::ROWS,
    train::ROWS,
    evals::ROWS,
    replay::ROWS,
    logs::ROWS,
    moving::ROWS,
    operating::ROWS,
    everywhere::ROWS,
];

const COUNT: usize = count();

/// All rows.
pub(super) static ROWS: [CommandRow; COUNT] = all();

const fn count() -> usize {
    let (mut rows, mut part) = (0, 0);
    while part < PARTS.len() {
        rows += PARTS[part].len();
        part += 1;
    }
    rows
}

#[expect(
    clippy::large_stack_arrays,
    reason = "made while compiling, never on a stack"
)]
const fn all() -> [CommandRow; COUNT] {
    let mut rows = [PARTS[0][0]; COUNT];
    let (mut at, mut part) = (0, 0);
    while part < PARTS.len() {
        let mut row = 0;
        while row < PARTS[part].len() {
            rows[at] = PARTS[part][row];
            (at, row) = (at + 1, row + 1);
        }
        part += 1;
    }
    rows
}
