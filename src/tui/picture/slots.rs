//! Which pictures the terminal shows by itself, and where.
//!
//! Slots are counted in the order of drawing. A slot has one id for ever; what it shows is
//! replaced under that id.

use ratatui::layout::Rect;

use super::{Mark, PictureKey};

/// Most pictures that the terminal shows at a time.
pub const MAX_SLOTS: usize = 64;

/// How the terminal is given a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Kitty's, shown by placeholders.
    Kitty,
    /// Sixel with so many colors, drawn once over blanks.
    Sixel(u16),
}

/// A picture that a drawing wants the terminal to show.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Its slot.
    pub slot: usize,
    /// Which, and how large.
    pub key: PictureKey,
    /// What is marked on it.
    pub mark: Option<Mark>,
    /// The room for it.
    pub area: Rect,
    /// How it is sent.
    pub protocol: Protocol,
    /// Whether it is the one looked at.
    pub is_focus: bool,
    /// Whether a later one of what the slot shows already.
    pub is_update: bool,
}

/// A picture that the terminal shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Which.
    pub key: PictureKey,
    /// What is marked on it.
    pub mark: Option<Mark>,
    /// Cells across and down.
    pub cells: (u16, u16),
    /// How it was sent.
    pub protocol: Protocol,
    /// Where, for one that is drawn once.
    pub area: Rect,
    /// Its id.
    pub id: u32,
}

impl Placed {
    /// Whether it is a picture of the same size in the same room, whatever it shows. How fine it
    /// is does not matter.
    fn fits(&self, wanted: &Wanted) -> bool {
        let is_same_place = self.protocol == Protocol::Kitty || self.area == wanted.area;
        self.protocol == wanted.protocol
            && (self.key.columns, self.key.rows) == (wanted.key.columns, wanted.key.rows)
            && is_same_place
    }

    /// Whether it is what is wanted.
    pub fn is(&self, wanted: &Wanted) -> bool {
        self.fits(wanted) && self.key.image == wanted.key.image && self.mark == wanted.mark
    }
}

/// What the terminal shows.
#[derive(Debug, Default)]
pub struct Slots {
    placed: Vec<Option<Placed>>,
}

impl Slots {
    /// What a slot shows.
    pub fn get(&self, slot: usize) -> Option<&Placed> {
        self.placed.get(slot)?.as_ref()
    }

    /// The picture that a slot shows where another one is wanted, if it may stand there: the
    /// picture itself, or an earlier one of the same episode.
    pub fn shown_for(
        &self,
        wanted: &Wanted,
        older: Option<&crate::types::ImageHash>,
    ) -> Option<&Placed> {
        let placed = self.get(wanted.slot).filter(|placed| placed.fits(wanted))?;
        let is_wanted = placed.key.image == wanted.key.image;
        (is_wanted || Some(&placed.key.image) == older).then_some(placed)
    }

    /// A slot shows this from now on.
    pub fn put(&mut self, slot: usize, placed: Placed) {
        if self.placed.len() <= slot {
            self.placed.resize(slot + 1, None);
        }
        self.placed[slot] = Some(placed);
    }

    /// Takes out what no drawing wants in its slot any more.
    pub fn take_unwanted(&mut self, wanted: &[Wanted]) -> Vec<Placed> {
        let mut gone = Vec::new();
        for (slot, placed) in self.placed.iter_mut().enumerate() {
            let stays = placed.as_ref().is_some_and(|placed| {
                let same = |wanted: &&Wanted| wanted.slot == slot;
                wanted.iter().find(same).is_some_and(|wanted| {
                    // Under its id a picture is replaced; one that is drawn once is not.
                    placed.protocol == wanted.protocol
                        && (placed.protocol == Protocol::Kitty || placed.fits(wanted))
                })
            });
            if !stays {
                gone.extend(placed.take());
            }
        }
        gone
    }

    /// Forgets one, which something else was drawn over.
    pub fn forget(&mut self, slot: usize) {
        if let Some(placed) = self.placed.get_mut(slot) {
            *placed = None;
        }
    }

    /// Forgets all: the terminal shows none.
    pub fn clear(&mut self) -> Vec<Placed> {
        self.placed.drain(..).flatten().collect()
    }

    /// Ids that the terminal keeps pictures under.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        let kept = self.placed.iter().flatten();
        kept.filter(|placed| placed.protocol == Protocol::Kitty)
            .map(|placed| placed.id)
    }

    /// The picture that is drawn once, its slot and where.
    pub fn drawn_once(&self) -> Option<(usize, &Placed)> {
        let mut all = self.placed.iter().enumerate();
        all.find_map(|(slot, placed)| {
            let placed = placed.as_ref()?;
            (placed.protocol != Protocol::Kitty).then_some((slot, placed))
        })
    }
}
