//! Runs one job: waits, sends news of it, asks the client. Time comes from the clock that the fabric was given.

use std::time::Duration;

use norfab_model::{Clock, Json, Timestamp, Uptime};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::task::{Raised, Task};
use crate::wire::{Empty, Question};
use crate::worker::{News, Outcome, Reply, Run, TimedOut};

/// News of a job on its way to its worker.
#[derive(Debug)]
pub(crate) struct Report {
    /// The worker's number.
    pub(crate) worker: usize,
    pub(crate) uuid: String,
    pub(crate) news: News,
}

/// A job under way.
pub(crate) struct Runner<C> {
    pub(crate) worker: usize,
    pub(crate) run: Run,
    pub(crate) clock: C,
    pub(crate) reports: mpsc::Sender<Report>,
    /// Payloads of PUTs to this job.
    pub(crate) answers: mpsc::Receiver<Vec<u8>>,
}

/// The fabric has ended; nobody needs the job any more.
struct Gone;

impl<C: Clock> Runner<C> {
    /// Runs the job to its end, or until the fabric has ended.
    pub(crate) async fn run(mut self) {
        let begun = self.clock.moment();
        let outcome = match Task::of(&self.run.call) {
            Ok(task) => self.carry_out(task).await,
            Err(raised) => Ok(Err(raised)),
        };
        let Ok(outcome) = outcome else { return };
        let outcome = outcome.unwrap_or_else(|raised| Outcome::Raised { raised, timed_out: self.timed_out(begun.up) });
        // When nobody listens any more, nobody misses it.
        let _ = self.tell(News::Ended { started: begun.wall, outcome }).await;
    }

    async fn carry_out(&mut self, task: Task) -> Result<Result<Outcome, Raised>, Gone> {
        match task {
            Task::Echo => Ok(self.echo()),
            Task::Sleep { seconds, duration } => {
                self.rest(duration).await;
                Ok(completed(&seconds))
            }
            Task::Raise { message } => Ok(Err(Raised::new("RuntimeError", message))),
            Task::FailSoftly { message } => Ok(Ok(Outcome::Failed { message })),
            Task::Emit { count, interval } => {
                for number in 1..=count {
                    self.tell(News::Step { number, count }).await?;
                    self.rest(interval).await;
                }
                Ok(completed(&count))
            }
            Task::List(tasks) => Ok(completed(&tasks)),
            Task::Ask { question, timeout } => self.ask(question, timeout).await,
        }
    }

    fn echo(&self) -> Result<Outcome, Raised> {
        let Run { uuid, client, call, .. } = &self.run;
        completed(&Echo {
            juuid: uuid,
            client_address: client,
            timeout: &call.timeout,
            task: &call.task,
            args: &call.args,
            kwargs: &call.kwargs,
        })
    }

    /// Asks, and waits for the answer to this question; others are dropped without a word.
    async fn ask(&mut self, question: String, timeout: u32) -> Result<Result<Outcome, Raised>, Gone> {
        let question = Question {
            id: self.question_id(),
            question,
            default: false,
            timeout: i64::from(timeout),
            metadata: Empty {},
        };
        self.tell(News::Asks(question.clone())).await?;
        let end = self.clock.uptime().saturating_add(Duration::from_secs(timeout.into()));
        let clock = self.clock.clone();
        let answer = tokio::select! {
            answer = self.answer_to(&question.id) => answer.map(Some)?,
            () = reach(&clock, end) => None,
        };
        let uuid = &self.run.uuid;
        let (reply, outcome) = match answer {
            None => {
                (Reply::TimedOut, Err(Raised::new("TimeoutError", format!("Client input timed out for job {uuid}"))))
            }
            Some(Answer { cancel: true, metadata, .. }) => {
                let raised = Raised::new("RuntimeError", format!("Client cancelled input for job {uuid}"));
                (Reply::Cancelled { metadata }, Err(raised))
            }
            Some(Answer { value, metadata, .. }) => (Reply::Received { metadata }, Ok(Outcome::Completed(value))),
        };
        self.tell(News::Asked { question, reply }).await?;
        Ok(outcome)
    }

    async fn answer_to(&mut self, id: &str) -> Result<Answer, Gone> {
        loop {
            let payload = self.answers.recv().await.ok_or(Gone)?;
            match serde_json::from_slice::<Answer>(&payload) {
                Ok(answer) if answer.input_id == id => return Ok(answer),
                _ => {}
            }
        }
    }

    /// One question at a time, so that job and worker make it unlike any other.
    fn question_id(&self) -> String {
        format!("{}-{}", self.run.worker, self.run.uuid)
    }

    async fn rest(&self, duration: Duration) {
        reach(&self.clock, self.clock.uptime().saturating_add(duration)).await;
    }

    fn timed_out(&self, begun: Uptime) -> TimedOut {
        let seconds = self.run.call.timeout.as_f64();
        let is_over = seconds.is_some_and(|seconds| self.clock.uptime().since(begun).as_secs_f64() > seconds);
        if is_over { TimedOut::Yes } else { TimedOut::No }
    }

    async fn tell(&self, news: News) -> Result<(), Gone> {
        let report = Report { worker: self.worker, uuid: self.run.uuid.clone(), news };
        self.reports.send(report).await.map_err(|_| Gone)
    }
}

/// Returns when so much time has passed.
async fn reach(clock: &impl Clock, until: Uptime) {
    while clock.uptime() < until {
        clock.sleep_until(Timestamp::MAX, until).await;
    }
}

fn completed(result: &impl Serialize) -> Result<Outcome, Raised> {
    Json::of(result).map(Outcome::Completed).map_err(|error| Raised::new("TypeError", error.to_string()))
}

#[derive(Serialize)]
struct Echo<'a> {
    juuid: &'a str,
    client_address: &'a str,
    timeout: &'a Value,
    task: &'a str,
    args: &'a Json,
    kwargs: &'a Json,
}

/// The payload of a PUT.
#[derive(Deserialize)]
struct Answer {
    input_id: String,
    #[serde(default = "null")]
    value: Json,
    #[serde(default)]
    cancel: bool,
    #[serde(default = "Json::empty_object")]
    metadata: Json,
}

fn null() -> Json {
    Json::from(Value::Null)
}
