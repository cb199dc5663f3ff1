//! The loop of a loopback fabric: it owns the socket, lets broker and workers decide, and carries out what they want.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use norfab_model::Clock;
use norfab_nfp::Command;
use omq_tokio::{Message, Socket};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::broker::{Broker, Decision, envelope_of};
use crate::record::{Execution, Records, SeenMessage};
use crate::run::{Report, Runner};
use crate::wire::Outgoing;
use crate::worker::{Effect, News, Run, Worker};

/// News that may wait for the loop.
const REPORTS: usize = 1024;
/// Answers that may wait for a job.
const ANSWERS: usize = 16;

/// What the handle wants of the broker alone; the answer goes back once it is so.
#[derive(Debug)]
pub(crate) enum Order {
    /// Away: whoever is connected is cut off, and what is sent meanwhile is lost.
    Down(oneshot::Sender<()>),
    /// There again, at this socket.
    Up(Socket, oneshot::Sender<()>),
}

/// A fabric under way.
pub(crate) struct Fabric<C> {
    /// None while the broker is away.
    socket: Option<Socket>,
    broker: Broker,
    workers: Vec<Worker>,
    clock: C,
    records: Records,
    reports: (mpsc::Sender<Report>, mpsc::Receiver<Report>),
    /// Where answers to a worker's running job go.
    answers: HashMap<(usize, String), mpsc::Sender<Vec<u8>>>,
    jobs: JoinSet<()>,
}

/// What wakes the loop.
enum Wake {
    Message(omq_tokio::Result<Message>),
    Order(Order),
    Report(Report),
    JobEnded,
    Stop,
}

impl<C: Clock> Fabric<C> {
    pub(crate) fn new(socket: Socket, broker: Broker, workers: Vec<Worker>, clock: C, records: Records) -> Self {
        let reports = mpsc::channel(REPORTS);
        let socket = Some(socket);
        Self { socket, broker, workers, clock, records, reports, answers: HashMap::new(), jobs: JoinSet::new() }
    }

    /// Serves until told to stop, or until nobody is left who could tell.
    pub(crate) async fn serve(mut self, mut orders: mpsc::Receiver<Order>, mut stop: oneshot::Receiver<()>) {
        loop {
            let wake = tokio::select! {
                message = receive(self.socket.as_ref()) => Wake::Message(message),
                Some(order) = orders.recv() => Wake::Order(order),
                Some(report) = self.reports.1.recv() => Wake::Report(report),
                Some(_) = self.jobs.join_next() => Wake::JobEnded,
                _ = &mut stop => Wake::Stop,
            };
            match wake {
                Wake::Message(Ok(message)) => self.message(message).await,
                Wake::Message(Err(error)) => tracing::debug!(%error, "Loopback broker lost a message"),
                Wake::Order(order) => self.obey(order).await,
                Wake::Report(Report { worker, uuid, news }) => self.report(worker, uuid, news).await,
                Wake::JobEnded => {}
                Wake::Stop => break,
            }
        }
        self.jobs.shutdown().await;
        self.close().await;
    }

    async fn obey(&mut self, order: Order) {
        let done = match order {
            Order::Down(done) => {
                self.close().await;
                done
            }
            Order::Up(socket, done) => {
                self.close().await;
                self.socket = Some(socket);
                done
            }
        };
        // Whoever wanted it may not wait for it any more.
        let _ = done.send(());
    }

    async fn close(&mut self) {
        let Some(socket) = self.socket.take() else { return };
        if let Err(error) = socket.close().await {
            tracing::debug!(%error, "Loopback broker did not close in order");
        }
    }

    async fn message(&mut self, mut message: Message) {
        let mut frames = std::iter::from_fn(|| message.pop_front()).map(Into::into);
        let Some(client): Option<Vec<u8>> = frames.next() else { return };
        let Some(envelope) = envelope_of(frames.collect()) else { return };
        let now = self.clock.now();
        let text = |frame: &Vec<u8>| String::from_utf8_lossy(frame).into_owned();
        let [service, target, uuid, payload] = &envelope.fields;
        self.records.message(SeenMessage {
            at: now,
            client: text(&client),
            command: text(&envelope.command),
            service: text(service),
            target: text(target),
            uuid: text(uuid),
            bytes: [&envelope.command, service, target, uuid, payload].map(Vec::len).iter().sum(),
        });
        for decision in self.broker.decide(self.clock.uptime(), envelope, &mut by_chance) {
            match decision {
                Decision::Answer(frames) => self.send(Outgoing { client: client.clone(), frames }).await,
                Decision::Deliver { worker, command, uuid, payload } => {
                    self.deliver(worker, command, &client, &uuid, &payload).await;
                }
            }
        }
    }

    async fn deliver(&mut self, number: usize, command: Command, client: &[u8], uuid: &str, payload: &[u8]) {
        let now = self.clock.now();
        let Some(worker) = self.workers.get_mut(number) else { return };
        let effects = match command {
            Command::Post => worker.post(now, client, uuid, payload),
            Command::Get => vec![worker.get(client, uuid)],
            Command::Put => worker.put(uuid, payload).into_iter().collect(),
            _ => Vec::new(),
        };
        self.carry_out(number, effects).await;
    }

    async fn report(&mut self, number: usize, uuid: String, news: News) {
        let now = self.clock.now();
        let Some(worker) = self.workers.get_mut(number) else { return };
        let has_ended = matches!(news, News::Ended { .. });
        let effects = worker.hear(now, &uuid, news);
        if has_ended {
            self.answers.remove(&(number, uuid));
        }
        self.carry_out(number, effects).await;
    }

    async fn carry_out(&mut self, number: usize, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(outgoing) => self.send(outgoing).await,
                Effect::Run(run) => self.start(number, run),
                Effect::Answer { uuid, payload } => {
                    if let Some(job) = self.answers.get(&(number, uuid)) {
                        // A job that takes no answers drops them, as a real one does.
                        let _ = job.try_send(payload);
                    }
                }
            }
        }
    }

    fn start(&mut self, worker: usize, run: Run) {
        self.records.execution(Execution {
            job: run.uuid.clone(),
            worker: run.worker.clone(),
            task: run.call.task.clone(),
            at: self.clock.now(),
        });
        let (answer, answers) = mpsc::channel(ANSWERS);
        self.answers.insert((worker, run.uuid.clone()), answer);
        let (clock, reports) = (self.clock.clone(), self.reports.0.clone());
        self.jobs.spawn(Runner { worker, run, clock, reports, answers }.run());
    }

    /// What is for a client that is not connected is lost, as at any ROUTER; all is while the broker is away.
    async fn send(&mut self, Outgoing { client, frames }: Outgoing) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.send_to(client, Message::multipart(frames)).await {
            tracing::debug!(%error, "Loopback broker dropped a message");
        }
    }
}

/// The next message; none ever comes while the broker is away.
async fn receive(socket: Option<&Socket>) -> omq_tokio::Result<Message> {
    match socket {
        Some(socket) => socket.recv().await,
        None => std::future::pending().await,
    }
}

/// Some number below `count`. A new hasher's keys come from the system's random numbers.
fn by_chance(count: usize) -> usize {
    let random = RandomState::new().build_hasher().finish();
    usize::try_from(random % u64::try_from(count.max(1)).unwrap_or(u64::MAX)).unwrap_or_default()
}
