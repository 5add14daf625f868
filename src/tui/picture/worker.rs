//! The thread that fetches, decodes and scales pictures.
//!
//! Its inbox is bounded; when it is full the oldest wishes are dropped, as the newest are the
//! ones on screen. What was dropped is reported so that the cache can ask again.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};

use super::{PictureKey, Raster};
use crate::types::{ImageHash, Screenshot};

/// Gets one screenshot, or says why not. Runs on the worker's thread and may block.
pub type FetchPicture = Box<dyn FnMut(&ImageHash) -> Result<Screenshot, String> + Send>;

/// Wishes that wait at most: two full pages of cards.
const MAX_WAITING: usize = 128;

#[derive(Default)]
struct Inbox {
    waiting: VecDeque<PictureKey>,
    closed: bool,
}

/// A mutex, as one side pushes and drops old wishes while the other takes: no channel does both.
type SharedInbox = Arc<(Mutex<Inbox>, Condvar)>;

/// Handle of the thread; dropping it ends the thread after the picture in hand. It is not waited
/// for: fetching over a dead connection may take long, and leaving the console must not.
pub struct PictureWorker {
    inbox: SharedInbox,
}

impl PictureWorker {
    /// Starts the thread. `deliver` is called on it with each result and returns whether
    /// anybody still listens.
    pub fn spawn(
        mut fetch: FetchPicture,
        deliver: impl Fn(PictureKey, Result<Arc<Raster>, String>) -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        let inbox = SharedInbox::default();
        let shared = Arc::clone(&inbox);
        std::thread::Builder::new()
            .name("console-pictures".to_owned())
            .spawn(move || {
                let mut last: Option<Screenshot> = None;
                while let Some(key) = next_wish(&shared) {
                    let result = make_raster(&key, &mut last, &mut fetch);
                    if !deliver(key, result) {
                        break;
                    }
                }
            })?;
        Ok(Self { inbox })
    }

    /// Asks for pictures; returns those that were dropped for them.
    pub fn request(&self, keys: Vec<PictureKey>) -> Vec<PictureKey> {
        let (lock, wake) = &*self.inbox;
        let mut inbox = lock
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        inbox.waiting.extend(keys);
        let excess = inbox.waiting.len().saturating_sub(MAX_WAITING);
        let dropped = inbox.waiting.drain(..excess).collect();
        wake.notify_one();
        dropped
    }
}

impl Drop for PictureWorker {
    fn drop(&mut self) {
        {
            let (lock, wake) = &*self.inbox;
            let mut inbox = lock
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            inbox.closed = true;
            wake.notify_one();
        }
    }
}

fn next_wish(inbox: &SharedInbox) -> Option<PictureKey> {
    let (lock, wake) = &**inbox;
    let mut inbox = lock
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    loop {
        if inbox.closed {
            return None;
        }
        if let Some(key) = inbox.waiting.pop_front() {
            return Some(key);
        }
        inbox = wake
            .wait(inbox)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
    }
}

/// Scales one picture; the screenshot is kept, as one is often wanted at two sizes in a row.
fn make_raster(
    key: &PictureKey,
    last: &mut Option<Screenshot>,
    fetch: &mut FetchPicture,
) -> Result<Arc<Raster>, String> {
    if last.as_ref().is_none_or(|shot| *shot.hash() != key.image) {
        *last = Some(fetch(&key.image)?);
    }
    let shot = last.as_ref().ok_or("no picture")?;
    Raster::with_grain(shot, key.columns, key.rows, key.grain)
        .map(Arc::new)
        .ok_or_else(|| "no room".to_owned())
}
