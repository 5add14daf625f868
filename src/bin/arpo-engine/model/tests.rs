//! Tests of the network against live `transformers` (`tests/it/fixtures/model/reference.py`),
//! and of what needs no reference.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use arpo::types::PolicyVersion;
use tch::{Device, Kind, Tensor};

use super::qwen2_5_vl::config::ModelConfig;
use super::qwen2_5_vl::rope::{self, PositionCursor};
use super::qwen2_5_vl::text::{self, Attention};
use super::qwen2_5_vl::{embed, lm_head, vision};
use super::{Weights, checkpoint};

/// The agent's own shape.
const CONFIG: &str = include_str!("../../../../tests/it/fixtures/model/config.json");

/// The largest error, in standard deviations of the reference, that rounding explains.
const TOLERANCE: f64 = 1e-4;

/// Weights of the agent's shape, larger than those training starts from, so that attention is
/// not uniform.
pub(crate) fn tiny_weights(seed: u64) -> Weights {
    let config = CONFIG.replace("\"initializer_range\": 0.04", "\"initializer_range\": 0.15");
    Weights::random(Arc::new(ModelConfig::parse(&config).unwrap()), seed)
}

/// The Python that has `transformers`; `None` where the environment says to do without.
pub(crate) fn reference_python(test: &str) -> Option<PathBuf> {
    let python = std::env::var_os("ARPO_REF_PYTHON").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv-ref/bin/python"),
        PathBuf::from,
    );
    if python.exists() {
        return Some(python);
    }
    assert_eq!(
        std::env::var("ARPO_NO_REF").as_deref(),
        Ok("1"),
        "{} is missing: `just setup-ref` makes it; ARPO_NO_REF=1 skips what needs transformers",
        python.display()
    );
    println!("skipped: {test} (ARPO_NO_REF=1)");
    None
}

/// Runs the reference script.
fn run_reference(python: &Path, args: &[&Path]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/model/reference.py");
    let out = Command::new(python)
        .arg(script)
        .args(args)
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
}

/// Inputs and results as the reference wrote them.
struct Reference {
    tensors: HashMap<String, Tensor>,
}

impl Reference {
    /// Runs `transformers` on a checkpoint.
    fn of(python: &Path, checkpoint: &Path, out: &Path) -> Self {
        run_reference(python, &[Path::new("run"), checkpoint, out]);
        Self::read(out)
    }

    fn read(out: &Path) -> Self {
        let tensors = Tensor::read_safetensors(out).unwrap().into_iter().collect();
        Self { tensors }
    }

    fn get(&self, name: &str) -> &Tensor {
        &self.tensors[name]
    }

    fn grids(&self) -> Vec<[i64; 3]> {
        let flat: Vec<i64> = Vec::try_from(self.get("grid_thw").reshape([-1])).unwrap();
        flat.chunks(3)
            .map(|grid| [grid[0], grid[1], grid[2]])
            .collect()
    }

    fn ids(&self) -> Vec<u32> {
        let ids: Vec<i64> = Vec::try_from(self.get("input_ids").get(0)).unwrap();
        ids.into_iter().map(|id| id as u32).collect()
    }

    fn position_ids(&self, config: &ModelConfig) -> Tensor {
        rope::rope_index(config, &[(&self.ids(), &self.grids())]).unwrap()
    }
}

/// A forward pass as the trainer does it.
struct Forward {
    features: Tensor,
    logits: Tensor,
    logprobs: Tensor,
}

fn forward(weights: &Weights, reference: &Reference, position_ids: &Tensor) -> Forward {
    let features = vision::encode(weights, reference.get("pixel_values"), &reference.grids());
    forward_features(weights, reference, position_ids, features)
}

