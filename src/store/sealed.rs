//! Small binary files: a name and a version before what they hold, a checksum behind.
//!
//! ```text
//! 8 bytes of name  u32 version  body  blake3 of all before, 32 bytes
//! ```
//!
//! All numbers are little endian. What the body means is known to whoever seals and opens it.

use std::path::Path;

use crate::store::StoreError;

const CHECKSUM_BYTES: usize = 32;
const HEADER_BYTES: usize = 12;

/// A kind of file.
pub(super) struct Seal {
    /// Its first bytes.
    pub(super) name: &'static [u8; 8],
    /// The version written; older ones can be read.
    pub(super) version: u32,
    /// What messages call it.
    pub(super) what: &'static str,
}

impl Seal {
    /// The file's bytes.
    pub(super) fn seal(&self, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len() + CHECKSUM_BYTES);
        bytes.extend_from_slice(self.name);
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(body);
        let checksum = blake3::hash(&bytes);
        bytes.extend_from_slice(checksum.as_bytes());
        bytes
    }

    /// The body in a file's bytes; `path` is for messages.
    pub(super) fn open<'a>(&self, path: &Path, bytes: &'a [u8]) -> Result<Body<'a>, StoreError> {
        if bytes.len() < HEADER_BYTES + CHECKSUM_BYTES || !bytes.starts_with(self.name) {
            let reason = format!("it is no {}", self.what);
            return Err(StoreError::damaged(path, reason));
        }
        let version = word(&bytes[8..12]);
        if version > self.version {
            return Err(StoreError::Newer {
                path: path.to_owned(),
                found: version,
                known: self.version,
            });
        }
        let (sealed, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
        if blake3::hash(sealed).as_bytes() != checksum {
            return Err(StoreError::damaged(path, "its checksum does not match"));
        }
        Ok(Body(&sealed[HEADER_BYTES..]))
    }
}

/// What is left to be read of a body. Reading beyond its end gives `None`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    /// The next bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn f32(&mut self) -> Option<f32> {
        self.array().map(f32::from_le_bytes)
    }

    pub(super) fn f64(&mut self) -> Option<f64> {
        self.array().map(f64::from_le_bytes)
    }

    pub(super) fn u32s(&mut self, count: usize) -> Option<Vec<u32>> {
        let bytes = self.bytes(count.checked_mul(4)?)?;
        Some(bytes.chunks_exact(4).map(word).collect())
    }

    pub(super) fn f32s(&mut self, count: usize) -> Option<Vec<f32>> {
        let bits = self.u32s(count)?;
        Some(bits.into_iter().map(f32::from_bits).collect())
    }

    /// Everything that is left.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Something, if nothing is left.
    pub(super) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Four bytes as a number.
fn word(bytes: &[u8]) -> u32 {
    let mut word = [0_u8; 4];
    word.copy_from_slice(bytes);
    u32::from_le_bytes(word)
}
