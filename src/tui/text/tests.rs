//! Tests of widths, cutting and line breaking, Chinese text above all.

use super::{clean, fit, one_line, pad, width, wrap};

#[test]
fn widths_are_terminal_cells() {
    for (text, cells) in [
        ("", 0),
        ("abc", 3),
        ("上标", 4),
        ("H₂O", 3),
        ("é", 1),
        ("e\u{301}", 1),
        ("ｶﾞ", 2),
        ("撤销 Ctrl+Z", 11),
    ] {
        assert_eq!(width(text), cells, "{text:?}");
    }
}

#[test]
fn cutting_never_halves_a_wide_glyph() {
    for cells in 0..12 {
        let cut = fit("上次点击命中了上标", cells);
        assert!(width(&cut) <= cells, "{cut:?} in {cells}");
        assert_eq!(width(&pad("上次点击命中了上标", cells)), cells);
    }
    assert_eq!(fit("上次点击", 5), "上次…");
    assert_eq!(fit("上次点击", 4), "上…");
}

#[test]
fn cleaning_removes_what_terminals_obey() {
    assert_eq!(clean("a\u{1b}[31mb\u{7}c\u{202e}d\te"), "a[31mbcd e");
    assert_eq!(one_line("  two\n  words\r\n"), "two words");
}

#[track_caller]
fn check_wrap(text: &str, cells: usize, expected: &[&str]) {
    let lines = wrap(text, cells);
    assert_eq!(lines, expected);
    assert!(lines.iter().all(|line| width(line) <= cells));
}

#[test]
fn lines_break_between_words_and_glyphs() {
    check_wrap(
        "click the subscript button",
        10,
        &["click the", "subscript", "button"],
    );
    check_wrap("上次点击命中", 5, &["上次", "点击", "命中"]);
    check_wrap("a\n\nb", 5, &["a", "", "b"]);
    check_wrap("extraordinarily", 6, &["extrao", "rdinar", "ily"]);
}

#[test]
fn no_line_begins_with_a_closing_mark() {
    check_wrap("点击命中。然后", 8, &["点击命", "中。然后"]);
    // A word goes along as a whole where it has a line to go to.
    check_wrap("it is altogether, yes", 16, &["it is", "altogether, yes"]);
    check_wrap("closes without saving.", 21, &["closes without", "saving."]);
    check_wrap("点击save.", 8, &["点击", "save."]);
    check_wrap("altogether,", 10, &["altogethe", "r,"]);
    for cells in 2..20 {
        for line in wrap(
            "数字2被抬高了，需要撤销（Ctrl+Z）。然后再选中2，按“下标”。",
            cells,
        ) {
            assert!(width(&line) <= cells, "{line:?} in {cells}");
            if cells > 4 {
                assert!(
                    !"，。）”".contains(line.chars().next().unwrap_or(' ')),
                    "{line:?} in {cells}"
                );
            }
        }
    }
}

#[test]
fn any_width_is_safe() {
    for cells in 0..6 {
        wrap("上 a。\u{1f468}\u{200d}\u{1f469} ……", cells);
    }
}
