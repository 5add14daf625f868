//! Who writes: of several consoles on one run, one operates and the others watch.
//!
//! The first console that may operate holds the lease. Another one asks for it; the holder has
//! ten seconds to refuse, silence grants. A holder that leaves, or whose connection breaks, is
//! replaced at once: by who asks, else by who has been there longest. Scripts (`arpo ctl`) and
//! consoles older than the lease take no part in it and are not locked out: what they ask for is
//! in the journal with its origin.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// How long a holder may answer.
pub const ANSWER: Duration = Duration::from_secs(10);

/// What a console wants of the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseRequest {
    /// To write.
    Take,
    /// As its holder: to let the one who asks have it.
    Grant,
    /// As its holder: to keep it.
    Refuse,
    /// As its holder: to write no more.
    Release,
}

/// How the lease stands, as one console sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaseState {
    /// Whether this console holds it.
    pub yours: bool,
    /// Who holds it; nobody if absent.
    pub holder: Option<String>,
    /// For how long, ms.
    pub held_ms: u64,
    /// Who asks for it.
    pub asked_by: Option<String>,
    /// Whether that is this console.
    pub asked_by_you: bool,
    /// How long the holder may still answer, ms.
    pub answer_ms: u64,
    /// Number of times that this console's wish was refused.
    pub refused: u32,
}

/// The lease of one run.
#[derive(Debug)]
pub(super) struct Lease {
    book: Mutex<Book>,
    changed: watch::Sender<u64>,
    /// How long a holder may answer.
    answer: Duration,
}

#[derive(Debug, Default)]
struct Book {
    next_seat: u64,
    /// Consoles that may hold it, in the order they came.
    seats: BTreeMap<u64, Seat>,
    holder: Option<(u64, Instant)>,
    asker: Option<(u64, Instant)>,
}

#[derive(Debug)]
struct Seat {
    name: String,
    refused: u32,
}

impl Book {
    fn give_to(&mut self, seat: Option<u64>) {
        self.holder = seat.map(|seat| (seat, Instant::now()));
        if self.asker.map(|(asker, _)| asker) == seat {
            self.asker = None;
        }
    }

    fn replace_holder(&mut self) {
        let next = self.asker.map(|(asker, _)| asker);
        self.give_to(next.or_else(|| self.seats.keys().next().copied()));
    }

    fn is_holder(&self, seat: u64) -> bool {
        self.holder.is_some_and(|(holder, _)| holder == seat)
    }

    fn name(&self, seat: Option<(u64, Instant)>) -> Option<String> {
        Some(self.seats.get(&seat?.0)?.name.clone())
    }
}

impl Lease {
    pub(super) fn new(answer: Duration) -> Arc<Self> {
        Arc::new(Self {
            book: Mutex::default(),
            changed: watch::channel(0).0,
            answer,
        })
    }

    /// A poisoned book is still a book: nothing in it can be half done.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// A console comes; it holds the lease if nobody does.
    pub(super) fn join(self: &Arc<Self>, name: &str) -> LeaseSeat {
        let mut book = self.book();
        let number = book.next_seat;
        book.next_seat += 1;
        let name = name.to_owned();
        book.seats.insert(number, Seat { name, refused: 0 });
        if book.holder.is_none() {
            book.give_to(Some(number));
        }
        drop(book);
        self.tell();
        LeaseSeat {
            lease: Arc::clone(self),
            number,
            changed: self.changed.subscribe(),
        }
    }

    fn expire(&self, asker: (u64, Instant)) {
        let mut book = self.book();
        if book.asker == Some(asker) {
            book.give_to(Some(asker.0));
            drop(book);
            self.tell();
        }
    }
}

/// A console's part in it; leaving gives the lease up.
#[derive(Debug)]
pub(super) struct LeaseSeat {
    lease: Arc<Lease>,
    number: u64,
    changed: watch::Receiver<u64>,
}

impl LeaseSeat {
    /// Waits until something about the lease changed.
    pub(super) async fn changed(&mut self) {
        // The sender lives as long as the lease, which this seat holds.
        let _ = self.changed.changed().await;
    }

    /// How it stands.
    pub(super) fn state(&self) -> LeaseState {
        let book = self.lease.book();
        let now = Instant::now();
        let ms = |time: Duration| time.as_millis() as u64;
        LeaseState {
            yours: book.is_holder(self.number),
            holder: book.name(book.holder),
            held_ms: book.holder.map_or(0, |(_, since)| ms(now - since)),
            asked_by: book.name(book.asker),
            asked_by_you: book.asker.is_some_and(|(asker, _)| asker == self.number),
            answer_ms: book
                .asker
                .map_or(0, |(_, until)| ms(until.saturating_duration_since(now))),
            refused: book.seats.get(&self.number).map_or(0, |seat| seat.refused),
        }
    }

