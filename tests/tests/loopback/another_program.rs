//! Another program holds the write lock, as long as somebody may who looks at a database with another tool. It takes half a
//! minute of waiting, and is the first of its binary by its name, so that all others run beside it.

use norfab_client::{Clock, JobStatus, Outcome, Role, SystemClock, Uptime};
use serde_json::json;

use crate::common::{Ground, job, let_go};
use crate::storage::{TROUBLE, is_refused, it_works_again, reading_goes_on};

#[tokio::test]
async fn has_the_database_for_half_a_minute() {
    let ground = Ground::start().await;
    let mut owner = ground.program().start_owner().await;
    let client = ground.client(Role::Beside).await;
    let mut running = client.submit_job(job("sleep").kwargs(json!({"seconds": 3}))).await.expect("added");
    ground.until_sent(running.id()).await;
    let mut due = client.schedule_job(job("echo").at(SystemClock.now().plus_seconds(2))).await.expect("added");
    let lock = ground.locked().await;
    let begin = SystemClock.now();
    assert_eq!(due.job().await.expect("there").status, JobStatus::Scheduled);

    let error = owner.logged(TROUBLE).await;
    assert!(error.contains(" ERROR ") && error.contains("locked"), "{error}");
    reading_goes_on(&ground.program(), 2).await;
    let refused = ground.program().run(&["job", "schedule", "demo", "echo", "--in", "1s", "--json"]).await;
    is_refused(&refused, "locked");
    // It is this time that matters here.
    SystemClock.sleep_until(begin.plus_seconds(30), Uptime::MAX).await;
    assert!(!ground.was_sent(due.id()), "it was sent, and is {:?}", due.job().await);
    let_go(lock).await;

    for handle in [&mut running, &mut due] {
        let outcome = handle.outcome().await.expect("ends");
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    }
    assert_eq!(ground.fabric.executions().len(), 2);
    assert_eq!(ground.jobs().await.len(), 2, "what was refused is not there");
    client.shutdown().await;
    it_works_again(owner).await;
}
