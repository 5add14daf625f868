//! Routes for files and folders: read, written, fetched, listed; the desktop's own folder and its
//! picture.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Form, Multipart, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, extract::multipart::Field};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio_util::io::ReaderStream;

use super::Desktop;
use super::answer::{Fault, read_json};
use super::exec::{Outcome, Program};
use crate::http;

/// Names of a folder and all below it.
const MAX_ENTRIES: usize = 200_000;

/// Folders within folders; links make loops.
const MAX_DEPTH: usize = 64;

/// How long a server of the web may be silent.
const STALL: Duration = Duration::from_secs(300);

const DOWNLOAD_TRIES: u32 = 3;

/// For `gsettings`.
const SETTINGS_LIMIT: Duration = Duration::from_secs(10);

/// Where GNOME, and what follows it, keeps the desktop's picture.
const PICTURE_KEY: [&str; 2] = ["org.gnome.desktop.background", "picture-uri"];

/// A path with `~` for the home folder.
pub(super) fn expand_home(path: &str) -> String {
    let home = std::env::home_dir().map(|home| home.display().to_string());
    match (path.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => home + rest,
        _ => path.to_owned(),
    }
}

/// A path with `~` for the home folder, and variables. One that is not set stays as it is.
pub(super) fn expand(path: &str) -> String {
    let path = expand_home(path);
    let mut expanded = String::new();
    let mut rest = path.as_str();
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        rest = &rest[at..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end_of_name = || rest[1..].find(|c| !is_name(c)).unwrap_or(rest.len() - 1);
        let (name, len) = match (rest.starts_with("${"), rest.find('}')) {
            (true, Some(end)) => (&rest[2..end], end + 1),
            (true, None) => ("", 1),
            (false, _) => (&rest[1..=end_of_name()], end_of_name() + 1),
        };
        match std::env::var(name) {
            Ok(value) if !name.is_empty() => expanded.push_str(&value),
            _ => expanded.push_str(&rest[..len]),
        }
        rest = &rest[len..];
    }
    expanded + rest
}

#[derive(Debug, Deserialize)]
pub(super) struct FileRequest {
    file_path: Option<String>,
}

/// `POST /file`: a file, as it is sent.
pub(super) async fn file(Form(request): Form<FileRequest>) -> Result<Response, Fault> {
    let Some(path) = request.file_path else {
        return Err(Fault::bad("file_path is required"));
    };
    send(Path::new(&expand(&path))).await
}

pub(super) async fn send(path: &Path) -> Result<Response, Fault> {
    let error = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Fault::missing("File not found"),
        _ => Fault::failed(format!("cannot read {}: {error}", path.display())),
    };
    // A pipe would never end.
    let data = tokio::fs::metadata(path).await.map_err(error)?;
    if !data.is_file() {
        return Err(Fault::failed(format!("{} is no file", path.display())));
    }
    let file = tokio::fs::File::open(path).await.map_err(error)?;
    // No more than was announced: it may grow.
    let stream = ReaderStream::new(tokio::io::AsyncReadExt::take(file, data.len()));
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, data.len().to_string()),
        (header::CONTENT_DISPOSITION, "attachment".to_owned()),
    ];
    Ok((headers, Body::from_stream(stream)).into_response())
}

/// `POST /setup/upload`: a file, with the folders above it.
pub(super) async fn upload(mut form: Multipart) -> Result<String, Fault> {
    let bad = |error: axum::extract::multipart::MultipartError| {
        Fault::new(error.status(), error.body_text())
    };
    let mut path = None;
    while let Some(field) = form.next_field().await.map_err(bad)? {
        match (field.name(), &path) {
            (Some("file_path"), _) => path = Some(expand(&field.text().await.map_err(bad)?)),
            (Some("file_data"), Some(path)) => {
                let bytes = receive(field, Path::new(path)).await?;
                return Ok(format!("File Uploaded: {bytes} bytes"));
            }
            (Some("file_data"), None) => break,
            _ => {}
        }
    }
    Err(Fault::bad(
        "Required parameters are missing: file_path, then file_data",
    ))
}

async fn receive(mut data: Field<'_>, path: &Path) -> Result<u64, Fault> {
    let error =
        |error: std::io::Error| Fault::failed(format!("cannot write {}: {error}", path.display()));
    let mut file = create(path).await.map_err(error)?;
    let mut bytes = 0;
    loop {
        match data.chunk().await {
            Ok(Some(chunk)) => {
                file.write_all(&chunk).await.map_err(error)?;
                bytes += chunk.len() as u64;
            }
            Ok(None) => break,
            Err(cut) => return Err(Fault::new(cut.status(), cut.body_text())),
        }
    }
    file.flush().await.map_err(error)?;
    Ok(bytes)
}

async fn create(path: &Path) -> std::io::Result<tokio::fs::File> {
    if let Some(folder) = path.parent() {
        tokio::fs::create_dir_all(folder).await?;
    }
    tokio::fs::File::create(path).await
}

/// `POST /setup/download_file`: a file of the web.
pub(super) async fn download_file(body: Bytes) -> Result<String, Fault> {
    #[derive(Deserialize)]
    struct Request {
        #[serde(default)]
        url: String,
        #[serde(default)]
        path: String,
    }
    let Request { url, path } = read_json(&body)?;
    if url.is_empty() || path.is_empty() {
        return Err(Fault::bad("Path or URL not supplied!"));
    }
    let client = http::web_client(STALL);
    let client = client.map_err(|error| Fault::failed(http::with_causes(&error)))?;
    let path = PathBuf::from(expand(&path));
    let mut reason = String::new();
    for _ in 0..DOWNLOAD_TRIES {
        match fetch(&client, &url, &path).await {
            Ok(()) => return Ok("File downloaded successfully".to_owned()),
            Err(error) => reason = error,
        }
    }
    let _ = tokio::fs::remove_file(&path).await;
    Err(Fault::failed(format!("Failed to download {url}: {reason}")))
}

