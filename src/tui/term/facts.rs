//! What the console knows of its terminal, as plain data: what it answered, what follows for
//! pictures and colors, how the line is.

use std::fmt;
use std::str::FromStr;

use super::probe::{Answers, Environment, decide};
use super::reply::Reply;

/// The most bytes a second that pictures take, unless told otherwise.
const USUAL_PICTURE_RATE: u64 = 200_000;
/// How long answers to the probe are waited for, ms.
const PROBE_MS: u64 = 300;

/// How pictures are shown, as the operator wants it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Images {
    /// As well as the terminal can.
    #[default]
    Auto,
    /// By the kitty protocol with placeholders.
    Kitty,
    /// By sixel.
    Sixel,
    /// By the finest characters that the terminal draws well.
    Cells,
    /// By half blocks, which every font has.
    Half,
    /// Not at all.
    Off,
}

impl Images {
    /// All, in the order they are named.
    pub const ALL: [Images; 6] = [
        Images::Auto,
        Images::Kitty,
        Images::Sixel,
        Images::Cells,
        Images::Half,
        Images::Off,
    ];

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Images::Auto => "auto",
            Images::Kitty => "kitty",
            Images::Sixel => "sixel",
            Images::Cells => "cells",
            Images::Half => "half",
            Images::Off => "off",
        }
    }
}

impl FromStr for Images {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Images::ALL.into_iter().find(|images| images.name() == text);
        known.ok_or_else(|| {
            let names = Images::ALL.map(Images::name).join(", ");
            format!("pictures are shown as one of {names}, not {text:?}")
        })
    }
}

/// Block characters that a terminal draws without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocks {
    /// One dot across, two down.
    Half,
    /// Two by two.
    Quadrants,
    /// Two by three.
    Sextants,
    /// Two by four.
    Octants,
}

/// How one picture is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// By the kitty protocol.
    Kitty,
    /// By sixel, with at most so many colors.
    Sixel(u16),
    /// By characters.
    Cells(Blocks),
    /// Not at all.
    Off,
}

/// How pictures are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graphics {
    /// The one looked at.
    pub focus: Form,
    /// Small ones, many at a time.
    pub tiles: Form,
}

impl Graphics {
    /// All alike.
    pub fn all(form: Form) -> Self {
        Self {
            focus: form,
            tiles: form,
        }
    }
}

impl Default for Graphics {
    fn default() -> Self {
        Self::all(Form::Cells(Blocks::Quadrants))
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Form::Kitty => f.write_str("kitty protocol"),
            Form::Sixel(colors) => write!(f, "sixel, {colors} colors"),
            Form::Cells(Blocks::Half) => f.write_str("half blocks"),
            Form::Cells(Blocks::Quadrants) => f.write_str("half blocks and quadrants"),
            Form::Cells(Blocks::Sextants) => f.write_str("sextants"),
            Form::Cells(Blocks::Octants) => f.write_str("octants"),
            Form::Off => f.write_str("off"),
        }
    }
}

/// How the line to the terminal is, as shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkFigures {
    /// From question to answer, ms; `None` if the terminal does not answer.
    pub round_trip_ms: Option<u64>,
    /// Bytes a second, if known.
    pub goodput: Option<u64>,
    /// Whether that is only what was seen at least.
    pub is_bound: bool,
    /// Whether pictures are worse than they could be, for the line's sake.
    pub is_degraded: bool,
}

/// What is known of the terminal.
#[derive(Clone, Debug)]
pub struct TerminalFacts {
    /// What the operator wants.
    pub images: Images,
    /// What the environment says.
    pub environment: Environment,
    /// What the terminal said.
    pub answers: Answers,
    /// The answers as they came, escaped.
    pub raw: Vec<String>,
    /// What follows for pictures.
    pub graphics: Graphics,
    /// Why.
    pub why: String,
    /// The most bytes a second that pictures take.
    pub picture_rate: u64,
    /// The line; `None` before the first frame was answered, or given up.
    pub link: Option<LinkFigures>,
    /// Pixels of a cell as the system has it from the terminal, if it has.
    pub window_cell_px: Option<(u16, u16)>,
    /// When the terminal was asked, by the console's clock.
    pub asked_ms: u64,
    /// Whether the answers are complete, or no longer waited for.
    pub is_settled: bool,
}

impl Default for TerminalFacts {
    fn default() -> Self {
        Self {
            images: Images::Auto,
            environment: Environment::default(),
            answers: Answers::default(),
            raw: Vec::new(),
            graphics: Graphics::default(),
            why: String::new(),
            picture_rate: USUAL_PICTURE_RATE,
            link: None,
            window_cell_px: None,
            asked_ms: 0,
            is_settled: false,
        }
    }
}

impl TerminalFacts {
    /// Takes an answer in; `true` once with it the probe is complete.
    pub fn take(&mut self, reply: &Reply, raw: &str) -> bool {
        if !self.answers.take(reply) {
            return false;
        }
        if self.raw.len() < 32 {
            self.raw.push(raw.to_owned());
        }
        let completes = matches!(reply, Reply::Attributes(_)) && !self.is_settled;
        self.is_settled |= completes;
        if self.is_settled {
            self.decide();
        }
        completes
    }

    /// Lets time pass; `true` if the probe is given up with it.
    pub fn tick(&mut self, now_ms: u64) -> bool {
        let ends = !self.is_settled && now_ms >= self.asked_ms + PROBE_MS;
        if ends {
            self.is_settled = true;
            self.decide();
        }
        ends
    }

    /// The operator wants pictures so.
    pub fn choose(&mut self, images: Images) {
        self.images = images;
        self.decide();
    }

    /// Pixels of a cell, width and height; guessed where the terminal does not say.
    pub fn cell_px(&self) -> (u16, u16) {
        let is_usable = |(width, height): &(u16, u16)| *width >= 4 && *height >= 4;
        let answered = self.answers.cell_px.filter(is_usable);
        let known = answered.or(self.window_cell_px.filter(is_usable));
        known.unwrap_or((10, 20))
    }

    /// Whether it shows pictures by itself.
    pub fn shows_pictures(&self) -> bool {
        matches!(self.graphics.focus, Form::Kitty | Form::Sixel(_))
    }

    /// Draws the conclusions.
    pub fn decide(&mut self) {
        (self.graphics, self.why) = decide(self.images, &self.environment, &self.answers);
    }
}
