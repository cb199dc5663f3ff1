//! The client's socket: it connects by itself and again, keeps what is sent in order, and hears what the broker says to its
//! name.

use std::collections::{BTreeSet, VecDeque};

use norfab_model::{Connection, Inbound, JobId, Request};

use super::{Event, Lane, MILLI, Micros, Sent, State, short, shown};

/// The socket of the client.
#[derive(Debug, Default)]
pub(super) struct Socket {
    pub(super) open: bool,
    /// Which connection it is; what belongs to an older one is lost.
    pub(super) epoch: u64,
    pub(super) connected: bool,
    /// The client has been told so.
    pub(super) told: bool,
    /// Another client has its name.
    pub(super) stolen: bool,
    /// When the broker was started that it is connected to.
    pub(super) broker_since: Micros,
    /// Questions that wait for a connection.
    pub(super) waiting: Vec<Request>,
    pub(super) inbox: VecDeque<Inbound>,
    /// Questions that are open: each is answered once.
    pub(super) questions: BTreeSet<JobId>,
    /// The connection of the process before: what that one sent arrives until there is another.
    pub(super) last_words: Option<u64>,
}

impl State {
    pub(super) fn is_connected(&self, epoch: u64) -> bool {
        self.socket.open && self.socket.connected && self.socket.epoch == epoch
    }

    /// A new process opens its socket.
    pub(crate) fn open(&mut self) {
        let epoch = self.socket.epoch + 1;
        self.socket = Socket { open: true, epoch, last_words: self.socket.last_words, ..Socket::default() };
        self.connect_soon();
    }

    /// The process is gone, and its socket with it. What it had sent is on its way.
    pub(crate) fn close(&mut self) {
        let epoch = self.socket.epoch;
        let last_words = (self.socket.connected && !self.socket.stolen).then_some(epoch);
        self.socket = Socket { epoch: epoch + 1, last_words, ..Socket::default() };
    }

    pub(super) fn connect_soon(&mut self) {
        let delay = self.rng.between(5 * MILLI, 700 * MILLI);
        let epoch = self.socket.epoch;
        let at = self.now() + delay;
        self.at(at, Event::Connect { epoch });
    }

    pub(super) fn connect(&mut self, epoch: u64) {
        if self.broker_up && !self.cut && self.socket.open && !self.socket.connected && self.socket.epoch == epoch {
            (self.socket.connected, self.socket.broker_since) = (true, self.broker_since);
            self.socket.last_words = None;
            self.socket.inbox.push_back(Inbound::Connection(Connection::Connected));
        }
    }

    /// The connection ends; the socket makes a new one.
    pub(super) fn disconnect(&mut self) {
        if !self.socket.open {
            return;
        }
        let was = self.socket.connected;
        self.socket.epoch += 1;
        (self.socket.connected, self.socket.stolen) = (false, false);
        if was {
            self.socket.inbox.push_back(Inbound::Connection(Connection::Lost("the connection broke".into())));
        }
        self.connect_soon();
    }

    pub(crate) fn renew(&mut self) {
        self.note(|| "client makes a new connection".into());
        self.socket.told = false;
        self.disconnect();
    }

    /// Takes a request of the client; false when there is no room.
    pub(crate) fn take(&mut self, request: Request) -> bool {
        if let Request::Post(post) = &request {
            let now = self.now();
            self.patience.posts(&post.job, now);
            if self.full > 0 {
                self.full -= 1;
                return false;
            }
        }
        self.messages += 1;
        match &request {
            Request::Post(post) => {
                let (job, shown) = (post.job.clone(), self.clock.shown());
                self.note(|| format!("> POST {} to {}", short(&job), post.target));
                *self.posts.entry(job.clone()).or_default() += 1;
                let now = self.now();
                self.first_post.entry(job.clone()).or_insert(now);
                self.sent.push(Sent { job, shown });
            }
            Request::Get(poll) => self.note(|| format!("> GET  {} to {}", short(&poll.job), poll.target)),
            Request::Put { job, worker, .. } => self.note(|| format!("> PUT  {} to {worker}", short(job))),
            Request::Mmi { id, task, .. } => {
                self.socket.questions.insert(id.clone());
                self.note(|| format!("> MMI  {task}"));
                if !self.socket.told {
                    self.socket.waiting.push(request);
                    return true;
                }
            }
        }
        if self.socket.told && self.socket.connected {
            self.leave(request);
        }
        true
    }

    fn leave(&mut self, request: Request) {
        let (delay, epoch) = (self.delay(), self.socket.epoch);
        self.along(Lane::ToBroker, delay, Event::AtBroker { epoch, request });
    }

    /// What has arrived for the client.
    pub(crate) fn receive(&mut self, limit: usize) -> Vec<Inbound> {
        let count = limit.max(1).min(self.socket.inbox.len());
        let batch: Vec<Inbound> = self.socket.inbox.drain(..count).collect();
        for inbound in &batch {
            self.messages += 1;
            self.note(|| format!("< {}", shown(inbound)));
            match inbound {
                Inbound::Connection(Connection::Connected) => {
                    self.socket.told = true;
                    for request in std::mem::take(&mut self.socket.waiting) {
                        self.leave(request);
                    }
                }
                Inbound::Connection(_) => self.socket.told = false,
                Inbound::Reply(reply) => {
                    let now = self.now();
                    self.patience.hears(reply, now);
                }
                _ => {}
            }
        }
        batch
    }

    pub(super) fn say(&mut self, inbound: Inbound) {
        if self.socket.connected && !self.socket.stolen && !self.cut && !self.lost() {
            let (delay, epoch) = (self.delay(), self.socket.epoch);
            self.along(Lane::ToClient, delay, Event::AtClient { epoch, inbound });
        }
    }

    pub(super) fn at_client(&mut self, epoch: u64, inbound: Inbound) {
        if !self.is_connected(epoch) || self.socket.stolen || self.cut {
            return;
        }
        if let Inbound::Mmi { id, .. } = &inbound
            && !self.socket.questions.remove(id)
        {
            return;
        }
        self.socket.inbox.push_back(inbound);
    }
}