    /// Whether this console may command; if not, who may.
    pub(super) fn may_write(&self) -> Result<(), String> {
        let book = self.lease.book();
        if book.is_holder(self.number) {
            return Ok(());
        }
        let holder = book
            .name(book.holder)
            .unwrap_or_else(|| "nobody".to_owned());
        Err(format!("{holder} writes on this run; :take asks for it"))
    }

    /// Does what the console wants, if it is in the position to want it.
    pub(super) fn request(&self, request: LeaseRequest) {
        let mut book = self.lease.book();
        let is_holder = book.is_holder(self.number);
        match request {
            LeaseRequest::Take if is_holder => {}
            LeaseRequest::Take if book.holder.is_none() => book.give_to(Some(self.number)),
            LeaseRequest::Take if book.asker.is_none() => {
                let asker = (self.number, Instant::now() + self.lease.answer);
                book.asker = Some(asker);
                let lease = Arc::clone(&self.lease);
                tokio::spawn(async move {
                    sleep_until(asker.1).await;
                    lease.expire(asker);
                });
            }
            // Somebody else asks already; the answer decides between two, not three.
            LeaseRequest::Take => {
                if book.asker.is_some_and(|(asker, _)| asker != self.number)
                    && let Some(seat) = book.seats.get_mut(&self.number)
                {
                    seat.refused += 1;
                }
            }
            LeaseRequest::Grant if is_holder && book.asker.is_some() => book.replace_holder(),
            LeaseRequest::Refuse if is_holder => {
                let asker = book.asker.take();
                if let Some(seat) = asker.and_then(|(asker, _)| book.seats.get_mut(&asker)) {
                    seat.refused += 1;
                }
            }
            LeaseRequest::Release if is_holder => {
                let next = book.asker.map(|(asker, _)| asker);
                book.give_to(next);
            }
            LeaseRequest::Grant | LeaseRequest::Refuse | LeaseRequest::Release => {}
        }
        drop(book);
        self.lease.tell();
    }
}

impl Drop for LeaseSeat {
    fn drop(&mut self) {
        let mut book = self.lease.book();
        book.seats.remove(&self.number);
        if book.asker.is_some_and(|(asker, _)| asker == self.number) {
            book.asker = None;
        }
        if book.is_holder(self.number) {
            book.replace_holder();
        }
        drop(book);
        self.lease.tell();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{ANSWER, Lease, LeaseRequest};

    #[tokio::test]
    async fn an_answer_decides() {
        let lease = Lease::new(ANSWER);
        let first = lease.join("a");
        let second = lease.join("b");
        assert!(first.state().yours && !second.state().yours);
        assert!(second.may_write().unwrap_err().starts_with("a writes"));
        second.request(LeaseRequest::Take);
        assert_eq!(first.state().asked_by.as_deref(), Some("b"));
        assert!(second.state().asked_by_you && first.state().answer_ms > 0);
        first.request(LeaseRequest::Refuse);
        assert!(first.state().yours && second.state().refused == 1);
        assert_eq!(first.state().asked_by, None);
        second.request(LeaseRequest::Take);
        first.request(LeaseRequest::Grant);
        assert!(second.state().yours && !first.state().yours);
        // Who does not hold it has nothing to answer or give.
        first.request(LeaseRequest::Release);
        first.request(LeaseRequest::Grant);
        assert!(second.state().yours);
    }

    #[tokio::test]
    async fn silence_grants_but_not_what_was_refused() {
        let lease = Lease::new(Duration::from_millis(20));
        let first = lease.join("a");
        let mut second = lease.join("b");
        second.request(LeaseRequest::Take);
        first.request(LeaseRequest::Refuse);
        second.request(LeaseRequest::Take);
        while !second.state().yours {
            second.changed().await;
        }
        assert!(!first.state().yours);
    }

    #[tokio::test]
    async fn who_leaves_is_replaced() {
        let lease = Lease::new(ANSWER);
        let (first, second, third) = (lease.join("a"), lease.join("b"), lease.join("c"));
        drop(first);
        assert!(second.state().yours);
        let fourth = lease.join("d");
        fourth.request(LeaseRequest::Take);
        third.request(LeaseRequest::Take);
        assert_eq!(third.state().refused, 1);
        // Who asked comes before who was there.
        drop(second);
        assert!(fourth.state().yours);
        fourth.request(LeaseRequest::Release);
        assert_eq!(third.state().holder, None);
        third.request(LeaseRequest::Take);
        assert!(third.state().yours);
        drop((third, fourth));
        assert!(lease.join("e").state().yours);
    }
}
