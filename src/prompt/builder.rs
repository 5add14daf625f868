//! Conversations and their pieces.

use std::path::Path;

use serde::Serialize;

use crate::action::Space;
use crate::config::{PolicyConfig, PromptStyle};
use crate::prompt::style::{FirstImage, StyleText};
use crate::prompt::template::ChatTemplate;
use crate::prompt::tokenizer::{IMAGE_PAD, TURN_END, Vocabulary};
use crate::prompt::{PromptError, SpecialIds};
use crate::screen::{ProcessorConfig, image_tokens, model_size};
use crate::types::{ReplyFormat, ScreenSize};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Whoever set the agent up.
    System,
    /// The task and the desktop.
    User,
    /// The agent.
    Assistant,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Words.
    Text(String),
    /// A screenshot of this size, as the desktop delivers it.
    Image(ScreenSize),
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said and shown, in order.
    pub content: Vec<Content>,
}

impl Message {
    /// A message of words alone.
    pub fn text(role: Role, words: impl Into<String>) -> Self {
        Self {
            role,
            content: vec![Content::Text(words.into())],
        }
    }

    /// A screenshot from the desktop.
    pub fn image(size: ScreenSize) -> Self {
        Self {
            role: Role::User,
            content: vec![Content::Image(size)],
        }
    }
}

/// How a conversation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// After its last message.
    Complete,
    /// With the opening of the agent's next reply.
    OpenReply,
}

/// Tokens of a prompt and their text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Token ids `[new]`; every screenshot's placeholder once per merged patch.
    pub ids: Vec<u32>,
    /// The same for people; every screenshot's placeholder once.
    pub text: String,
}

/// Makes prompts for one checkpoint. Shared by all episodes.
#[derive(Debug)]
pub struct PromptBuilder {
    vocabulary: Vocabulary,
    template: ChatTemplate,
    processor: ProcessorConfig,
    /// What stands between the end token of a reply and the next reply, with one screenshot.
    next_text: String,
    next_ids: Vec<u32>,
}

fn short_hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}

/// A reply that no template changes.
const SENTINEL: &str = "arpo-sentinel-reply";

impl PromptBuilder {
    /// Reads tokenizer, chat template and image processor settings of the checkpoint in `dir`.
    pub fn open(dir: &Path) -> Result<Self, PromptError> {
        let vocabulary = Vocabulary::open(dir)?;
        let template = ChatTemplate::open(dir)?;
        let processor = ProcessorConfig::open(dir).map_err(PromptError::Screen)?;
        let next_text = cut_next(&template)?;
        let next_ids = vocabulary.encode(&next_text)?;
        Ok(Self {
            vocabulary,
            template,
            processor,
            next_text,
            next_ids,
        })
    }

    /// Hash of the chat template.
    pub fn template_hash(&self) -> String {
        short_hash(self.template.source().as_bytes())
    }

    /// Hash of the words of a style.
    pub fn style_hash(style: PromptStyle) -> String {
        short_hash(format!("{:?}", StyleText::of(style)).as_bytes())
    }

    /// The prompt of the first reply: system, task, the first screenshot of `image` pixels.
    /// Special tokens that the instruction spells out are defused.
    pub fn first(
        &self,
        style: PromptStyle,
        instruction: &str,
        image: ScreenSize,
    ) -> Result<Piece, PromptError> {
        let messages = self.opening(style, instruction, image);
        self.build(&messages, TurnEnd::OpenReply)
    }

    /// The messages before the first reply.
    pub fn opening(
        &self,
        style: PromptStyle,
        instruction: &str,
        image: ScreenSize,
    ) -> Vec<Message> {
        let style = StyleText::of(style);
        let words = style.user(&self.vocabulary.defuse(instruction));
        let mut task = Message::text(Role::User, words);
        let system = Message::text(Role::System, style.system.as_str());
        match style.first_image {
            FirstImage::SameMessage => {
                task.content.push(Content::Image(image));
                vec![system, task]
            }
            FirstImage::OwnMessage => vec![system, task, Message::image(image)],
        }
    }

    /// What follows a reply that ended with its end token: a screenshot of `image` pixels and
    /// the opening of the next reply.
    pub fn next(&self, image: ScreenSize) -> Result<Piece, PromptError> {
        Ok(Piece {
            ids: self.expand(&self.next_ids, &[image])?,
            text: self.next_text.clone(),
        })
    }

    /// A whole conversation. Special tokens in its words count as such.
    pub fn build(&self, messages: &[Message], end: TurnEnd) -> Result<Piece, PromptError> {
        let text = render(&self.template, messages, end)?;
        let images: Vec<ScreenSize> = messages
            .iter()
            .flat_map(|message| &message.content)
            .filter_map(|content| match content {
                Content::Text(_) => None,
                Content::Image(size) => Some(*size),
            })
            .collect();
        let ids = self.expand(&self.vocabulary.encode(&text)?, &images)?;
        Ok(Piece { ids, text })
    }