async fn fetch(client: &reqwest::Client, url: &str, path: &Path) -> Result<(), String> {
    let told = |error: reqwest::Error| http::with_causes(&error);
    let response = client.get(url).send().await.map_err(told)?;
    let mut response = response.error_for_status().map_err(told)?;
    let mut file = create(path).await.map_err(|error| error.to_string())?;
    while let Some(chunk) = response.chunk().await.map_err(told)? {
        let written = file.write_all(&chunk).await;
        written.map_err(|error| error.to_string())?;
    }
    file.flush().await.map_err(|error| error.to_string())
}

/// `POST /list_directory`: a folder and all below it.
pub(super) async fn list_directory(body: Bytes) -> Result<Json<Value>, Fault> {
    #[derive(Deserialize)]
    struct Request {
        path: String,
    }
    let Request { path } = read_json(&body)?;
    // Its name is what stands behind the last slash, as Python has it.
    let path = expand(&path);
    if !Path::new(&path).is_dir() {
        return Err(Fault::bad(format!("{path} is not a directory")));
    }
    let listing = tokio::task::spawn_blocking(move || {
        let name = path.rsplit('/').next().unwrap_or_default();
        let mut left = MAX_ENTRIES;
        folder(Path::new(&path), name, MAX_DEPTH, &mut left)
    });
    let tree = listing.await.ok().flatten();
    let tree = tree.ok_or_else(|| Fault::failed(format!("more than {MAX_ENTRIES} entries")))?;
    Ok(Json(json!({"directory_tree": tree})))
}

/// A folder's content; none where there is too much of it.
fn folder(path: &Path, name: &str, depth: usize, left: &mut usize) -> Option<Value> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) if depth > 0 => entries,
        Ok(_) => return Some(json!({"error": format!("more than {MAX_DEPTH} folders deep")})),
        Err(error) => return Some(json!({"error": error.to_string()})),
    };
    let mut children = Vec::new();
    for entry in entries.flatten() {
        *left = left.checked_sub(1)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        children.push(if path.is_dir() {
            folder(&path, &name, depth - 1, left)?
        } else {
            json!({"type": "file", "name": name})
        });
    }
    Some(json!({"type": "directory", "name": name, "children": children}))
}

/// `POST /desktop_path`.
pub(super) async fn desktop_path() -> Result<Json<Value>, Fault> {
    let path = PathBuf::from(expand("~/Desktop"));
    if !path.is_dir() {
        return Err(Fault::missing("desktop path not found"));
    }
    Ok(Json(json!({"desktop_path": path})))
}

/// `POST /wallpaper`: the file that the desktop shows.
pub(super) async fn wallpaper(State(desktop): State<Arc<Desktop>>) -> Result<Response, Fault> {
    let argv = ["get", PICTURE_KEY[0], PICTURE_KEY[1]];
    let set = desktop.settings(&argv).await?;
    let uri = set.trim().trim_matches('\'');
    match uri.strip_prefix("file://") {
        Some(path) => send(Path::new(path)).await,
        None => Err(Fault::missing(format!(
            "the desktop shows no file: {uri:?}"
        ))),
    }
}

/// `POST /setup/change_wallpaper`.
pub(super) async fn change_wallpaper(
    State(desktop): State<Arc<Desktop>>,
    body: Bytes,
) -> Result<String, Fault> {
    #[derive(Deserialize)]
    struct Request {
        #[serde(default)]
        path: String,
    }
    let Request { path } = read_json(&body)?;
    if path.is_empty() {
        return Err(Fault::bad("Path not supplied!"));
    }
    let path = expand(&path);
    if !Path::new(&path).exists() {
        return Err(Fault::missing(format!("File not found: {path}")));
    }
    let uri = format!("file://{path}");
    desktop
        .settings(&["set", PICTURE_KEY[0], PICTURE_KEY[1], &uri])
        .await?;
    Ok("Wallpaper changed successfully".to_owned())
}

impl Desktop {
    async fn settings(&self, arguments: &[&str]) -> Result<String, Fault> {
        let argv = std::iter::once(&"gsettings").chain(arguments);
        let program = Program {
            argv: argv.map(|&word| word.to_owned()).collect(),
            folder: None,
            display: self.display.name().to_owned(),
        };
        let outcome = program.run(SETTINGS_LIMIT).await;
        match outcome.map_err(|error| Fault::failed(error.to_string()))? {
            Outcome {
                code: 0, stdout, ..
            } => Ok(stdout),
            Outcome { stderr, .. } => Err(Fault::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("gsettings: {}", stderr.trim()),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn paths_are_expanded_as_python_does() {
        let home = std::env::var("HOME").unwrap();
        let table = [
            ("~", home.clone()),
            ("~/a~/b", format!("{home}/a~/b")),
            ("$HOME/é", format!("{home}/é")),
            ("${HOME}x$HOME", format!("{home}x{home}")),
            ("/a/~", "/a/~".to_owned()),
            (
                "$NO_SUCH_VARIABLE/${x$",
                "$NO_SUCH_VARIABLE/${x$".to_owned(),
            ),
            ("~no_such_user/a", "~no_such_user/a".to_owned()),
        ];
        for (path, expected) in table {
            assert_eq!(expand(path), expected, "{path}");
        }
    }
}
