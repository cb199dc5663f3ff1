//! The model's `Broker` port on a connection: requests become frames, frames become what the dispatcher understands.

use std::collections::VecDeque;
use std::time::Duration;

use norfab_model::{Broker, BrokerError, Inbound, JobId, Reply, ReplyKind, Request, UnsafePayload};

use crate::command::ClientMessage;
use crate::error::{Error, Malformed};
use crate::frame::Frames;
use crate::message::{BrokerMessage, Meaning};
use crate::name::ClientName;
use crate::transport::{Endpoint, Security, Signal, Transport};

/// How long a request may wait for room in the queue.
const PATIENCE: Duration = Duration::from_secs(1);

/// A NorFab broker, reached over ZeroMQ. It connects by itself, again and again; [`Inbound::Connection`] tells how that
/// goes. With CURVE, a broker that refuses our keys is [`Connection::Trouble`](norfab_model::Connection::Trouble) after
/// two handshakes.
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
            Signal::Connection(connection) => self.ready.push_back(Inbound::Connection(connection)),
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
            Inbound::Reply(Reply { job: post.job, kind: ReplyKind::Refused { errors: vec![error.to_string()] } })
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
        match tokio::time::timeout(PATIENCE, self.transport.send(message.into_frames())).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(BrokerError::Closed),
            Err(_) => return Err(BrokerError::Full),
        }
        if let Request::Mmi { id, .. } = request {
            self.questions.open(id);
        }
        Ok(())
    }

    async fn receive(&mut self, batch: &mut Vec<Inbound>, limit: usize) -> usize {
        while self.ready.is_empty() {
            let Some(signal) = self.transport.recv().await else { return 0 };
            self.take(signal);
        }
        let mut count = 0;
        while count < limit.max(1) {
            let Some(inbound) = self.ready.pop_front() else {
                let Some(signal) = self.transport.try_recv() else { break };
                self.take(signal);
                continue;
            };
            batch.push(inbound);
            count += 1;
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

/// Questions to the broker that wait for their answer. One that gets none is forgotten after a while.
#[derive(Debug, Default)]
struct Questions(VecDeque<JobId>);

impl Questions {
    const MOST: usize = 256;

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
}
