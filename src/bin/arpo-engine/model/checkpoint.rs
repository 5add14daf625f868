//! Hugging Face checkpoints: `config.json` and safetensors, one file or shards with an index.
//!
//! Names in any spelling found in the wild are read (`model.language_model.*`,
//! `model.visual.*`, `language_model.model.*`); the hub's are written. 16-bit files become
//! the kind asked for. Tokenizers and processors are files beside, read by `prompt` and
//! `screen`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use arpo::types::PolicyVersion;

use super::qwen2_5_vl::config::ModelConfig;
use super::{ModelError, Weights};

/// The largest file that is written; the hub's own habit.
const MAX_SHARD_BYTES: usize = 5_000_000_000;

/// `model.safetensors.index.json`.
#[derive(Serialize, Deserialize)]
struct ShardIndex {
    metadata: BTreeMap<String, u64>,
    weight_map: BTreeMap<String, String>,
}

/// Reads the checkpoint in `folder` as version 0, onto `device` in `kind`.
pub fn load(folder: &Path, device: Device, kind: Kind) -> Result<Weights, ModelError> {
    let config = Arc::new(load_config(folder)?);
    let mut by_name = HashMap::new();
    for path in weight_files(folder)? {
        let bytes = read(&path)?;
        let file = SafeTensors::deserialize(&bytes).map_err(|e| damaged(&path, e.to_string()))?;
        for (name, view) in file.iter() {
            let tensor =
                Tensor::f_from_data_size(view.data(), &shape_of(&view), kind_of(&view, &path)?)
                    .map_err(|e| damaged(&path, format!("{name}: {e}")))?;
            by_name.insert(hub_name(name), tensor.to_device(device).to_kind(kind));
        }
    }
    Weights::from_tensors(config, PolicyVersion(0), by_name)
        .map_err(|e| damaged(folder, e.to_string()))
}

/// Reads `config.json` of the checkpoint in `folder`.
pub fn load_config(folder: &Path) -> Result<ModelConfig, ModelError> {
    let path = folder.join("config.json");
    let bytes = read(&path)?;
    let text = std::str::from_utf8(&bytes).map_err(|e| damaged(&path, e.to_string()))?;
    ModelConfig::parse(text).map_err(|e| damaged(&path, e.to_string()))
}

/// Writes `config.json` and the weights in `kind` into `folder`, which is made if missing.
/// Each file appears whole or not at all.
pub fn save(weights: &Weights, folder: &Path, kind: Kind) -> Result<(), ModelError> {
    fs::create_dir_all(folder).map_err(|e| io("create", folder, e))?;
    write_whole(
        &folder.join("config.json"),
        weights.config.to_json().as_bytes(),
    )?;
    let shards = split_into_shards(weights, kind);
    if let [only] = shards.as_slice() {
        return write_shard(&folder.join("model.safetensors"), only, kind);
    }
    let mut weight_map = BTreeMap::new();
    for (shard_idx, shard) in shards.iter().enumerate() {
        let file = format!(
            "model-{:05}-of-{:05}.safetensors",
            shard_idx + 1,
            shards.len()
        );
        write_shard(&folder.join(&file), shard, kind)?;
        weight_map.extend(
            shard
                .iter()
                .map(|(name, _)| ((*name).to_owned(), file.clone())),
        );
    }
    let total = weights
        .named()
        .iter()
        .map(|(_, tensor)| bytes_of(tensor, kind) as u64)
        .sum();
    let metadata = BTreeMap::from([("total_size".to_owned(), total)]);
    let index = serde_json::to_vec_pretty(&ShardIndex {
        metadata,
        weight_map,
    })
    .expect("maps of strings and numbers are JSON");
    write_whole(&folder.join("model.safetensors.index.json"), &index)
}

/// A tensor's name as the hub spells it, whichever release wrote it.
fn hub_name(name: &str) -> String {
    const SPELLINGS: [(&str, &str); 4] = [
        ("model.language_model.", "model."),
        ("language_model.model.", "model."),
        ("language_model.lm_head.", "lm_head."),
        ("model.visual.", "visual."),
    ];
    SPELLINGS
        .iter()
        .find_map(|(from, to)| Some(format!("{to}{}", name.strip_prefix(from)?)))
        .unwrap_or_else(|| name.to_owned())
}

/// The checkpoint's weight files: what the index names, else the one file.
fn weight_files(folder: &Path) -> Result<Vec<PathBuf>, ModelError> {
    let index_path = folder.join("model.safetensors.index.json");
    if !index_path.exists() {
        return Ok(vec![folder.join("model.safetensors")]);
    }
    let index: ShardIndex = serde_json::from_slice(&read(&index_path)?)
        .map_err(|e| damaged(&index_path, e.to_string()))?;
    let files: BTreeSet<String> = index.weight_map.into_values().collect();
    Ok(files.into_iter().map(|file| folder.join(file)).collect())
}

