//! Scaled pictures by hash and size, the least recently wanted ones dropped first.

use std::collections::HashMap;
use std::sync::Arc;

use super::{PictureKey, Raster};

/// How many pictures are kept: a full page of cards on a large terminal, several times over.
const CAPACITY: usize = 512;
/// How many bytes of them are kept at most, the newest drawing's aside.
const CAPACITY_BYTES: usize = 16 << 20;

/// What is known of a wanted picture.
#[derive(Clone, Debug, PartialEq)]
pub enum PictureState {
    /// Asked for, not here yet.
    Loading,
    /// Here.
    Ready(Arc<Raster>),
    /// It cannot be had; why.
    Failed(String),
}

/// Pictures and when they were last wanted.
#[derive(Debug, Default)]
pub struct PictureCache {
    entries: HashMap<PictureKey, (PictureState, u64)>,
    turn: u64,
}

impl PictureCache {
    /// What is known of a picture; `None` if nobody asked for it yet.
    pub fn get(&self, key: &PictureKey) -> Option<&PictureState> {
        self.entries.get(key).map(|(state, _)| state)
    }

    /// Notes what a drawing wanted and returns what must be fetched: those not asked for yet.
    pub fn want(&mut self, keys: &[PictureKey]) -> Vec<PictureKey> {
        self.turn += 1;
        let mut missing = Vec::new();
        for key in keys {
            if let Some((_, turn)) = self.entries.get_mut(key) {
                *turn = self.turn;
            } else {
                self.entries
                    .insert(key.clone(), (PictureState::Loading, self.turn));
                missing.push(key.clone());
            }
        }
        self.drop_oldest();
        missing
    }

    /// Takes in what was fetched.
    pub fn put(&mut self, key: PictureKey, result: Result<Arc<Raster>, String>) {
        let state = match result {
            Ok(raster) => PictureState::Ready(raster),
            Err(reason) => PictureState::Failed(reason),
        };
        self.entries.insert(key, (state, self.turn));
    }

    /// Forgets failures, so that they are tried again.
    pub fn forget_failures(&mut self) {
        self.entries
            .retain(|_, (state, _)| !matches!(state, PictureState::Failed(_)));
    }

    /// Forgets wishes that were dropped, so that they are made again if still wanted.
    pub fn forget(&mut self, keys: &[PictureKey]) {
        for key in keys {
            if self.get(key) == Some(&PictureState::Loading) {
                self.entries.remove(key);
            }
        }
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Drops what was not wanted for longest, but nothing that the newest drawing wants.
    fn drop_oldest(&mut self) {
        let mut by_age: Vec<(u64, usize)> = self
            .entries
            .values()
            .map(|(state, turn)| (*turn, bytes_of(state)))
            .collect();
        by_age.sort_unstable_by(|one, other| other.cmp(one));
        let mut bytes = 0;
        let excess = by_age.iter().enumerate().find_map(|(count, (turn, size))| {
            bytes += size;
            (count >= CAPACITY || bytes > CAPACITY_BYTES).then_some(*turn)
        });
        if let Some(oldest) = excess {
            let newest = self.turn;
            self.entries
                .retain(|_, (_, turn)| *turn > oldest || *turn == newest);
        }
    }
}

fn bytes_of(state: &PictureState) -> usize {
    match state {
        PictureState::Ready(raster) => raster.dots.len() * 3,
        PictureState::Loading | PictureState::Failed(_) => 0,
    }
}