fn forward_features(
    weights: &Weights,
    reference: &Reference,
    position_ids: &Tensor,
    features: Tensor,
) -> Forward {
    let ids = reference.get("input_ids");
    let embeds = embed(weights, ids, &features);
    let hidden = text::forward(weights, &embeds, position_ids, Attention::Causal);
    let logits = lm_head(weights, &hidden.get(0)); // [seq, vocab]
    let seq = logits.size()[0];
    let targets = ids.get(0).narrow(0, 1, seq - 1).unsqueeze(-1);
    let logprobs = logits
        .narrow(0, 0, seq - 1)
        .log_softmax(-1, Kind::Float)
        .gather(-1, &targets, false)
        .squeeze_dim(-1);
    Forward {
        features,
        logits,
        logprobs,
    }
}

/// Largest difference in standard deviations of the expected values, exact zeros left out: most
/// rows of an embedding's gradient belong to tokens that do not occur.
fn relative_error(actual: &Tensor, expected: &Tensor) -> f64 {
    assert_eq!(actual.numel(), expected.numel());
    let difference = actual.reshape([-1]) - expected.reshape([-1]);
    let std = expected
        .masked_select(&expected.ne(0))
        .std(false)
        .double_value(&[]);
    difference.abs().max().double_value(&[]) / std
}

#[track_caller]
pub(crate) fn assert_close(what: &str, actual: &Tensor, expected: &Tensor) {
    let error = relative_error(actual, expected);
    println!("{what}: {error:.1e} of the standard deviation");
    assert!(
        error < TOLERANCE,
        "{what} differs by {error:.1e} of its standard deviation"
    );
}

/// A random checkpoint, read by both sides.
fn random_checkpoint(python: &Path, head: &str) -> (tempfile::TempDir, Weights, Reference) {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join("checkpoint");
    let out = folder.path().join("out.safetensors");
    run_reference(
        python,
        &[Path::new("random"), &checkpoint, &out, Path::new(head)],
    );
    let weights = checkpoint::load(&checkpoint, Device::Cpu, Kind::Float).unwrap();
    (folder, weights, Reference::read(&out))
}

/// Compares everything, gradients included.
fn check_parity(weights: &Weights, reference: &Reference) {
    let weights = weights.leaves(|_| true);
    let position_ids = reference.position_ids(&weights.config);
    assert_eq!(&position_ids, reference.get("position_ids"));
    let actual = forward(&weights, reference, &position_ids);
    assert_close("features", &actual.features, reference.get("features"));
    assert_close("logits", &actual.logits, reference.get("logits"));
    assert_close("logprobs", &actual.logprobs, reference.get("logprobs"));
    let loss_weights = reference.get("loss_weights").get(0);
    (-(loss_weights * actual.logprobs).sum(Kind::Float)).backward();
    let mut worst = 0.0_f64;
    for (name, tensor) in weights.named() {
        let expected = reference
            .tensors
            .iter()
            .find_map(|(other, grad)| {
                let other = other.strip_prefix("grad.")?;
                let hub = other.replacen("model.language_model.", "model.", 1);
                (hub.replacen("model.visual.", "visual.", 1) == *name).then_some(grad)
            })
            .unwrap_or_else(|| panic!("the reference has no gradient of {name}"));
        let error = relative_error(&tensor.grad(), expected);
        worst = worst.max(error);
        assert!(
            error < TOLERANCE,
            "gradient of {name} differs by {error:.1e}"
        );
    }
    println!("gradients: at most {worst:.1e} of the standard deviation");
}

#[test]
fn a_tied_checkpoint_computes_what_transformers_computes() {
    let Some(python) = reference_python("tied parity") else {
        return;
    };
    let (_folder, weights, reference) = random_checkpoint(&python, "tied");
    assert!(weights.lm_head.is_none());
    check_parity(&weights, &reference);
}

#[test]
fn an_untied_checkpoint_computes_what_transformers_computes() {
    let Some(python) = reference_python("untied parity") else {
        return;
    };
    let (_folder, weights, reference) = random_checkpoint(&python, "untied");
    assert!(weights.lm_head.is_some());
    check_parity(&weights, &reference);
}