    /// Repeats each placeholder in `ids` once per merged patch of its picture.
    fn expand(&self, ids: &[u32], images: &[ScreenSize]) -> Result<Vec<u32>, PromptError> {
        let pad = self.vocabulary.special.image_pad;
        let mut images = images.iter();
        let mut expanded = Vec::with_capacity(ids.len());
        for &id in ids {
            if id != pad {
                expanded.push(id);
                continue;
            }
            let Some(size) = images.next() else {
                return Err(miscounted());
            };
            let tokens = image_tokens(*size, &self.processor).map_err(PromptError::Screen)?;
            expanded.resize(expanded.len() + tokens, pad);
        }
        match images.next() {
            None => Ok(expanded),
            Some(_) => Err(miscounted()),
        }
    }

    /// Token ids of `text`: special tokens in it recognised, none added.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, PromptError> {
        self.vocabulary.encode(text)
    }

    /// Text of `ids`, special tokens left out.
    pub fn decode(&self, ids: &[u32]) -> Result<String, PromptError> {
        self.vocabulary.decode(ids)
    }

    /// Texts of all tokens by id, as bytes: a character may be spread over several tokens.
    pub fn token_texts(&self) -> Vec<Vec<u8>> {
        self.vocabulary.texts()
    }

    /// Ids of the tokens that structure a conversation.
    pub fn special(&self) -> SpecialIds {
        self.vocabulary.special
    }

    /// Number of tokens that the tokenizer knows; a model's table may be padded beyond it.
    pub fn num_tokens(&self) -> usize {
        self.vocabulary.len()
    }

    /// The checkpoint's image processor settings.
    pub fn processor(&self) -> &ProcessorConfig {
        &self.processor
    }

    /// What coordinates in this policy's replies mean on a screen of `screen` pixels.
    pub fn space(&self, policy: &PolicyConfig, screen: ScreenSize) -> Result<Space, PromptError> {
        let format = policy.reply_format;
        Ok(Space {
            format,
            model_size: model_size(screen, &self.processor).map_err(PromptError::Screen)?,
            screen,
            snap: policy.coordinate_snap,
            box_tokens: policy.prompt == PromptStyle::UiTars && format != ReplyFormat::Point,
        })
    }
}

fn miscounted() -> PromptError {
    PromptError::Shape {
        reason: format!("it must write one {IMAGE_PAD} for each picture"),
    }
}

/// Messages in the form templates expect: words alone as a string, else a list.
#[derive(Serialize)]
struct TemplateMessage<'a> {
    role: Role,
    content: TemplateContent<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum TemplateContent<'a> {
    Words(&'a str),
    Parts(Vec<TemplatePart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TemplatePart<'a> {
    Text { text: &'a str },
    Image,
}

fn render(
    template: &ChatTemplate,
    messages: &[Message],
    end: TurnEnd,
) -> Result<String, PromptError> {
    let messages: Vec<TemplateMessage<'_>> = messages
        .iter()
        .map(|message| TemplateMessage {
            role: message.role,
            content: template_content(&message.content),
        })
        .collect();
    template.render(&messages, end == TurnEnd::OpenReply)
}

fn template_content(content: &[Content]) -> TemplateContent<'_> {
    if let [Content::Text(words)] = content {
        return TemplateContent::Words(words);
    }
    let parts = content.iter().map(|part| match part {
        Content::Text(text) => TemplatePart::Text { text },
        Content::Image(_) => TemplatePart::Image,
    });
    TemplateContent::Parts(parts.collect())
}

/// What the template writes from a reply's end token on to the next reply, the end token
/// left out.
fn cut_next(template: &ChatTemplate) -> Result<String, PromptError> {
    let any = ScreenSize {
        width: 28,
        height: 28,
    };
    let messages = [
        Message::text(Role::System, "system"),
        Message::image(any),
        Message::text(Role::Assistant, SENTINEL),
        Message::image(any),
    ];
    let text = render(template, &messages, TurnEnd::OpenReply)?;
    let after = text.split_once(SENTINEL).map(|(_, after)| after);
    let next = after.and_then(|after| after.strip_prefix(TURN_END));
    let next = next.ok_or_else(|| PromptError::Shape {
        reason: format!("it must end replies with {TURN_END}"),
    })?;
    if next.matches(IMAGE_PAD).count() != 1 {
        return Err(miscounted());
    }
    Ok(next.to_owned())
}
