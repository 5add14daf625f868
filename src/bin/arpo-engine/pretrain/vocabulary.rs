//! The base agent's tokenizer: trained on the suite's own texts, written as Hugging Face files.
//!
//! Every piece of action syntax, every word of the suite and every coordinate that is a
//! multiple of four is one token, so that an action is about six tokens. Bytes are the
//! alphabet, so any text can be encoded. The same code and suite give the same file.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::processors::PostProcessorWrapper;
use tokenizers::{AddedToken, SplitDelimiterBehavior, TokenizerBuilder};

use arpo::action::Space;
use arpo::screen::{ProcessorConfig, model_size};
use arpo::types::{ReplyFormat, ScreenSize};

use crate::pretrain::PretrainError;

/// Special tokens in the order of their ids, from 0.
pub const SPECIAL_TOKENS: [&str; 8] = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
];
/// Id of the end-of-turn token.
pub const IM_END: u32 = 2;
/// Id of a screenshot's placeholder.
pub const IMAGE_PAD: u32 = 6;

/// Cuts text into pieces that never merge with each other; order matters.
const PIECES: &str = concat!(
    r"Action: |Thought: |[a-z_]+\([a-z_]+='\(?|[a-z_]+\(\)|\)', end_box='\(|\)', direction='",
    r"|\)'\)|'\)| ?[A-Za-z]+|\d+|\n| |.",
);
/// Merges seen less often than this are not made; every text is given at least this often.
const MIN_FREQUENCY: u64 = 2;
/// Far above what the corpus needs: training stops when nothing is left to merge.
const MAX_VOCABULARY: usize = 4096;
/// Coordinates up to this get a token, if they are multiples of `COORDINATE_STEP_PX`.
const MAX_COORDINATE_PX: u32 = 1000;
/// Raster of the coordinates the agent writes, pixels of the resized screenshot.
pub const COORDINATE_STEP_PX: u32 = 4;

/// Qwen2.5-VL's conversation format as a template: text and images in the order given.
const CHAT_TEMPLATE: &str = concat!(
    "{% for message in messages %}",
    "{% if loop.first and message['role'] != 'system' %}",
    "<|im_start|>system\nYou are a GUI agent.<|im_end|>\n{% endif %}",
    "<|im_start|>{{ message['role'] }}\n",
    "{% if message['content'] is string %}{{ message['content'] }}",
    "{% else %}{% for content in message['content'] %}",
    "{% if content['type'] == 'image' or 'image' in content or 'image_url' in content %}",
    "<|vision_start|><|image_pad|><|vision_end|>",
    "{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}{% endif %}",
    "<|im_end|>\n{% endfor %}",
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
);

/// The trained tokenizer, ready to encode.
pub struct Vocabulary {
    tokenizer: tokenizers::Tokenizer,
    /// Pixel value of each token that is a number on the coordinate raster, `[vocab]`.
    coordinates: Vec<Option<u32>>,
}

impl Vocabulary {
    /// Trains a tokenizer on `texts`.
    pub fn train(texts: &[String]) -> Result<Self, PretrainError> {
        let pieces = SplitPattern::Regex(PIECES.to_owned());
        let split = Split::new(pieces, SplitDelimiterBehavior::Isolated, false)
            .map_err(|e| PretrainError::Tokenizer(e.to_string()))?;
        let bytes = ByteLevel::new(false, true, false);
        let mut tokenizer = TokenizerBuilder::<
            BPE,
            NormalizerWrapper,
            PreTokenizerWrapper,
            PostProcessorWrapper,
            _,
        >::new()
        .with_model(BPE::default())
        .with_pre_tokenizer(Some(PreTokenizerWrapper::Sequence(Sequence::new(vec![
            split.into(),
            bytes.into(),
        ]))))
        .with_decoder(Some(bytes))
        .build()
        .map_err(|e| PretrainError::Tokenizer(e.to_string()))?;
        let alphabet: HashSet<char> = ByteLevel::alphabet().into_iter().collect();
        let specials = SPECIAL_TOKENS.map(|token| AddedToken::from(token, true));
        let mut trainer = BpeTrainer::builder()
            .show_progress(false)
            .vocab_size(MAX_VOCABULARY)
            .min_frequency(MIN_FREQUENCY)
            .initial_alphabet(alphabet)
            .special_tokens(specials.to_vec())
            .build();
        tokenizer
            .train(&mut trainer, corpus(texts).into_iter())
            .map_err(|e| PretrainError::Tokenizer(e.to_string()))?;
        let json = tokenizer
            .to_string(true)
            .map_err(|e| PretrainError::Tokenizer(e.to_string()))?;
        Self::from_json(&json)
    }

