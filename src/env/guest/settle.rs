//! When a screen is looked at after it was acted on, and what of a picture counts.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Guest, GuestError};
use crate::types::Screenshot;

/// The part of a picture that may differ in one that is still: a caret, a clock's seconds.
const BLINKING: usize = 10_000;

/// The part of a black picture that may be lit, and the most pixels: the pointer is drawn into it.
const POINTER: usize = 1_000;
const POINTER_PIXELS: usize = 512;

/// The brightest that counts as black.
const BLACK: u8 = 8;

/// How the screen is let come to rest before it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settle {
    /// Until two pictures one after the other are the same, but for what blinks.
    Still {
        /// Before the first of them.
        shortest: Duration,
        /// Between two.
        between: Duration,
        /// After this the last one is taken as it is.
        longest: Duration,
    },
    /// For so long, as OSWorld does.
    Pause(Duration),
}

impl Settle {
    /// What is waited in any case.
    pub(super) fn least(self) -> Duration {
        match self {
            Self::Pause(pause) => pause,
            Self::Still { shortest, .. } => shortest,
        }
    }

    /// Waits and looks.
    pub(super) async fn look(self, guest: &Guest) -> Result<Screenshot, GuestError> {
        let (between, end) = match self {
            Self::Pause(pause) => {
                sleep(pause).await;
                return guest.screenshot().await;
            }
            Self::Still {
                shortest,
                between,
                longest,
            } => {
                let end = Instant::now() + longest;
                sleep(shortest).await;
                (between, end)
            }
        };
        let mut last = guest.screenshot().await?;
        while Instant::now() + between < end {
            sleep(between).await;
            let next = guest.screenshot().await?;
            if is_same(&last, &next) {
                return Ok(next);
            }
            last = next;
        }
        Ok(last)
    }
}

/// Whether two pictures of one screen differ in no more than what blinks.
fn is_same(one: &Screenshot, other: &Screenshot) -> bool {
    if one.hash() == other.hash() {
        return true;
    }
    let pixels = one.rgb().chunks_exact(3).zip(other.rgb().chunks_exact(3));
    let differing = pixels.filter(|(one, other)| one != other).count();
    one.size() == other.size() && differing <= one.rgb().len() / 3 / BLINKING
}

/// Whether a picture shows nothing, but perhaps the pointer.
pub(crate) fn is_black(picture: &Screenshot) -> bool {
    let pixels = picture.rgb().chunks_exact(3);
    let most = (pixels.len() / POINTER).min(POINTER_PIXELS);
    let mut lit = pixels.filter(|pixel| pixel.iter().any(|channel| *channel > BLACK));
    lit.nth(most).is_none()
}

#[cfg(test)]
mod tests {
    use super::{is_black, is_same};
    use crate::types::{ScreenSize, Screenshot};

    /// A dark picture of 200 by 100 pixels with so many of another color.
    fn picture(lit: usize, level: u8) -> Screenshot {
        let size = ScreenSize {
            width: 200,
            height: 100,
        };
        let mut rgb = vec![level; lit * 3];
        rgb.resize(200 * 100 * 3, 4);
        Screenshot::new(size, rgb)
    }

    #[test]
    fn a_picture_is_black_but_for_a_pointer() {
        for (lit, level, expected) in [
            (0, 0, true),
            (20_000, 8, true),
            (20, 255, true),
            (21, 9, false),
            (20_000, 255, false),
        ] {
            assert_eq!(is_black(&picture(lit, level)), expected, "{lit} {level}");
        }
    }

    #[test]
    fn still_is_the_same_but_for_what_blinks() {
        let still = picture(50, 200);
        for (lit, expected) in [(50, true), (48, true), (52, true), (47, false), (90, false)] {
            assert_eq!(is_same(&still, &picture(lit, 200)), expected, "{lit}");
        }
    }
}
