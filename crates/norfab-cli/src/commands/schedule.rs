//! `norfab schedule`: creates schedules and shows what they will do, looks at them, and changes them.

mod tell;

use std::time::Duration;

use norfab_client::{
    Client, ClientError, Clock, Limits, Listed, NewSchedule, Overlap, Patch, Preview, Role, Schedule, ScheduleCursor,
    ScheduleFilter, ScheduleKey, SchedulePatch, ScheduleState, SwitchedOff, SystemClock, Timestamp, preview_new,
};

use self::tell::{
    tell_created, tell_detail, tell_instants, tell_managed, tell_rule, tell_switched_off, tell_updated, tell_who_makes,
};
use super::job::{new_job, tell_changed, texts, wait};
use super::{Site, Verdict};
use crate::args::{CreateArgs, KeyArgs, OrNone, PreviewArgs, RunNowArgs, SchedulesArgs, UpdateArgs};
use crate::failure::Failure;
use crate::given::check_stdin;
use crate::output::{self, Moments, Output, Room};
use crate::payload;
use crate::signals::Signals;

/// Creates a schedule, and shows it with its first instants.
pub(crate) async fn create(
    site: &Site,
    args: CreateArgs,
    out: &Output,
    signals: &mut Signals,
) -> Result<Verdict, Failure> {
    let is_verified = args.verify;
    let new = new_schedule(args, signals).await?;
    site.limits()?.check_schedule(SystemClock.now(), new.clone()).map_err(ClientError::from)?;
    let client = site.open(if is_verified { Role::Guest } else { Role::Beside }).await?;
    let created = async {
        if is_verified {
            verify(&client, &new, signals).await?;
        }
        Ok::<_, Failure>(client.create_job_schedule(new).await?)
    }
    .await;
    client.shutdown().await;
    let created = created?;
    tell_created(&created, out)?;
    tell_who_makes(site, created.schedule.state, out)
}

/// Lists schedules.
pub(crate) async fn list(site: &Site, args: SchedulesArgs, out: &Output) -> Result<Verdict, Failure> {
    let filter = ScheduleFilter {
        listed: if args.deleted { Listed::Deleted } else { Listed::Present },
        states: args.state,
        service: args.service,
        task: args.task,
        limit: args.limit,
        cursor: args.cursor.map(ScheduleCursor),
    };
    let client = site.open_existing(Role::ReadOnly).await?;
    let page = client.list_job_schedules(&filter).await?;
    client.shutdown().await;
    let is_empty = page.schedules.is_empty();
    out.result(&page, || {
        let (moments, room) = (Moments::now(), Room::of_stdout());
        match filter.listed {
            _ if is_empty => String::new(),
            Listed::Present => output::schedule_list(&page, &moments, room),
            Listed::Deleted => output::deleted_list(&page, &moments, room),
        }
    })?;
    if is_empty {
        out.progress("no such schedules");
    }
    for row in &page.unreadable {
        out.note(&output::unreadable_schedule(row));
    }
    if let Some(ScheduleCursor(next)) = page.next {
        out.progress(&format!("there are more: --cursor {next}"));
    }
    Ok(Verdict::Done)
}

/// Shows one schedule.
pub(crate) async fn show(site: &Site, args: KeyArgs, out: &Output) -> Result<Verdict, Failure> {
    let client = site.open_existing(Role::ReadOnly).await?;
    let detail = client.get_job_schedule(&args.key).await?;
    client.shutdown().await;
    // What lies ahead now, not what did when it was saved.
    let warnings = Schedule { updated_at: SystemClock.now(), ..detail.view.schedule.clone() }.warnings();
    tell_detail(&detail, &warnings, out)?;
    Ok(Verdict::Done)
}

