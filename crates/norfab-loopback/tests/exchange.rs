//! What the loopback says, message by message, compared with what a real NorFab was seen to say.

mod support;

use norfab_loopback::{Loopback, LoopbackConfig, LoopbackError};
use serde_json::json;
use support::*;

const ECHO: &str = r#"{"task":"echo","kwargs":{"x": 1.50},"args":[],"timeout":60}"#;

fn accepted(uuid: &str, target: &str, workers: &str) -> String {
    let target = serde_json::to_string(target).unwrap();
    format!(
        r#"0x05 | demo | {uuid} | 202 | {{"workers":{workers},"uuid":"{uuid}","target":{target},"status":"DISPATCHED","service":"demo"}}"#
    )
}

fn stored(uuid: &str, worker: &str) -> String {
    format!(
        r#"0x05 | demo | {uuid} | 201 | {{"worker":"{worker}","uuid":"{uuid}","status":"ACCEPTED","service":"demo"}}"#
    )
}

fn standing(uuid: &str, worker: &str, status: &str, text: &str) -> String {
    format!(
        r#"0x05 | demo | {uuid} | {status} | {{"worker":"{worker}","uuid":"{uuid}","service":"demo","status":"{text}"}}"#
    )
}

/// An event of the first worker; `rest` is what comes before the severity.
fn event(uuid: &str, kind: &str, message: &str, rest: &str) -> String {
    format!(
        r#"0x08 | demo | {uuid} | 200 | {{"worker":"demo-worker-1","service":"demo","uuid":"{uuid}","event_type":"{kind}","message":"{message}",{rest}"severity":"INFO","timestamp":"29-Nov-2026 15:59:15.250""#
    )
}