    fn from_json(json: &str) -> Result<Self, PretrainError> {
        let tokenizer: tokenizers::Tokenizer = json
            .parse()
            .map_err(|e: tokenizers::Error| PretrainError::Tokenizer(e.to_string()))?;
        let size = tokenizer.get_vocab_size(true);
        let mut coordinates = vec![None; size];
        for value in (0..=MAX_COORDINATE_PX).step_by(COORDINATE_STEP_PX as usize) {
            if let Some(id) = tokenizer.token_to_id(&value.to_string()) {
                coordinates[id as usize] = Some(value);
            }
        }
        Ok(Self {
            tokenizer,
            coordinates,
        })
    }

    /// Number of tokens, special ones included.
    pub fn len(&self) -> usize {
        self.coordinates.len()
    }

    /// The pixel value a token stands for, if it is a number on the coordinate raster.
    pub fn coordinate(&self, id: u32) -> Option<u32> {
        self.coordinates.get(id as usize).copied().flatten()
    }

    /// Id of a coordinate on the raster.
    pub fn coordinate_id(&self, value: u32) -> Option<u32> {
        self.tokenizer.token_to_id(&value.to_string())
    }

    /// Writes `tokenizer.json`, `tokenizer_config.json` and `generation_config.json`.
    pub fn save(&self, folder: &Path) -> Result<(), PretrainError> {
        let json = self
            .tokenizer
            .to_string(true)
            .map_err(|e| PretrainError::Tokenizer(e.to_string()))?;
        write(&folder.join("tokenizer.json"), &json)?;
        let config = pretty(&tokenizer_config());
        write(&folder.join("tokenizer_config.json"), &config)?;
        let generation = json!({
            "bos_token_id": 0,
            "do_sample": true,
            "eos_token_id": [IM_END, 0],
            "pad_token_id": 0,
            "temperature": 1.0,
            "top_k": 0,
            "top_p": 1.0,
        });
        write(&folder.join("generation_config.json"), &pretty(&generation))
    }
}

/// How the agent writes places of a screen of `screen` pixels.
pub fn coordinate_space(
    processor: &ProcessorConfig,
    screen: ScreenSize,
) -> Result<Space, PretrainError> {
    Ok(Space {
        format: ReplyFormat::Absolute,
        model_size: model_size(screen, processor)?,
        screen,
        snap: COORDINATE_STEP_PX,
        box_tokens: false,
    })
}

/// What the tokenizer is trained on: the texts, and every coordinate often enough.
fn corpus(texts: &[String]) -> Vec<String> {
    let coordinates = (0..256)
        .step_by(COORDINATE_STEP_PX as usize)
        .flat_map(|value| vec![value.to_string(); MIN_FREQUENCY as usize + 1]);
    let texts = texts
        .iter()
        .flat_map(|text| vec![text.clone(); MIN_FREQUENCY as usize]);
    texts.chain(coordinates).collect()
}

/// `tokenizer_config.json`.
fn tokenizer_config() -> Value {
    let added: serde_json::Map<String, Value> = (0..)
        .zip(SPECIAL_TOKENS)
        .map(|(id, token): (u32, _)| {
            let entry = json!({
                "content": token,
                "lstrip": false,
                "normalized": false,
                "rstrip": false,
                "single_word": false,
                "special": true,
            });
            (id.to_string(), entry)
        })
        .collect();
    json!({
        "add_prefix_space": false,
        "added_tokens_decoder": added,
        "additional_special_tokens": &SPECIAL_TOKENS[1..],
        "bos_token": null,
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": false,
        "eos_token": SPECIAL_TOKENS[2],
        "errors": "replace",
        "model_max_length": 2048,
        "pad_token": SPECIAL_TOKENS[0],
        "split_special_tokens": false,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": null,
    })
}

/// JSON for people, with a closing newline.
pub fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Writes a small file.
pub fn write(path: &Path, text: &str) -> Result<(), PretrainError> {
    fs::write(path, text).map_err(|e| PretrainError::io("write", path, e))
}