/// Tensors in files of at most `MAX_SHARD_BYTES`.
fn split_into_shards(weights: &Weights, kind: Kind) -> Vec<Vec<(&str, &Tensor)>> {
    let mut shards = vec![Vec::new()];
    let mut filled = 0;
    for (name, tensor) in weights.named() {
        let bytes = bytes_of(tensor, kind);
        if MAX_SHARD_BYTES < filled + bytes {
            shards.push(Vec::new());
            filled = 0;
        }
        filled += bytes;
        shards
            .last_mut()
            .expect("starts with one")
            .push((name.as_str(), tensor));
    }
    shards
}

/// Writes one safetensors file.
fn write_shard(path: &Path, shard: &[(&str, &Tensor)], kind: Kind) -> Result<(), ModelError> {
    write_whole(path, &shard_bytes(path, shard, kind)?)
}

/// The content of a file of tensors; `path` only names it in errors.
fn shard_bytes(path: &Path, shard: &[(&str, &Tensor)], kind: Kind) -> Result<Vec<u8>, ModelError> {
    let data: Vec<(&str, Vec<usize>, Vec<u8>)> = shard
        .iter()
        .map(|(name, tensor)| {
            let shape = tensor.size().iter().map(|dim| *dim as usize).collect();
            (*name, shape, raw_bytes(tensor, kind))
        })
        .collect();
    let mut views = Vec::with_capacity(data.len());
    for (name, shape, bytes) in &data {
        let view = TensorView::new(dtype_of(kind, path)?, shape.clone(), bytes)
            .map_err(|e| damaged(path, e.to_string()))?;
        views.push((*name, view));
    }
    // `transformers` refuses files that do not say which framework's layout they hold.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    safetensors::serialize(views, Some(metadata)).map_err(|e| damaged(path, e.to_string()))
}

/// blake3 of the weights' files as `save` writes them in float32, in hex: the hash that a run's
/// checkpoint has of them.
pub fn hash(weights: &Weights) -> Result<String, ModelError> {
    let path = Path::new("model.safetensors");
    let mut hasher = blake3::Hasher::new();
    for shard in split_into_shards(weights, Kind::Float) {
        hasher.update(&shard_bytes(path, &shard, Kind::Float)?);
    }
    Ok(hasher.finalize().to_hex()[..16].to_owned())
}

/// The numbers of a tensor in `kind`, little endian.
fn raw_bytes(tensor: &Tensor, kind: Kind) -> Vec<u8> {
    let tensor = tensor
        .detach()
        .to_device(Device::Cpu)
        .to_kind(kind)
        .contiguous();
    let mut bytes = vec![0; bytes_of(&tensor, kind)];
    tensor.copy_data_u8(&mut bytes, tensor.numel());
    bytes
}

/// Size on disk.
fn bytes_of(tensor: &Tensor, kind: Kind) -> usize {
    tensor.numel() * kind.elt_size_in_bytes()
}

/// Shape as `tch` counts.
fn shape_of(view: &TensorView<'_>) -> Vec<i64> {
    view.shape().iter().map(|dim| *dim as i64).collect()
}

/// The number format of a stored tensor.
fn kind_of(view: &TensorView<'_>, path: &Path) -> Result<Kind, ModelError> {
    match view.dtype() {
        Dtype::F32 => Ok(Kind::Float),
        Dtype::BF16 => Ok(Kind::BFloat16),
        Dtype::F16 => Ok(Kind::Half),
        other => Err(damaged(
            path,
            format!("weights in {other:?} cannot be read; convert them to bf16, f16 or f32"),
        )),
    }
}

/// The number format to store.
fn dtype_of(kind: Kind, path: &Path) -> Result<Dtype, ModelError> {
    match kind {
        Kind::Float => Ok(Dtype::F32),
        Kind::BFloat16 => Ok(Dtype::BF16),
        Kind::Half => Ok(Dtype::F16),
        other => Err(damaged(
            path,
            format!("weights cannot be written as {other:?}"),
        )),
    }
}

/// Reads a file whole.
fn read(path: &Path) -> Result<Vec<u8>, ModelError> {
    fs::read(path).map_err(|e| io("read", path, e))
}

/// Writes beside and renames, so that a kill never leaves half a file under the real name.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ModelError> {
    let partial = path.with_extension("partial");
    let mut file = fs::File::create(&partial).map_err(|e| io("create", &partial, e))?;
    std::io::Write::write_all(&mut file, bytes).map_err(|e| io("write", &partial, e))?;
    file.sync_all().map_err(|e| io("write", &partial, e))?;
    fs::rename(&partial, path).map_err(|e| io("rename", &partial, e))
}

/// An IO error with what was tried.
fn io(action: &'static str, path: &Path, source: std::io::Error) -> ModelError {
    ModelError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}

/// A file whose content does not serve.
fn damaged(path: &Path, message: impl Into<String>) -> ModelError {
    ModelError::Checkpoint {
        path: path.to_owned(),
        message: message.into(),
    }
}
