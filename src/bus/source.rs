//! `Source`: a run to look at, wherever it is. In process, attached and recorded give the same
//! state, the same items and the same pictures, so a console knows no difference.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures::executor::block_on;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::sleep;

use crate::bus::server::read_picture;
use crate::bus::{
    BusError, CommandTicket, Controller, EventSink, LeaseRequest, LeaseState, Player, TimelineInfo,
    Watch,
};
use crate::event::{Command, CommandStatus, Event, ReplyId, ReplyTokens, RunState};
use crate::store::{Line, RunDir, StoreError};
use crate::types::{ImageHash, LogPlace, MachineLog};

/// Items waiting for the viewer. When it is full, whoever feeds it waits, falls behind the log,
/// and catches the viewer up by a snapshot.
pub(super) const ITEMS: usize = 1024;
/// Commands on their way to the engine.
pub(super) const COMMANDS: usize = 16;
/// Answers of one command.
pub(super) const ANSWERS: usize = 3;
/// Pictures, tokens and logs asked for and not yet fetched; a screen shows fewer.
pub(super) const DETAIL_REQUESTS: usize = 64;
/// A viewer that falls behind is caught up no more often than this.
const CATCH_UP: Duration = Duration::from_millis(500);

/// What comes after the state a source begins with.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceItem {
    /// To be folded into the state.
    Event(Arc<Event>),
    /// Takes the state's place: the viewer was too slow, or the connection was lost.
    Resync {
        /// The new state.
        state: Box<RunState>,
        /// Events never shown because of slowness; 0 after a reconnection.
        missed: u64,
    },
    /// Nothing happened, but the engine lives.
    Heard,
    /// Who writes on this run.
    Lease(LeaseState),
    /// A recorded run's time line, once its log has been read.
    Timeline(Arc<TimelineInfo>),
    /// The connection was lost; it is tried again until a `Resync` says that it is back.
    Lost {
        /// Why.
        reason: String,
    },
}

/// A run to look at.
#[derive(Debug)]
pub struct Source {
    /// The run's name.
    pub run: String,
    /// Its folder, which need not be on this machine.
    pub root: PathBuf,
    /// Its profile with everything it stands on, TOML; empty where it cannot be had.
    pub profile: String,
    /// The state to begin with.
    pub state: RunState,
    /// What comes after; ends when the run is over and all of it was received.
    pub items: mpsc::Receiver<SourceItem>,
    /// The run's screenshots, and its replies' tokens.
    pub pictures: Pictures,
    /// Where commands go; absent where there is nothing to command.
    pub commands: Option<CommandSender>,
    /// Where a recorded run is asked to go; absent where it only goes on.
    pub player: Option<Player>,
}

impl Source {
    /// A run of this very process.
    pub async fn of_engine(
        run_root: &Path,
        sink: &EventSink,
        controller: Option<Controller>,
    ) -> Result<Self, BusError> {
        let run = RunDir::open(run_root).map_err(BusError::store)?;
        let Watch { state, lines } = sink.watch().await?;
        let (sender, items) = mpsc::channel(ITEMS);
        let run = Arc::new(run);
        tokio::spawn(forward(lines, sink.clone(), Arc::clone(&run), sender));
        Ok(Self {
            run: run.name(),
            root: run.root().to_owned(),
            profile: run.profile().unwrap_or_default(),
            state,
            items,
            pictures: Pictures(PicturePlace::Folder(run)),
            commands: controller.map(|controller| CommandSender(Commands::Local(controller))),
            player: None,
        })
    }

    /// A recorded run: its state as the log ends. Nothing follows.
    pub fn recorded(run: RunDir) -> Result<Self, StoreError> {
        let state = run.state()?;
        let (_, items) = mpsc::channel(1);
        Ok(Self {
            run: run.name(),
            root: run.root().to_owned(),
            profile: run.profile().unwrap_or_default(),
            state,
            items,
            pictures: Pictures::in_folder(run),
            commands: None,
            player: None,
        })
    }

    /// A recorded run from event `from_seq` on: the state before it, and then every event as
    /// fast as it is received.
    pub fn playback(run: RunDir, from_seq: u64) -> Result<Self, StoreError> {
        let state = run.state_before(from_seq)?;
        let events = run.read_events(from_seq)?;
        let (sender, items) = mpsc::channel(ITEMS);
        thread::Builder::new()
            .name("playback".to_owned())
            .spawn(move || {
                for event in events {
                    let item = match event {
                        Ok(event) => SourceItem::Event(Arc::new(event)),
                        Err(error) => SourceItem::Lost {
                            reason: error.to_string(),
                        },
                    };
                    if sender.blocking_send(item).is_err() {
                        return;
                    }
                }
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
            player: None,
        })
    }

    /// The way of commands alone, if there is one. What the run tells is thrown away: answers come
    /// behind it, and unread it would hold them up for ever.
    pub fn into_commands(self) -> Option<CommandSender> {
        let mut items = self.items;
        tokio::spawn(async move { while items.recv().await.is_some() {} });
        self.commands
    }
}

/// Hands lines on until the run is over or nobody listens.
async fn forward(
    mut lines: broadcast::Receiver<Arc<Line>>,
    sink: EventSink,
    run: Arc<RunDir>,
    items: mpsc::Sender<SourceItem>,
) {
    loop {
        let missed = match lines.recv().await {
            Ok(line) => {
                let event = Arc::new(line.event.clone());
                if items.send(SourceItem::Event(event)).await.is_err() {
                    return;
                }
                continue;
            }
            Err(RecvError::Closed) => return,
            Err(RecvError::Lagged(missed)) => missed,
        };
        sleep(CATCH_UP).await;
        let (state, following) = match sink.watch().await {
            Ok(watch) => (Ok(watch.state), Some(watch.lines)),
            // The run is over: the log's end is the end.
            Err(_) => (run.state(), None),
        };
        let item = match state {
            Ok(state) => SourceItem::Resync {
                state: Box::new(state),
                missed,
            },
            Err(error) => SourceItem::Lost {
                reason: error.to_string(),
            },
        };
        if items.send(item).await.is_err() {
            return;
        }
        match following {
            Some(following) => lines = following,
            None => return,
        }
    }
}

