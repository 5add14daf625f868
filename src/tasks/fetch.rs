//! Fetching files into the cache: several at once, each gone on with where it was cut.
//!
//! A cut transfer is gone on with by a range, tied to the version begun with (`If-Range`); a server
//! that ignores ranges, or has another version, begins anew. What a second try cannot change (404)
//! is not tried again. Contents are hashed when they are whole, and never executed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use reqwest::header::{
    CONTENT_ENCODING, CONTENT_RANGE, ETAG, HeaderMap, IF_RANGE, LAST_MODIFIED, RANGE, RETRY_AFTER,
};
use reqwest::{Client, Response, StatusCode};
use serde::{Deserialize, Serialize};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use crate::http;
use crate::store::StoreError;
use crate::tasks::cache::{FileRecord, FillingCache, hash_file};
use crate::tasks::{FileState, Manifest, TasksError};

/// The server that a mirror takes the place of.
const MIRRORED: &str = "https://huggingface.co";

/// Longest wait before another try, whatever a server asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How files are fetched.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// Server to ask in place of Hugging Face's, without the path.
    pub base_url: Option<String>,
    /// Transfers at a time.
    pub jobs: usize,
    /// Tries a file.
    pub tries: u32,
    /// Wait before the second try; doubled before each further one.
    pub backoff: Duration,
    /// How long a server may be silent.
    pub stall: Duration,
    /// What contents have to be, where known.
    pub pinned: Manifest,
}

/// What happens while files are fetched.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A file was there before.
    Present {
        /// Which.
        url: &'a str,
    },
    /// So many bytes came.
    Bytes(u64),
    /// A try failed; another follows.
    Retry {
        /// Of which file.
        url: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// A file is whole and in the cache.
    Done {
        /// Which.
        url: &'a str,
    },
    /// A file does not come.
    Failed {
        /// Which.
        url: &'a str,
        /// Why.
        reason: &'a str,
    },
}

/// What became of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchReport {
    /// Files that were there before.
    pub present: usize,
    /// Files that came.
    pub fetched: usize,
    /// Bytes that came, those of cut tries included.
    pub bytes: u64,
    /// Addresses that did not come, and why.
    pub failed: Vec<(String, String)>,
}

/// Why a try failed.
#[derive(Debug)]
enum Failure {
    /// Another try may do better, after this time if the server asks for one.
    Passing(String, Option<Duration>),
    /// No try will.
    Final(String),
    /// This machine's disk, not the server.
    Store(StoreError),
}

/// What an unfinished download is of: notes beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Notes {
    /// `ETag` or date of the version begun with; absent where the server gives none that counts.
    validator: Option<String>,
    /// Length of the whole.
    total: Option<u64>,
}

/// Fetches what of `urls` is not in the cache yet. One file's failure stops no other; a full disk
/// stops all.
pub async fn fetch(
    filling: &mut FillingCache,
    urls: &[String],
    options: &FetchOptions,
    progress: &dyn Fn(Progress<'_>),
) -> Result<FetchReport, TasksError> {
    let client = http::web_client(options.stall).map_err(TasksError::Client)?;
    let mut report = FetchReport::default();
    let mut jobs = Vec::new();
    for url in urls {
        if is_present(filling, url, options)? {
            report.present += 1;
            progress(Progress::Present { url });
            continue;
        }
        jobs.push(Transfer {
            client: &client,
            url,
            part: filling.partial(url, "part")?,
            notes: filling.partial(url, "json")?,
            options,
            progress,
        });
    }
    let running = futures::stream::iter(jobs).map(Transfer::run);
    let mut running = running.buffer_unordered(options.jobs.max(1));
    while let Some((transfer, bytes, result)) = running.next().await {
        report.bytes += bytes;
        let url = transfer.url;
        match result {
            Ok(record) => {
                filling.add(url, record, &transfer.part)?;
                let _ = fs::remove_file(&transfer.notes);
                report.fetched += 1;
                progress(Progress::Done { url });
            }
            Err(Failure::Store(error)) => return Err(error.into()),
            Err(Failure::Passing(reason, _) | Failure::Final(reason)) => {
                let reason = &reason;
                progress(Progress::Failed { url, reason });
                report.failed.push((url.to_owned(), reason.clone()));
            }
        }
    }
    report.failed.sort();
    Ok(report)
}

/// Whether the file is there and what it has to be. It is read for that: fetching repairs.
fn is_present(
    filling: &FillingCache,
    url: &str,
    options: &FetchOptions,
) -> Result<bool, TasksError> {
    let cache = filling.cache();
    let against = if options.pinned.files.contains_key(url) {
        &options.pinned
    } else {
        cache.manifest()
    };
    Ok(cache.verify(url, against)? == FileState::Good)
}

/// The address to ask: that of the mirror, if there is one and it has the file.
fn mirrored(url: &str, base_url: Option<&str>) -> String {
    match (base_url, url.strip_prefix(MIRRORED)) {
        (Some(base), Some(path)) => format!("{}{path}", base.trim_end_matches('/')),
        _ => url.to_owned(),
    }
}

/// One file on its way.
struct Transfer<'a> {
    client: &'a Client,
    url: &'a str,
    part: PathBuf,
    notes: PathBuf,
    options: &'a FetchOptions,
    progress: &'a dyn Fn(Progress<'_>),
}

