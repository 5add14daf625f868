//! Tests of scaling, of block characters, of the mark and of the cache.

use std::sync::mpsc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cells::nearest_block;
use super::{
    Grain, LineState, Mark, PictureCache, PictureKey, PictureState, PictureWorker, Placed,
    Protocol, Quality, Raster, Schedule, Shown, Slots, Wanted, cells_for, draw_raster,
};
use crate::tui::term::Blocks;
use crate::tui::theme::ColorDepth;
use crate::types::{Action, ImageHash, Point, ScreenSize, Screenshot};

const RED: [u8; 3] = [255, 0, 0];
const BLUE: [u8; 3] = [0, 0, 255];

fn two_halves() -> Screenshot {
    let size = ScreenSize {
        width: 64,
        height: 48,
    };
    let rgb = (0..48 * 64)
        .flat_map(|i| if i / 64 < 24 { RED } else { BLUE })
        .collect();
    Screenshot::new(size, rgb)
}

#[test]
fn pictures_keep_their_shape() {
    let size = ScreenSize {
        width: 448,
        height: 336,
    };
    assert_eq!(cells_for(size, 40, 15), (40, 15));
    assert_eq!(cells_for(size, 40, 60), (40, 15));
    assert_eq!(cells_for(size, 200, 15), (40, 15));
    assert_eq!(cells_for(size, 0, 15), (0, 0));
    assert_eq!(cells_for(size, 1, 1), (1, 1));
}

#[test]
fn scaling_keeps_the_halves_apart() {
    let raster = Raster::from_screenshot(&two_halves(), 8, 3).unwrap();
    assert_eq!((raster.columns, raster.rows, raster.dots.len()), (8, 3, 96));
    assert_eq!(raster.dots[0], RED);
    assert_eq!(raster.dots[95], BLUE);
}

#[test]
fn cells_take_the_nearest_block() {
    assert_eq!(nearest_block(&[RED, RED, BLUE, BLUE], 2), ('▄', BLUE, RED));
    assert_eq!(nearest_block(&[RED, BLUE, RED, BLUE], 2), ('▐', BLUE, RED));
    assert_eq!(nearest_block(&[RED, BLUE, BLUE, BLUE], 2), ('▘', RED, BLUE));
    assert_eq!(nearest_block(&[RED, BLUE, BLUE, RED], 2), ('▞', BLUE, RED));
    assert_eq!(nearest_block(&[RED; 4], 2), (' ', RED, RED));
}

fn shown<'a>(raster: &'a Raster, mark: Option<&'a Mark>) -> Shown<'a> {
    Shown {
        raster,
        mark,
        before: None,
    }
}

#[test]
fn drawing_is_safe_in_any_area_and_shades_without_color() {
    let raster = Raster::from_screenshot(&two_halves(), 8, 3).unwrap();
    let mark = Mark::Point(Point { x: 500.0, y: -3.0 });
    for depth in [ColorDepth::None, ColorDepth::Ansi16, ColorDepth::True] {
        for (width, height) in [(0, 0), (1, 1), (8, 3), (20, 9)] {
            let area = Rect::new(0, 0, width, height);
            let mut buffer = Buffer::empty(area);
            draw_raster(shown(&raster, Some(&mark)), area, depth, &mut buffer);
        }
    }
    let area = Rect::new(0, 0, 8, 3);
    let mut buffer = Buffer::empty(area);
    draw_raster(shown(&raster, None), area, ColorDepth::None, &mut buffer);
    assert_eq!(buffer[(0, 0)].symbol(), ":");
    assert_eq!(buffer[(0, 2)].symbol(), " ");
}

#[test]
fn a_click_changes_dots_around_its_place_only() {
    let raster = Raster::from_screenshot(&two_halves(), 64, 24).unwrap();
    let action = Action::Click {
        at: Point { x: 32.0, y: 24.0 },
    };
    let drawn = Mark::of(&action).unwrap().drawn_on(&raster);
    let width = raster.width();
    assert_ne!(drawn.dots[24 * width + 64], raster.dots[24 * width + 64]);
    assert_eq!(drawn.dots[0], raster.dots[0]);
    assert_eq!(Mark::of(&Action::Wait), None);
}

fn key(name: &str) -> PictureKey {
    PictureKey {
        image: ImageHash(name.into()),
        columns: 4,
        rows: 2,
        grain: Grain::Cells(Blocks::Quadrants),
    }
}

#[test]
fn the_cache_asks_once_and_drops_what_nobody_wants() {
    let mut cache = PictureCache::default();
    assert_eq!(cache.want(&[key("a")]), vec![key("a")]);
    assert_eq!(cache.want(&[key("a")]), vec![]);
    assert_eq!(cache.get(&key("a")), Some(&PictureState::Loading));
    for i in 0..2000 {
        cache.want(&[key("a"), key(&i.to_string())]);
    }
    assert!(cache.len() < 600, "{}", cache.len());
    assert!(cache.get(&key("a")).is_some());
    cache.put(key("b"), Err("gone".to_owned()));
    cache.forget_failures();
    assert_eq!(cache.get(&key("b")), None);
}

#[test]
fn the_worker_delivers_and_reports_failures() {
    let (tx, rx) = mpsc::channel();
    let shot = two_halves();
    let hash = shot.hash().clone();
    let fetch_hash = hash.clone();
    let worker = PictureWorker::spawn(
        Box::new(move |wanted| {
            if *wanted == fetch_hash {
                Ok(shot.clone())
            } else {
                Err("not there".to_owned())
            }
        }),
        move |key, result| tx.send((key, result)).is_ok(),
    )
    .unwrap();
    let good = PictureKey {
        image: hash,
        columns: 8,
        rows: 3,
        grain: Grain::Cells(Blocks::Quadrants),
    };
    assert!(worker.request(vec![good.clone(), key("x")]).is_empty());
    let (first, result) = rx.recv().unwrap();
    assert_eq!((first, result.unwrap().columns), (good, 8));
    assert_eq!(rx.recv().unwrap(), (key("x"), Err("not there".to_owned())));
}

