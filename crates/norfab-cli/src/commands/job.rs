//! `norfab job`: adds jobs and waits for them, lists and shows them, withdraws and moves what waits for its time.

use norfab_client::{
    Client, ClientError, Clock, Job, JobCursor, JobDetail, JobEvent, JobFilter, JobId, JobStatus, Json, Limits, NewJob,
    Role, ScheduleError, ScheduleId, ScheduleKey, StoreError, SystemClock,
};
use serde::{Deserialize, Serialize};

use super::follow::{Ending, Follower};
use super::questions::{Handle, Questions};
use super::{Site, Verdict};
use crate::args::{AnswerArgs, CancelArgs, JobArgs, ListArgs, RescheduleArgs, RunArgs, ScheduleArgs, ShowArgs};
use crate::failure::Failure;
use crate::given::{Given, GivenError, check_stdin};
use crate::output::{self, Moments, Output, Room};
use crate::payload;
use crate::signals::{Signals, StopSignal};

/// Adds a job that starts now, and waits for its results.
pub(crate) async fn run(site: &Site, args: RunArgs, out: &Output, signals: &mut Signals) -> Result<Verdict, Failure> {
    let job = new_job(args.job, signals).await?;
    let client = site.open(Role::Guest).await?;
    let handle = client.submit_job(job).await;
    wait(site, client, handle, &args.answers, out, signals).await
}

/// Adds a job that starts later; waits for its results only if that was asked for.
pub(crate) async fn schedule(
    site: &Site,
    args: ScheduleArgs,
    out: &Output,
    signals: &mut Signals,
) -> Result<Verdict, Failure> {
    let mut job = new_job(args.job, signals).await?.at(args.when.instant(SystemClock.now()));
    if let Some(grace) = args.grace {
        job = job.grace(grace);
    }
    if args.wait {
        let client = site.open(Role::Guest).await?;
        let handle = client.schedule_job(job).await;
        return wait(site, client, handle, &args.answers, out, signals).await;
    }
    let client = site.open(Role::Beside).await?;
    let job = client.schedule_job(job).await?.job().await?;
    client.shutdown().await;
    tell_changed(&job, out)?;
    tell_who_sends(site, out)
}

/// Lists jobs.
pub(crate) async fn list(site: &Site, args: ListArgs, out: &Output) -> Result<Verdict, Failure> {
    let client = site.open_existing(Role::ReadOnly).await?;
    let schedule = match args.schedule {
        Some(key) => Some(schedule_id(&client, &key).await.inspect_err(|error| tell_of_deleted(error, out))?),
        None => None,
    };
    let filter = JobFilter {
        statuses: args.status,
        service: args.service,
        task: args.task,
        workers: args.workers,
        schedule,
        due_from: args.due_from,
        due_until: args.due_until,
        limit: args.last,
        cursor: args.cursor.map(JobCursor),
    };
    let page = client.list_jobs(&filter).await?;
    client.shutdown().await;
    out.result(&page, || {
        if page.jobs.is_empty() { String::new() } else { output::job_list(&page, &Moments::now(), Room::of_stdout()) }
    })?;
    if page.jobs.is_empty() {
        out.progress("no such jobs");
    }
    for row in &page.unreadable {
        out.note(&format!("job {} cannot be read: {}", output::plain(&row.uuid), output::plain(&row.reason)));
    }
    if let Some(JobCursor(next)) = page.next {
        out.progress(&format!("there are more: --cursor {next}"));
    }
    Ok(Verdict::Done)
}

/// The schedule of a key. The jobs of one whose row is broken can be listed all the same.
async fn schedule_id(client: &Client, key: &ScheduleKey) -> Result<ScheduleId, ClientError> {
    match client.get_job_schedule(key).await {
        Ok(detail) => Ok(detail.view.schedule.uuid),
        Err(ClientError::Schedule(ScheduleError::Unreadable(row))) => match ScheduleId::new(row.uuid.clone()) {
            Ok(id) => Ok(id),
            Err(_) => Err(ScheduleError::Unreadable(row).into()),
        },
        Err(error) => Err(error),
    }
}

