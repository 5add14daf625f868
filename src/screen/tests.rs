//! Pictures: sizes, patches, PNG, marks.

use crate::screen::*;
use crate::types::{Action, Point, ScreenSize, Screenshot, ScrollDirection};

/// A picture with fine detail everywhere, the same on every machine.
fn picture(width: u32, height: u32) -> Screenshot {
    let mut rgb = Vec::new();
    let mut state = 12_345_u32;
    for y in 0..height {
        for x in 0..width {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (state >> 24) as u8;
            let stripes = if (x / 3 + y / 5) % 2 == 0 { 255 } else { 20 };
            rgb.extend([noise, stripes, (x * 255 / width) as u8]);
        }
    }
    Screenshot::new(ScreenSize { width, height }, rgb)
}

fn compact() -> ProcessorConfig {
    ProcessorConfig {
        max_pixels: 224 * 168,
        ..ProcessorConfig::default()
    }
}

#[test]
fn smart_resize_gives_the_known_sizes() {
    // transformers@5.24 `smart_resize`, run for each row:
    //   smart_resize(height, width, 28, min_pixels, max_pixels)
    let uitars = (3136, 2_116_800);
    for (height, width, (min_pixels, max_pixels), expected) in [
        (1080, 1920, uitars, (1092, 1932)),
        (1080, 1920, (78_400, 12_845_056), (1092, 1932)),
        (720, 1280, uitars, (728, 1288)),
        // 36.5 and 54.36 patches: half to even, where half up would give 1036.
        (1022, 1522, uitars, (1008, 1512)),
        (2160, 3840, uitars, (1064, 1932)),
        (336, 448, (3136, 37_632), (168, 224)),
        (168, 224, (3136, 37_632), (168, 224)),
        (10, 10, (3136, 37_632), (56, 56)),
        (10, 1990, (3136, 2_116_800), (28, 812)),
        (20, 4000, (3136, 37_632), (28, 2716)),
    ] {
        let found = smart_resize(height, width, 28, min_pixels, max_pixels).unwrap();
        assert_eq!(found, expected, "{height}x{width}");
    }
}

#[test]
fn smart_resize_refuses_what_has_no_size() {
    let message = |height, width| {
        smart_resize(height, width, 28, 3136, 37_632)
            .unwrap_err()
            .to_string()
    };
    assert!(message(0, 10).contains("10x0"));
    assert!(message(10, 0).contains("0x10"));
    assert!(message(1, 201).contains("200 times"));
}

#[test]
fn the_compact_desktop_takes_48_tokens() {
    let desktop = ScreenSize {
        width: 448,
        height: 336,
    };
    assert_eq!(image_tokens(desktop, &compact()).unwrap(), 48);
    let seen = model_size(desktop, &compact()).unwrap();
    assert_eq!((seen.width, seen.height), (224, 168));
}

#[test]
fn an_osworld_screen_takes_2691_tokens() {
    let config = ProcessorConfig {
        min_pixels: 3136,
        max_pixels: 2_116_800,
        ..ProcessorConfig::default()
    };
    let screen = ScreenSize {
        width: 1920,
        height: 1080,
    };
    assert_eq!(image_tokens(screen, &config).unwrap(), 2691);
}

