//! Waiting for a job: tells what happens to it as it happens, with a countdown while it waits for its time.

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use norfab_client::{
    Client, ClientError, Clock, Dispatching, HolderKind, Job, JobEvent, JobStatus, LinkState, SystemClock, Timestamp,
    Update, Uptime, dispatching,
};

use super::questions::{Handle, Questions};
use crate::output::{Moments, Output, Stream, elapsed, event_line, status_line};
use crate::signals::{Signals, StopSignal};

/// Why waiting ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The job has ended.
    Ended,
    /// The fabric could not be reached in time.
    Unreachable(String),
    /// The program was asked to stop.
    Stopped(StopSignal),
}

/// Follows one job.
#[derive(Debug)]
pub(crate) struct Follower<'a> {
    out: &'a Output,
    questions: Questions,
    began: Uptime,
    countdown: Option<Countdown>,
}

/// How long an end without a send may take to be explained.
const EXPLANATION: Duration = Duration::from_secs(2);

impl<'a> Follower<'a> {
    /// Follows from now on, with these answers to what the job may ask.
    #[must_use]
    pub(crate) fn new(out: &'a Output, questions: Questions) -> Self {
        Self { out, questions, began: SystemClock.uptime(), countdown: None }
    }

    /// Waits until the job has ended, or there is a reason not to wait any longer.
    pub(crate) async fn follow(
        mut self,
        client: &Client,
        handle: &mut Handle,
        database: &Path,
        signals: &mut Signals,
        patience: Duration,
    ) -> Result<Ending, ClientError> {
        let mut last = handle.job().await?;
        let watch = client.job(handle.id()).await?;
        let mut link = Link::default();
        let mut unsent_since = SystemClock.uptime();
        let ending = loop {
            let stuck = stuck(&last, unsent_since, patience);
            tokio::select! {
                update = handle.next_update() => match update? {
                    Some(Update::Status(job)) => {
                        if job.status == JobStatus::New {
                            unsent_since = SystemClock.uptime();
                        }
                        last = *job;
                        self.status(&last);
                        self.questions.look(&last, handle, self.out).await?;
                    }
                    Some(Update::Event(event)) => {
                        let job = handle.job().await?;
                        if !is_told_at_the_end(&event, &job) {
                            self.tell(&event_line(&event));
                        }
                        self.questions.look(&job, handle, self.out).await?;
                    }
                    None => break Ending::Ended,
                },
                line = self.questions.line() => self.questions.answer(&line, handle, self.out).await?,
                reason = client.unreachable() => break Ending::Unreachable(reason),
                reason = watch.overdue() => break Ending::Unreachable(reason?),
                signal = signals.next() => break Ending::Stopped(signal),
                () = stuck => {
                    unsent_since = Uptime::MAX;
                    self.tell_who_holds(database);
                }
                news = link.next(client) => self.tell(&news),
                () = tick(self.countdown.as_ref()) => self.count_down(handle).await?,
            }
        };
        self.out.clear_bar();
        Ok(explain(ending, &last, client).await)
    }

    fn status(&mut self, job: &Job) {
        self.out.clear_bar();
        self.countdown = None;
        self.tell(&status_line(job, &Moments::now(), Stream::Stderr));
        if let (JobStatus::Scheduled, Some(at)) = (job.status, job.scheduled_for) {
            self.countdown = Countdown::until(at, "starts", self.out);
        }
    }

    /// Draws the countdown anew. At its end the job may have been given another time.
    async fn count_down(&mut self, handle: &Handle) -> Result<(), ClientError> {
        let Some(countdown) = &self.countdown else { return Ok(()) };
        if countdown.draw(SystemClock.now()) {
            return Ok(());
        }
        let job = handle.job().await?;
        if job.status == JobStatus::Scheduled && job.scheduled_for.is_some_and(|at| at != countdown.until) {
            self.status(&job);
        }
        Ok(())
    }

    fn tell(&self, what: &str) {
        self.out.progress(&format!("{:>10}  {what}", elapsed(SystemClock.uptime().since(self.began))));
    }

    /// A job that is not sent for a while, though there is somebody to send it.
    fn tell_who_holds(&self, database: &Path) {
        if let Ok(Dispatching::Somebody(Some(holder))) = dispatching(database) {
            let pid = holder.pid;
            match holder.kind {
                _ if pid == std::process::id() => {}
                HolderKind::Owner => self
                    .out
                    .note(&format!("process {pid} serves this database and has not sent the job yet; see its log")),
                HolderKind::Guest => self.out.note(&format!("waits for process {pid}, which serves a job of its own")),
            }
        }
    }
}

/// Whether an event is the client's own word of why a job failed: the command ends with it.
fn is_told_at_the_end(event: &JobEvent, job: &Job) -> bool {
    let is_own_error = event.severity == "ERROR" && event.data.as_str() == "{}";
    is_own_error && job.status.is_terminal() && job.status != JobStatus::Completed
}

/// The link to the broker, as far as a person wants to know: when it is lost, and when it is there again.
#[derive(Debug, Default)]
struct Link {
    seen: Seen,
}