#[test]
fn transformers_loads_what_we_write() {
    let Some(python) = reference_python("saved checkpoint parity") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let weights = tiny_weights(3);
    checkpoint::save(&weights, folder.path(), Kind::Float).unwrap();
    let reference = Reference::of(
        &python,
        folder.path(),
        &folder.path().join("out.safetensors"),
    );
    check_parity(&weights, &reference);
}

#[test]
fn planted_mistakes_do_not_pass_for_rounding() {
    let Some(python) = reference_python("planted mistakes") else {
        return;
    };
    let (_folder, weights, reference) = random_checkpoint(&python, "tied");
    let position_ids = reference.position_ids(&weights.config);
    let pixels = reference.get("pixel_values");
    let encode =
        |weights: &Weights, pixels: &Tensor| vision::encode(weights, pixels, &reference.grids());
    let features = encode(&weights, pixels);
    let logits = |weights: &Weights, position_ids: &Tensor, features: &Tensor| {
        forward_features(weights, &reference, position_ids, features.shallow_clone()).logits
    };
    let swapped_axes = position_ids.index_select(0, &Tensor::from_slice(&[0_i64, 2, 1]));
    let no_windows = with_config(&weights, "[\n      1,\n      3\n    ]", "[0, 1, 2, 3]");
    let transposed_units = pixels
        .reshape([-1, 4, pixels.size()[1]])
        .index_select(1, &Tensor::from_slice(&[0_i64, 2, 1, 3]))
        .reshape_as(pixels);
    let mutants = [
        ("axes swapped", logits(&weights, &swapped_axes, &features)),
        (
            "windows dropped",
            logits(&weights, &position_ids, &encode(&no_windows, pixels)),
        ),
        (
            "groups interleaved",
            logits(&interleave_groups(&weights), &position_ids, &features),
        ),
        (
            "units transposed",
            logits(
                &weights,
                &position_ids,
                &encode(&weights, &transposed_units),
            ),
        ),
        (
            "merged patches reversed",
            logits(&weights, &position_ids, &features.flip([0])),
        ),
    ];
    for (mutation, mutant) in mutants {
        let error = relative_error(&mutant, reference.get("logits"));
        println!("{mutation}: {error:.1e}");
        assert!(
            100.0 * TOLERANCE < error,
            "{mutation} differs by only {error:.1e}"
        );
    }
}

/// The same tensors under a configuration with one line changed.
fn with_config(weights: &Weights, from: &str, to: &str) -> Weights {
    let json = weights.config.to_json();
    assert!(json.contains(from), "{from} not in {json}");
    let config = ModelConfig::parse(&json.replace(from, to)).unwrap();
    let tensors = weights
        .named()
        .iter()
        .map(|(name, tensor)| (name.clone(), tensor.shallow_clone()));
    Weights::from_tensors(Arc::new(config), weights.version, tensors.collect()).unwrap()
}

/// Query heads 0 and 2 on the first key head, 1 and 3 on the second, as a wrong `repeat` pairs.
fn interleave_groups(weights: &Weights) -> Weights {
    let order = Tensor::from_slice(&[0_i64, 2, 1, 3]);
    let head_dim = weights.config.text.head_dim();
    weights.map(|name, tensor| {
        let permute_rows = |rows: &Tensor| {
            let mut shape = rows.size();
            shape.splice(0..1, [4, head_dim]);
            rows.reshape(&shape)
                .index_select(0, &order)
                .reshape_as(rows)
        };
        match name {
            _ if name.contains("q_proj") => permute_rows(tensor),
            _ if name.contains("o_proj") => permute_rows(&tensor.tr()).tr(),
            _ => tensor.shallow_clone(),
        }
    })
}

