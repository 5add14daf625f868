//! A checkpoint's chat template: finding it and rendering it as `transformers` does.
//!
//! Jinja with trimmed blocks, Python's string and dict methods, loop controls and
//! `raise_exception`. No tools, no documents, no clock.

use std::path::{Path, PathBuf};

use minijinja::{Environment, Error, ErrorKind};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::prompt::PromptError;

const NAME: &str = "chat_template";

/// A compiled chat template and the names of special tokens it may use.
#[derive(Debug)]
pub(super) struct ChatTemplate {
    environment: Environment<'static>,
    token_names: Map<String, Value>,
}

impl ChatTemplate {
    /// Finds the template of the checkpoint in `dir`: a file of its own, or within
    /// `tokenizer_config.json`.
    pub(super) fn open(dir: &Path) -> Result<Self, PromptError> {
        let config_path = dir.join("tokenizer_config.json");
        let config = read_json(&config_path)?.unwrap_or_default();
        let own_file = find_file(dir)?;
        let within = || Some((config_path, from_json(&config[NAME])?));
        let (path, source) = own_file
            .or_else(within)
            .ok_or_else(|| PromptError::NoTemplate {
                dir: dir.to_owned(),
            })?;
        Self::new(source, token_names(&config)).map_err(|error| PromptError::File {
            path,
            reason: describe(&error),
        })
    }

    fn new(source: String, token_names: Map<String, Value>) -> Result<Self, Error> {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function(
            "raise_exception",
            |words: String| -> Result<String, Error> {
                Err(Error::new(ErrorKind::InvalidOperation, words))
            },
        );
        environment.add_template_owned(NAME, source)?;
        Ok(Self {
            environment,
            token_names,
        })
    }

    /// Its source.
    pub(super) fn source(&self) -> String {
        let template = self.environment.get_template(NAME);
        template.map_or_else(|_| String::new(), |template| template.source().to_owned())
    }

    /// The text of a conversation.
    pub(super) fn render(
        &self,
        messages: &impl Serialize,
        add_generation_prompt: bool,
    ) -> Result<String, PromptError> {
        let context = Context {
            messages,
            add_generation_prompt,
            token_names: &self.token_names,
        };
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render(context))
            .map_err(|error| PromptError::Template {
                reason: describe(&error),
            })
    }
}

#[derive(Serialize)]
struct Context<'a, M: Serialize> {
    messages: &'a M,
    add_generation_prompt: bool,
    #[serde(flatten)]
    token_names: &'a Map<String, Value>,
}

/// The template's own files, the newer first.
fn find_file(dir: &Path) -> Result<Option<(PathBuf, String)>, PromptError> {
    let path = dir.join("chat_template.jinja");
    if let Some(source) = read(&path)? {
        return Ok(Some((path, source)));
    }
    let path = dir.join("chat_template.json");
    let value = read_json(&path)?.unwrap_or_default();
    Ok(from_json(&value[NAME]).map(|source| (path, source)))
}

/// One template, or the one called `default` among several.
fn from_json(value: &Value) -> Option<String> {
    match value {
        Value::String(source) => Some(source.clone()),
        Value::Array(all) => all
            .iter()
            .find(|one| one["name"] == "default")
            .and_then(|one| one["template"].as_str())
            .map(str::to_owned),
        _ => None,
    }
}

/// `bos_token` and its kin, which may be strings or objects with a `content`.
fn token_names(config: &Value) -> Map<String, Value> {
    let mut names = Map::new();
    for name in ["bos_token", "eos_token", "pad_token", "unk_token"] {
        let value = &config[name];
        let content = value.as_str().or_else(|| value["content"].as_str());
        if let Some(content) = content {
            names.insert(name.to_owned(), content.into());
        }
    }
    names
}

/// The file's text; `None` if there is no such file.
fn read(path: &Path) -> Result<Option<String>, PromptError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(PromptError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

fn read_json(path: &Path) -> Result<Option<Value>, PromptError> {
    let Some(text) = read(path)? else {
        return Ok(None);
    };
    let value = serde_json::from_str(&text).map_err(|error| PromptError::File {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(Some(value))
}

/// The error with the template's line.
fn describe(error: &Error) -> String {
    match error.line() {
        Some(line) => format!("{error} (line {line})"),
        None => error.to_string(),
    }
}