#[test]
fn patches_come_in_merge_order() {
    // 56x56 pixels, unresized: 4x4 patches, 2x2 tokens. Red is the pixel's column, green its row.
    let size = ScreenSize {
        width: 56,
        height: 56,
    };
    let rgb = (0..56_u8).flat_map(|y| (0..56_u8).flat_map(move |x| [x, y, 7]));
    let config = ProcessorConfig {
        image_mean: [0.0; 3],
        image_std: [1.0; 3],
        rescale_factor: 1.0,
        ..compact()
    };
    let out = preprocess(&Screenshot::new(size, rgb.collect()), &config).unwrap();
    assert_eq!(out.grid_thw, [1, 4, 4]);
    assert_eq!(out.values.len(), 16 * 1176);
    let corners: Vec<_> = out
        .values
        .chunks_exact(1176)
        .map(|patch| (patch[0], patch[2 * 196]))
        .collect();
    assert_eq!(
        corners[..8],
        [
            (0.0, 0.0),
            (14.0, 0.0),
            (0.0, 14.0),
            (14.0, 14.0),
            (28.0, 0.0),
            (42.0, 0.0),
            (28.0, 14.0),
            (42.0, 14.0),
        ]
    );
    let first = &out.values[..1176];
    assert_eq!(first[..196], first[196..392], "both frames are the picture");
    assert_eq!(first[15], 1.0, "rows of a patch follow each other");
    assert!(first[4 * 196..].iter().all(|&blue| blue == 7.0));
}

#[test]
fn settings_are_read_in_every_layout() {
    let expected = compact();
    for text in [
        r#"{"min_pixels": 3136, "max_pixels": 37632}"#,
        r#"{"size": {"shortest_edge": 3136, "longest_edge": 37632}}"#,
        r#"{"size": {"min_pixels": 3136, "max_pixels": 37632}, "max_pixels": null}"#,
        r#"{"image_processor": {"size": {"shortest_edge": 3136, "longest_edge": 37632}}}"#,
        // `min_pixels` and `max_pixels` win over `size`.
        r#"{"max_pixels": 37632, "size": {"shortest_edge": 3136, "longest_edge": 5}}"#,
    ] {
        let found = ProcessorConfig::from_json(text, "test").unwrap();
        assert_eq!(found, expected, "{text}");
    }
    let written = expected.to_json().to_string();
    assert_eq!(
        ProcessorConfig::from_json(&written, "test").unwrap(),
        expected
    );
}