/// A name that is not found may be that of a deleted schedule.
fn tell_of_deleted(error: &ClientError, out: &Output) {
    if let ClientError::Schedule(ScheduleError::Unknown(ScheduleKey::Name(_))) = error {
        out.progress(
            "a deleted schedule has given its name up, and is named by its UUID: norfab schedule list --deleted",
        );
    }
}

/// A job with its events, in JSON.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    detail: &'a JobDetail,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<&'a [JobEvent]>,
}

/// Shows one job.
pub(crate) async fn show(site: &Site, args: ShowArgs, out: &Output) -> Result<Verdict, Failure> {
    let client = site.open_existing(Role::ReadOnly).await?;
    let events = if args.events { Some(all_events(&client, &args.job).await?) } else { None };
    let detail = match client.get_job(&args.job).await {
        Err(ClientError::Store(StoreError::Unreadable { job, reason })) => {
            // The row itself may be fine, and is worth more than nothing.
            if let Ok(row) = client.find_job(&args.job).await {
                out.print(&output::added(&row, &Moments::now()))?;
            }
            Err(ClientError::Store(StoreError::Unreadable { job, reason }))
        }
        other => other,
    }?;
    client.shutdown().await;
    let shown = Shown { detail: &detail, events: events.as_deref() };
    out.result(&shown, || output::detail(&detail, events.as_deref(), &Moments::now(), Room::of_stdout()))?;
    Ok(Verdict::Done)
}

async fn all_events(client: &Client, job: &JobId) -> Result<Vec<JobEvent>, ClientError> {
    const AT_ONCE: u32 = 1000;
    let mut events: Vec<JobEvent> = Vec::new();
    loop {
        let page = client.job_events(job, events.last().map_or(0, |event| event.id), AT_ONCE).await?;
        let is_last = page.len() < AT_ONCE as usize;
        events.extend(page);
        if is_last {
            return Ok(events);
        }
    }
}

/// Withdraws a job that waits for its time.
pub(crate) async fn cancel(site: &Site, args: CancelArgs, out: &Output) -> Result<Verdict, Failure> {
    let client = site.open_existing(Role::Beside).await?;
    let job = client.cancel_scheduled_job(&args.job).await?;
    client.shutdown().await;
    tell_changed(&job, out)?;
    Ok(Verdict::Done)
}

/// Gives a job that waits for its time another one.
pub(crate) async fn reschedule(site: &Site, args: RescheduleArgs, out: &Output) -> Result<Verdict, Failure> {
    let client = site.open_existing(Role::Beside).await?;
    let job = client.reschedule_job(&args.job, args.when.instant(SystemClock.now())).await?;
    client.shutdown().await;
    tell_changed(&job, out)?;
    tell_who_sends(site, out)
}

pub(super) async fn new_job(args: JobArgs, signals: &mut Signals) -> Result<NewJob, Failure> {
    let (kwargs, positional) = texts(args.kwargs, args.args, signals).await?;
    let kwargs = payload::kwargs(&args.pairs, kwargs.as_deref())?;
    let positional = payload::args(positional.as_deref())?;
    let workers = payload::workers(&args.workers)?;
    Ok(NewJob::new(args.service, args.task).workers(workers).args(positional).kwargs(kwargs).timeout(args.timeout))
}

/// The texts of `--kwargs` and `--args`, wherever they come from.
pub(super) async fn texts(
    kwargs: Option<Given>,
    args: Option<Given>,
    signals: &mut Signals,
) -> Result<(Option<String>, Option<String>), Failure> {
    check_stdin([&kwargs, &args])?;
    // Who types at standard input, or waits for it, may change their mind.
    tokio::select! {
        texts = async { tokio::try_join!(text("--kwargs", kwargs), text("--args", args)) } => Ok(texts?),
        signal = signals.next() => Err(Failure::Interrupted(signal)),
    }
}

