//! The video thread: one machine, its sockets, its timer, and the requests of the rest of the program.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use crossdesk_core::automation::VideoOutputStats;
use crossdesk_core::time::Monotonic;
use crossdesk_core::video::{
    Admission, CloseReason, ConnectionId, Effect, Grant, GrantRefusal, Hub, MAX_CANDIDATES, MAX_VIEWERS,
    Protocol, ViewId,
};
use crossdesk_pipelines::clock;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::spawn_local;
use tungstenite::http::StatusCode;

use super::picture::Packer;
use super::{Publisher, VideoConfig, VideoStats, connection, handshake};

/// Sockets that say goodbye at the same time; more are cut off without one. As many as can be open at all.
const MAX_LEAVING: usize = MAX_CANDIDATES + MAX_VIEWERS;

/// How long the end of the process waits for goodbyes. Everything local has answered by then.
const FAREWELL: Duration = Duration::from_millis(100);

/// Out of file descriptors, most likely: try again when one may be free.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// What the rest of the program asks of the video thread; each answers when it is done.
pub(super) enum Command {
    Begin(u32, Protocol, SyncSender<()>),
    End(SyncSender<()>),
    Grant(Grant, SyncSender<Result<(), GrantRefusal>>),
    Revoke(Option<ViewId>, SyncSender<()>),
    Stats(SyncSender<VideoStats>),
    Stop,
}

/// How a connection's task learns what the machine wants of it.
#[derive(Default)]
pub(super) struct Slot {
    /// Something changed: a message waits, or the connection must close.
    pub(super) changed: Notify,
    close: Cell<Option<CloseReason>>,
}

impl Slot {
    /// True when the connection must close and its task has not noticed yet.
    pub(super) fn is_closing(&self) -> bool {
        self.close.get().is_some()
    }

    /// Why to close, once.
    pub(super) fn take_close(&self) -> Option<CloseReason> {
        self.close.take()
    }
}

/// Everything the tasks of the video thread share. Borrows are short and never held across an await.
pub(super) struct World {
    hub: RefCell<Hub>,
    slots: RefCell<HashMap<ConnectionId, Rc<Slot>>>,
    publisher: Publisher,
    packer: Packer,
    keyframe_wanted: Box<dyn Fn() + Send>,
    /// The `Host` this listener answers to.
    pub(super) host: String,
    watched: Cell<bool>,
    unreadable: Cell<u64>,
    leaving: Cell<usize>,
    alarm: Cell<Option<Monotonic>>,
    alarm_changed: Notify,
    task_ended: Notify,
}

impl World {
    pub(super) fn new(config: VideoConfig, publisher: Publisher, port: u16) -> Self {
        Self {
            hub: RefCell::default(),
            slots: RefCell::default(),
            publisher,
            packer: Packer::new(),
            keyframe_wanted: config.keyframe_wanted,
            host: format!("127.0.0.1:{port}"),
            watched: Cell::new(false),
            unreadable: Cell::new(0),
            leaving: Cell::new(0),
            alarm: Cell::new(None),
            alarm_changed: Notify::new(),
            task_ended: Notify::new(),
        }
    }

    /// Lets the machine handle something and carries out what follows from it.
    pub(super) fn hub<T>(&self, handle: impl FnOnce(&mut Hub, Monotonic) -> T) -> T {
        let outcome = handle(&mut self.hub.borrow_mut(), clock::now());
        self.serve_pictures();
        self.carry_out();
        self.set_alarm();
        outcome
    }

