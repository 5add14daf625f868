//! Where pictures wait on their way to the terminal: fetched and scaled by one thread, encoded by
//! another, sent one a frame when the line has room.

use crate::tui::app::App;
use crate::tui::draw::Drawn;
use crate::tui::picture::{
    EncodeJob, Encoded, Encoder, LineState, PictureKey, PictureState, PictureWorker, Placed,
    Protocol, Schedule, centered, delete_image,
};
use crate::tui::term::{Painter, note_images};

/// The loop's side of pictures.
pub(super) struct PictureDesk {
    worker: PictureWorker,
    encoder: Encoder,
    schedule: Schedule,
    /// Whether a picture is being encoded.
    is_encoding: bool,
    /// One that is ready.
    ready: Option<Encoded>,
    /// Commands for the terminal that delete pictures.
    deletions: Vec<u8>,
}

impl PictureDesk {
    pub(super) fn new(worker: PictureWorker, encoder: Encoder) -> Self {
        Self {
            worker,
            encoder,
            schedule: Schedule::default(),
            is_encoding: false,
            ready: None,
            deletions: Vec::new(),
        }
    }

    /// Whether pictures are worse than they could be.
    pub(super) fn is_degraded(&self) -> bool {
        self.schedule.is_degraded()
    }

    /// After a drawing: asks for pictures that it lacks, deletes those that it lost.
    pub(super) fn note_drawn(&mut self, app: &mut App, drawn: &Drawn, painter: &mut Painter) {
        let missing = app.ui.pictures.want(&drawn.pictures);
        if !missing.is_empty() {
            let dropped = self.worker.request(missing);
            app.ui.pictures.forget(&dropped);
        }
        let gone = app.ui.slots.take_unwanted(&drawn.wanted);
        self.remove(&gone, painter);
        if !gone.is_empty() {
            note_images(app.ui.slots.ids());
        }
    }

    /// Removes all pictures, so that they are sent again.
    pub(super) fn start_over(&mut self, app: &mut App, painter: &mut Painter) {
        let gone = app.ui.slots.clear();
        self.remove(&gone, painter);
        note_images([]);
    }

    /// The terminal has another size and its screen is cleared: what was drawn once is gone.
    pub(super) fn forget_drawn(app: &mut App) {
        let drawn = app.ui.slots.drawn_once().map(|(slot, _)| slot);
        if let Some(slot) = drawn {
            app.ui.slots.forget(slot);
        }
    }

    fn remove(&mut self, gone: &[Placed], painter: &mut Painter) {
        for placed in gone {
            match placed.protocol {
                Protocol::Kitty => self.deletions.extend(delete_image(placed.id)),
                Protocol::Sixel(_) => {
                    let (columns, rows) = placed.cells;
                    painter.erase(centered(columns, rows, placed.area));
                }
            }
        }
    }

    /// A picture was encoded, or cannot be.
    pub(super) fn take(&mut self, app: &mut App, made: Result<Encoded, (PictureKey, String)>) {
        self.is_encoding = false;
        match made {
            Ok(encoded) => self.ready = Some(encoded),
            Err((key, reason)) => app.ui.pictures.put(key, Err(reason)),
        }
    }

    /// Lets time pass: the budget grows, the next picture is chosen. `true` if pictures are drawn
    /// otherwise from now on.
    pub(super) fn tick(
        &mut self,
        app: &mut App,
        drawn: &Drawn,
        now_ms: f64,
        line: LineState,
    ) -> bool {
        self.schedule.set_cap(app.ui.terminal.picture_rate as f64);
        self.schedule.tick(now_ms, line);
        let quality = self.schedule.quality();
        let changed = std::mem::replace(&mut app.ui.quality, quality) != quality;
        if self.is_encoding || self.ready.is_some() {
            return changed;
        }
        let slots = &app.ui.slots;
        let next = self
            .schedule
            .next(now_ms, &drawn.wanted, slots, &app.ui.pictures);
        if let Some(wanted) = next
            && let Some(PictureState::Ready(raster)) = app.ui.pictures.get(&wanted.key)
        {
            self.is_encoding = self.encoder.request(EncodeJob {
                wanted: wanted.clone(),
                raster: raster.clone(),
                colors: quality.colors(wanted.is_focus),
                depth: app.ui.theme.depth(),
            });
        }
        changed
    }

    /// Whether something waits to be sent.
    pub(super) fn has_something(&self) -> bool {
        self.ready.is_some() || !self.deletions.is_empty()
    }

    /// What goes behind the next text; `true` with it if the screen must be drawn again for it.
    pub(super) fn send(&mut self, app: &mut App, drawn: &Drawn, now_ms: f64) -> (Vec<u8>, bool) {
        let mut bytes = std::mem::take(&mut self.deletions);
        let Some(encoded) = self.ready.take() else {
            return (bytes, false);
        };
        let Encoded {
            wanted,
            placed,
            bytes: picture,
        } = encoded;
        let is_still_wanted = drawn.wanted.iter().any(|now| {
            now.slot == wanted.slot
                && now.protocol == wanted.protocol
                && now.area == wanted.area
                && now.key.image == wanted.key.image
                && now.mark == wanted.mark
        });
        if !is_still_wanted {
            return (bytes, false);
        }
        self.schedule.sent(now_ms, wanted.slot, picture.len());
        bytes.extend_from_slice(&picture);
        app.ui.slots.put(wanted.slot, placed);
        note_images(app.ui.slots.ids());
        (bytes, true)
    }
}
