//! A recorded run that can be gone through: to any moment, and from there as it went.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::bus::source::ITEMS;
use crate::bus::{Pictures, Source, SourceItem};
use crate::event::Event;
use crate::store::{IterationMark, LogReader, Moment, RunDir, StoreError, Timeline};

/// How often a playing run goes on.
const TICK: Duration = Duration::from_millis(100);

/// What is known of a recorded run as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimelineInfo {
    /// Where iterations begin, in order.
    pub marks: Vec<IterationMark>,
    /// Number that the next event would have.
    pub end_seq: u64,
    /// When the last event was, ms since the run's first start.
    pub end_ms: u64,
}

/// What a recorded run can be asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlayRequest {
    /// Its state at a moment.
    Seek(Moment),
    /// To go on from there, so many times as fast as it went.
    Play(f64),
    /// To stand still.
    Pause,
}

/// Where requests go. Clones share the way.
#[derive(Clone, Debug)]
pub struct Player(Sender<PlayRequest>);

impl Player {
    /// Asks for something; items of the source answer.
    pub fn send(&self, request: PlayRequest) {
        // The thread ends only with the source, when nobody looks any more.
        let _ = self.0.send(request);
    }
}

impl Source {
    /// A recorded run: its state as the log ends. A first item tells its time line once the log
    /// has been read; what follows is asked for through the player.
    pub fn replayable(run: RunDir) -> Result<Self, StoreError> {
        let state = run.state()?;
        let (sender, items) = mpsc::channel(ITEMS);
        let (requests, asked) = channel();
        let log = RunDir::open(run.root())?;
        let at = state.next_seq;
        let seen_ms = state.at_ms;
        thread::Builder::new()
            .name("time line".to_owned())
            .spawn(move || {
                let thread = Replay {
                    items: sender,
                    at,
                    at_ms: seen_ms,
                    playing: None,
                };
                thread.run(log, &asked);
            })
            .expect("a process that starts can start a thread");
        Ok(Self {
            run: run.name(),
            root: run.root().to_owned(),
            profile: run.profile().unwrap_or_default(),
            state,
            items,
            pictures: Pictures::in_folder(run),
            commands: None,
            player: Some(Player(requests)),
        })
    }
}

/// A run that plays.
struct Playing {
    events: LogReader,
    /// Read already, not yet due.
    next: Option<Event>,
    from_ms: u64,
    since: Instant,
    speed: f64,
}

struct Replay {
    items: mpsc::Sender<SourceItem>,
    /// Number of the next event, and time of the last.
    at: u64,
    at_ms: u64,
    playing: Option<Playing>,
}

/// Nobody looks any more.
struct Gone;

impl Replay {
    fn run(mut self, log: RunDir, asked: &Receiver<PlayRequest>) {
        let timeline = match Timeline::read(log) {
            Ok(timeline) => timeline,
            Err(error) => {
                // Whoever looked may have gone.
                let _ = self.fail(&error);
                return;
            }
        };
        let info = TimelineInfo {
            marks: timeline.marks().to_vec(),
            end_seq: timeline.end_seq(),
            end_ms: timeline.end_ms(),
        };
        let mut is_watched = self.send(SourceItem::Timeline(Arc::new(info))).is_ok();
        while is_watched {
            let request = match self.playing {
                Some(_) => asked.recv_timeout(TICK),
                None => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let done = match request {
                Ok(request) => {
                    // Of many in a row, from a key held down, the last one counts.
                    let newest = asked.try_iter().last().unwrap_or(request);
                    self.answer(&timeline, newest)
                }
                Err(RecvTimeoutError::Timeout) => self.go_on(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            is_watched = done.is_ok();
        }
    }

    fn send(&self, item: SourceItem) -> Result<(), Gone> {
        self.items.blocking_send(item).map_err(|_| Gone)
    }

    fn fail(&self, error: &StoreError) -> Result<(), Gone> {
        let reason = error.to_string();
        self.send(SourceItem::Lost { reason })
    }

    fn answer(&mut self, timeline: &Timeline, request: PlayRequest) -> Result<(), Gone> {
        let speed = match request {
            PlayRequest::Seek(moment) => {
                match timeline.state_at(moment) {
                    Ok(state) => {
                        (self.at, self.at_ms) = (state.next_seq, state.at_ms);
                        let state = Box::new(state);
                        self.send(SourceItem::Resync { state, missed: 0 })?;
                    }
                    Err(error) => return self.fail(&error),
                }
                self.playing.take().map(|playing| playing.speed)
            }
            PlayRequest::Play(speed) => Some(speed),
            PlayRequest::Pause => None,
        };
        self.playing = None;
        if let Some(speed) = speed {
            match timeline.run().read_events(self.at) {
                Ok(events) => {
                    self.playing = Some(Playing {
                        events,
                        next: None,
                        from_ms: self.at_ms,
                        since: Instant::now(),
                        speed,
                    });
                }
                Err(error) => return self.fail(&error),
            }
        }
        Ok(())
    }

    /// Tells what has happened by now.
    fn go_on(&mut self) -> Result<(), Gone> {
        let Some(mut playing) = self.playing.take() else {
            return Ok(());
        };
        let passed_ms = playing.since.elapsed().as_millis() as f64 * playing.speed;
        let now_ms = playing.from_ms.saturating_add(passed_ms as u64);
        loop {
            let event = match playing
                .next
                .take()
                .map(Ok)
                .or_else(|| playing.events.next())
            {
                Some(Ok(event)) => event,
                Some(Err(error)) => return self.fail(&error),
                None => return Ok(()),
            };
            if event.at_ms > now_ms {
                playing.next = Some(event);
                break;
            }
            (self.at, self.at_ms) = (event.seq + 1, event.at_ms);
            self.send(SourceItem::Event(Arc::new(event)))?;
        }
        self.playing = Some(playing);
        Ok(())
    }
}