impl Transfer<'_> {
    /// Tries until the file is whole. Returns the bytes that came, too.
    async fn run(self) -> (Self, u64, Result<FileRecord, Failure>) {
        let mut bytes = 0;
        let mut wait = self.options.backoff;
        for number in 1.. {
            let failure = match self.attempt(&mut bytes).await {
                Ok(record) => return (self, bytes, Ok(record)),
                Err(failure) => failure,
            };
            match failure {
                Failure::Passing(reason, asked) if number < self.options.tries => {
                    let (url, reason) = (self.url, reason.as_str());
                    (self.progress)(Progress::Retry { url, reason });
                    tokio::time::sleep(asked.unwrap_or(wait).min(LONGEST_WAIT)).await;
                    wait *= 2;
                }
                failure => return (self, bytes, Err(failure)),
            }
        }
        unreachable!("the loop has no end of its own")
    }

    async fn attempt(&self, bytes: &mut u64) -> Result<FileRecord, Failure> {
        let notes = self.read_notes();
        let have = match &notes.validator {
            Some(_) => self.part.metadata().map_or(0, |file| file.len()),
            None => 0,
        };
        let mut request = self
            .client
            .get(mirrored(self.url, self.options.base_url.as_deref()));
        if let (Some(validator), 1..) = (&notes.validator, have) {
            request = request
                .header(RANGE, format!("bytes={have}-"))
                .header(IF_RANGE, validator);
        }
        let response = request.send().await.map_err(|error| passing(&error))?;
        let (start, total) = self.begin(&response, have, &notes)?;
        self.receive(response, start, total, bytes).await?;
        self.finish().await
    }

    /// Where the content goes on, and its whole length; makes the notes for the next try.
    fn begin(
        &self,
        response: &Response,
        have: u64,
        notes: &Notes,
    ) -> Result<(u64, Option<u64>), Failure> {
        let headers = response.headers();
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let range = content_range(headers);
                let fits = |(start, total)| start == have && Some(total) == notes.total;
                let Some((start, total)) = range.filter(|range| fits(*range)) else {
                    self.forget();
                    return Err(again(
                        "the server answered with another range than asked for",
                    ));
                };
                Ok((start, Some(total)))
            }
            StatusCode::OK => {
                check_encoding(headers)?;
                let total = response.content_length();
                if total.is_none() && !http::has_own_end(response) {
                    let reason = "the server does not say how long the file is";
                    return Err(Failure::Final(reason.to_owned()));
                }
                let validator = validator(headers);
                self.write_notes(&Notes { validator, total })?;
                Ok((0, total))
            }
            StatusCode::RANGE_NOT_SATISFIABLE => {
                self.forget();
                Err(again("the server has less of the file than came before"))
            }
            status => Err(refusal(status, headers)),
        }
    }

    async fn receive(
        &self,
        mut response: Response,
        start: u64,
        total: Option<u64>,
        bytes: &mut u64,
    ) -> Result<(), Failure> {
        let store = |error| Failure::Store(StoreError::io("write", &self.part)(error));
        let mut options = File::options();
        // Appending and truncating exclude each other.
        let options = if start > 0 {
            options.append(true)
        } else {
            options.create(true).write(true).truncate(true)
        };
        let mut file = options.open(&self.part).await.map_err(store)?;
        let mut have = start;
        let ended = loop {
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    file.write_all(&chunk).await.map_err(store)?;
                    have += chunk.len() as u64;
                    *bytes += chunk.len() as u64;
                    (self.progress)(Progress::Bytes(chunk.len() as u64));
                }
                Ok(None) => break Ok(()),
                // What came is kept for the next try.
                Err(error) => break Err(passing(&error)),
            }
        };
        file.flush().await.map_err(store)?;
        ended?;
        if total.is_some_and(|total| have != total) {
            self.forget();
            return Err(again(&format!(
                "{have} bytes came of {}",
                total.unwrap_or(0)
            )));
        }
        Ok(())
    }

    /// Hashes the whole and compares it with what it has to be.
    async fn finish(&self) -> Result<FileRecord, Failure> {
        let part = self.part.clone();
        let hashed = tokio::task::spawn_blocking(move || hash_file(&part)).await;
        let record = hashed
            .expect("hashing does not panic")
            .map_err(Failure::Store)?;
        match self.options.pinned.files.get(self.url) {
            Some(pinned) if *pinned != record => {
                self.forget();
                Err(again(&format!(
                    "its content is not the pinned one: {} bytes of hash {} instead of {} of {}",
                    record.bytes, record.blake3, pinned.bytes, pinned.blake3
                )))
            }
            _ => Ok(record),
        }
    }

    fn read_notes(&self) -> Notes {
        let text = fs::read(&self.notes).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn write_notes(&self, notes: &Notes) -> Result<(), Failure> {
        // The old part goes first: notes must never speak of another version's bytes.
        let _ = fs::remove_file(&self.part);
        let text = serde_json::to_vec(notes).expect("texts and numbers are always JSON");
        fs::write(&self.notes, text)
            .map_err(|error| Failure::Store(StoreError::io("write", &self.notes)(error)))
    }

    /// Begins anew at the next try.
    fn forget(&self) {
        remove(&self.notes);
        remove(&self.part);
    }
}