fn starting(uuid: &str, task: &str) -> String {
    event(uuid, "progress", "starting", &format!(r#""task":"{task}","status":"running","resource":[],"#)) + "}"
}

fn ready(uuid: &str, task: &str) -> String {
    event(uuid, "result_ready", "completed", &format!(r#""task":"{task}","status":"completed","resource":[],"#)) + "}"
}

fn refused(service: &str, target: &str, text: &str) -> String {
    let target = serde_json::to_string(target).unwrap();
    format!(
        r#"0x05 | {service} | {JOB} | 400 | {{"workers":null,"uuid":"{JOB}","target":{target},"status":"FAILED","service":"{service}","errors":["NFPBroker - {text}"]}}"#
    )
}

#[tokio::test]
async fn a_job_for_one_worker_from_post_to_result() {
    let (_loopback, _, mut client) = fabric().await;
    client.post("demo-worker-1", JOB, ECHO).await;
    client.expect(&accepted(JOB, "demo-worker-1", r#"["demo-worker-1"]"#)).await;
    client.expect(&stored(JOB, "demo-worker-1")).await;
    client.expect(&starting(JOB, "echo")).await;
    client.expect(&ready(JOB, "echo")).await;
    client.get(r#"["demo-worker-1"]"#, JOB).await;
    client.expect(&accepted(JOB, r#"["demo-worker-1"]"#, r#"["demo-worker-1"]"#)).await;
    let result = format!(
        r#"0x05 | demo | {JOB} | 200 | {{"demo-worker-1":{{"result":{{"juuid":"{JOB}","client_address":"tester","timeout":60,"task":"echo","args":[],"kwargs":{{"x": 1.50}}}},"failed":false,"errors":[],"task":"demo-worker-1:echo","messages":[],"juuid":"{JOB}","resources":[],"resources_failed":[],"status":"completed","task_started":"Sun Nov 29 15:59:15 2026","task_completed":"Sun Nov 29 15:59:15 2026","service":"demo","diff":null,"dry_run":false}}}}"#
    );
    client.expect(&result).await;
    // A result can be fetched again, and by anybody.
    client.get("demo-worker-1", JOB).await;
    client.hear().await;
    client.expect(&result).await;
}

#[tokio::test]
async fn a_job_for_all() {
    let (loopback, _, mut client) = fabric().await;
    client.post("all", JOB, ECHO).await;
    client.expect(&accepted(JOB, "all", r#"["demo-worker-1","demo-worker-2"]"#)).await;
    let mut heard = Vec::new();
    for _ in 0..6 {
        heard.push(client.hear().await);
    }
    for worker in loopback.workers() {
        assert!(heard.contains(&stored(JOB, worker)), "{heard:?}");
        let of_worker = format!("\"worker\":\"{worker}\"");
        assert_eq!(heard.iter().filter(|text| text.contains(&of_worker)).count(), 3, "{heard:?}");
    }
    client.get("all", JOB).await;
    assert_eq!(client.hear_status().await.0, "202");
    for worker in loopback.workers() {
        let (status, payload) = client.hear_status().await;
        assert!(status == "200" && payload.get(worker).is_some(), "{payload}");
    }
}

#[tokio::test]
async fn targets() {
    let (_loopback, _, mut client) = fabric().await;
    for (target, workers) in [
        (r#"["demo-worker-2","demo-worker-1"]"#, r#"["demo-worker-2","demo-worker-1"]"#),
        (r#"["demo-worker-1","demo-worker-1"]"#, r#"["demo-worker-1"]"#),
        (r#"["demo-worker-1","nobody"]"#, r#"["demo-worker-1"]"#),
    ] {
        client.get(target, JOB).await;
        client.expect(&accepted(JOB, target, workers)).await;
        for _ in 0..serde_json::from_str::<Vec<String>>(workers).unwrap().len() {
            assert_eq!(client.hear_status().await.0, "404");
        }
    }
    client.get("any", JOB).await;
    let (status, payload) = client.hear_status().await;
    assert_eq!((status.as_str(), payload["workers"].as_array().unwrap().len()), ("202", 1));
    assert_eq!(client.hear_status().await.0, "404");
    client.say("0x06", "all", "all", JOB, "{}").await;
    let (_, payload) = client.hear_status().await;
    assert_eq!(payload["workers"], json!(["demo-worker-1", "demo-worker-2"]));
    // The answers name the worker's service, not the one that was asked.
    client.expect(&standing(JOB, "demo-worker-1", "404", "JOB NOT FOUND")).await;
}

#[tokio::test]
async fn requests_for_nobody_are_refused() {
    let (_loopback, _, mut client) = fabric().await;
    for command in ["0x04", "0x06", "0x10", "0x07", "0x00"] {
        client.say(command, "nosuch", "all", JOB, "{}").await;
        client.expect(&refused("nosuch", "all", "b'nosuch' service failed to target workers 'b'all''")).await;
    }
    for (target, text) in [
        ("nobody", "b'demo' service failed to target workers 'b'nobody''"),
        ("[]", "b'demo' service failed to target workers 'b'[]''"),
        ("\"demo-worker-1\"", r#"b'demo' service failed to target workers 'b'\"demo-worker-1\"''"#),
        ("{\"a\":1}", r#"b'demo' service failed to target workers 'b'{\"a\":1}''"#),
    ] {
        client.post(target, JOB, ECHO).await;
        client.expect(&refused("demo", target, text)).await;
    }
    client.expect_silence().await;
}

#[tokio::test]
async fn tasks_that_fail() {
    let (_loopback, _, mut client) = fabric().await;
    for (number, (payload, status, errors, message)) in [
        (r#"{"task":"nosuch"}"#, "error", "KeyError: 'nosuch'", "Worker experienced error: ''nosuch''"),
        (
            r#"{"task":"fail"}"#,
            "error",
            "RuntimeError: failed on purpose",
            "Worker experienced error: 'failed on purpose'",
        ),
        (r#"{"task":"sleep","kwargs":{"seconds":"x"}}"#, "error", "ValidationError", "no number of seconds"),
        (r#"{"task":"echo","args":[1]}"#, "error", "multiple values for argument 'job'", "Worker experienced error"),
    ]
    .into_iter()
    .enumerate()
    {
        let result = client.run(&format!("job-{number}"), payload).await;
        assert_eq!((&result["failed"], &result["status"]), (&json!(true), &json!(status)));
        assert_eq!((&result["result"], &result["service"]), (&json!(null), &json!(null)));
        assert!(result["errors"][0].as_str().unwrap().contains(errors), "{result}");
        assert!(result["messages"][0].as_str().unwrap().contains(message), "{result}");
    }
    let result = client.run("soft", r#"{"task":"fail","kwargs":{"message":"on purpose","soft":true}}"#).await;
    let expected = json!({
        "result": null, "failed": true, "errors": ["on purpose"], "task": "demo-worker-1:fail", "messages": [],
        "juuid": "soft", "resources": [], "resources_failed": [], "status": "failed",
        "task_started": "Sun Nov 29 15:59:15 2026", "task_completed": "Sun Nov 29 15:59:15 2026", "service": "demo",
        "diff": null, "dry_run": false,
    });
    assert_eq!(result, expected);
}

#[tokio::test]
async fn a_job_runs_once_on_each_worker() {
    let (loopback, _, mut client) = fabric().await;
    let first = client.run(JOB, ECHO).await;
    client.post("demo-worker-1", JOB, ECHO).await;
    client.post("demo-worker-1", JOB, r#"{"task":"fail"}"#).await;
    for _ in 0..2 {
        client.expect(&accepted(JOB, "demo-worker-1", r#"["demo-worker-1"]"#)).await;
    }
    client.expect_silence().await;
    client.get("demo-worker-1", JOB).await;
    client.hear().await;
    assert_eq!(client.hear_status().await.1["demo-worker-1"], first);

    client.post("demo-worker-2", JOB, ECHO).await;
    client.expect(&accepted(JOB, "demo-worker-2", r#"["demo-worker-2"]"#)).await;
    client.expect(&stored(JOB, "demo-worker-2")).await;
    let executions: Vec<_> = loopback.executions().into_iter().map(|e| (e.job, e.worker, e.task)).collect();
    let expected =
        ["demo-worker-1", "demo-worker-2"].map(|worker| (JOB.to_owned(), worker.to_owned(), "echo".to_owned()));
    assert_eq!(executions, expected);
}

#[tokio::test]
async fn any_is_one_by_chance_anew_for_each_message() {
    let (loopback, _, mut client) = fabric().await;
    while loopback.executions().len() < 2 {
        client.post("any", JOB, ECHO).await;
        while client.hear_status().await.0 != "202" {}
    }
    let mut workers: Vec<_> = loopback.executions().into_iter().map(|execution| execution.worker).collect();
    workers.sort();
    assert_eq!(workers, loopback.workers());
}

#[tokio::test]
async fn what_a_get_brings() {
    let (_loopback, clock, mut client) = fabric().await;
    client.get("demo-worker-1", JOB).await;
    client.expect(&accepted(JOB, "demo-worker-1", r#"["demo-worker-1"]"#)).await;
    client.expect(&standing(JOB, "demo-worker-1", "404", "JOB NOT FOUND")).await;

    client.post("demo-worker-1", JOB, r#"{"task":"sleep","args":[5],"timeout":1}"#).await;
    client.hear().await;
    client.hear().await;
    client.expect(&starting(JOB, "sleep")).await;
    client.get("demo-worker-1", JOB).await;
    client.hear().await;
    client.expect(&standing(JOB, "demo-worker-1", "300", "STARTED")).await;

    clock.advance(5);
    assert!(client.hear().await.contains("result_ready"));
    client.get("demo-worker-1", JOB).await;
    client.hear().await;
    let (status, payload) = client.hear_status().await;
    let result = &payload["demo-worker-1"];
    // A timeout alone stops no task.
    assert_eq!((status.as_str(), &result["result"], &result["status"]), ("200", &json!(5), &json!("completed")));
    assert_eq!(result["task_completed"], "Sun Nov 29 15:59:20 2026");
}

#[tokio::test]
async fn answers_go_to_who_asked_and_events_to_who_posted() {
    let (loopback, clock, mut first) = fabric().await;
    let mut second = Client::connect(&loopback, "other").await;
    first.post("demo-worker-1", JOB, r#"{"task":"sleep","args":[5]}"#).await;
    for _ in 0..3 {
        first.hear().await;
    }
    second.get("demo-worker-1", JOB).await;
    second.hear().await;
    second.expect(&standing(JOB, "demo-worker-1", "300", "STARTED")).await;
    clock.advance(5);
    assert!(first.hear().await.contains("result_ready"));
    first.expect_silence().await;
    second.expect_silence().await;
}

#[tokio::test]
async fn events_of_a_task() {
    let (_loopback, _, mut client) = fabric().await;
    client.post("demo-worker-1", JOB, r#"{"task":"emit","kwargs":{"n":2}}"#).await;
    client.hear().await;
    client.hear().await;
    client.expect(&starting(JOB, "emit")).await;
    for number in [1, 2] {
        let rest = format!(r#""task":"emit","status":"running","resource":"step-{number}","#);
        let step = event(JOB, "progress", &format!("step {number} of 2"), &rest);
        client.expect(&(step + &format!(r#","extras":{{"step":{number}}}}}"#))).await;
    }
    client.expect(&ready(JOB, "emit")).await;
}

const ASK: &str = r#"{"task":"ask","kwargs":{"question":"Go on?","timeout":120},"timeout":60}"#;

/// Posts a job that asks, and returns the identity of its question.
async fn asked(client: &mut Client) -> String {
    client.post("demo-worker-1", JOB, ASK).await;
    for _ in 0..3 {
        client.hear().await;
    }
    let heard = client.hear().await;
    let id = heard.split(r#""id":""#).nth(1).unwrap().split('"').next().unwrap().to_owned();
    let question = format!(r#"{{"id":"{id}","question":"Go on?","default":false,"timeout":120,"metadata":{{}}}}"#);
    let event = event(JOB, "input_request", "Go on?", r#""task":"ask","status":"waiting_client_input","resource":[],"#);
    assert_eq!(heard, format!(r#"{event},"extras":{{"input_request":{question}}},"timeout":120}}"#));

    client.get("demo-worker-1", JOB).await;
    client.hear().await;
    client
        .expect(&format!(
            r#"0x05 | demo | {JOB} | 102 | {{"worker":"demo-worker-1","uuid":"{JOB}","service":"demo","status":"WAITING_CLIENT_INPUT","input_request":{question}}}"#
        ))
        .await;
    id
}

/// The end of a job that asked: the event of the answer, and the result.
async fn after_answer(client: &mut Client, id: &str, status: &str) -> serde_json::Value {
    let (_, event) = client.hear_status().await;
    assert_eq!((&event["event_type"], &event["message"]), (&json!("input_response"), &json!("Go on?")));
    assert_eq!((&event["status"], &event["extras"]["input_response"]["input_id"]), (&json!(status), &json!(id)));
    assert!(client.hear().await.contains("result_ready"));
    client.get("demo-worker-1", JOB).await;
    client.hear().await;
    client.hear_status().await.1["demo-worker-1"].clone()
}

#[tokio::test]
async fn a_question_is_answered() {
    let (_loopback, _, mut client) = fabric().await;
    let id = asked(&mut client).await;
    client.say("0x10", "demo", "demo-worker-1", JOB, r#"{"input_id":"wrong","value":"no","cancel":false}"#).await;
    client.say("0x10", "demo", "demo-worker-1", JOB, "nonsense").await;
    client.expect_silence().await;
    let answer = format!(r#"{{"input_id":"{id}","value":{{"yes":[1]}},"cancel":false,"metadata":{{}}}}"#);
    client.say("0x10", "demo", "demo-worker-1", JOB, &answer).await;
    let result = after_answer(&mut client, &id, "received").await;
    assert_eq!((&result["result"], &result["failed"]), (&json!({"yes": [1]}), &json!(false)));
    // Too late: dropped without a word.
    client.say("0x10", "demo", "demo-worker-1", JOB, &answer).await;
    client.expect_silence().await;
}

#[tokio::test]
async fn a_question_is_turned_down() {
    let (_loopback, _, mut client) = fabric().await;
    let id = asked(&mut client).await;
    let answer = format!(r#"{{"input_id":"{id}","value":null,"cancel":true,"metadata":{{}}}}"#);
    client.say("0x10", "demo", "demo-worker-1", JOB, &answer).await;
    let result = after_answer(&mut client, &id, "cancelled").await;
    assert_eq!((&result["failed"], &result["status"]), (&json!(true), &json!("error")));
    assert!(result["messages"][0].as_str().unwrap().contains("Client cancelled input for job"), "{result}");
}

#[tokio::test]
async fn a_question_is_not_answered_in_time() {
    let (_loopback, clock, mut client) = fabric().await;
    let id = asked(&mut client).await;
    clock.advance(120);
    let result = after_answer(&mut client, &id, "timeout").await;
    // The job's own timeout of 60 s is over as well.
    assert_eq!((&result["failed"], &result["status"]), (&json!(true), &json!("timeout")));
    assert!(result["messages"][0].as_str().unwrap().contains("Client input timed out"), "{result}");
}

#[tokio::test]
async fn questions_to_the_broker() {
    let (_loopback, clock, mut client) = fabric().await;
    clock.advance(22);
    let worker = |name: &str| {
        format!(
            r#"{{"alive (s)":"22","holdtime":"15.0","keepalives tx/rx":"0 / 0","name":"{name}","service":"demo","status":"alive"}}"#
        )
    };
    let both = format!("[{},{}]", worker("demo-worker-1"), worker("demo-worker-2"));
    let nobody = r#"[{"name":"","service":"","status":""}]"#.to_owned();
    for (service, payload, answer) in [
        ("mmi.service.broker", r#"{"task":"show_workers","kwargs":{},"args":[]}"#, both.clone()),
        ("mmi.service.broker", r#"{"task":"show_workers","kwargs":{"service":"demo","status":"alive"}}"#, both.clone()),
        ("mmi.service.broker", r#"{"task":"show_workers","kwargs":{"service":"all"}}"#, both),
        ("mmi.service.broker", r#"{"task":"show_workers","kwargs":{"service":"nosuch"}}"#, nobody.clone()),
        ("mmi.service.broker", r#"{"task":"show_workers","kwargs":{"status":"dead"}}"#, nobody),
        ("mmi.service.broker", r#"{"task":"nosuch"}"#, r#""Unsupported task 'nosuch'""#.to_owned()),
        ("mmi.service.broker", "{}", r#""Unsupported task 'None'""#.to_owned()),
        ("mmi.service.broker", r#"{"task":"get_logs"}"#, "[]".to_owned()),
        ("sid.service.broker", r#"{"task":"get_inventory","kwargs":{"name":"demo-worker-1"}}"#, "null".to_owned()),
    ] {
        for asked_by in ["0x11", "0x04"] {
            client.say(asked_by, service, "any", JOB, payload).await;
            for command in ["0x05", "0x11"] {
                client.expect(&format!("{command} | {service} | {JOB} | 200 | {answer}")).await;
            }
        }
    }
    for task in ["show_broker_version", "get_status", "get_stats", "show_broker_inventory"] {
        client.say("0x11", "mmi.service.broker", "any", JOB, &format!(r#"{{"task":"{task}"}}"#)).await;
        for _ in 0..2 {
            let (status, payload) = client.hear_status().await;
            assert!(status == "200" && payload.is_object(), "{payload}");
        }
    }
}

#[tokio::test]
async fn messages_that_get_no_answer() {
    let (_loopback, _, mut client) = fabric().await;
    for command in ["0x00", "0x03", "0x07", "0x11"] {
        client.say(command, "demo", "all", JOB, "{}").await;
    }
    client.say("0x11", "mmi.service.broker", "any", JOB, "no JSON").await;
    client.send(&[b"", b"NFPC01", b"0x04", b"demo", b"all", JOB.as_bytes()]).await;
    client.send(&[b"NFPC01", b"0x04", b"demo", b"all", JOB.as_bytes(), b"{}"]).await;
    client.send(&[b"", b"NFPC99", b"0x04", b"demo", b"all", JOB.as_bytes(), b"{}"]).await;
    client.send(&[b"", b"NFPW01", b"0x01", b"demo", b"all", JOB.as_bytes(), b"{}"]).await;
    client.send(&[b"", b"NFPC01", b"0x04", b"\xff", b"all", JOB.as_bytes(), b"{}"]).await;
    client.expect_silence().await;
}

#[tokio::test]
async fn unknown_commands_get_five_frames() {
    let (_loopback, _, mut client) = fabric().await;
    for command in ["0x01", "0x02", "0x05", "0x08", "0x09", "0x99", "hello"] {
        client.say(command, "demo", "all", JOB, "{}").await;
        client.expect(&format!("0x05 | demo | NFPBroker - Unsupported client command 'b'{command}''")).await;
    }
}

#[tokio::test]
async fn payloads_that_are_no_job() {
    let (loopback, _, mut client) = fabric().await;
    let both = r#"["demo-worker-1","demo-worker-2"]"#;
    client.post("all", "a", "{}").await;
    client.expect(&accepted("a", "all", both)).await;
    client.expect_silence().await;
    // The workers live on.
    client.run("b", ECHO).await;
    client.post("demo-worker-1", "c", "[1]").await;
    client.hear().await;
    // This one takes no more jobs, but answers for those that it has.
    client.post("demo-worker-1", "d", ECHO).await;
    client.expect(&accepted("d", "demo-worker-1", r#"["demo-worker-1"]"#)).await;
    client.expect_silence().await;
    client.get("demo-worker-1", "b").await;
    client.hear().await;
    assert_eq!(client.hear_status().await.0, "200");
    assert_eq!(loopback.executions().len(), 1);
}

#[tokio::test]
async fn a_worker_runs_five_jobs_at_once() {
    let (loopback, clock, mut client) = fabric().await;
    for number in 0..6 {
        client.post("demo-worker-1", &format!("job-{number}"), r#"{"task":"sleep","args":[5]}"#).await;
    }
    let mut heard = Vec::new();
    for _ in 0..6 * 2 + 5 {
        heard.push(client.hear().await);
    }
    assert_eq!(heard.iter().filter(|text| text.contains("starting")).count(), 5);
    client.get("demo-worker-1", "job-5").await;
    client.hear().await;
    client.expect(&standing("job-5", "demo-worker-1", "300", "STARTED")).await;
    assert_eq!(loopback.executions().len(), 5);

    clock.advance(5);
    while !client.hear().await.contains("\"uuid\":\"job-5\",\"event_type\":\"progress\",\"message\":\"starting\"") {}
    assert_eq!(loopback.executions().len(), 6);
}

#[tokio::test]
async fn what_came_is_recorded() {
    let (loopback, _, mut client) = fabric().await;
    client.post("demo-worker-1", JOB, ECHO).await;
    client.hear().await;
    client.say("0x99", "demo", "all", "x", "{}").await;
    client.send(&[b"", b"NFPC01", b"too short"]).await;
    client.settle().await;
    let messages = loopback.messages();
    let first = &messages[0];
    assert_eq!((first.client.as_str(), first.command.as_str(), first.service.as_str()), ("tester", "0x04", "demo"));
    assert_eq!((first.target.as_str(), first.uuid.as_str()), ("demo-worker-1", JOB));
    assert_eq!(first.bytes, "0x04demodemo-worker-1".len() + JOB.len() + ECHO.len());
    assert_eq!(first.at.to_string(), "2026-11-29T15:59:15.25Z");
    assert_eq!(messages.iter().map(|message| message.command.as_str()).collect::<Vec<_>>(), ["0x04", "0x99", "0x11"]);
    let execution = &loopback.executions()[0];
    assert_eq!(
        (execution.job.as_str(), execution.worker.as_str(), execution.task.as_str()),
        (JOB, "demo-worker-1", "echo")
    );
}

#[tokio::test]
async fn a_fabric_can_be_stopped_and_started_at_its_port() {
    let (loopback, clock, mut client) = fabric().await;
    let port: u16 = loopback.endpoint().rsplit_once(':').unwrap().1.parse().unwrap();
    let taken = Loopback::start(LoopbackConfig::default().port(port), clock.clone()).await;
    assert!(matches!(taken, Err(LoopbackError::Bind { port: refused, .. }) if refused == port));
    client.post("all", JOB, r#"{"task":"sleep","args":[3600]}"#).await;
    client.hear().await;
    loopback.shutdown().await;

    let config = LoopbackConfig::new("other", 1).port(port);
    let again = Loopback::start(config, clock).await.unwrap();
    assert_eq!(again.endpoint(), format!("tcp://127.0.0.1:{port}"));
    assert_eq!(again.workers(), ["other-worker-1"]);
    let mut client = Client::connect(&again, "tester").await;
    client.say("0x06", "other", "all", JOB, "{}").await;
    assert_eq!(client.hear_status().await.0, "202");
    assert_eq!(client.hear_status().await.0, "404");
    again.shutdown().await;
}

#[tokio::test]
async fn workers_keep_their_jobs_while_the_broker_is_away() {
    let (loopback, clock, mut client) = fabric().await;
    client.post("demo-worker-1", JOB, r#"{"task":"sleep","kwargs":{"seconds":5},"args":[]}"#).await;
    client.expect(&accepted(JOB, "demo-worker-1", r#"["demo-worker-1"]"#)).await;
    client.expect(&stored(JOB, "demo-worker-1")).await;
    client.expect(&starting(JOB, "sleep")).await;

    loopback.stop_broker().await;
    clock.advance(5);
    loopback.start_broker().await.unwrap();
    let mut again = Client::connect(&loopback, "tester").await;
    // Its end was told while nobody could hear it, or is told now: it is known to whoever asks.
    let result = loop {
        again.get("demo-worker-1", JOB).await;
        let heard = [again.hear_status().await, again.hear_status().await];
        if let Some((_, payload)) = heard.into_iter().find(|(_, payload)| payload.get("demo-worker-1").is_some()) {
            break payload;
        }
    };
    assert_eq!(result["demo-worker-1"]["failed"], json!(false));
    assert_eq!(loopback.executions().len(), 1);
}

#[tokio::test]
async fn a_broker_that_is_there_cannot_be_started() {
    let (loopback, ..) = fabric().await;
    assert!(matches!(loopback.start_broker().await, Err(LoopbackError::Bind { .. })));
    loopback.stop_broker().await;
    loopback.stop_broker().await;
    assert_eq!(loopback.start_broker().await.map_err(|error| error.to_string()), Ok(()));
}
