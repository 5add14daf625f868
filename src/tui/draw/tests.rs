//! Tests of what golden screens do not show: wide glyphs under popups, grids, plots.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Sketch;
use super::cards::grid;
use super::plot::{self, Plot, Series, Stroke};
use super::sketch::FrameTitle;
use crate::event::RunState;
use crate::tui::app::{App, Link};
use crate::tui::figures;
use crate::tui::theme::{ColorDepth, Role, Theme};

fn app() -> App {
    let theme = Theme::built_in("default", ColorDepth::None).unwrap();
    App::new(RunState::default(), "test", Link::Recorded, theme)
}

fn lines(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    buffer
        .content
        .chunks(width)
        .map(|row| {
            row.iter()
                .map(ratatui::buffer::Cell::symbol)
                .collect::<String>()
        })
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[test]
fn a_popup_over_wide_glyphs_keeps_its_left_edge() {
    let app = app();
    for column in 1..6 {
        let area = Rect::new(0, 0, 20, 3);
        let mut before = Buffer::empty(area);
        let mut sketch = Sketch::new(&app, &mut before);
        for row in 0..3 {
            sketch.put(area, 0, row, "上次点击命中了上标按钮", Role::Text);
        }
        let popup = Rect::new(column, 0, 8, 3);
        sketch.clear(popup);
        sketch.frame(popup, &FrameTitle::default());
        // A terminal is told only what differs from an empty screen; the edge must be among it.
        let empty = Buffer::empty(area);
        let edge = empty
            .diff(&before)
            .into_iter()
            .filter(|(x, _, _)| *x == column)
            .count();
        assert_eq!(edge, 3, "popup at column {column}");
        assert_eq!(before[(column, 1)].symbol(), "│");
    }
}

#[test]
fn cards_use_the_room_there_is() {
    for (width, height, count) in [
        (80, 9, 8),
        (95, 34, 8),
        (160, 44, 64),
        (22, 6, 1),
        (10, 3, 5),
    ] {
        let grid = grid(width, height, count);
        assert!(grid.across >= 1 && grid.down >= 1, "{grid:?}");
        assert!(
            grid.across * grid.width <= width,
            "{grid:?} in {width}x{height}"
        );
        assert!(
            grid.down * grid.height <= height.max(6),
            "{grid:?} in {width}x{height}"
        );
    }
    // Eight cards in a large pane stand four by two, not all in a row.
    let large = grid(95, 30, 8);
    assert_eq!((large.across, large.down), (4, 2), "{large:?}");
}

#[test]
fn plots_go_from_corner_to_corner() {
    let app = app();
    let area = Rect::new(0, 0, 16, 5);
    let mut buffer = Buffer::empty(area);
    let series = vec![Series {
        values: vec![0.0, 0.5, 1.0],
        role: Role::Chart1,
        stroke: Stroke::Line,
    }];
    let plot = Plot {
        series,
        first: 1,
        span: 3,
        top: Some(1.0),
        format: figures::fraction,
        ..Plot::default()
    };
    plot::draw(&mut Sketch::new(&app, &mut buffer), area, &plot);
    let drawn = lines(&buffer);
    assert!(drawn[0].starts_with("  1.0"), "{drawn:#?}");
    assert!(drawn[3].starts_with("  .00"), "{drawn:#?}");
    assert_eq!(drawn[4].trim(), "1 ────── 3");
    let is_dotted = |x: u16, y: u16| buffer[(x, y)].symbol() > "\u{2800}";
    assert!(
        is_dotted(6, 3) && is_dotted(15, 0) && !is_dotted(6, 0),
        "{drawn:#?}"
    );
}

#[test]
fn plots_survive_gaps_and_single_points() {
    let app = app();
    for values in [
        vec![],
        vec![f64::NAN],
        vec![0.3],
        vec![f64::NAN, -2.0, f64::INFINITY, 5.0],
    ] {
        let area = Rect::new(0, 0, 30, 8);
        let mut buffer = Buffer::empty(area);
        let span = values.len();
        let series = vec![Series {
            values,
            role: Role::Chart1,
            stroke: Stroke::Points,
        }];
        let plot = Plot {
            series,
            first: 0,
            span,
            top: None,
            format: figures::short,
            ..Plot::default()
        };
        plot::draw(&mut Sketch::new(&app, &mut buffer), area, &plot);
    }
}

#[test]
fn no_number_on_an_axis_is_cut() {
    let app = app();
    for power in -9..=7 {
        for top in [1.0, 1.2, 2.0, 2.5, 5.0] {
            let area = Rect::new(0, 0, 40, 9);
            let mut buffer = Buffer::empty(area);
            let plot = Plot {
                span: 8,
                top: Some(top * 10_f64.powi(power)),
                format: figures::short,
                ..Plot::default()
            };
            plot::draw(&mut Sketch::new(&app, &mut buffer), area, &plot);
            assert!(!lines(&buffer).concat().contains('…'), "{top}e{power}");
        }
    }
}
