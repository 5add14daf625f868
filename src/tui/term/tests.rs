//! Tests of the splitter, the link, the decision about pictures and the lean backend.

use std::convert::Infallible;

use ratatui::Terminal;
use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use ratatui::style::{Color, Modifier, Style};

use super::{
    Answers, Blocks, Environment, Form, Graphics, Images, LeanBackend, Link, PROBE, Pace, Piece,
    Reply, Splitter, decide,
};
use crate::tui::theme::ColorDepth;

fn input(text: &str) -> Piece {
    Piece::Input(text.as_bytes().to_vec())
}

fn replies(pieces: Vec<Piece>) -> Vec<Reply> {
    let reply = |piece| match piece {
        Piece::Reply(reply, _) => Some(reply),
        _ => None,
    };
    pieces.into_iter().filter_map(reply).collect()
}

/// What terminals send, and what it is.
fn known_replies() -> Vec<(&'static str, Reply)> {
    let mode = |mode, setting| Reply::Mode { mode, setting };
    vec![
        ("\x1b[0n", Reply::Alive),
        (
            "\x1b[12;40R",
            Reply::Cursor {
                row: 12,
                column: 40,
            },
        ),
        ("\x1b[?62;4;22c", Reply::Attributes(vec![62, 4, 22])),
        (
            "\x1bP>|kitty(0.42.2)\x1b\\",
            Reply::Brand("kitty(0.42.2)".to_owned()),
        ),
        ("\x1b[?2026;2$y", mode(2026, 2)),
        (
            "\x1b_Gi=31;OK\x1b\\",
            Reply::Picture {
                id: 31,
                message: "OK".to_owned(),
            },
        ),
        (
            "\x1b]11;rgb:ffff/8080/0000\x1b\\",
            Reply::Background([255, 128, 0]),
        ),
        ("\x1b]11;rgb:ff/80/00\x07", Reply::Background([255, 128, 0])),
        ("\x1b[6;20;10t", Reply::CellPixels(10, 20)),
        ("\x1b[4;480;800t", Reply::TextPixels(800, 480)),
        ("\x1b[?1;0;256S", Reply::SixelColors(256)),
        ("\x1b[?1u", Reply::Unasked),
        ("\x1b]4;1;rgb:0/0/0\x07", Reply::Unasked),
    ]
}

#[test]
fn answers_are_told_from_keys_whole_and_in_pieces() {
    for (text, expected) in known_replies() {
        let surrounded = format!("a{text}\x1b[A");
        for cut in 0..=surrounded.len() {
            let mut splitter = Splitter::default();
            let mut pieces = splitter.feed(&surrounded.as_bytes()[..cut]);
            pieces.extend(splitter.feed(&surrounded.as_bytes()[cut..]));
            let mut typed = Vec::new();
            for piece in &pieces {
                if let Piece::Input(bytes) = piece {
                    typed.extend_from_slice(bytes);
                }
            }
            assert_eq!(typed, b"a\x1b[A", "{text:?} cut at {cut}");
            assert_eq!(
                replies(pieces),
                std::slice::from_ref(&expected),
                "{text:?} cut at {cut}"
            );
            assert_eq!(splitter.patience(), None);
        }
    }
}

#[test]
fn keys_stay_keys() {
    for text in [
        "q",
        "\x1b[A",
        "\x1b[1;5C",
        "\x1bOP",
        "\x1b[1;2R",
        "\x1bx",
        "\x1b[<0;10;5M",
        "\x1b[200~\x1b[0n\x1b[201~",
        "超",
        "\x1b[Z",
        "\x1b[15~",
    ] {
        let mut splitter = Splitter::default();
        assert_eq!(splitter.feed(text.as_bytes()), [input(text)], "{text:?}");
        assert_eq!(splitter.patience(), None, "{text:?}");
    }
}

#[test]
fn a_lone_escape_is_a_key_after_a_while_and_half_an_answer_is_dropped() {
    let mut splitter = Splitter::default();
    assert_eq!(splitter.feed(b"\x1b"), []);
    assert!(splitter.patience().is_some());
    assert_eq!(splitter.give_up(), Some(Piece::Escape));
    assert_eq!(splitter.give_up(), None);
    assert_eq!(splitter.feed(b"\x1b\x1b"), [Piece::Escape]);
    assert_eq!(splitter.give_up(), Some(Piece::Escape));
    assert_eq!(splitter.feed(b"\x1b_"), []);
    assert_eq!(splitter.give_up(), Some(input("\x1b_")));
    assert_eq!(splitter.feed(b"\x1b_Gi=31;O"), []);
    assert_eq!(splitter.give_up(), None);
    assert_eq!(splitter.feed(b"q"), [input("q")]);
}

