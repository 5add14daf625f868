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