fn remove(path: &Path) {
    // It may not be there.
    let _ = fs::remove_file(path);
}

fn again(reason: &str) -> Failure {
    Failure::Passing(reason.to_owned(), None)
}

/// A failed connection or a cut one.
fn passing(error: &reqwest::Error) -> Failure {
    Failure::Passing(http::with_causes(error), None)
}

/// What a status that is no success means.
fn refusal(status: StatusCode, headers: &HeaderMap) -> Failure {
    let reason = format!("the server answered {status}");
    let is_passing = status.is_server_error()
        || [
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::TOO_EARLY,
            StatusCode::TOO_MANY_REQUESTS,
        ]
        .contains(&status);
    if !is_passing {
        return Failure::Final(reason);
    }
    let asked = headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    let seconds = asked.and_then(|seconds| seconds.trim().parse().ok());
    Failure::Passing(reason, seconds.map(Duration::from_secs))
}

/// Start and whole length of `bytes START-END/TOTAL`.
fn content_range(headers: &HeaderMap) -> Option<(u64, u64)> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.parse().ok()?, total.parse().ok()?))
}

/// What tells versions of a file apart; a weak tag does not tell them byte by byte.
fn validator(headers: &HeaderMap) -> Option<String> {
    let tag = headers.get(ETAG).and_then(|value| value.to_str().ok());
    let strong = tag.filter(|tag| !tag.starts_with("W/"));
    let date = || headers.get(LAST_MODIFIED)?.to_str().ok();
    strong.or_else(date).map(str::to_owned)
}

/// None was asked for; what comes encoded would be kept encoded.
fn check_encoding(headers: &HeaderMap) -> Result<(), Failure> {
    match headers.get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => Err(Failure::Final(format!(
            "the server sends it encoded ({encoding:?}), which nobody asked for"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_takes_the_place_of_one_server_only() {
        let table = [
            (
                "https://huggingface.co/a/b%23c",
                Some("http://m:1/x/"),
                "http://m:1/x/a/b%23c",
            ),
            ("https://huggingface.co/a", None, "https://huggingface.co/a"),
            (
                "https://example.org/a",
                Some("http://m"),
                "https://example.org/a",
            ),
        ];
        for (url, base, expected) in table {
            assert_eq!(mirrored(url, base), expected);
        }
    }

    #[test]
    fn ranges_are_read_or_refused() {
        let table = [
            ("bytes 10-19/20", Some((10, 20))),
            ("bytes 10-19/*", None),
            ("bytes */20", None),
            ("items 1-2/3", None),
        ];
        for (text, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_RANGE, text.parse().expect("a header's text"));
            assert_eq!(content_range(&headers), expected, "{text}");
        }
    }
}