#[test]
fn a_paste_may_contain_anything() {
    let mut splitter = Splitter::default();
    let mut typed = Vec::new();
    for byte in b"\x1b[200~a\x1b[0n\x1b_Gx\x1b\\b\x1b[201~\x1b[0n" {
        for piece in splitter.feed(&[*byte]) {
            match piece {
                Piece::Input(bytes) => typed.extend(bytes),
                Piece::Escape => typed.push(0x1b),
                Piece::Reply(reply, _) => assert_eq!(reply, Reply::Alive),
            }
        }
    }
    assert_eq!(typed, b"\x1b[200~a\x1b[0n\x1b_Gx\x1b\\b\x1b[201~");
}

#[test]
fn one_frame_is_on_its_way_or_two_small_ones() {
    let mut link = Link::default();
    assert!(link.has_room(0.0));
    link.sent(0.0, 5_000);
    assert!(!link.has_room(900.0));
    link.answered(42.0);
    assert_eq!(link.round_trip_ms(), Some(42.0));
    link.sent(100.0, 300);
    assert!(link.has_room(100.0));
    link.sent(100.0, 300);
    assert!(!link.has_room(100.0));
    assert_eq!(link.unanswered_bytes(), 600);
    link.answered(140.0);
    assert!(link.has_room(140.0));
}

#[test]
fn the_rate_is_what_large_frames_take_longer_than_small_ones() {
    let mut link = Link::default();
    link.sent(0.0, 20);
    link.answered(40.0);
    assert_eq!(link.goodput(), None);
    let mut now_ms = 1_000.0;
    for _ in 0..20 {
        // 200 kB/s behind 40 ms.
        link.sent(now_ms, 20_000);
        link.answered(now_ms + 140.0);
        now_ms += 1_000.0;
    }
    assert!(!link.is_goodput_a_bound());
    let goodput = link.goodput().unwrap();
    assert!((goodput - 200_000.0).abs() < 1.0, "{goodput}");
    assert_eq!(link.text_ms(), 100);
}

#[test]
fn a_terminal_that_never_answers_is_asked_twice_and_then_paced_by_time() {
    let mut link = Link::default();
    link.sent(0.0, 5_000);
    assert!(!link.look(399.0));
    assert!(link.look(400.0));
    assert!(!link.look(700.0));
    assert!(!link.look(800.0));
    assert_eq!(link.pace(), Pace::Time);
    assert!(link.has_room(2_000.0));
    link.sent(2_000.0, 5_000);
    assert!(!link.has_room(2_050.0));
    assert!(link.has_room(2_100.0));
    link.answered(2_200.0);
    assert_eq!(link.pace(), Pace::Answers);
}

#[test]
fn a_terminal_that_answered_before_may_stand_still_for_longer() {
    let mut link = Link::default();
    link.sent(0.0, 10);
    link.answered(5.0);
    link.sent(100.0, 5_000);
    assert!(link.look(1_100.0));
    assert!(!link.look(3_000.0));
    assert_eq!(link.pace(), Pace::Answers);
    assert!(!link.has_room(3_000.0));
    link.answered(9_000.0);
    assert!(link.has_room(9_000.0));
}

fn answers(brand: &str, kitty: bool, attributes: &[u16]) -> Answers {
    Answers {
        brand: (!brand.is_empty()).then(|| brand.to_owned()),
        kitty: kitty.then(|| "OK".to_owned()),
        attributes: Some(attributes.to_vec()),
        ..Answers::default()
    }
}

#[test]
fn brands_decide_about_pictures() {
    let sixel = |glyphs| Graphics {
        focus: Form::Sixel(16),
        tiles: Form::Cells(glyphs),
    };
    let cells = |glyphs| Graphics::all(Form::Cells(glyphs));
    let kitty = Graphics::all(Form::Kitty);
    let cases = [
        ("kitty(0.42.2)", true, vec![62], kitty),
        ("kitty(0.26.5)", true, vec![62], cells(Blocks::Sextants)),
        ("ghostty 1.2.0", true, vec![62, 22], kitty),
        // They answer the query, but draw no placeholders.
        (
            "WezTerm 20240203-110809",
            true,
            vec![65, 4],
            sixel(Blocks::Sextants),
        ),
        (
            "xterm.js(6.1.0)",
            true,
            vec![62, 4],
            sixel(Blocks::Quadrants),
        ),
        (
            "foot(1.20.1)",
            false,
            vec![62, 4, 22],
            sixel(Blocks::Octants),
        ),
        (
            "XTerm(379)",
            false,
            vec![64, 1, 2],
            cells(Blocks::Quadrants),
        ),
        ("", false, vec![62], cells(Blocks::Quadrants)),
        // Service class 4 is not the attribute 4.
        ("", false, vec![4, 6], cells(Blocks::Quadrants)),
        ("tmux 3.5a", true, vec![62, 4], cells(Blocks::Quadrants)),
    ];
    for (brand, says_ok, attributes, expected) in cases {
        let answers = answers(brand, says_ok, &attributes);
        let (graphics, why) = decide(Images::Auto, &Environment::default(), &answers);
        assert_eq!(graphics, expected, "{brand}: {why}");
    }
}

