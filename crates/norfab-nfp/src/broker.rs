//! The model's `Broker` port on a connection: requests become frames, frames become what the dispatcher understands.

use std::collections::VecDeque;

use norfab_model::{Broker, BrokerError, Inbound, JobId, Reply, ReplyKind, Request, UnsafePayload};

use crate::command::ClientMessage;
use crate::error::{Error, Malformed};
use crate::frame::Frames;
use crate::message::{BrokerMessage, Meaning};
use crate::name::ClientName;
use crate::transport::{Endpoint, QUESTIONS, Refused, Security, Signal, Transport};

/// Bytes of messages after which a batch is full, whatever its limit: large results must not pile up a second time.
const BATCH_BYTES: usize = 16 << 20;

/// A NorFab broker, reached over ZeroMQ. It connects by itself, again and again; [`Inbound::Connection`] tells how that
/// goes. With CURVE, a broker that refuses our keys is [`Connection::Trouble`](norfab_model::Connection::Trouble) after
/// two handshakes.
///
/// # What becomes of a request
///
/// [`send`](Broker::send) never waits. A [`Post`](Request::Post), [`Get`](Request::Get) or [`Put`](Request::Put) belongs
/// to the connection that [`receive`](Broker::receive) told of last: it leaves on that one or never. Handed over while
/// there is none, or left in the queue when it breaks, it is lost without an error; after the next
/// [`Connection::Connected`](norfab_model::Connection::Connected) whoever needs it sends it again. Thus nothing of a job
/// leaves long after it was meant to. A question ([`Request::Mmi`]) that finds no connection waits for the next one.
///
/// Up to 4,096 requests of together 64 MiB wait to be sent, a larger one alone; then `send` says
/// [`BrokerError::Full`] at once, and there is room again when the broker has read some. Questions have a queue of their
/// own, for 256 of together 16 MiB, and go first. About 1 MiB more is in flight on the connection.
///
/// A batch of `receive` ends after 16 MiB of messages, though never without one. It returns 0 only after
/// [`close`](Broker::close), or when the tokio runtime ends: should the code beneath panic, that is told as
/// [`Connection::Trouble`](norfab_model::Connection::Trouble) and the connection is made anew.
///
/// Dropped without `close`, it throws away what waits to be sent.
#[derive(Debug)]
pub struct NfpBroker {
    transport: Transport,
    questions: Questions,
    /// What is ready to be received: one message may say several things.
    ready: VecDeque<Inbound>,
}

impl NfpBroker {
    /// Starts to connect to the broker under a name, which is the client's address there.
    ///
    /// # Errors
    /// [`Error::NoRuntime`] outside of a tokio runtime. That the broker cannot be reached is no error: it is told by
    /// [`Broker::receive`].
    pub fn connect(endpoint: Endpoint, name: &ClientName, security: Security) -> Result<Self, Error> {
        let transport = Transport::start(endpoint, name, security)?;
        Ok(Self { transport, questions: Questions::default(), ready: VecDeque::new() })
    }

    fn take(&mut self, signal: Signal) {
        match signal {
            Signal::Connection(connection, _) => self.ready.push_back(Inbound::Connection(connection)),
            Signal::Frames(frames) => match meaning(frames) {
                Ok(Meaning::Replies(replies)) => self.ready.extend(replies.into_iter().map(Inbound::Reply)),
                // Every answer comes twice; the second one is nobody's.
                Ok(Meaning::Answer { id, answer }) => {
                    if self.questions.close(&id) {
                        self.ready.push_back(Inbound::Mmi { id, answer });
                    }
                }
                Err(error) => self.ready.push_back(Inbound::Stray(error.to_string())),
            },
        }
    }
}

fn meaning(frames: Frames) -> Result<Meaning, Malformed> {
    BrokerMessage::from_frames(frames)?.meaning()
}

/// What a request that is better not sent looks like from the outside: a POST is refused as the broker would refuse it.
fn unsent(request: Request, error: &UnsafePayload) -> Inbound {
    match request {
        Request::Post(post) => {
            Inbound::Reply(Reply::new(post.job, ReplyKind::Refused { errors: vec![error.to_string()] }))
        }
        Request::Get(_) | Request::Put { .. } | Request::Mmi { .. } => {
            Inbound::Stray(format!("a request was not sent: {error}"))
        }
    }
}