/// Shows the next instants of a schedule, or of a rule that is none yet.
pub(crate) async fn preview(
    site: &Site,
    args: PreviewArgs,
    out: &Output,
    signals: &mut Signals,
) -> Result<Verdict, Failure> {
    let count = usize::try_from(args.count).unwrap_or(usize::MAX);
    match (args.key, args.rule.read(signals).await?) {
        (Some(key), None) if args.bounds.is_empty() => preview_schedule(site, &key, args.from, count, out).await,
        (None, Some(trigger)) => {
            // The rule is looked at alone: what it runs does not matter.
            let new = args.bounds.onto(NewSchedule::new("any", "any", trigger));
            preview_rule(new, args.from.unwrap_or_else(|| SystemClock.now()), count, out)
        }
        _ => Err(Failure::Usage(
            "--start-at, --end-at, --timezone and --jitter describe a new rule: give them with one, such as --every"
                .to_owned(),
        )),
    }
}

/// Lets a schedule make nothing for now.
pub(crate) async fn pause(site: &Site, args: KeyArgs, out: &Output) -> Result<Verdict, Failure> {
    let client = site.open_existing(Role::Beside).await?;
    let managed = client.pause_job_schedule(&args.key).await;
    tell_managed(site, client, managed, out).await
}

/// Lets a schedule go on.
pub(crate) async fn resume(site: &Site, args: KeyArgs, out: &Output) -> Result<Verdict, Failure> {
    let client = site.open_existing(Role::Beside).await?;
    let managed = client.resume_job_schedule(&args.key).await;
    tell_managed(site, client, managed, out).await
}

/// Changes a schedule.
pub(crate) async fn update(
    site: &Site,
    args: UpdateArgs,
    out: &Output,
    signals: &mut Signals,
) -> Result<Verdict, Failure> {
    let key = args.key.clone();
    let patch = patch(args, signals).await?;
    if patch.is_empty() {
        return Err(Failure::Usage("nothing is to be changed; give an option such as --every 10m".to_owned()));
    }
    let client = site.open_existing(Role::Beside).await?;
    let managed = client.update_job_schedule(&key, &patch).await;
    client.shutdown().await;
    let managed = managed?;
    tell_updated(&managed, out)?;
    tell_who_makes(site, managed.schedule.state, out)
}

/// Switches a schedule off.
pub(crate) async fn disable(site: &Site, args: KeyArgs, out: &Output) -> Result<Verdict, Failure> {
    let client = site.open_existing(Role::Beside).await?;
    let switched_off = client.disable_job_schedule(&args.key).await;
    tell_switched_off(client, switched_off, out).await
}

/// Deletes a schedule.
pub(crate) async fn delete(site: &Site, args: KeyArgs, out: &Output) -> Result<Verdict, Failure> {
    let client = site.open_existing(Role::Beside).await?;
    let switched_off = client.delete_job_schedule(&args.key).await;
    let managed = switched_off.as_ref().ok().and_then(SwitchedOff::managed);
    let uuid = managed.map(|managed| managed.schedule.uuid.clone());
    let verdict = tell_switched_off(client, switched_off, out).await?;
    if let Some(uuid) = uuid {
        out.progress(&format!("its jobs stay: norfab job list --schedule {uuid}"));
    }
    Ok(verdict)
}

/// Runs a schedule once; waits for the results only if that was asked for.
pub(crate) async fn run_now(
    site: &Site,
    args: RunNowArgs,
    out: &Output,
    signals: &mut Signals,
) -> Result<Verdict, Failure> {
    let overlap = if args.force { Overlap::Force } else { Overlap::Respect };
    if args.wait {
        let client = site.open_existing(Role::Guest).await?;
        let handle = client.run_job_schedule_now(&args.key, overlap).await;
        return wait(site, client, handle, &args.answers, out, signals).await;
    }
    let client = site.open_existing(Role::Beside).await?;
    let job = client.run_job_schedule_now(&args.key, overlap).await?.job().await?;
    client.shutdown().await;
    tell_changed(&job, out)?;
    site.tell_who_serves("the job is sent only if `norfab run` is started before its deadline", out)?;
    Ok(Verdict::Done)
}

