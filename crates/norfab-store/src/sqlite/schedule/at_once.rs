//! Jobs that are claimed as they are made. A job is mostly sent in the pass that makes it: written as SUBMITTING from the
//! beginning, it is not read again, and half of its indexes are written once instead of twice.

use std::collections::HashSet;

use norfab_model::{Claim, Claimed, Job, JobId, JobStatus, Post, Scope, StoreError, Timestamp};
use rusqlite::Connection;

use super::row::Row;
use crate::materialize::PlannedRow;
use crate::sqlite::{Session, select};
use crate::transition::{self, ClaimStep};

/// Of so many schedules at the most: their arguments are held in memory together. Where more are due, the jobs are made
/// first, and claimed then.
pub(super) const FEW: u32 = 16;
/// Arguments of so many bytes at the most; for the same reason.
pub(super) const SMALL: i64 = 64 << 10;

/// What becomes of the NEW jobs of a batch when they are claimed at once.
pub(super) struct AtOnce {
    jobs: Vec<Job>,
    posts: Vec<Post>,
}

impl AtOnce {
    /// None when they are to be made first and claimed then: others come before them, or one of them cannot be sent.
    pub(super) fn of(
        shared: &Session<'_>,
        connection: &Connection,
        (now, claim): (Timestamp, &Claim<'_>),
        (rows, planned): (&[Row], &[PlannedRow]),
        doing: &'static str,
    ) -> Result<Option<Self>, StoreError> {
        let new: Vec<&PlannedRow> = planned.iter().filter(|planned| planned.job.status == JobStatus::New).collect();
        let fits = !new.is_empty() && new.len() <= claim.limit as usize;
        if !fits || claim.now != now || *claim.scope != Scope::All {
            return Ok(None);
        }
        let (mut jobs, mut posts) = (Vec::with_capacity(new.len()), Vec::with_capacity(new.len()));
        for planned in new {
            let Some((job, post)) = claimed(shared, claim, rows, planned) else { return Ok(None) };
            jobs.push(job);
            posts.push(post);
        }
        let is_first = select::to_claim(connection, now, claim.scope, 1, doing)?.is_empty();
        Ok(is_first.then_some(Self { jobs, posts }))
    }

    /// The job of a row, when it is one of them.
    pub(super) fn job(&self, planned: &PlannedRow) -> Option<&Job> {
        self.jobs.iter().find(|job| job.uuid == planned.job.uuid)
    }

    /// What is to be sent of those that were not there already. They were all that could be claimed.
    pub(super) fn claimed(self, made: &HashSet<JobId>) -> Claimed {
        let posts = self.posts.into_iter().filter(|post| made.contains(&post.job)).collect();
        Claimed { posts, ..Claimed::default() }
    }
}

fn claimed(shared: &Session<'_>, claim: &Claim<'_>, rows: &[Row], planned: &PlannedRow) -> Option<(Job, Post)> {
    let row = rows.iter().find(|row| row.row == planned.schedule)?;
    let (args, kwargs) = (shared.payloads.args(&row.args).ok()?, shared.payloads.kwargs(&row.kwargs).ok()?);
    let mut job = planned.job.clone();
    let ClaimStep::Send = transition::claim(&mut job, claim.now, claim.live, claim.policy) else { return None };
    let target = job.dispatch_target.clone()?;
    let post = transition::post(&job, target, args, kwargs);
    Some((job, post))
}
