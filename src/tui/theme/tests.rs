//! Tests of theme files and of color depths.

use ratatui::style::{Color, Modifier};

use super::{ColorDepth, ROLES, Role, Theme, theme_names, to_256};

const DEPTHS: [ColorDepth; 4] = [
    ColorDepth::None,
    ColorDepth::Ansi16,
    ColorDepth::Ansi256,
    ColorDepth::True,
];

#[test]
fn every_theme_reads_at_every_depth() {
    for name in theme_names() {
        for depth in DEPTHS {
            Theme::built_in(name, depth).unwrap();
        }
    }
    assert!(Theme::built_in("nope", ColorDepth::True).is_err());
}

#[test]
fn roles_are_in_the_order_of_their_table() {
    for (place, role) in ROLES.iter().enumerate() {
        assert_eq!(*role as usize, place);
    }
}

#[test]
fn without_color_no_style_has_one_and_the_selection_is_reversed() {
    for name in theme_names() {
        let theme = Theme::built_in(name, ColorDepth::None).unwrap();
        for role in ROLES {
            let style = theme.style(role);
            assert_eq!((style.fg, style.bg), (None, None), "{name} {role:?}");
        }
        assert!(
            theme
                .style(Role::Selection)
                .add_modifier
                .contains(Modifier::REVERSED)
        );
    }
}

#[test]
fn depth_is_read_from_the_environment() {
    let detect = |vars: &[(&str, &str)]| {
        ColorDepth::detect(|name| {
            vars.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    };
    assert_eq!(detect(&[("TERM", "xterm-256color")]), ColorDepth::Ansi256);
    assert_eq!(
        detect(&[("TERM", "xterm"), ("COLORTERM", "truecolor")]),
        ColorDepth::True
    );
    assert_eq!(detect(&[("TERM", "xterm-direct")]), ColorDepth::True);
    assert_eq!(detect(&[("TERM", "linux")]), ColorDepth::Ansi16);
    assert_eq!(detect(&[("TERM", "dumb")]), ColorDepth::None);
    assert_eq!(
        detect(&[("TERM", "xterm-256color"), ("NO_COLOR", "1")]),
        ColorDepth::None
    );
    assert_eq!(
        detect(&[("TERM", "xterm-256color"), ("NO_COLOR", "")]),
        ColorDepth::Ansi256
    );
}

#[test]
fn colors_are_the_nearest_there_are() {
    assert_eq!(to_256([0, 0, 0]), 16);
    assert_eq!(to_256([255, 255, 255]), 231);
    assert_eq!(to_256([255, 0, 0]), 196);
    assert_eq!(to_256([128, 128, 128]), 244);
    assert_eq!(ColorDepth::Ansi16.color([250, 10, 10]), Color::LightRed);
    assert_eq!(ColorDepth::None.color([250, 10, 10]), Color::Reset);
}

/// What a theme is read on: black and the dark gray of editors, or white and off-white.
fn grounds(theme: &str) -> [[u8; 3]; 2] {
    match theme {
        "light" => [[255; 3], [0xf5; 3]],
        _ => [[0; 3], [0x1e; 3]],
    }
}

/// A color as light, for the palette that terminals agree on.
fn rgb(color: Color) -> Option<[u8; 3]> {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    match color {
        Color::Rgb(r, g, b) => Some([r, g, b]),
        Color::Indexed(gray @ 232..) => Some([8 + 10 * (gray - 232); 3]),
        Color::Indexed(cube @ 16..) => {
            let place = usize::from(cube - 16);
            Some([LEVELS[place / 36], LEVELS[place / 6 % 6], LEVELS[place % 6]])
        }
        _ => None,
    }
}

/// Relative luminance by WCAG 2.
fn luminance(rgb: [u8; 3]) -> f64 {
    let [r, g, b] = rgb.map(|value| {
        let part = f64::from(value) / 255.0;
        if part <= 0.040_45 {
            part / 12.92
        } else {
            ((part + 0.055) / 1.055).powf(2.4)
        }
    });
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn text_stands_out_from_its_ground() {
    assert!((contrast([0; 3], [255; 3]) - 21.0).abs() < 1e-9);
    for name in theme_names() {
        for depth in [ColorDepth::Ansi256, ColorDepth::True] {
            let theme = Theme::built_in(name, depth).unwrap();
            // Frames carry no text.
            for role in ROLES.into_iter().filter(|role| *role != Role::Frame) {
                let style = theme.style(role);
                let Some(color) = style.fg.and_then(rgb) else {
                    continue;
                };
                let own = style.bg.and_then(rgb).map(|own| vec![own]);
                for ground in own.unwrap_or_else(|| grounds(name).to_vec()) {
                    let ratio = contrast(color, ground);
                    assert!(ratio >= 4.5, "{name} {role:?} {depth:?}: {ratio:.2}");
                }
            }
        }
    }
}