#[test]
fn multiplexers_get_characters_and_the_operator_has_the_last_word() {
    let answers = answers("kitty(0.42.2)", true, &[62, 4]);
    let in_tmux = Environment {
        is_in_multiplexer: true,
        ..Environment::default()
    };
    let octants = Graphics::all(Form::Cells(Blocks::Octants));
    for images in [Images::Auto, Images::Kitty, Images::Sixel] {
        assert_eq!(decide(images, &in_tmux, &answers).0, octants);
    }
    let plain = Environment::default();
    let graphics = |images| decide(images, &plain, &answers).0;
    assert_eq!(graphics(Images::Cells), octants);
    assert_eq!(
        graphics(Images::Half),
        Graphics::all(Form::Cells(Blocks::Half))
    );
    assert_eq!(graphics(Images::Off), Graphics::all(Form::Off));
    assert_eq!(graphics(Images::Sixel).focus, Form::Sixel(16));
    let colorless = Environment {
        depth: ColorDepth::None,
        ..plain
    };
    assert_eq!(decide(Images::Auto, &colorless, &answers).0, octants);
}

#[test]
fn the_probe_ends_with_what_every_terminal_answers() {
    assert!(PROBE.ends_with(b"\x1b[c"));
}

fn drawn(before: &Buffer, after: &Buffer) -> (Vec<u8>, Vec<u8>) {
    let size = Size::new(after.area.width, after.area.height);
    let mut terminal = Terminal::new(LeanBackend::new(size)).unwrap();
    let show = |terminal: &mut Terminal<LeanBackend>, buffer: &Buffer| {
        let shown = terminal.draw(|frame| *frame.buffer_mut() = buffer.clone());
        let shown: Result<_, Infallible> = shown;
        shown.unwrap();
        terminal.backend_mut().take()
    };
    let first = show(&mut terminal, before);
    (first, show(&mut terminal, after))
}

fn blank() -> Buffer {
    Buffer::empty(Rect::new(0, 0, 40, 4))
}

#[test]
fn little_changes_cost_little() {
    let mut before = blank();
    before.set_string(0, 1, "31s", Style::new().fg(Color::Cyan));
    before.set_string(20, 1, "9", Style::new().fg(Color::Cyan));
    let (_, nothing) = drawn(&before, &before);
    assert_eq!(nothing.len(), 0);
    let mut after = before.clone();
    after.set_string(0, 1, "32s", Style::new().fg(Color::Cyan));
    let (_, counter) = drawn(&before, &after);
    assert!(
        counter.len() <= 11,
        "{:?}",
        counter.escape_ascii().to_string()
    );
}

#[test]
fn wide_characters_follow_each_other_without_moves() {
    let mut after = blank();
    after.set_string(0, 0, "上次点击命中了上标按钮", Style::new());
    let (_, bytes) = drawn(&blank(), &after);
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        "\x1b[1H\x1b[m上次点击命中了上标按钮"
    );
}

#[test]
fn after_a_character_of_ambiguous_width_the_place_is_named() {
    let mut after = blank();
    after.set_string(0, 0, "a…b", Style::new());
    let (_, bytes) = drawn(&blank(), &after);
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        "\x1b[1H\x1b[ma…\x1b[1;3Hb"
    );
}

#[test]
fn one_command_changes_all_attributes() {
    let mut after = blank();
    let bold = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
    after.set_string(0, 0, "a", bold);
    after.set_string(
        1,
        0,
        "b",
        bold.bg(Color::Indexed(17)).remove_modifier(Modifier::BOLD),
    );
    // A foreground that a blank does not show is not sent.
    after.set_string(
        2,
        0,
        " ",
        Style::new().fg(Color::Rgb(1, 2, 3)).bg(Color::Indexed(17)),
    );
    after.set_string(3, 0, "c", Style::new());
    let (_, bytes) = drawn(&blank(), &after);
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        "\x1b[1H\x1b[0;1;31ma\x1b[22;48;5;17mb \x1b[mc"
    );
}

#[test]
fn blocks_exchange_their_colors_where_that_is_cheaper() {
    let mut after = blank();
    let (red, blue) = (Color::Rgb(255, 0, 0), Color::Rgb(0, 0, 255));
    after.set_string(0, 0, "▀", Style::new().fg(red).bg(blue));
    after.set_string(1, 0, "▀", Style::new().fg(blue).bg(red));
    let (_, bytes) = drawn(&blank(), &after);
    assert!(String::from_utf8(bytes).unwrap().ends_with("m▀▄"));
}