#[test]
fn equal_windows_take_the_same_values_as_ragged_ones() {
    let weights = tiny_weights(1);
    let whole = Tensor::randn([192, 1176], (Kind::Float, Device::Cpu));
    let ragged = Tensor::randn([60, 1176], (Kind::Float, Device::Cpu));
    let alone = vision::encode(&weights, &whole, &[[1, 12, 16]]);
    let together = vision::encode(
        &weights,
        &Tensor::cat(&[&ragged, &whole, &whole], 0),
        &[[1, 10, 6], [1, 12, 16], [1, 12, 16]],
    );
    assert_close("second picture", &together.narrow(0, 15, 48), &alone);
    assert_close("third picture", &together.narrow(0, 63, 48), &alone);
    let small = vision::encode(&weights, &ragged, &[[1, 10, 6]]);
    assert_close("first picture", &together.narrow(0, 0, 15), &small);
}

#[test]
fn a_padded_or_packed_row_equals_a_separate_one() {
    let weights = tiny_weights(1);
    let rows: [Vec<u32>; 2] = [(10..40).collect(), (100..117).collect()];
    let alone: Vec<Tensor> = rows
        .iter()
        .map(|row| forward_text(&weights, &[row]))
        .collect();
    let padded = forward_text(&weights, &[&rows[0], &rows[1]]);
    assert_close("long row", &padded.get(0), &alone[0].get(0));
    assert_close(
        "padded row",
        &padded.get(1).narrow(0, 0, 17),
        &alone[1].get(0),
    );

    let owner = Tensor::from_slice(&[[0_i64; 30].as_slice(), &[1; 17]].concat());
    let causal = Tensor::ones([47, 47], (Kind::Bool, Device::Cpu)).tril(0);
    let mask = owner
        .unsqueeze(0)
        .eq_tensor(&owner.unsqueeze(1))
        .logical_and(&causal);
    let packed = packed_text(&weights, &rows, &mask.unsqueeze(0).unsqueeze(0));
    assert_close("first packed", &packed.narrow(0, 0, 30), &alone[0].get(0));
    assert_close("second packed", &packed.narrow(0, 30, 17), &alone[1].get(0));
}

#[test]
fn states_at_few_places_and_their_gradients_are_those_of_a_whole_forward() {
    let weights = tiny_weights(1).leaves(|_| true);
    let options = (Kind::Float, Device::Cpu);
    let embeds = Tensor::randn([2, 20, 128], options);
    let position_ids = Tensor::arange(20, (Kind::Int64, Device::Cpu)).expand([3, 2, 20], false);
    let places = Tensor::from_slice(&[3_i64, 19, 20, 31]);
    let (attention, at) = (Attention::Causal, |x: &Tensor| {
        x.flatten(0, 1).index_select(0, &places)
    });
    let whole = at(&text::forward(&weights, &embeds, &position_ids, attention));
    let few = text::forward_at(&weights, &embeds, &position_ids, attention, &places);
    assert_close("states", &few, &whole);

    let first = &weights.text.layers[0];
    let last = weights.text.layers.last().unwrap();
    let params = [
        &first.q_proj.weight,
        &last.k_proj.weight,
        &last.o_proj.weight,
        &last.mlp.down_proj.weight,
    ];
    let pull = Tensor::randn(whole.size(), options);
    let grads = |states: &Tensor| {
        let sum = (states * &pull).sum(Kind::Float);
        Tensor::run_backward(&[&sum], &params, false, false)
    };
    for (few, whole) in grads(&few).iter().zip(&grads(&whole)) {
        assert_close("gradient", few, whole);
    }
}

/// States of texts, one a row, padded on the right.
fn forward_text(weights: &Weights, rows: &[&Vec<u32>]) -> Tensor {
    let longest = rows.iter().map(|row| row.len()).max().unwrap();
    let inputs: Vec<(&[u32], &[[i64; 3]])> = rows
        .iter()
        .map(|row| (row.as_slice(), [].as_slice()))
        .collect();
    let position_ids = rope::rope_index(&weights.config, &inputs).unwrap();
    let ids: Vec<i64> = rows
        .iter()
        .flat_map(|row| (0..longest).map(|i| row.get(i).map_or(0, |id| i64::from(*id))))
        .collect();
    let ids = Tensor::from_slice(&ids).reshape([rows.len() as i64, longest as i64]);
    let embeds = embed(
        weights,
        &ids,
        &Tensor::zeros([0, 128], (Kind::Float, Device::Cpu)),
    );
    text::forward(weights, &embeds, &position_ids, Attention::Causal)
}

