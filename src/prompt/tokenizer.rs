//! A checkpoint's tokenizer and its special tokens.

use std::collections::HashMap;
use std::path::Path;

use tokenizers::{DecoderWrapper, Tokenizer};

use crate::prompt::PromptError;

/// Ids of the tokens that structure a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialIds {
    /// `<|im_start|>`, before a role.
    pub turn_start: u32,
    /// `<|im_end|>`, which ends a reply.
    pub turn_end: u32,
    /// `<|vision_start|>`, before a screenshot.
    pub vision_start: u32,
    /// `<|vision_end|>`, behind it.
    pub vision_end: u32,
    /// `<|image_pad|>`, once per merged patch of a screenshot.
    pub image_pad: u32,
}

/// End of a message, as text.
pub(super) const TURN_END: &str = "<|im_end|>";

/// A screenshot's placeholder, as text.
pub(super) const IMAGE_PAD: &str = "<|image_pad|>";

/// A tokenizer with its special tokens looked up.
#[derive(Debug)]
pub(super) struct Vocabulary {
    tokenizer: Tokenizer,
    pub(super) special: SpecialIds,
    /// The special tokens' texts, which mean nothing special in an instruction.
    reserved: Vec<String>,
}

impl Vocabulary {
    pub(super) fn open(dir: &Path) -> Result<Self, PromptError> {
        let path = dir.join("tokenizer.json");
        let bytes = std::fs::read(&path).map_err(|source| PromptError::Read {
            path: path.clone(),
            source,
        })?;
        let bad = |reason: String| PromptError::File {
            path: path.clone(),
            reason,
        };
        let tokenizer = Tokenizer::from_bytes(bytes).map_err(|error| bad(error.to_string()))?;
        let id = |token: &str| {
            let found = tokenizer.token_to_id(token);
            found.ok_or_else(|| bad(format!("no token {token}")))
        };
        let special = SpecialIds {
            turn_start: id("<|im_start|>")?,
            turn_end: id(TURN_END)?,
            vision_start: id("<|vision_start|>")?,
            vision_end: id("<|vision_end|>")?,
            image_pad: id(IMAGE_PAD)?,
        };
        let added = tokenizer.get_added_tokens_decoder();
        let reserved = added.into_values().filter(|token| token.special);
        let reserved = reserved.map(|token| token.content).collect();
        Ok(Self {
            tokenizer,
            special,
            reserved,
        })
    }

    /// Token ids of `text`, special tokens in it recognised, none added.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, PromptError> {
        let encoding = self.tokenizer.encode_fast(text, false);
        let encoding = encoding.map_err(|error| tokenizer_error(error.as_ref()))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Text of `ids`, special tokens left out.
    pub(super) fn decode(&self, ids: &[u32]) -> Result<String, PromptError> {
        let text = self.tokenizer.decode(ids, true);
        text.map_err(|error| tokenizer_error(error.as_ref()))
    }

    /// Texts of all tokens by id, as bytes: a character may be spread over several tokens. Empty
    /// where no token has the id.
    pub(super) fn texts(&self) -> Vec<Vec<u8>> {
        let added = self.tokenizer.get_added_tokens_decoder();
        let is_byte_level = matches!(
            self.tokenizer.get_decoder(),
            Some(DecoderWrapper::ByteLevel(_))
        );
        let bytes = bytes_of_characters();
        let vocabulary = self.tokenizer.get_vocab(true);
        let ids = vocabulary.values().max().map_or(0, |id| *id as usize + 1);
        let mut texts = vec![Vec::new(); ids];
        for (token, id) in vocabulary {
            let spelled: Option<Vec<u8>> = token.chars().map(|c| bytes.get(&c).copied()).collect();
            let spelled = spelled.filter(|_| is_byte_level && !added.contains_key(&id));
            texts[id as usize] = spelled.unwrap_or_else(|| token.into_bytes());
        }
        texts
    }

    pub(super) fn len(&self) -> usize {
        self.tokenizer.get_vocab_size(true)
    }

    /// `text` with a blank in every special token that it spells out, so that words of a task
    /// cannot end a message or stand for a picture.
    pub(super) fn defuse(&self, text: &str) -> String {
        let mut safe = text.to_owned();
        for token in &self.reserved {
            let mut chars = token.chars();
            if let Some(first) = chars.next()
                && safe.contains(token.as_str())
            {
                safe = safe.replace(token.as_str(), &format!("{first} {}", chars.as_str()));
            }
        }
        safe
    }
}

/// The byte that each character of a byte-level vocabulary stands for.
///
/// Source: openai/gpt-2@a74da5d `encoder.py` `bytes_to_unicode`.
fn bytes_of_characters() -> HashMap<char, u8> {
    let is_itself = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let mut bytes = HashMap::new();
    let mut next = 0x100;
    for byte in 0..=u8::MAX {
        let code = if is_itself(byte) {
            u32::from(byte)
        } else {
            next += 1;
            next - 1
        };
        bytes.extend(char::from_u32(code).map(|character| (character, byte)));
    }
    bytes
}

fn tokenizer_error(error: &(dyn std::error::Error + Send + Sync)) -> PromptError {
    PromptError::Tokenizer {
        reason: error.to_string(),
    }
}