    /// Asks the machine something that changes nothing.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&mut Hub) -> T) -> T {
        question(&mut self.hub.borrow_mut())
    }

    /// Packs the newest picture when, and only when, a viewer can take it.
    fn serve_pictures(&self) {
        while self.ask(|hub| hub.wants_picture()) {
            let Some(picture) = self.publisher.take_picture() else {
                self.ask(|hub| hub.offer_latest(clock::now()));
                return;
            };
            match self.packer.pack(&picture) {
                Some(packed) => self.ask(|hub| hub.handle_picture(clock::now(), &packed)),
                None => self.unreadable.set(self.unreadable.get() + 1),
            }
        }
    }

    fn carry_out(&self) {
        while let Some(effect) = self.ask(Hub::poll_effect) {
            match effect {
                Effect::Ready(id) => self.notify(id, None),
                Effect::Close(id, reason) => self.notify(id, Some(reason)),
                Effect::RequestKeyframe => (self.keyframe_wanted)(),
            }
        }
        let watched = self.ask(|hub| hub.stats().viewers > 0);
        if self.watched.replace(watched) != watched {
            self.publisher.handoff().set_watched(watched);
        }
    }

    fn notify(&self, id: ConnectionId, close: Option<CloseReason>) {
        if let Some(slot) = self.slots.borrow().get(&id) {
            if close.is_some() {
                slot.close.set(close);
            }
            slot.changed.notify_one();
        }
    }

    /// Wakes the timer only when it would sleep too long; waking early does no harm.
    fn set_alarm(&self) {
        let next = self.ask(|hub| hub.next_deadline());
        if let Some(next) = next.filter(|next| self.alarm.get().is_none_or(|alarm| *next < alarm)) {
            self.alarm.set(Some(next));
            self.alarm_changed.notify_one();
        }
    }

    /// Keeps time for the machine.
    async fn keep_time(&self) {
        loop {
            match self.alarm.get() {
                None => self.alarm_changed.notified().await,
                Some(alarm) => {
                    let wait = alarm.since(clock::now());
                    tokio::select! {
                        () = self.alarm_changed.notified() => {}
                        () = tokio::time::sleep(wait) => {
                            self.alarm.set(None);
                            self.hub(|hub, now| hub.handle_timeout(now));
                        }
                    }
                }
            }
        }
    }

    /// Takes what the publisher has handed over.
    async fn take_units(&self) {
        loop {
            self.publisher.filled().await;
            self.hub(|hub, now| {
                while let Some((unit, published)) = self.publisher.take_unit() {
                    hub.handle_unit(now, &unit, published);
                }
            });
        }
    }

    async fn accept(self: Rc<Self>, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => self.admit(stream),
                Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
            }
        }
    }

    fn admit(self: &Rc<Self>, stream: TcpStream) {
        let Admission::Admitted(id) = self.hub(|hub, now| hub.handle_connect(now)) else {
            // A courtesy; the socket closes in any case.
            let _ = stream.try_write(&handshake::refusal(StatusCode::SERVICE_UNAVAILABLE));
            return;
        };
        // Without it control frames could wait for an acknowledgement; video is correct either way.
        let _ = stream.set_nodelay(true);
        let slot = Rc::new(Slot::default());
        self.slots.borrow_mut().insert(id, Rc::clone(&slot));
        let world = Rc::clone(self);
        spawn_local(async move {
            connection::serve(Rc::clone(&world), id, slot, stream).await;
            world.slots.borrow_mut().remove(&id);
            world.hub(|hub, _| hub.handle_disconnect(id));
            world.task_ended.notify_one();
        });
    }

    /// Reserves a place for a goodbye; false when too many are under way.
    pub(super) fn start_leaving(&self) -> bool {
        let free = self.leaving.get() < MAX_LEAVING;
        self.leaving.set(self.leaving.get() + usize::from(free));
        free
    }

    /// Frees the place of a goodbye.
    pub(super) fn stop_leaving(&self) {
        self.leaving.set(self.leaving.get() - 1);
    }

    /// Does what was asked and answers. A caller that gave up waiting has dropped its end, and nobody else needs the
    /// answer.
    fn obey(&self, command: Command) -> ControlFlow<()> {
        match command {
            Command::Begin(generation, protocol, reply) => {
                self.begin(generation, protocol);
                let _ = reply.send(());
            }
            Command::End(reply) => {
                self.end();
                let _ = reply.send(());
            }
            Command::Grant(grant, reply) => {
                let _ = reply.send(self.hub(|hub, now| hub.grant(now, grant)));
            }
            Command::Revoke(view, reply) => {
                self.revoke(view);
                let _ = reply.send(());
            }
            Command::Stats(reply) => {
                let _ = reply.send(self.stats());
            }
            Command::Stop => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    fn begin(&self, generation: u32, protocol: Protocol) {
        self.publisher.handoff().begin(Some(protocol));
        self.hub(|hub, _| hub.begin(generation, protocol));
        self.cut_leaving();
    }

    fn end(&self) {
        self.publisher.handoff().begin(None);
        self.hub(|hub, _| hub.end());
        self.cut_leaving();
        self.packer.clear();
    }

    fn revoke(&self, view: Option<ViewId>) {
        self.hub(|hub, _| hub.revoke(view));
        self.cut_leaving();
    }

    /// Sockets the machine has forgotten may still be finishing a frame before they say goodbye. Which grant they
    /// had is forgotten as well, so none of them goes on once anything is revoked.
    fn cut_leaving(&self) {
        let slots = self.slots.borrow();
        for (_, slot) in slots.iter().filter(|(id, _)| !self.ask(|hub| hub.knows(**id))) {
            slot.close.set(slot.close.get().or(Some(CloseReason::Revoked)));
            slot.changed.notify_one();
        }
    }

    fn stats(&self) -> VideoStats {
        let (hub, viewers) = self.ask(|hub| (hub.stats(), hub.reports()));
        let handoff = self.publisher.handoff();
        VideoStats {
            output: VideoOutputStats {
                viewers: u32::try_from(hub.viewers).unwrap_or(u32::MAX),
                queued: handoff.queued() as u64,
                queued_bytes: handoff.queued_bytes() as u64,
                unacknowledged_bytes: hub.unacknowledged_bytes as u64,
                dropped: hub.dropped + handoff.dropped(),
            },
            viewers,
            candidates: hub.candidates,
            oversized: handoff.oversized(),
            unreadable: self.unreadable.get(),
        }
    }

    /// Waits a moment for sockets to say goodbye.
    async fn farewell(&self) {
        let gone = async {
            while !self.slots.borrow().is_empty() {
                self.task_ended.notified().await;
            }
        };
        // Whoever is still here after that is cut off with the runtime.
        let _ = tokio::time::timeout(FAREWELL, gone).await;
    }
}

/// Runs until told to stop or abandoned by every sender.
pub(super) async fn run(world: Rc<World>, listener: TcpListener, mut commands: mpsc::Receiver<Command>) {
    let accepting = spawn_local(Rc::clone(&world).accept(listener));
    let work = async {
        while let Some(command) = commands.recv().await {
            if world.obey(command).is_break() {
                break;
            }
        }
    };
    tokio::select! {
        biased;
        () = work => {}
        () = world.take_units() => {}
        () = world.keep_time() => {}
    }
    accepting.abort();
    world.end();
    world.farewell().await;
}
