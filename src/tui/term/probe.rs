//! What the terminal is asked at the start, and what follows from its answers.
//!
//! The name decides, not the answer to one question: terminals answer the kitty query without
//! having placeholders.

use super::facts::{Blocks, Form, Graphics, Images};
use super::reply::Reply;
use crate::tui::theme::ColorDepth;

/// All questions: name, kitty pictures, sizes of cell and text, colors of sixel, synchronized
/// output, grapheme clusters, background. What every terminal answers comes last and ends it.
pub const PROBE: &[u8] = b"\x1b[>q\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[16t\x1b[14t\
    \x1b[?1;1;0S\x1b[?2026$p\x1b[?2027$p\x1b]11;?\x1b\\\x1b[c";
/// The question that every terminal answers.
const LEAST_PROBE: &[u8] = b"\x1b[c";
/// Id of the picture that the probe asks about.
const PROBE_ID: u32 = 31;
/// Mode of synchronized output.
const SYNC_MODE: u16 = 2026;
/// Colors of a sixel picture where the terminal does not say.
const USUAL_SIXEL_COLORS: u32 = 16;
/// The most that a picture of a screen needs.
const MAX_SIXEL_COLORS: u32 = 64;

/// What the environment says of the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// `TERM`.
    pub term: String,
    /// Whether a multiplexer set its variable.
    pub is_in_multiplexer: bool,
    /// How many colors.
    pub depth: ColorDepth,
}

impl Default for Environment {
    fn default() -> Self {
        Self {
            term: String::new(),
            is_in_multiplexer: false,
            depth: ColorDepth::Ansi256,
        }
    }
}

impl Environment {
    /// What to ask it: terminals that print what they do not know are asked little.
    pub fn probe(&self) -> &'static [u8] {
        match self.term.as_str() {
            "linux" | "dumb" => LEAST_PROBE,
            _ => PROBE,
        }
    }

    /// Through `lookup`, which gives a variable's value if it is set.
    pub fn detect(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str| lookup(name).is_some_and(|value| !value.is_empty());
        Self {
            term: lookup("TERM").unwrap_or_default(),
            is_in_multiplexer: is_set("TMUX") || is_set("STY"),
            depth: ColorDepth::detect(&lookup),
        }
    }
}

/// What the terminal answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Its name and version.
    pub brand: Option<String>,
    /// What it says to a picture of the kitty protocol.
    pub kitty: Option<String>,
    /// Pixels of a cell, width and height.
    pub cell_px: Option<(u16, u16)>,
    /// Pixels of the text area, width and height.
    pub text_px: Option<(u16, u16)>,
    /// Colors of sixel pictures.
    pub sixel_colors: Option<u32>,
    /// How it stands with synchronized output.
    pub sync: Option<u8>,
    /// Its background.
    pub background: Option<[u8; 3]>,
    /// What it can do by its own account.
    pub attributes: Option<Vec<u16>>,
}

impl Answers {
    /// Takes one in; `false` if it answers nothing of the probe.
    pub fn take(&mut self, reply: &Reply) -> bool {
        match reply {
            Reply::Brand(brand) => self.brand = Some(brand.clone()),
            Reply::Picture { id, message } if *id == PROBE_ID => {
                self.kitty = Some(message.clone());
            }
            Reply::CellPixels(width, height) => self.cell_px = Some((*width, *height)),
            Reply::TextPixels(width, height) => self.text_px = Some((*width, *height)),
            Reply::SixelColors(colors) => self.sixel_colors = Some(*colors),
            Reply::Mode { mode, setting } if *mode == SYNC_MODE => self.sync = Some(*setting),
            Reply::Mode { .. } => {}
            Reply::Background(color) => self.background = Some(*color),
            Reply::Attributes(attributes) => self.attributes = Some(attributes.clone()),
            Reply::Picture { .. } | Reply::Alive | Reply::Cursor { .. } | Reply::Unasked => {
                return false;
            }
        }
        true
    }

    /// Whether it says that it does not know synchronized output.
    pub fn lacks_sync(&self) -> bool {
        self.sync == Some(0) || self.sync == Some(4)
    }

