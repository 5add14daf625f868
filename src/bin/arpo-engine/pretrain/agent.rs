//! The parts a fresh agent is put together from, and how it is measured.

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};
use tch::Tensor;

use arpo::action::print_reply;
use arpo::config::PretrainModelConfig;
use arpo::env::simulated::suite::{self, Family, HELD_OUT_FIRST, Suite};
use arpo::env::simulated::{Desktop, expert};
use arpo::screen::ProcessorConfig;
use arpo::types::{Task, derive_seed};

use super::objective::{self, HEAD_NAMES, Heads, Tally};
use super::samples::Maker;
use super::vocabulary::{IM_END, IMAGE_PAD, coordinate_space};
use super::{PretrainError, seed};
use crate::model::Weights;
use crate::model::qwen2_5_vl::config::ModelConfig;

/// Instances of each family whose texts the tokenizer sees.
const TEXT_INSTANCES: u64 = 150;
/// Most steps of a demonstration.
const MAX_STEPS: usize = 12;
/// What tied heads are multiplied with, for a contrast that is felt among fifty patches.
const TIED_SCALE: f64 = 1.6;
/// The vocabulary is rounded up to a multiple of this.
const VOCABULARY_STEP: usize = 8;

/// Instructions, replies, phrases and facts of the whole suite: the tokenizer's corpus.
pub(super) fn texts(processor: &ProcessorConfig) -> Result<Vec<String>, PretrainError> {
    let mut texts = vec![
        "system\nYou are a GUI agent.".to_owned(),
        "user\nTask: ".to_owned(),
        "assistant\n".to_owned(),
        "Ground:\n".to_owned(),
    ];
    for family in suite::families(Suite::Compact) {
        for instance in 0..TEXT_INSTANCES {
            let task = suite::task(family.name, instance)?;
            texts.push(format!("Task: {}\n", task.instruction));
            let mut desktop = Desktop::from_task(&task)?;
            for _ in 0..MAX_STEPS {
                // Words stand after a blank, a quote or a line's start: all get their token.
                for target in desktop.targets() {
                    texts.push(format!("Thought: {}\n", target.phrase));
                    texts.extend(target.phrase.split(' ').map(str::to_owned));
                }
                for fact in desktop.facts() {
                    texts.push(fact.to_string());
                }
                let step = expert::next(&desktop, &task);
                let space = coordinate_space(processor, desktop.screen_size())?;
                texts.push(print_reply(
                    &step.thought,
                    std::slice::from_ref(&step.action),
                    &space,
                ));
                if step.action.is_terminal() {
                    break;
                }
                desktop.apply(&step.action);
            }
        }
    }
    texts.sort();
    texts.dedup();
    Ok(texts)
}

/// Settings of the image processor.
pub(super) fn processor(model: &PretrainModelConfig) -> ProcessorConfig {
    ProcessorConfig {
        patch_size: model.vision.patch_size as u32,
        temporal_patch_size: model.vision.temporal_patch_size as u32,
        merge_size: model.vision.spatial_merge_size as u32,
        min_pixels: u64::from(model.min_pixels),
        max_pixels: u64::from(model.max_pixels),
        ..ProcessorConfig::default()
    }
}

/// The network's configuration, as its `config.json` has it.
pub(super) fn model_config(
    model: &PretrainModelConfig,
    num_tokens: usize,
) -> Result<ModelConfig, PretrainError> {
    let config = json!({
        "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        "model_type": "qwen2_5_vl",
        "dtype": "bfloat16",
        "bos_token_id": 0,
        "eos_token_id": IM_END,
        "pad_token_id": 0,
        "vision_start_token_id": 3,
        "vision_end_token_id": 4,
        "image_token_id": IMAGE_PAD,
        "video_token_id": 7,
        "attention_dropout": 0.0,
        "hidden_act": "silu",
        "hidden_size": model.hidden_size,
        "initializer_range": model.initializer_range,
        "intermediate_size": model.intermediate_size,
        "max_position_embeddings": model.max_position_embeddings,
        "max_window_layers": model.num_hidden_layers,
        "num_attention_heads": model.num_attention_heads,
        "num_hidden_layers": model.num_hidden_layers,
        "num_key_value_heads": model.num_key_value_heads,
        "rms_norm_eps": model.rms_norm_eps,
        "rope_theta": model.rope_theta,
        "rope_scaling": { "type": "mrope", "mrope_section": model.mrope_section },
        "sliding_window": null,
        "tie_word_embeddings": model.tie_word_embeddings,
        "use_cache": true,
        "use_sliding_window": false,
        "vocab_size": num_tokens.next_multiple_of(VOCABULARY_STEP),
        "vision_config": vision_json(model),
    });
    Ok(ModelConfig::parse(&config.to_string())?)
}