/// What was last seen of the link.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// It has not been up yet.
    #[default]
    NotYet,
    /// It was up.
    Up,
    /// It was up, and is down; that was told.
    Lost,
}

impl Link {
    /// Waits until there is something to tell. Safe to drop while it waits.
    async fn next(&mut self, client: &Client) -> String {
        loop {
            let Some(mut health) = client.watch_health() else {
                // Another process has the link, or nobody.
                self.seen = Seen::NotYet;
                tokio::time::sleep(TICK).await;
                continue;
            };
            let link = health.borrow_and_update().link.clone();
            if let Some(news) = self.look(link) {
                return news;
            }
            if health.changed().await.is_err() {
                self.seen = Seen::NotYet;
                tokio::time::sleep(TICK).await;
            }
        }
    }

    fn look(&mut self, link: LinkState) -> Option<String> {
        match (self.seen, link) {
            (Seen::Up, LinkState::Down { reason }) => {
                self.seen = Seen::Lost;
                Some(format!("the link to the broker is down: {reason}"))
            }
            (before, LinkState::Up) => {
                self.seen = Seen::Up;
                (before == Seen::Lost).then(|| "the link to the broker is up again".to_owned())
            }
            _ => None,
        }
    }
}

/// A job that was never sent has failed because the fabric was not reached, whoever of the two was told first.
async fn explain(ending: Ending, last: &Job, client: &Client) -> Ending {
    let given_up = last.errors.iter().any(|error| error.starts_with("the fabric was not reached"));
    let was_never_sent = ending == Ending::Ended && last.status == JobStatus::Failed && given_up;
    if was_never_sent && let Ok(reason) = tokio::time::timeout(EXPLANATION, client.unreachable()).await {
        return Ending::Unreachable(reason);
    }
    ending
}

/// Returns when a job has been NEW for too long.
async fn stuck(job: &Job, since: Uptime, patience: Duration) {
    if job.status != JobStatus::New || since == Uptime::MAX {
        return std::future::pending().await;
    }
    let until = since.saturating_add(patience);
    tokio::time::sleep(until.since(SystemClock.uptime())).await;
}

async fn tick(countdown: Option<&Countdown>) {
    match countdown {
        Some(_) => tokio::time::sleep(TICK).await,
        None => std::future::pending().await,
    }
}

const TICK: Duration = Duration::from_millis(100);

/// A bar on stderr that fills until an instant.
#[derive(Debug)]
pub(crate) struct Countdown {
    bar: ProgressBar,
    from: Timestamp,
    until: Timestamp,
}

impl Countdown {
    /// Shows one; none where stderr is no terminal.
    #[must_use]
    pub(crate) fn until(until: Timestamp, what: &'static str, out: &Output) -> Option<Self> {
        let from = SystemClock.now();
        let bar = ProgressBar::new(millis(until.since(from)).max(1));
        if bar.is_hidden() || out.format() == crate::output::Format::Json {
            return None;
        }
        let template = "{prefix} {bar:32.cyan} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸ "));
        }
        bar.set_prefix(what);
        out.show_bar(bar.clone());
        let countdown = Self { bar, from, until };
        countdown.draw(from);
        Some(countdown)
    }

    /// Draws it as of now; false when its end has come.
    pub(crate) fn draw(&self, now: Timestamp) -> bool {
        let left = self.until.since(now);
        self.bar.set_position(millis(now.since(self.from)));
        self.bar.set_message(clock_of(left));
        !left.is_zero()
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// What is left, as on a clock: `in 2.3 s`, `in 01:02:03`, `in 3 d 01:02:03`.
fn clock_of(left: Duration) -> String {
    let seconds = left.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match seconds {
        0..60 => format!("in {}.{} s", seconds, left.subsec_millis() / 100),
        60..86_400 => format!("in {hours:02}:{minutes:02}:{:02}", seconds % 60),
        _ => format!("in {days} d {hours:02}:{minutes:02}:{:02}", seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(millis: u64, shown: &str) {
        assert_eq!(clock_of(Duration::from_millis(millis)), shown);
    }

    #[test]
    fn only_a_link_that_was_up_can_be_lost() {
        let down = || LinkState::Down { reason: "refused".to_owned() };
        let mut link = Link::default();
        assert_eq!(link.look(down()), None);
        assert_eq!(link.look(LinkState::Up), None);
        assert_eq!(link.look(down()), Some("the link to the broker is down: refused".to_owned()));
        assert_eq!((link.look(LinkState::Connecting), link.look(down())), (None, None));
        assert_eq!(link.look(LinkState::Up), Some("the link to the broker is up again".to_owned()));
        assert_eq!(link.look(down()), Some("the link to the broker is down: refused".to_owned()));
    }

    #[test]
    fn clocks() {
        check(0, "in 0.0 s");
        check(2_349, "in 2.3 s");
        check(59_999, "in 59.9 s");
        check(60_000, "in 00:01:00");
        check(3_723_000, "in 01:02:03");
        check(90_061_000, "in 1 d 01:01:01");
    }
}