async fn new_schedule(args: CreateArgs, signals: &mut Signals) -> Result<NewSchedule, Failure> {
    check_stdin([&args.rule.trigger, &args.job.kwargs, &args.job.args])?;
    let trigger = args.rule.required(signals).await?;
    let job = new_job(args.job, signals).await?;
    let new = args.bounds.onto(NewSchedule::new(job.service, job.task, trigger).name(args.name));
    let new = NewSchedule {
        workers: job.workers,
        args: job.args,
        kwargs: job.kwargs,
        timeout: job.timeout,
        coalesce: args.coalesce.unwrap_or(new.coalesce),
        overlap_policy: args.overlap.unwrap_or(new.overlap_policy),
        max_instances: args.max_instances.unwrap_or(new.max_instances),
        misfire_grace_seconds: args.grace,
        ..new
    };
    Ok(if args.paused { new.paused() } else { new })
}

/// Asks the workers for their tasks, as long as there is a chance of an answer.
async fn verify(client: &Client, new: &NewSchedule, signals: &mut Signals) -> Result<(), Failure> {
    /// How long a question that failed may take to be explained.
    const EXPLANATION: Duration = Duration::from_millis(500);
    let verified = tokio::select! {
        verified = client.verify_task(&new.service, &new.task, &new.workers) => verified,
        reason = client.unreachable() => Err(ClientError::Unreachable { reason }),
        signal = signals.next() => return Err(Failure::Interrupted(signal)),
    };
    if let Err(ClientError::Unverified { .. }) = verified
        && let Ok(reason) = tokio::time::timeout(EXPLANATION, client.unreachable()).await
    {
        return Err(ClientError::Unreachable { reason }.into());
    }
    Ok(verified?)
}

async fn patch(args: UpdateArgs, signals: &mut Signals) -> Result<SchedulePatch, Failure> {
    check_stdin([&args.rule.trigger, &args.kwargs, &args.args])?;
    let trigger = args.rule.read(signals).await?;
    let has_kwargs = !args.pairs.is_empty() || args.kwargs.is_some();
    let (kwargs, positional) = texts(args.kwargs, args.args, signals).await?;
    let kwargs = if has_kwargs { Some(payload::kwargs(&args.pairs, kwargs.as_deref())?) } else { None };
    let positional = positional.map(|text| payload::args(Some(&text))).transpose()?;
    let workers = if args.workers.is_empty() { None } else { Some(payload::workers(&args.workers)?) };
    Ok(SchedulePatch {
        revision: args.revision,
        name: if args.no_name { Patch::Clear } else { Patch::set_some(args.name) },
        service: args.service,
        task: args.task,
        workers: Patch::set_some(workers),
        args: Patch::set_some(positional),
        kwargs: Patch::set_some(kwargs),
        timeout: Patch::set_some(args.timeout),
        trigger,
        timezone: Patch::set_some(args.timezone),
        start_at: OrNone::patch(args.start_at),
        end_at: OrNone::patch(args.end_at),
        coalesce: Patch::set_some(args.coalesce),
        overlap_policy: Patch::set_some(args.overlap),
        max_instances: Patch::set_some(args.max_instances),
        misfire_grace_seconds: OrNone::patch(args.grace),
        jitter_seconds: OrNone::patch(args.jitter),
    })
}

async fn preview_schedule(
    site: &Site,
    key: &ScheduleKey,
    from: Option<Timestamp>,
    count: usize,
    out: &Output,
) -> Result<Verdict, Failure> {
    let client = site.open_existing(Role::ReadOnly).await?;
    let Preview { schedule, next } = client.preview(key, from, count).await?;
    client.shutdown().await;
    tell_instants(&schedule, &next, out)?;
    if schedule.state != ScheduleState::Active {
        out.progress(&format!("schedule {} is {}: it makes no jobs", schedule.label(), schedule.state));
    }
    Ok(Verdict::Done)
}

fn preview_rule(new: NewSchedule, from: Timestamp, count: usize, out: &Output) -> Result<Verdict, Failure> {
    let Preview { schedule, next } = preview_new(&Limits::default(), new, from, count)?;
    tell_rule(&schedule, &next, out)?;
    if schedule.jitter_seconds > 0 {
        out.progress(&format!("each of them will be due up to {} s later", schedule.jitter_seconds));
    }
    Ok(Verdict::Done)
}