/// States of texts side by side in one row, `[seq, hidden]`.
fn packed_text(weights: &Weights, rows: &[Vec<u32>], mask: &Tensor) -> Tensor {
    let ids: Vec<i64> = rows.iter().flatten().map(|id| i64::from(*id)).collect();
    let positions: Vec<[i64; 3]> = rows
        .iter()
        .flat_map(|row| (0..row.len() as i64).map(|i| [i; 3]))
        .collect();
    let ids = Tensor::from_slice(&ids).unsqueeze(0);
    let embeds = embed(
        weights,
        &ids,
        &Tensor::zeros([0, 128], (Kind::Float, Device::Cpu)),
    );
    let position_ids = rope::position_tensor(&[&positions]);
    text::forward(weights, &embeds, &position_ids, Attention::Masked(mask)).get(0)
}

#[test]
fn positions_appended_in_pieces_equal_positions_at_once() {
    let config = ModelConfig::parse(CONFIG).unwrap();
    let picture = [vec![3], vec![6; 48], vec![4, 20]].concat();
    let grid = [1, 12, 16];
    let mut cursor = PositionCursor::default();
    let mut pieces = cursor.extend(&config, &[10, 11], &[]).unwrap();
    pieces.extend(cursor.extend(&config, &picture, &[grid]).unwrap());
    pieces.extend(cursor.extend(&config, &picture, &[grid]).unwrap());
    let all = [&[10, 11][..], &picture, &picture].concat();
    let mut whole = PositionCursor::default();
    assert_eq!(pieces, whole.extend(&config, &all, &[grid, grid]).unwrap());
    // 2 tokens, then twice: start, picture (8 wide), end, one token.
    assert_eq!(cursor.next(), 2 + 2 * (1 + 8 + 2));
}

#[test]
fn prompts_that_do_not_fit_their_images_are_refused() {
    let config = ModelConfig::parse(CONFIG).unwrap();
    let check = |ids: &[u32], grids: &[[i64; 3]], part: &str| {
        let mut cursor = PositionCursor::default();
        let error = cursor.extend(&config, ids, grids).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert_eq!(cursor, PositionCursor::default());
    };
    check(
        &[3, 6, 6, 4],
        &[[1, 4, 4]],
        "4 merged patches has 2 placeholders",
    );
    check(&[3, 6, 4], &[], "more than the 0 images");
    check(&[10, 11], &[[1, 4, 4]], "1 images have no placeholders");
}

#[test]
fn checkpoints_keep_their_weights_in_every_kind_and_spelling() {
    let folder = tempfile::tempdir().unwrap();
    let weights = tiny_weights(5);
    for kind in [Kind::Float, Kind::BFloat16, Kind::Half] {
        checkpoint::save(&weights, folder.path(), kind).unwrap();
        let loaded = checkpoint::load(folder.path(), Device::Cpu, Kind::Float).unwrap();
        assert_eq!(loaded.config, weights.config);
        for ((name, saved), (_, read)) in weights.named().iter().zip(loaded.named()) {
            let rounded = saved.to_kind(kind).to_kind(Kind::Float);
            assert_eq!(&rounded, read, "{name} in {kind:?}");
        }
    }
    let respelled: Vec<(String, Tensor)> = weights
        .named()
        .iter()
        .map(|(name, tensor)| {
            let name = name.replacen("model.", "model.language_model.", 1);
            (
                name.replacen("visual.", "model.visual.", 1),
                tensor.shallow_clone(),
            )
        })
        .collect();
    Tensor::write_safetensors(&respelled, folder.path().join("model.safetensors")).unwrap();
    let loaded = checkpoint::load(folder.path(), Device::Cpu, Kind::Float).unwrap();
    assert_eq!(
        loaded.get("model.norm.weight"),
        weights.get("model.norm.weight")
    );
}