#[test]
fn settings_that_cannot_be_followed_are_named() {
    for (text, phrase) in [
        (r#"{"do_resize": false}"#, "do_resize is false"),
        (r#"{"do_normalize": false}"#, "do_normalize is false"),
        (r#"{"resample": 2}"#, "resample is 2"),
        (r#"{"patch_size": 0}"#, "patch_size is 0"),
        (r#"{"image_std": [1, 0, 1]}"#, "image_std"),
        (r#"{"min_pixels": 10, "max_pixels": 5}"#, "leave no size"),
        (r#"{"image_mean": [1, 2]}"#, "length"),
        ("{", "EOF"),
    ] {
        let message = ProcessorConfig::from_json(text, "a/file.json")
            .unwrap_err()
            .to_string();
        assert!(message.contains(phrase), "{message}");
        assert!(message.contains("a/file.json"), "{message}");
    }
}

#[test]
fn a_missing_settings_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let message = ProcessorConfig::open(dir.path()).unwrap_err().to_string();
    assert!(message.contains("preprocessor_config.json"), "{message}");
}

#[test]
fn png_keeps_every_pixel() {
    for (width, height) in [(1, 1), (7, 3), (448, 336)] {
        let screenshot = picture(width, height);
        let back = decode_png(&encode_png(&screenshot).unwrap()).unwrap();
        assert_eq!(back, screenshot);
    }
}

/// A PNG of `color` and `depth` with two pixels of `data` a row.
fn small_png(color: png::ColorType, depth: png::BitDepth, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 2, 1);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == png::ColorType::Indexed {
        encoder.set_palette(vec![1, 2, 3, 4, 5, 6]);
    }
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(data))
        .unwrap();
    bytes
}

#[test]
fn png_of_other_kinds_becomes_rgb_only_without_a_choice() {
    use png::BitDepth::{Eight, One, Sixteen};
    use png::ColorType::{Grayscale, GrayscaleAlpha, Indexed, Rgb, Rgba};
    let rgb = |bytes: &[u8]| decode_png(bytes).unwrap().rgb().to_vec();
    assert_eq!(
        rgb(&small_png(Grayscale, Eight, &[9, 8])),
        [9, 9, 9, 8, 8, 8]
    );
    assert_eq!(
        rgb(&small_png(Indexed, One, &[0b0100_0000])),
        [1, 2, 3, 4, 5, 6]
    );
    let opaque = small_png(Rgba, Eight, &[1, 2, 3, 255, 4, 5, 6, 255]);
    assert_eq!(rgb(&opaque), [1, 2, 3, 4, 5, 6]);
    let opaque = small_png(GrayscaleAlpha, Eight, &[1, 255, 4, 255]);
    assert_eq!(rgb(&opaque), [1, 1, 1, 4, 4, 4]);

    let message = |bytes: &[u8]| decode_png(bytes).unwrap_err().to_string();
    let glass = small_png(Rgba, Eight, &[1, 2, 3, 254, 4, 5, 6, 255]);
    assert!(message(&glass).contains("transparent"));
    let deep = small_png(Rgb, Sixteen, &[0; 12]);
    assert!(message(&deep).contains("16 bits"));
}

#[test]
fn broken_png_says_what_is_wrong() {
    let good = encode_png(&picture(64, 48)).unwrap();
    let message = |bytes: &[u8]| decode_png(bytes).unwrap_err().to_string();
    for cut in [1, 7, 8, 20, 40, good.len() / 2, good.len() - 20] {
        let text = message(&good[..cut]);
        assert!(text.contains("cut short"), "{cut}: {text}");
    }
    assert!(message(b"").contains("nothing"));
    assert!(message(b"<html>gateway").contains("<html>"));
    assert!(message(&[0xff, 0xd8, 0xff, 0xe0]).contains("a JPEG"));
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 0x55;
    assert!(message(&flipped).contains("damaged"));
    let mut huge = good;
    huge[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    assert!(!message(&huge).is_empty());
}

#[test]
fn thumbnails_have_the_size_asked_for() {
    let screenshot = picture(448, 336);
    let small = thumbnail(&screenshot, 40, 30).unwrap();
    assert_eq!((small.size().width, small.size().height), (40, 30));
    assert_eq!(thumbnail(&screenshot, 448, 336).unwrap(), screenshot);
    let dot = thumbnail(&screenshot, 0, 0).unwrap();
    assert_eq!((dot.size().width, dot.size().height), (1, 1));
    let gray = Screenshot::new(
        ScreenSize {
            width: 9,
            height: 9,
        },
        vec![77; 243],
    );
    let shrunk = thumbnail(&gray, 4, 2).unwrap();
    assert!(shrunk.rgb().iter().all(|&value| value == 77));
}

#[test]
fn marks_are_near_their_point_and_never_fall_outside() {
    let plain = Screenshot::new(
        ScreenSize {
            width: 100,
            height: 80,
        },
        vec![128; 24_000],
    );
    let at = |x, y| Point { x, y };
    let marked = draw_click(&plain, at(50.0, 40.0));
    let changed: Vec<_> = (0..8000)
        .filter(|i| marked.rgb()[i * 3..i * 3 + 3] != [128; 3])
        .map(|i| (i % 100, i / 100))
        .collect();
    assert!(!changed.is_empty());
    for &(x, y) in &changed {
        assert!(x.abs_diff(50) <= 9 && y.abs_diff(40) <= 9, "{x},{y}");
    }
    assert!(changed.iter().any(|&(x, y)| (x, y) == (56, 40)));
    for far in [-1e30, f32::NAN, f32::INFINITY, -1.0, 99.9, 1e30] {
        draw_click(&plain, at(far, far));
        draw_drag(&plain, at(far, 3.0), at(5.0, far));
    }
    let scroll = Action::Scroll {
        at: None,
        direction: ScrollDirection::Down,
    };
    assert_eq!(draw_action(&plain, &scroll), plain);
    let drag = Action::Drag {
        from: at(1.0, 1.0),
        to: at(90.0, 70.0),
    };
    assert_ne!(draw_action(&plain, &drag), plain);
}