async fn text(option: &'static str, given: Option<Given>) -> Result<Option<String>, GivenError> {
    match given {
        Some(given) => given.text(option, Limits::default().payload_bytes).await.map(Some),
        None => Ok(None),
    }
}

pub(super) fn tell_changed(job: &Job, out: &Output) -> Result<(), Failure> {
    out.result(job, || output::added(job, &Moments::now()))
}

/// A delayed job needs somebody who sends it at its time.
fn tell_who_sends(site: &Site, out: &Output) -> Result<Verdict, Failure> {
    site.tell_who_serves("the job is sent only if `norfab run` is running at its time, or is started later", out)?;
    Ok(Verdict::Done)
}

/// Waits for a job that was just added, and tells how it ended.
pub(super) async fn wait(
    site: &Site,
    client: Client,
    handle: Result<Handle, ClientError>,
    answers: &AnswerArgs,
    out: &Output,
    signals: &mut Signals,
) -> Result<Verdict, Failure> {
    let ended = match handle {
        Ok(handle) => follow(site, &client, handle, answers, out, signals).await,
        Err(error) => Err(error.into()),
    };
    client.shutdown().await;
    let (detail, ending) = ended?;
    match ending {
        Ending::Ended => {
            out.result(&detail, || output::results(&detail.results))?;
            match not_well(&detail) {
                None => Ok(Verdict::Done),
                Some(why) => {
                    out.complain(&why);
                    Ok(Verdict::JobFailed)
                }
            }
        }
        Ending::Unreachable(reason) => Err(Failure::Unreachable { reason, job: Box::new(detail) }),
        Ending::Stopped(signal) => Err(stopped(signal, detail)),
    }
}

async fn follow(
    site: &Site,
    client: &Client,
    mut handle: Handle,
    answers: &AnswerArgs,
    out: &Output,
    signals: &mut Signals,
) -> Result<(JobDetail, Ending), Failure> {
    let database = site.database()?;
    let id = handle.id().clone();
    out.progress(&format!("job {id}"));
    let follower = Follower::new(out, Questions::new(&answers.answers, out));
    let ending = follower.follow(client, &mut handle, &database, signals, site.0.connect_timeout).await?;
    Ok((client.get_job(&id).await?, ending))
}

/// Why a job that has ended did not end well: it is not COMPLETED, or the task failed at a worker.
#[must_use]
pub(crate) fn not_well(detail: &JobDetail) -> Option<String> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        failed: serde_json::Value,
    }
    let job = &detail.job;
    if job.status != JobStatus::Completed {
        let why = if job.errors.is_empty() { String::new() } else { format!(": {}", job.errors.join("; ")) };
        return Some(format!("job {} is {}{}", job.uuid, job.status, output::plain(&why)));
    }
    let has_failed = |raw: &Json| raw.is_object() && raw.to::<Answer>().is_ok_and(|answer| answer.failed == true);
    let failed = detail.results.iter().filter(|(_, raw)| has_failed(raw));
    let workers: Vec<_> = failed.map(|(worker, _)| worker.as_str()).collect();
    (!workers.is_empty()).then(|| format!("the task of job {} failed at {}", job.uuid, workers.join(", ")))
}

/// What becomes of a job that nobody waits for any more.
fn stopped(signal: StopSignal, detail: JobDetail) -> Failure {
    let job = &detail.job;
    let id = &job.uuid;
    let what_now = match job.status {
        JobStatus::Scheduled => format!("job {id} stays scheduled, and is sent if `norfab run` is running at its time"),
        JobStatus::New => format!("job {id} was not sent, and is sent by the next `norfab run` before its deadline"),
        status if status.is_terminal() => format!("job {id} is {status}"),
        _ => format!("job {id} goes on at its workers, and `norfab run` collects its results"),
    };
    Failure::Stopped { signal, what_now, job: Box::new(detail) }
}
