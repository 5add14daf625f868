//! Colors by role. Screens name roles, never colors; a theme file gives each role a color for
//! terminals of 16 and of more colors, and the modifiers that stand in for it where there are
//! none.
//!
//! Meaning is carried by text first; color repeats it. Backgrounds are left to the user except
//! for the selection. Theme files lie in `assets/themes/`.

mod depth;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

pub use depth::{ColorDepth, to_256};

/// What a style is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Ordinary text.
    Text,
    /// Labels, units, what matters less.
    Muted,
    /// Frames of panes.
    Frame,
    /// Frame and title of the focused pane.
    Focus,
    /// The product's name and the screen's tab.
    Brand,
    /// The selected row or cell.
    Selection,
    /// A key in the hint bar.
    Key,
    /// Success, a reward that rose.
    Good,
    /// A failed outcome, a reward that fell.
    Bad,
    /// Errors, lost connection, dropped events.
    Danger,
    /// Needs a look: stuck, stale, dead group.
    Warning,
    /// Something at work.
    Running,
    /// Something that waits for its turn.
    Waiting,
    /// Taken from the replay buffer.
    Replay,
    /// First line of a chart.
    Chart1,
    /// Second line of a chart.
    Chart2,
    /// Third line of a chart.
    Chart3,
    /// Fourth line of a chart.
    Chart4,
}

const ROLES: [Role; 18] = [
    Role::Text,
    Role::Muted,
    Role::Frame,
    Role::Focus,
    Role::Brand,
    Role::Selection,
    Role::Key,
    Role::Good,
    Role::Bad,
    Role::Danger,
    Role::Warning,
    Role::Running,
    Role::Waiting,
    Role::Replay,
    Role::Chart1,
    Role::Chart2,
    Role::Chart3,
    Role::Chart4,
];

/// The themes that are built in: name and file.
const BUILT_IN: [(&str, &str); 3] = [
    (
        "default",
        include_str!("../../../assets/themes/default.toml"),
    ),
    ("light", include_str!("../../../assets/themes/light.toml")),
    (
        "high-contrast",
        include_str!("../../../assets/themes/high-contrast.toml"),
    ),
];

/// Why a theme cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ThemeError {
    /// No such theme.
    #[error("no theme named {name}; there are {}", .known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// The file does not read.
    #[error("theme {name}: {source}")]
    Syntax {
        /// Which.
        name: String,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// A color is neither `#rrggbb` nor the name of one of the 16.
    #[error("theme {name}: {color} is not a color; write \"#rrggbb\" or an ANSI name")]
    Color {
        /// Which theme.
        name: String,
        /// What stands there.
        color: String,
    },
    /// A role is missing in the file and in those it inherits from.
    #[error("theme {name}: role {role:?} is missing")]
    Missing {
        /// Which theme.
        name: String,
        /// Which role.
        role: Role,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThemeFile {
    inherits: Option<String>,
    roles: BTreeMap<Role, RoleSpec>,
}

/// One role of a theme file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoleSpec {
    /// `#rrggbb`, for 256 colors and more; the terminal's own if absent.
    color: Option<String>,
    /// Background likewise.
    background: Option<String>,
    /// Name of one of the 16 colors; the terminal's own if absent.
    ansi: Option<String>,
    /// Modifiers wherever there are colors.
    #[serde(default)]
    modifiers: Vec<ModifierName>,
    /// Modifiers on 16 colors and where there are none.
    #[serde(default)]
    plain: Vec<ModifierName>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ModifierName {
    Bold,
    Dim,
    Italic,
    Underlined,
    Reversed,
}

impl From<ModifierName> for Modifier {
    fn from(name: ModifierName) -> Self {
        match name {
            ModifierName::Bold => Modifier::BOLD,
            ModifierName::Dim => Modifier::DIM,
            ModifierName::Italic => Modifier::ITALIC,
            ModifierName::Underlined => Modifier::UNDERLINED,
            ModifierName::Reversed => Modifier::REVERSED,
        }
    }
}

/// A style for each role, at one depth.
#[derive(Clone, Debug)]
pub struct Theme {
    depth: ColorDepth,
    styles: [Style; ROLES.len()],
}

impl Theme {
    /// The built-in theme of this name for terminals of this depth.
    pub fn built_in(name: &str, depth: ColorDepth) -> Result<Self, ThemeError> {
        let roles = read_built_in(name)?;
        let mut styles = [Style::new(); ROLES.len()];
        for (style, role) in styles.iter_mut().zip(ROLES) {
            let spec = roles.get(&role).ok_or_else(|| ThemeError::Missing {
                name: name.to_owned(),
                role,
            })?;
            *style = style_of(name, spec, depth)?;
        }
        Ok(Self { depth, styles })
    }

    /// How many colors it was made for.
    pub fn depth(&self) -> ColorDepth {
        self.depth
    }

    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.styles[role as usize]
    }
}

/// Names of the built-in themes.
pub fn theme_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

fn read_built_in(name: &str) -> Result<BTreeMap<Role, RoleSpec>, ThemeError> {
    let text = BUILT_IN
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
        .ok_or_else(|| ThemeError::Unknown {
            name: name.to_owned(),
            known: theme_names().collect(),
        })?;
    let file: ThemeFile = toml::from_str(text).map_err(|source| ThemeError::Syntax {
        name: name.to_owned(),
        source: Box::new(source),
    })?;
    let mut roles = match &file.inherits {
        Some(parent) => read_built_in(parent)?,
        None => BTreeMap::new(),
    };
    roles.extend(file.roles);
    Ok(roles)
}

fn style_of(theme: &str, spec: &RoleSpec, depth: ColorDepth) -> Result<Style, ThemeError> {
    let bad_color = |color: &str| ThemeError::Color {
        name: theme.to_owned(),
        color: color.to_owned(),
    };
    let rgb = |text: &Option<String>| match text {
        Some(text) => parse_rgb(text).map(Some).ok_or_else(|| bad_color(text)),
        None => Ok(None),
    };
    let (foreground, background) = (rgb(&spec.color)?, rgb(&spec.background)?);
    let ansi = match &spec.ansi {
        Some(text) => Some(parse_ansi(text).ok_or_else(|| bad_color(text))?),
        None => None,
    };
    let mut style = Style::new();
    match depth {
        ColorDepth::None => {}
        // What has no color of its own takes the terminal's, not that of what it is drawn over.
        ColorDepth::Ansi16 => style.fg = Some(ansi.unwrap_or(Color::Reset)),
        ColorDepth::Ansi256 | ColorDepth::True => {
            let color = foreground.map(|color| depth.color(color));
            style.fg = Some(color.unwrap_or(Color::Reset));
            style.bg = background.map(|color| depth.color(color));
        }
    }
    let names = match depth {
        ColorDepth::None | ColorDepth::Ansi16 => &spec.plain,
        ColorDepth::Ansi256 | ColorDepth::True => &spec.modifiers,
    };
    for name in names {
        style = style.add_modifier((*name).into());
    }
    Ok(style)
}

fn parse_rgb(text: &str) -> Option<[u8; 3]> {
    let digits = text.strip_prefix('#')?;
    let value = u32::from_str_radix(digits, 16)
        .ok()
        .filter(|_| digits.len() == 6)?;
    let [_, r, g, b] = value.to_be_bytes();
    Some([r, g, b])
}

fn parse_ansi(text: &str) -> Option<Color> {
    text.parse()
        .ok()
        .filter(|color| !matches!(color, Color::Rgb(..) | Color::Indexed(_)))
}
