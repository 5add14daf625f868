//! The words around instruction and screenshots, compiled in from `assets/prompts/`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::config::PromptStyle;

/// One file of `assets/prompts/`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StyleText {
    /// The system message.
    pub(super) system: String,
    /// The first user message; `{instruction}` stands for the task's.
    user: String,
    /// Where the first screenshot goes.
    pub(super) first_image: FirstImage,
}

/// Where the first screenshot goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FirstImage {
    /// Behind the text of the first user message.
    SameMessage,
    /// Into a user message of its own.
    OwnMessage,
}

static TINY: LazyLock<StyleText> =
    LazyLock::new(|| load(include_str!("../../assets/prompts/tiny.toml")));

static UI_TARS: LazyLock<StyleText> =
    LazyLock::new(|| load(include_str!("../../assets/prompts/ui_tars.toml")));

fn load(text: &str) -> StyleText {
    toml::from_str(text).expect("the files are compiled in and a test reads each")
}

impl StyleText {
    pub(super) fn of(style: PromptStyle) -> &'static Self {
        match style {
            PromptStyle::Tiny => &TINY,
            PromptStyle::UiTars => &UI_TARS,
        }
    }

    /// The first user message's text.
    pub(super) fn user(&self, instruction: &str) -> String {
        self.user.replace("{instruction}", instruction)
    }
}