    /// Whether its background is light.
    pub fn is_light(&self) -> Option<bool> {
        let [red, green, blue] = self.background?.map(u32::from);
        Some(3 * red + 6 * green + blue > 10 * 128)
    }
}

/// A terminal's name, and its version as far as it has one.
fn name_and_version(brand: &str) -> (String, (u32, u32)) {
    let end = brand
        .find(|c: char| !c.is_alphanumeric() && c != '-' && c != '.')
        .unwrap_or(brand.len());
    let mut numbers = brand[end..]
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    (brand[..end].to_lowercase(), version)
}

/// The finest characters that a terminal of this name draws itself, without gaps.
fn blocks_of(name: &str, version: (u32, u32)) -> Blocks {
    match name {
        "ghostty" => Blocks::Octants,
        "kitty" if version >= (0, 40) => Blocks::Octants,
        "foot" if version >= (1, 20) => Blocks::Octants,
        "kitty" | "foot" | "wezterm" | "rio" | "contour" | "alacritty" => Blocks::Sextants,
        _ => Blocks::Quadrants,
    }
}

/// Whether it draws pictures of the kitty protocol at placeholders.
fn has_placeholders(name: &str, version: (u32, u32)) -> bool {
    name == "ghostty" || name == "kitty" && version >= (0, 28)
}

/// The depth that a terminal of this name has, where the environment did not come along.
pub(in crate::tui) fn depth_of_brand(brand: &str) -> Option<ColorDepth> {
    let (name, _) = name_and_version(brand);
    let known = [
        "kitty", "ghostty", "foot", "wezterm", "iterm2", "rio", "contour",
    ];
    known.contains(&name.as_str()).then_some(ColorDepth::True)
}

/// How pictures are shown, and why.
pub fn decide(images: Images, environment: &Environment, answers: &Answers) -> (Graphics, String) {
    let brand = answers.brand.as_deref().unwrap_or_default();
    let (name, version) = name_and_version(brand);
    let glyphs = blocks_of(&name, version);
    let cells = Graphics::all(Form::Cells(glyphs));
    let in_multiplexer = environment.is_in_multiplexer
        || ["tmux", "screen"]
            .iter()
            .any(|known| environment.term.starts_with(known) || name.starts_with(known));
    match images {
        Images::Off => return (Graphics::all(Form::Off), "as asked".to_owned()),
        Images::Half => {
            let half = Graphics::all(Form::Cells(Blocks::Half));
            return (half, "as asked".to_owned());
        }
        Images::Cells => return (cells, "as asked".to_owned()),
        Images::Auto | Images::Kitty | Images::Sixel => {}
    }
    if environment.depth == ColorDepth::None {
        return (cells, "no colors are wanted".to_owned());
    }
    if in_multiplexer {
        let why = "a multiplexer does not carry pictures".to_owned();
        return (cells, why);
    }
    let sixel = || {
        let colors = answers.sixel_colors.unwrap_or(USUAL_SIXEL_COLORS);
        Graphics {
            focus: Form::Sixel(colors.clamp(2, MAX_SIXEL_COLORS) as u16),
            tiles: Form::Cells(glyphs),
        }
    };
    match images {
        Images::Kitty => return (Graphics::all(Form::Kitty), "as asked".to_owned()),
        Images::Sixel => return (sixel(), "as asked".to_owned()),
        _ => {}
    }
    let says_ok = answers.kitty.as_deref() == Some("OK");
    let says_sixel = answers
        .attributes
        .as_ref()
        .is_some_and(|attributes| attributes.iter().skip(1).any(|number| *number == 4));
    if has_placeholders(&name, version) && says_ok {
        let why = format!("{brand} draws them at placeholders");
        (Graphics::all(Form::Kitty), why)
    } else if says_sixel {
        (sixel(), "the terminal says it has sixel".to_owned())
    } else if answers.attributes.is_none() && answers.brand.is_none() {
        (cells, "the terminal did not answer".to_owned())
    } else {
        (
            cells,
            "the terminal has no pictures that are known to work".to_owned(),
        )
    }
}
