//! An episode at OSWorld's size, UI-TARS' prompt and its image processor, on a checkpoint that is
//! UI-TARS' in all but width and depth: fifteen screenshots of 1920x1080, 40,000 tokens.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arpo::config::{CostTable, DeviceChoice, EngineConfig, PromptStyle};
use arpo::policy::{Extension, FinishReason, Policy, SamplingParams, SessionSpec};
use arpo::prompt::PromptBuilder;
use arpo::types::{EpisodeId, ScreenSize, Screenshot, Task};
use serde_json::{Value, json};
use tch::{Device, Kind};

use crate::engine::{Embedded, EmbeddedSpec};
use crate::model::qwen2_5_vl::ModelConfig;
use crate::model::{Weights, checkpoint};

const SCREEN: ScreenSize = ScreenSize {
    width: 1920,
    height: 1080,
};

/// Steps of an episode, as in the paper.
const STEPS: usize = 15;

/// 1080 and 1920 pixels become 39 and 69 merged patches of 28.
const IMAGE_TOKENS: usize = 39 * 69;

/// UI-TARS' context.
const CONTEXT_TOKENS: usize = 65_536;

/// Writes a checkpoint of UI-TARS-1.5's layout with random weights: its keys, window, rope and
/// untied head; two layers of each kind. The tokenizer is the shipped agent's.
fn write_checkpoint(folder: &Path) {
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/agent");
    for name in [
        "tokenizer.json",
        "tokenizer_config.json",
        "generation_config.json",
    ] {
        fs::copy(agent.join(name), folder.join(name)).unwrap();
    }
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(agent.join(name)).unwrap()).unwrap()
    };
    let mut processor = read("preprocessor_config.json");
    for (key, value) in [("min_pixels", 3136), ("max_pixels", 2_116_800)] {
        processor[key] = json!(value);
    }
    processor["size"] = json!({"shortest_edge": 3136, "longest_edge": 2_116_800});
    let path = folder.join("preprocessor_config.json");
    fs::write(path, processor.to_string()).unwrap();

    let mut config = read("config.json");
    for (key, value) in [
        ("hidden_size", 64),
        ("intermediate_size", 128),
        ("num_attention_heads", 2),
        ("num_key_value_heads", 1),
        ("num_hidden_layers", 2),
        ("max_position_embeddings", 128_000),
    ] {
        config[key] = json!(value);
    }
    config["rope_theta"] = json!(1_000_000.0);
    config["tie_word_embeddings"] = json!(false);
    let vision = &mut config["vision_config"];
    for (key, value) in [
        ("hidden_size", 32),
        ("intermediate_size", 64),
        ("out_hidden_size", 64),
        ("depth", 2),
        ("window_size", 112),
    ] {
        vision[key] = json!(value);
    }
    vision["fullatt_block_indexes"] = json!([1]);
    let config = Arc::new(ModelConfig::parse(&config.to_string()).unwrap());
    checkpoint::save(&Weights::random(config, 3), folder, Kind::BFloat16).unwrap();
}

/// A desktop with a window that moves, so that no two pictures are equal.
fn screenshot(step: usize) -> Screenshot {
    let (width, height) = (SCREEN.width as usize, SCREEN.height as usize);
    let mut rgb = vec![200; width * height * 3];
    for y in 200..600 {
        let from = (y * width + 100 + step * 40) * 3;
        rgb[from..from + 1200].fill(if y < 230 { 60 } else { 245 });
    }
    Screenshot::new(SCREEN, rgb)
}

fn open(folder: &Path, prompt: &PromptBuilder) -> Embedded {
    let weights = checkpoint::load(folder, Device::Cpu, Kind::Float).unwrap();
    let config = EngineConfig {
        device: DeviceChoice::Cpu,
        lanes: 1,
        kv_budget_mb: 256,
        max_batch: 1,
        cost: CostTable {
            vision_call_us: 1,
            vision_image_us: 1,
            prefill_call_us: 1,
            prefill_token_us: 1,
            decode_call_us: 1,
            decode_row_us: 1,
        },
    };
    let spec = EmbeddedSpec {
        context_tokens: CONTEXT_TOKENS,
        stop_ids: vec![prompt.special().turn_end],
        processor: prompt.processor().clone(),
    };
    Embedded::start(&weights, &config, &spec).unwrap()
}

fn session_spec() -> SessionSpec {
    let task = r#"{"id": "t", "instruction": "i", "evaluator": {"func": "infeasible"}}"#;
    let task: Task = serde_json::from_str(task).unwrap();
    SessionSpec {
        episode: EpisodeId {
            incarnation: 0,
            number: 0,
        },
        sample: 0,
        seed: 1,
        task: Arc::new(task),
        weights: None,
    }
}

#[tokio::test]
async fn fifteen_screenshots_of_osworlds_size_are_encoded_once_each() {
    let folder = tempfile::tempdir().unwrap();
    write_checkpoint(folder.path());
    let prompt = PromptBuilder::open(folder.path()).unwrap();
    let policy = open(folder.path(), &prompt);
    let session = policy.open(session_spec()).await.unwrap();
    let params = SamplingParams {
        temperature: 1.0,
        top_p: 1.0,
        max_tokens: 4,
    };
    let instruction = "Help me change the 2 in \"H2O\" to a subscript.";
    let mut prompt_tokens = 0;
    let mut open_turn = false;
    for step in 0..STEPS {
        let piece = match step {
            0 => prompt.first(PromptStyle::UiTars, instruction, SCREEN),
            _ => prompt.next(SCREEN),
        };
        let mut ids = piece.unwrap().ids;
        let pad = prompt.special().image_pad;
        assert_eq!(ids.iter().filter(|id| **id == pad).count(), IMAGE_TOKENS);
        if open_turn {
            ids.insert(0, prompt.special().turn_end);
        }
        prompt_tokens += ids.len();
        let extension = Extension {
            ids,
            images: vec![screenshot(step)],
            replies: Vec::new(),
        };
        let generating = policy.generate(session, extension, params);
        let ticking = async { while policy.tick().await.is_some() {} };
        let (reply, ()) = futures::join!(generating, ticking);
        let reply = reply.unwrap();
        assert!(reply.logprobs.iter().all(|logprob| logprob.is_finite()));
        open_turn = reply.finish != FinishReason::Stop;
    }
    let stats = policy.stats();
    assert_eq!(stats.images_encoded, STEPS as u64);
    assert_eq!(stats.tokens_new, prompt_tokens as u64);
    assert_eq!(stats.tokens_prefilled, stats.tokens_new);
    assert_eq!(stats.sessions_refilled, 0);
    assert!(prompt_tokens > STEPS * IMAGE_TOKENS);
}