/// The vision tower's part of it.
fn vision_json(model: &PretrainModelConfig) -> Value {
    let vision = &model.vision;
    json!({
        "model_type": "qwen2_5_vl",
        "depth": vision.depth,
        "fullatt_block_indexes": vision.fullatt_block_indexes,
        "hidden_act": "silu",
        "hidden_size": vision.hidden_size,
        "in_channels": 3,
        "initializer_range": model.initializer_range,
        "intermediate_size": vision.intermediate_size,
        "num_heads": vision.num_heads,
        "out_hidden_size": model.hidden_size,
        "patch_size": vision.patch_size,
        "spatial_merge_size": vision.spatial_merge_size,
        "spatial_patch_size": vision.patch_size,
        "temporal_patch_size": vision.temporal_patch_size,
        "tokens_per_second": 2,
        "window_size": vision.window_size,
    })
}

/// Makes every key head start as a copy of the first query head it serves, so that tokens look
/// at what resembles them: a word at its picture. Finding a place by its label is all but
/// impossible to learn from scratch otherwise.
pub(super) fn tie_keys(weights: &Weights) {
    let config = &weights.config.text;
    let (width, groups) = (
        config.head_dim(),
        config.num_attention_heads / config.num_key_value_heads,
    );
    tch::no_grad(|| {
        for layer in &weights.text.layers {
            for head in 0..config.num_key_value_heads {
                let mut query = layer.q_proj.weight.narrow(0, head * groups * width, width);
                let _ = query.g_mul_scalar_(TIED_SCALE);
                let mut key = layer.k_proj.weight.narrow(0, head * width, width);
                key.copy_(&query);
            }
        }
    });
}

/// The matrices of `Heads`, near the identity: a feature starts as the embedding it is to be.
pub(super) fn heads(weights: &Weights) -> Vec<Tensor> {
    let embeddings = &weights.text.embed_tokens;
    let width = embeddings.size()[1];
    HEAD_NAMES
        .iter()
        .map(|_| Tensor::eye(width, (embeddings.kind(), embeddings.device())))
        .collect()
}

/// Instances that nothing is trained on, trained families in turn.
pub(super) fn heldout_tasks(count: usize) -> Result<Vec<Task>, PretrainError> {
    let families: Vec<&Family> = suite::families(Suite::Compact)
        .iter()
        .filter(|family| family.trained)
        .collect();
    (0..count)
        .map(|i| {
            let family = families[i % families.len()];
            let instance = HELD_OUT_FIRST + (i / families.len()) as u64;
            Ok(suite::task(family.name, instance)?)
        })
        .collect()
}

/// Tally of the expert's faultless trajectory on each task, with the task.
pub(super) fn measure(
    maker: &Maker<'_>,
    tasks: Vec<Task>,
    weights: &Weights,
    heads: &Heads,
    run_seed: u64,
) -> Result<Vec<(Task, Tally)>, PretrainError> {
    let mut tallies = Vec::with_capacity(tasks.len());
    for (i, task) in tasks.into_iter().enumerate() {
        let mut rng = Pcg64Mcg::seed_from_u64(derive_seed(run_seed, &[seed::MEASURE, i as u64]));
        let sample = maker.demonstrate(&task, 0.0, &mut rng)?;
        let tally = objective::loss(weights, heads, &[sample], maker.vocabulary)?.1;
        tallies.push((task, tally));
    }
    Ok(tallies)
}
