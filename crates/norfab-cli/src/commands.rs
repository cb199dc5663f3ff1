//! The commands, and what they share: where the database lies, how a client is opened, how a command ends.

mod database;
mod demo;
mod follow;
mod job;
mod questions;
mod run;
mod schedule;
mod workers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use norfab_client::{
    Client, ClientBuilder, ClientError, Dispatching, HolderKind, Limits, Role, dispatching, read_forbidden_tasks,
    read_inventory,
};

use crate::args::{Cli, Command, DbCommand, Globals, JobCommand, ScheduleCommand};
use crate::failure::Failure;
use crate::output::Output;
use crate::signals::Signals;

/// How a command ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// As it should.
    Done,
    /// The job did not end well.
    JobFailed,
}

impl Verdict {
    /// The exit code.
    #[must_use]
    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Done => 0,
            Self::JobFailed => 1,
        })
    }
}

/// How long a command may take to end in order once it was asked to stop: longer than a client needs at the most.
const ORDERLY: Duration = Duration::from_millis(1900);

/// Runs a command to its end, or until shortly after it was asked to stop.
///
/// # Errors
/// [`Failure`]; nothing was said of it yet.
pub(crate) async fn execute(cli: Cli, out: &Output) -> Result<Verdict, Failure> {
    let signals = Signals::catch().map_err(Failure::Signals)?;
    let mut asked = Signals::catch().map_err(Failure::Signals)?;
    let overdue = async {
        let signal = asked.next().await;
        tokio::time::sleep(ORDERLY).await;
        signal
    };
    tokio::select! {
        verdict = command(cli, out, signals) => verdict,
        // A database that hangs, a terminal that is read: the process ends all the same, which the database survives.
        signal = overdue => Err(Failure::Interrupted(signal)),
    }
}

async fn command(cli: Cli, out: &Output, mut signals: Signals) -> Result<Verdict, Failure> {
    let site = Site(cli.globals);
    match cli.command {
        Command::Demo => demo::demo(out, &mut signals).await,
        Command::Run => run::run(&site, out, &mut signals).await,
        Command::Job(JobCommand::Run(args)) => job::run(&site, args, out, &mut signals).await,
        Command::Job(JobCommand::Schedule(args)) => job::schedule(&site, args, out, &mut signals).await,
        Command::Job(JobCommand::List(args)) => job::list(&site, args, out).await,
        Command::Job(JobCommand::Show(args)) => job::show(&site, args, out).await,
        Command::Job(JobCommand::Cancel(args)) => job::cancel(&site, args, out).await,
        Command::Job(JobCommand::Reschedule(args)) => job::reschedule(&site, args, out).await,
        Command::Schedule(command) => schedule_command(&site, command, out, &mut signals).await,
        Command::Workers(args) => workers::workers(&site, args, out, &mut signals).await,
        Command::Db(DbCommand::Info) => database::info(&site, out).await,
        Command::Db(DbCommand::Migrate) => database::migrate(&site, out).await,
    }
}

async fn schedule_command(
    site: &Site,
    command: ScheduleCommand,
    out: &Output,
    signals: &mut Signals,
) -> Result<Verdict, Failure> {
    match command {
        ScheduleCommand::Create(args) => schedule::create(site, *args, out, signals).await,
        ScheduleCommand::List(args) => schedule::list(site, args, out).await,
        ScheduleCommand::Show(args) => schedule::show(site, args, out).await,
        ScheduleCommand::Preview(args) => schedule::preview(site, *args, out, signals).await,
        ScheduleCommand::Pause(args) => schedule::pause(site, args, out).await,
        ScheduleCommand::Resume(args) => schedule::resume(site, args, out).await,
        ScheduleCommand::Update(args) => schedule::update(site, *args, out, signals).await,
        ScheduleCommand::Disable(args) => schedule::disable(site, args, out).await,
        ScheduleCommand::Delete(args) => schedule::delete(site, args, out).await,
        ScheduleCommand::RunNow(args) => schedule::run_now(site, args, out, signals).await,
    }
}

/// Where the command works: the folder, the client's name, the broker.
#[derive(Debug)]
pub(crate) struct Site(Globals);

impl Site {
    /// A client to be built for this place.
    fn builder(&self, role: Role) -> ClientBuilder {
        let builder = Client::builder()
            .folder(&self.0.base_dir)
            .name(&self.0.client)
            .role(role)
            .connect_timeout(self.0.connect_timeout);
        match &self.0.broker {
            Some(endpoint) => builder.endpoint(endpoint),
            None => builder,
        }
    }

    /// The database file, whether it is there or not.
    fn database(&self) -> Result<PathBuf, Failure> {
        Ok(self.builder(Role::ReadOnly).database_path()?)
    }

    /// The database file, which must be there.
    fn existing_database(&self) -> Result<PathBuf, Failure> {
        let path = self.database()?;
        if path.exists() { Ok(path) } else { Err(Failure::NoDatabase { path }) }
    }

    /// What waits for its time needs a process that serves it then: says so when there is none.
    fn tell_who_serves(&self, otherwise: &str, out: &Output) -> Result<(), Failure> {
        match dispatching(&self.database()?)? {
            Dispatching::Somebody(Some(holder)) if holder.kind == HolderKind::Owner => {}
            _ => out.note(&format!("no process serves this database: {otherwise}")),
        }
        Ok(())
    }

    /// The bounds of what may be asked for: the usual ones, and what the inventory forbids.
    fn limits(&self) -> Result<Limits, Failure> {
        let forbidden_tasks = read_forbidden_tasks(&self.0.base_dir).map_err(ClientError::from)?;
        Ok(Limits { forbidden_tasks, ..Limits::default() })
    }

    /// A client on a database that must be there.
    async fn open_existing(&self, role: Role) -> Result<Client, Failure> {
        self.existing_database()?;
        Ok(self.builder(role).build().await?)
    }

    /// A client that may make the database, but not in a folder that was mistyped.
    async fn open(&self, role: Role) -> Result<Client, Failure> {
        if self.0.broker.is_none() && !self.database()?.exists() {
            read_inventory(&self.0.base_dir).map_err(ClientError::from)?;
        }
        Ok(self.builder(role).build().await?)
    }
}