fn wanted(slot: usize, name: &str) -> Wanted {
    Wanted {
        slot,
        key: key(name),
        mark: None,
        area: Rect::new(0, 0, 4, 2),
        protocol: Protocol::Kitty,
        is_focus: slot == 0,
        is_update: false,
    }
}

fn placed(wanted: &Wanted) -> Placed {
    Placed {
        key: wanted.key.clone(),
        mark: None,
        cells: (4, 2),
        protocol: wanted.protocol,
        area: wanted.area,
        id: 1,
    }
}

#[test]
fn the_picture_looked_at_goes_first_and_updates_wait_their_time() {
    let mut cache = PictureCache::default();
    for name in ["a", "b", "c"] {
        let raster = Raster::from_screenshot(&two_halves(), 4, 2).unwrap();
        cache.put(key(name), Ok(raster.into()));
    }
    let mut slots = Slots::default();
    let mut schedule = Schedule::default();
    let mut all = vec![wanted(2, "c"), wanted(1, "b"), wanted(0, "a")];
    let mut order = Vec::new();
    for now_ms in [0.0, 1.0, 2.0] {
        let next = schedule.next(now_ms, &all, &slots, &cache).unwrap();
        order.push(next.slot);
        schedule.sent(now_ms, next.slot, 1_000);
        slots.put(next.slot, placed(next));
    }
    assert_eq!(order, [0, 2, 1]);
    assert_eq!(schedule.next(3.0, &all, &slots, &cache), None);
    // A newer one of the same episode: not at once.
    all[1] = Wanted {
        is_update: true,
        ..wanted(1, "c")
    };
    assert_eq!(schedule.next(900.0, &all, &slots, &cache), None);
    let next = schedule.next(1_002.0, &all, &slots, &cache);
    assert_eq!(next.map(|next| next.slot), Some(1));
}

#[test]
fn pictures_keep_to_their_share_of_the_line() {
    let mut cache = PictureCache::default();
    let raster = Raster::from_screenshot(&two_halves(), 4, 2).unwrap();
    cache.put(key("a"), Ok(raster.into()));
    let all = [wanted(0, "a")];
    let slots = Slots::default();
    let line = LineState {
        goodput: Some(100_000.0),
        is_bound: false,
        queueing_ms: 0.0,
        answers: 0,
    };
    let sent_in = |cap: f64| {
        let mut schedule = Schedule::default();
        schedule.set_cap(cap);
        let mut sent = 0;
        for now in 0..1_000 {
            let now_ms = f64::from(now) * 10.0;
            schedule.tick(now_ms, line);
            if schedule.next(now_ms, &all, &slots, &cache).is_some() {
                schedule.sent(now_ms, 0, 5_000);
                sent += 5_000;
            }
        }
        sent
    };
    // Ten seconds at 60 kB/s, and at a cap of 20 kB/s, and what was saved up.
    assert!((560_000..=660_000).contains(&sent_in(f64::INFINITY)));
    assert!((180_000..=240_000).contains(&sent_in(20_000.0)));
    assert!(sent_in(0.0) <= 35_000);
}

#[test]
fn pictures_get_worse_at_once_and_better_after_a_while() {
    let mut schedule = Schedule::default();
    let mut answers = 0;
    let mut line = |goodput: f64, queueing_ms: f64| {
        answers += 1;
        LineState {
            goodput: Some(goodput),
            is_bound: false,
            queueing_ms,
            answers,
        }
    };
    schedule.tick(1_000.0, line(500_000.0, 0.0));
    assert_eq!(schedule.quality(), Quality::High);
    schedule.tick(2_000.0, line(500_000.0, 400.0));
    assert_eq!(schedule.quality(), Quality::Middle);
    assert!(schedule.is_degraded());
    schedule.tick(3_000.0, line(9_000.0, 0.0));
    assert_eq!(schedule.quality(), Quality::Low);
    schedule.tick(4_000.0, line(1_000.0, 0.0));
    assert_eq!(schedule.quality(), Quality::Cells);
    schedule.tick(13_000.0, line(500_000.0, 0.0));
    assert_eq!(schedule.quality(), Quality::Cells);
    schedule.tick(14_100.0, line(500_000.0, 0.0));
    assert_eq!(schedule.quality(), Quality::Low);
}

#[test]
fn what_no_drawing_wants_leaves_its_slot() {
    let mut slots = Slots::default();
    let (one, two) = (wanted(0, "a"), wanted(1, "b"));
    slots.put(0, placed(&one));
    slots.put(1, placed(&two));
    // Under its id a picture is replaced, not removed.
    assert_eq!(slots.take_unwanted(&[wanted(0, "c"), two.clone()]), []);
    assert_eq!(slots.take_unwanted(&[wanted(0, "c")]), [placed(&two)]);
    assert_eq!(slots.ids().collect::<Vec<_>>(), [1]);
    let sixel = Wanted {
        protocol: Protocol::Sixel(16),
        ..one.clone()
    };
    slots.put(0, placed(&sixel));
    let moved = Wanted {
        area: Rect::new(1, 0, 4, 2),
        ..sixel.clone()
    };
    assert_eq!(slots.take_unwanted(&[moved]), [placed(&sixel)]);
    assert_eq!(slots.clear(), []);
}
