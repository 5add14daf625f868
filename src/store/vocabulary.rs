//! The texts of the policy's tokens: `vocabulary`, once a run, so that whoever reads the run's
//! tokens needs no tokenizer.
//!
//! Body of the sealed file:
//!
//! ```text
//! u32 n  u32 end × n  bytes       text of id i: bytes[end[i - 1]..end[i]]
//! ```
//!
//! Texts are bytes: a character may be spread over several tokens.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::store::atomic::{self, Durability};
use crate::store::sealed::{Body, Seal};
use crate::store::{RunDir, StoreError};

const SEAL: Seal = Seal {
    name: b"ARPOVOCA",
    version: 1,
    what: "vocabulary",
};

impl RunDir {
    /// Stores the texts of all tokens by id, in the place of what was there.
    pub fn put_vocabulary(&self, texts: &[Vec<u8>]) -> Result<(), StoreError> {
        let mut body = length(texts.len()).to_le_bytes().to_vec();
        let mut end = 0;
        for text in texts {
            end += text.len();
            body.extend(length(end).to_le_bytes());
        }
        body.extend(texts.iter().flatten());
        let path = self.vocabulary_path();
        atomic::write(&path, &SEAL.seal(&body), Durability::Process)
    }

    /// Texts of tokens, an empty one for an id that there is not; `None` where the run has no
    /// vocabulary, as those of older versions.
    pub(super) fn texts_of(&self, ids: &[u32]) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
        let path = self.vocabulary_path();
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(StoreError::io("read", &path))?,
        };
        let (ends, texts) = parts(SEAL.open(&path, &bytes)?)
            .ok_or_else(|| StoreError::damaged(&path, "its length does not match"))?;
        let text = |id: &u32| {
            let id = *id as usize;
            let start = id
                .checked_sub(1)
                .map_or(Some(0), |before| ends.get(before).copied());
            let range = start? as usize..*ends.get(id)? as usize;
            texts.get(range)
        };
        let found = ids.iter().map(|id| text(id).unwrap_or_default().to_vec());
        Ok(Some(found.collect()))
    }

    fn vocabulary_path(&self) -> PathBuf {
        self.root().join("vocabulary")
    }
}

fn parts(mut body: Body<'_>) -> Option<(Vec<u32>, &[u8])> {
    let n = body.u32()? as usize;
    let ends = body.u32s(n)?;
    Some((ends, body.rest()))
}

fn length(value: usize) -> u32 {
    u32::try_from(value).expect("no vocabulary holds 4 GB")
}