#[test]
fn unusable_checkpoints_say_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let check = |part: &str| {
        let error = checkpoint::load(folder.path(), Device::Cpu, Kind::Float).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    };
    check("cannot read");
    checkpoint::save(&tiny_weights(1), folder.path(), Kind::Half).unwrap();
    let config = folder.path().join("config.json");
    std::fs::write(
        &config,
        CONFIG.replace("\"intermediate_size\": 384", "\"intermediate_size\": 256"),
    )
    .unwrap();
    check("model.layers.0.mlp.gate_proj.weight has shape [384, 128]");
    std::fs::write(
        &config,
        CONFIG.replace("\"num_hidden_layers\": 4", "\"num_hidden_layers\": 5"),
    )
    .unwrap();
    check("model.layers.4.input_layernorm.weight is missing");
    std::fs::write(&config, CONFIG.replace("\"default\"", "\"yarn\"")).unwrap();
    check("rope_type yarn is not supported");
    std::fs::write(&config, CONFIG).unwrap();
    std::fs::write(folder.path().join("model.safetensors"), "cut short").unwrap();
    check("model.safetensors: ");
}

#[test]
fn old_and_new_configuration_layouts_mean_the_same() {
    let new = ModelConfig::parse(CONFIG).unwrap();
    let mut flat: serde_json::Value = serde_json::from_str(CONFIG).unwrap();
    let mut text = flat["text_config"].take();
    text["model_type"].take();
    let root = flat.as_object_mut().unwrap();
    root.remove("text_config");
    for (key, value) in text.as_object().unwrap() {
        if key != "model_type" && key != "rope_parameters" {
            root.insert(key.clone(), value.clone());
        }
    }
    root.insert("rope_theta".into(), 1000.0.into());
    let scaling = serde_json::json!({"type": "mrope", "mrope_section": [4, 6, 6]});
    root.insert("rope_scaling".into(), scaling);
    let old = ModelConfig::parse(&flat.to_string()).unwrap();
    assert_eq!((old.text, old.vision), (new.text, new.vision));
    assert_eq!(old.tie_word_embeddings, new.tie_word_embeddings);
}

#[test]
fn fresh_weights_are_reproducible_and_of_the_asked_spread() {
    let config = Arc::new(ModelConfig::parse(CONFIG).unwrap());
    let weights = Weights::random(Arc::clone(&config), 7);
    assert_eq!(
        weights
            .named()
            .iter()
            .map(|(_, tensor)| tensor.numel())
            .sum::<usize>(),
        1_286_464
    );
    let again = Weights::random(Arc::clone(&config), 7);
    assert_eq!(weights.text.embed_tokens, again.text.embed_tokens);
    let std = weights.text.embed_tokens.std(true).double_value(&[]);
    assert!((std - 0.04).abs() < 0.001, "{std}");
    assert_ne!(
        weights.text.embed_tokens,
        Weights::random(config, 8).text.embed_tokens
    );
}

#[test]
fn a_snapshot_does_not_follow_later_updates() {
    let weights = tiny_weights(1);
    let published = weights.snapshot(PolicyVersion(4), |name| name.starts_with("model."));
    let mut norm = weights.text.norm.shallow_clone();
    let _ = norm.fill_(3.0);
    assert_eq!(
        weights.get("model.norm.weight").unwrap().double_value(&[0]),
        3.0
    );
    assert_eq!(published.text.norm.double_value(&[0]), 1.0);
    assert_eq!(published.version, PolicyVersion(4));
    assert_eq!(
        published.visual.patch_embed.data_ptr(),
        weights.visual.patch_embed.data_ptr(),
        "what is not trained is shared"
    );
}