impl Broker for NfpBroker {
    async fn send(&mut self, request: Request) -> Result<(), BrokerError> {
        let message = match ClientMessage::of(&request) {
            Ok(message) => message,
            Err(error) => {
                self.ready.push_back(unsent(request, &error));
                return Ok(());
            }
        };
        match request {
            Request::Mmi { id, .. } => {
                self.transport.ask(message.into_frames())?;
                self.questions.open(id);
            }
            Request::Post(_) | Request::Get(_) | Request::Put { .. } => self.transport.send(message.into_frames())?,
        }
        Ok(())
    }

    async fn receive(&mut self, batch: &mut Vec<Inbound>, limit: usize) -> usize {
        let mut bytes = 0;
        while self.ready.is_empty() {
            let Some(signal) = self.transport.recv().await else { return 0 };
            bytes += signal.size();
            self.take(signal);
        }
        let mut count = 0;
        while count < limit.max(1) {
            if let Some(inbound) = self.ready.pop_front() {
                batch.push(inbound);
                count += 1;
                continue;
            }
            if bytes >= BATCH_BYTES {
                break;
            }
            let Some(signal) = self.transport.try_recv() else { break };
            bytes += signal.size();
            self.take(signal);
        }
        count
    }

    async fn reconnect(&mut self) -> Result<(), BrokerError> {
        self.transport.renew().map_err(|_| BrokerError::Closed)
    }

    async fn close(&mut self) {
        self.transport.close().await;
    }
}

impl From<Refused> for BrokerError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Closed => Self::Closed,
            Refused::Full => Self::Full,
        }
    }
}

/// Questions to the broker that wait for their answer. One that gets none is forgotten after a while.
#[derive(Debug, Default)]
struct Questions(VecDeque<JobId>);

impl Questions {
    const MOST: usize = 2 * QUESTIONS;

    fn open(&mut self, id: JobId) {
        if self.0.len() >= Self::MOST {
            self.0.pop_front();
        }
        self.0.push_back(id);
    }

    /// Whether it was open.
    fn close(&mut self, id: &JobId) -> bool {
        let place = self.0.iter().position(|open| open == id);
        place.and_then(|place| self.0.remove(place)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_once() {
        let id = JobId::new("q").unwrap();
        let mut questions = Questions::default();
        assert!(!questions.close(&id));
        questions.open(id.clone());
        assert!(questions.close(&id));
        assert!(!questions.close(&id));
    }

    #[test]
    fn questions_without_an_answer_do_not_pile_up() {
        let mut questions = Questions::default();
        for number in 0..1000 {
            questions.open(JobId::new(format!("q{number}")).unwrap());
        }
        assert_eq!(questions.0.len(), Questions::MOST);
        assert!(questions.close(&JobId::new("q999").unwrap()) && !questions.close(&JobId::new("q0").unwrap()));
    }

    const SIZE: usize = 1 << 20;

    /// So many messages of about a mebibyte each, as a batch takes them, and how many are left after it.
    async fn check_batch(sizes: &[usize], limit: usize, expected: (usize, usize)) {
        let signals = sizes.iter().map(|size| Signal::Frames(result(*size))).collect();
        let transport = crate::transport::tests::saying(signals).await;
        let mut broker = NfpBroker { transport, questions: Questions::default(), ready: VecDeque::new() };
        let mut batch = Vec::new();
        let first = broker.receive(&mut batch, limit).await;
        while broker.receive(&mut batch, usize::MAX).await > 0 {}
        assert_eq!((first, batch.len() - first), expected);
    }

    fn result(size: usize) -> Frames {
        let payload = format!("{{\"w1\":\"{}\"}}", "x".repeat(size));
        ["", "NFPB01", "0x05", "dummy", "job", "200", &payload].map(|part| part.as_bytes().to_vec()).to_vec()
    }

    #[tokio::test]
    async fn a_batch_ends_at_its_limit() {
        check_batch(&[10; 100], 7, (7, 93)).await;
        check_batch(&[10; 100], 1000, (100, 0)).await;
    }

    #[tokio::test]
    async fn a_batch_of_large_messages_ends_earlier() {
        check_batch(&[SIZE; 40], 1000, (BATCH_BYTES / SIZE, 40 - BATCH_BYTES / SIZE)).await;
    }

    #[tokio::test]
    async fn a_message_larger_than_a_batch_comes_alone() {
        check_batch(&[2 * BATCH_BYTES, 10, 10], 1000, (1, 2)).await;
    }
}
