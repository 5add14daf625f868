//! The thread that turns pictures into what a terminal's protocol wants.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use super::cells::centered;
use super::kitty::{image_id, send_image};
use super::quantize::Indexed;
use super::sixel::encode_sixel;
use super::slots::{Placed, Protocol, Wanted};
use super::{PictureKey, Raster};
use crate::tui::theme::ColorDepth;

/// A picture to be made ready.
#[derive(Clone, Debug)]
pub struct EncodeJob {
    /// What for.
    pub wanted: Wanted,
    /// Its pixels.
    pub raster: Arc<Raster>,
    /// How many colors.
    pub colors: usize,
    /// Depth of the terminal, which limits ids.
    pub depth: ColorDepth,
}

/// A picture made ready.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// What for.
    pub wanted: Wanted,
    /// What the slot shows once the bytes are sent.
    pub placed: Placed,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Handle of the thread, which ends when it is dropped.
pub struct Encoder {
    jobs: SyncSender<EncodeJob>,
}

impl Encoder {
    /// Starts the thread. `deliver` is called on it with each result, and says whether anybody
    /// still listens.
    pub fn spawn(
        deliver: impl Fn(Result<Encoded, (PictureKey, String)>) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (jobs, inbox) = sync_channel::<EncodeJob>(1);
        thread::Builder::new()
            .name("console-encoder".to_owned())
            .spawn(move || {
                while let Ok(job) = inbox.recv() {
                    let made = encode(&job);
                    if !deliver(made.map_err(|reason| (job.wanted.key, reason))) {
                        return;
                    }
                }
            })?;
        Ok(Self { jobs })
    }

    /// Hands over a job; `false` if one waits already.
    pub fn request(&self, job: EncodeJob) -> bool {
        self.jobs.try_send(job).is_ok()
    }
}

/// Turns a picture into the bytes that show it.
pub fn encode(job: &EncodeJob) -> Result<Encoded, String> {
    let EncodeJob { wanted, raster, .. } = job;
    let marked;
    let raster: &Raster = match &wanted.mark {
        Some(mark) => {
            marked = mark.drawn_on(raster);
            &marked
        }
        None => raster,
    };
    let area = centered(raster.columns, raster.rows, wanted.area);
    let id = image_id(wanted.slot, job.depth);
    let bytes = match wanted.protocol {
        Protocol::Kitty => {
            let picture = Indexed::new(&raster.dots, raster.width(), job.colors);
            send_image(id, &picture, raster.columns, raster.rows)?
        }
        Protocol::Sixel(colors) => {
            let colors = job.colors.min(usize::from(colors));
            let picture = Indexed::new(&raster.dots, raster.width(), colors);
            let mut bytes = format!("\x1b[{};{}H", area.y + 1, area.x + 1).into_bytes();
            bytes.extend_from_slice(&encode_sixel(&picture));
            bytes
        }
    };
    let placed = Placed {
        key: wanted.key.clone(),
        mark: wanted.mark.clone(),
        cells: (raster.columns, raster.rows),
        protocol: wanted.protocol,
        area: wanted.area,
        id,
    };
    Ok(Encoded {
        wanted: wanted.clone(),
        placed,
        bytes,
    })
}
