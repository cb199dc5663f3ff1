//! One question to the broker on a connection of its own, for a client that does not dispatch.

use std::time::Duration;

use norfab_model::{Broker, Connection, Inbound, JobId, Json, Request};

use crate::ClientError;

/// A question to the broker.
pub(crate) struct Question<'a> {
    /// One that no other question has.
    pub(crate) id: JobId,
    pub(crate) task: &'a str,
    pub(crate) kwargs: Json,
}

/// Asks, and closes the connection.
///
/// # Errors
/// [`ClientError::Unreachable`] when no answer comes within `timeout`; at once when the broker, or what is in its place,
/// takes no connection like ours: to try again would not help.
pub(crate) async fn ask<B: Broker>(
    broker: &mut B,
    question: Question<'_>,
    timeout: Duration,
) -> Result<Json, ClientError> {
    let Question { id, task, kwargs } = question;
    let request = Request::Mmi { id: id.clone(), task: task.to_owned(), kwargs };
    let mut known = format!("the broker did not answer within {} s", timeout.as_secs_f64());
    let answer = tokio::time::timeout(timeout, converse(broker, &id, &request, &mut known)).await;
    broker.close().await;
    answer.ok().flatten().ok_or(ClientError::Unreachable { reason: known })
}

/// Asks on every connection anew until the answer comes. None when none can come; `known` is why, as far as that is known.
async fn converse<B: Broker>(broker: &mut B, id: &JobId, request: &Request, known: &mut String) -> Option<Json> {
    let unanswered = known.clone();
    let mut batch = Vec::new();
    while broker.receive(&mut batch, BATCH).await > 0 {
        for inbound in batch.drain(..) {
            match inbound {
                Inbound::Mmi { id: answered, answer } if answered == *id => return Some(answer),
                Inbound::Connection(Connection::Connected) => {
                    known.clone_from(&unanswered);
                    if let Err(error) = broker.send(request.clone()).await {
                        tracing::debug!("Did not send a question: {error}");
                    }
                }
                Inbound::Connection(Connection::Lost(reason)) => *known = reason,
                Inbound::Connection(Connection::Trouble(reason)) => {
                    *known = reason;
                    return None;
                }
                Inbound::Mmi { .. } | Inbound::Reply(_) | Inbound::Stray(_) => {}
            }
        }
    }
    None
}

/// More than ever waits.
const BATCH: usize = 100;

#[cfg(test)]
mod tests {
    use norfab_model::BrokerError;
    use serde_json::json;

    use super::*;

    /// What comes, batch after batch; and the questions that were asked.
    struct Script {
        batches: std::vec::IntoIter<Vec<Inbound>>,
        asked: usize,
    }

    impl Broker for Script {
        async fn send(&mut self, request: Request) -> Result<(), BrokerError> {
            assert!(matches!(request, Request::Mmi { .. }));
            self.asked += 1;
            Ok(())
        }

        async fn receive(&mut self, batch: &mut Vec<Inbound>, _limit: usize) -> usize {
            match self.batches.next() {
                Some(next) => batch.extend(next),
                None => std::future::pending().await,
            }
            batch.len()
        }

        async fn reconnect(&mut self) -> Result<(), BrokerError> {
            Ok(())
        }

        async fn close(&mut self) {}
    }

    fn connected() -> Inbound {
        Inbound::Connection(Connection::Connected)
    }

    fn lost() -> Inbound {
        Inbound::Connection(Connection::Lost("gone".into()))
    }

    fn answer(id: &str) -> Inbound {
        Inbound::Mmi { id: JobId::new(id).unwrap(), answer: Json::from(json!(id)) }
    }

    async fn check(batches: Vec<Vec<Inbound>>, timeout: u64, asked: usize, expected: Result<&str, &str>) {
        let mut broker = Script { batches: batches.into_iter(), asked: 0 };
        let question = Question { id: JobId::new("q").unwrap(), task: "show_workers", kwargs: Json::empty_object() };
        let found = ask(&mut broker, question, Duration::from_millis(timeout)).await;
        match (&found, expected) {
            (Ok(answer), Ok(text)) => assert_eq!(answer.as_str(), format!("\"{text}\"")),
            (Err(ClientError::Unreachable { reason }), Err(part)) => assert!(reason.contains(part), "{reason}"),
            _ => panic!("{found:?} instead of {expected:?}"),
        }
        assert_eq!(broker.asked, asked);
    }

    const LONG: u64 = 600_000;

    #[tokio::test]
    async fn it_is_asked_on_every_connection_until_the_answer_comes() {
        check(vec![vec![connected(), answer("another"), answer("q")]], LONG, 1, Ok("q")).await;
        check(vec![vec![connected()], vec![lost()], vec![connected()], vec![answer("q")]], LONG, 2, Ok("q")).await;
    }

    #[tokio::test]
    async fn what_is_known_is_told_in_the_end() {
        check(vec![], 1, 0, Err("did not answer within 0.001 s")).await;
        check(vec![vec![connected(), lost()]], 1, 1, Err("gone")).await;
        check(vec![vec![lost(), connected()]], 1, 1, Err("did not answer")).await;
    }

    #[tokio::test]
    async fn what_trying_again_does_not_mend_is_told_at_once() {
        let trouble = Inbound::Connection(Connection::Trouble("another key".into()));
        check(vec![vec![lost()], vec![trouble, connected()]], LONG, 0, Err("another key")).await;
    }
}