/// Where commands go. Clones share the way.
#[derive(Clone, Debug)]
pub struct CommandSender(pub(super) Commands);

#[derive(Clone, Debug)]
pub(super) enum Commands {
    Local(Controller),
    Socket(mpsc::Sender<Wish>),
}

/// What goes over the socket.
#[derive(Debug)]
pub(super) enum Wish {
    /// A command.
    Command(Asked),
    /// Something of the lease.
    Lease(LeaseRequest),
}

/// A command on its way over the socket.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) command: Command,
    pub(super) answers: mpsc::Sender<(u64, CommandStatus)>,
}

impl CommandSender {
    /// Asks for something. Returns at once. The ticket ends without a final answer if the
    /// connection is lost.
    pub fn send(&self, command: Command) -> CommandTicket {
        match &self.0 {
            Commands::Local(controller) => controller.submit(command, "console"),
            Commands::Socket(queue) => {
                let (answers, receiver) = mpsc::channel(ANSWERS);
                // If it is full or closed, the ticket ends at once, as for a lost connection.
                let _ = queue.try_send(Wish::Command(Asked { command, answers }));
                CommandTicket { answers: receiver }
            }
        }
    }
}

impl CommandSender {
    /// Wants something of the lease; how it stands then is told by an item. In the engine's own
    /// process there is none.
    pub fn lease(&self, request: LeaseRequest) {
        if let Commands::Socket(queue) = &self.0 {
            // If it is full or closed the connection is lost, which is told by an item.
            let _ = queue.try_send(Wish::Lease(request));
        }
    }
}

/// What of a run is too large for events and is asked for piece by piece: screenshots, still
/// encoded, replies' tokens, and machines' logs. Clones share the way.
#[derive(Clone, Debug)]
pub struct Pictures(pub(super) PicturePlace);

#[derive(Clone, Debug)]
pub(super) enum PicturePlace {
    Folder(Arc<RunDir>),
    Socket(mpsc::Sender<DetailRequest>),
}

/// Something asked for over the socket, and where its answer goes.
#[derive(Debug)]
pub(super) enum DetailRequest {
    /// A picture.
    Picture {
        hash: ImageHash,
        answer: oneshot::Sender<Result<Vec<u8>, BusError>>,
    },
    /// A reply's tokens.
    Tokens {
        reply: ReplyId,
        answer: oneshot::Sender<Result<ReplyTokens, BusError>>,
    },
    /// What a desktop's machine logged after a place, or its newest part.
    Log {
        desktop: u32,
        after: Option<LogPlace>,
        answer: oneshot::Sender<Result<MachineLog, BusError>>,
    },
}

impl Pictures {
    pub(super) fn in_folder(run: RunDir) -> Self {
        Self(PicturePlace::Folder(Arc::new(run)))
    }

    /// A picture's PNG. Dropping the future gives the request up.
    pub async fn png(&self, hash: &ImageHash) -> Result<Vec<u8>, BusError> {
        match &self.0 {
            PicturePlace::Folder(run) => read_picture(run, hash).map_err(BusError::NoPicture),
            PicturePlace::Socket(queue) => {
                let (answer, answered) = oneshot::channel();
                let hash = hash.clone();
                let request = DetailRequest::Picture { hash, answer };
                queue.send(request).await.map_err(|_| BusError::Lost)?;
                answered.await.map_err(|_| BusError::Lost)?
            }
        }
    }

    /// `png` for threads outside the async runtime.
    pub fn png_blocking(&self, hash: &ImageHash) -> Result<Vec<u8>, BusError> {
        block_on(self.png(hash))
    }

    /// A reply's tokens, with what is known of them. For threads outside the async runtime.
    pub fn tokens_blocking(&self, reply: ReplyId) -> Result<ReplyTokens, BusError> {
        match &self.0 {
            PicturePlace::Folder(run) => run.reply_tokens(reply).map_err(BusError::store),
            PicturePlace::Socket(queue) => {
                let (answer, answered) = oneshot::channel();
                let request = DetailRequest::Tokens { reply, answer };
                queue.blocking_send(request).map_err(|_| BusError::Lost)?;
                answered.blocking_recv().map_err(|_| BusError::Lost)?
            }
        }
    }

    /// What a desktop's machine logged after a place, or its newest part.
    pub async fn machine_log(
        &self,
        desktop: u32,
        after: Option<LogPlace>,
    ) -> Result<MachineLog, BusError> {
        match &self.0 {
            PicturePlace::Folder(run) => run.machine_log(desktop, after).map_err(BusError::store),
            PicturePlace::Socket(queue) => {
                let (answer, answered) = oneshot::channel();
                let request = DetailRequest::Log {
                    desktop,
                    after,
                    answer,
                };
                queue.send(request).await.map_err(|_| BusError::Lost)?;
                answered.await.map_err(|_| BusError::Lost)?
            }
        }
    }

    /// `machine_log` for threads outside the async runtime.
    pub fn machine_log_blocking(
        &self,
        desktop: u32,
        after: Option<LogPlace>,
    ) -> Result<MachineLog, BusError> {
        block_on(self.machine_log(desktop, after))
    }
}
