//! The `Broker` port over real sockets, plain and with CURVE: the same suite for both, and then what tells them apart.

mod support;

use futures_util::FutureExt;
use norfab_model::{Broker, BrokerError, Connection, Inbound, Json, ReplyKind};
use norfab_nfp::{Endpoint, KeyPair, NfpBroker, Security};
use support::*;

/// A broker and a client that have spoken to each other, so that both know of the connection.
async fn start(kind: Kind) -> (Site, Router, NfpBroker) {
    let mut site = Site::new(kind);
    let mut router = site.open().await;
    let mut client = site.client();
    assert_eq!(next_connection(&mut client).await, Connection::Connected);
    client.send(get(usize::MAX)).await.unwrap();
    router.recv_request(usize::MAX).await;
    (site, router, client)
}

async fn messages_pass_both_ways(kind: Kind) {
    let (_, mut router, mut client) = start(kind).await;
    client.send(get(1)).await.unwrap();
    let (sender, frames) = router.recv().await;
    let expected: Vec<Vec<u8>> =
        ["", "NFPC01", "0x06", "dummy", "all", id(1).as_str(), "{}"].map(|part| part.into()).into();
    assert_eq!((sender.as_str(), frames), ("tester", expected));

    router.send("tester", says("0x05", "dummy", &id(1), "404", r#"{"worker":"w1"}"#)).await;
    router.send("tester", says("0x05", "dummy", &id(1), "200", r#"{"w1":{"result":1.50},"w2":{}}"#)).await;
    router.send("tester", says("0x09", "dummy", &id(1), "200", "bytes")).await;
    let mut kinds = Vec::new();
    for _ in 0..3 {
        match next(&mut client).await {
            Inbound::Reply(reply) if reply.job == id(1) => kinds.push(reply.kind),
            other => panic!("{other:?}"),
        }
    }
    let result =
        |worker: &str, text: &str| ReplyKind::Result { worker: worker.into(), result: Json::parse(text).unwrap() };
    let expected =
        [ReplyKind::NotFound { worker: "w1".into() }, result("w1", r#"{"result":1.50}"#), result("w2", "{}")];
    assert_eq!(kinds, expected);
    assert!(matches!(next(&mut client).await, Inbound::Stray(text) if text.contains("not asked for")));
}

async fn an_answer_that_comes_twice_is_told_once(kind: Kind) {
    let (_, mut router, mut client) = start(kind).await;
    client.send(question(7)).await.unwrap();
    router.recv().await;
    for command in ["0x05", "0x11"] {
        router.send("tester", says(command, "mmi.service.broker", &id(7), "200", "[]")).await;
    }
    router.send("tester", says("0x11", "mmi.service.broker", &id(8), "200", "[]")).await;
    router.send("tester", says("0x05", "dummy", &id(9), "300", r#"{"worker":"w1"}"#)).await;
    assert_eq!(next(&mut client).await, Inbound::Mmi { id: id(7), answer: Json::empty_array() });
    assert!(matches!(next(&mut client).await, Inbound::Reply(reply) if reply.job == id(9)));
}

async fn a_dead_broker_is_noticed_and_found_again(kind: Kind) {
    let (mut site, router, mut client) = start(kind).await;
    router.stop().await;
    assert!(matches!(next_connection(&mut client).await, Connection::Lost(_)));
    client.send(get(1)).await.unwrap();
    client.send(question(2)).await.unwrap();
    let mut router = site.open().await;
    connected(&mut client).await;
    client.send(get(3)).await.unwrap();
    // The request of the time between is lost, the question is not.
    for number in [2, 3] {
        let (sender, frames) = router.recv().await;
        assert_eq!((sender.as_str(), frames[5].as_slice()), ("tester", id(number).as_str().as_bytes()));
    }
    router.send("tester", says("0x05", "dummy", &id(3), "300", r#"{"worker":"w1"}"#)).await;
    assert!(matches!(next(&mut client).await, Inbound::Reply(reply) if reply.job == id(3)));
}

async fn large_messages_pass(kind: Kind) {
    const BYTES: usize = 10 << 20;
    let (_, mut router, mut client) = start(kind).await;
    let text = "x".repeat(BYTES);
    client.send(post(1, format!("{{\"text\":\"{text}\"}}"))).await.unwrap();
    let (_, frames) = router.recv().await;
    assert!(frames[6].len() > BYTES);
    router.send("tester", says("0x05", "dummy", &id(1), "200", &format!("{{\"w1\":\"{text}\"}}"))).await;
    match next(&mut client).await {
        Inbound::Reply(reply) => {
            assert!(matches!(reply.kind, ReplyKind::Result { result, .. } if result.as_str().len() == BYTES + 2));
        }
        other => panic!("{other:?}"),
    }
}

async fn closing_sends_what_was_handed_over(kind: Kind) {
    const COUNT: usize = 100;
    let (_, mut router, mut client) = start(kind).await;
    for number in 0..COUNT {
        client.send(post(number, format!("{{\"text\":\"{}\"}}", "x".repeat(100)))).await.unwrap();
    }
    let receive = async {
        for number in 0..COUNT {
            assert_eq!(router.recv().await.1[5], id(number).as_str().as_bytes());
        }
    };
    tokio::join!(within("the end", client.close()), within("all requests", receive));
    assert_eq!(client.send(get(1)).await, Err(BrokerError::Closed));
    assert_eq!(client.reconnect().await, Err(BrokerError::Closed));
    assert_eq!(within("the end", client.receive(&mut Vec::new(), 1)).await, 0);
}

async fn a_new_connection_can_be_asked_for(kind: Kind) {
    let (_, mut router, mut client) = start(kind).await;
    client.reconnect().await.unwrap();
    client.send(get(2)).await.unwrap();
    assert!(matches!(next_connection(&mut client).await, Connection::Lost(_)));
    connected(&mut client).await;
    client.send(get(3)).await.unwrap();
    router.recv_request(3).await;
    router.send("tester", says("0x05", "dummy", &id(2), "300", r#"{"worker":"w1"}"#)).await;
    assert!(matches!(next(&mut client).await, Inbound::Reply(reply) if reply.job == id(2)));
}

async fn nothing_is_lost_when_waiting_is_given_up(kind: Kind) {
    const COUNT: usize = 300;
    let (_, mut router, mut client) = start(kind).await;
    client.send(get(0)).await.unwrap();
    router.recv().await;
    let send = async {
        for number in 0..COUNT {
            router.send("tester", says("0x05", "dummy", &id(number), "300", r#"{"worker":"w1"}"#)).await;
        }
    };
    let receive = async {
        let mut batch = Vec::new();
        while batch.len() < COUNT {
            if client.receive(&mut batch, 7).now_or_never().is_none() {
                tokio::task::yield_now().await;
            }
        }
        batch
    };
    let (batch, ()) = within("all messages", async { tokio::join!(receive, send) }).await;
    for (number, inbound) in batch.into_iter().enumerate() {
        assert!(matches!(inbound, Inbound::Reply(reply) if reply.job == id(number)), "message {number}");
    }
}

/// The suite, once for a kind of socket.
macro_rules! suite {
    ($name:ident, $kind:ident) => {
        suite!($name, $kind: messages_pass_both_ways, an_answer_that_comes_twice_is_told_once,
            a_dead_broker_is_noticed_and_found_again, large_messages_pass, closing_sends_what_was_handed_over,
            a_new_connection_can_be_asked_for, nothing_is_lost_when_waiting_is_given_up);
    };
    ($name:ident, $kind:ident: $($case:ident),+) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$case(super::Kind::$kind).await;
                }
            )+
        }
    };
}

suite!(plain, Plain);
suite!(curve, Curve);

#[tokio::test]
async fn a_client_that_was_cut_off_by_its_double_gets_its_place_back() {
    let (site, mut router, mut first) = start(Kind::Plain).await;
    let mut second = client(site.endpoint(), Security::Plain);
    connected(&mut second).await;
    second.send(get(1)).await.unwrap();
    router.recv().await;
    router.send("tester", says("0x05", "dummy", &id(1), "300", r#"{"worker":"w1"}"#)).await;
    assert!(matches!(next(&mut second).await, Inbound::Reply(reply) if reply.job == id(1)));
    second.close().await;

    first.reconnect().await.unwrap();
    assert!(matches!(next_connection(&mut first).await, Connection::Lost(_)));
    connected(&mut first).await;
    first.send(get(2)).await.unwrap();
    router.recv_request(2).await;
    router.send("tester", says("0x05", "dummy", &id(2), "300", r#"{"worker":"w1"}"#)).await;
    assert!(matches!(next(&mut first).await, Inbound::Reply(reply) if reply.job == id(2)));
}

#[tokio::test]
async fn a_wrong_key_is_told_after_two_handshakes() {
    let mut site = Site::new(Kind::Curve);
    let _router = site.open().await;
    let wrong = Security::Curve { keys: KeyPair::generate(), broker: KeyPair::generate().public() };
    let mut client = client(site.endpoint(), wrong);
    match next_connection(&mut client).await {
        Connection::Lost(text) => assert!(text.contains("broke the connection off"), "{text}"),
        other => panic!("{other:?}"),
    }
    match next_connection(&mut client).await {
        Connection::Trouble(text) => assert!(text.contains("refuses our keys or has another key"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_broker_that_demands_curve_is_told() {
    let mut site = Site::new(Kind::Curve);
    let _router = site.open().await;
    let text = trouble(&mut client(site.endpoint(), Security::Plain)).await;
    assert!(text.contains("demands CURVE"), "{text}");
}

#[tokio::test]
async fn a_broker_without_curve_is_told() {
    let mut site = Site::new(Kind::Plain);
    let _router = site.open().await;
    let security = Security::Curve { keys: KeyPair::generate(), broker: KeyPair::generate().public() };
    let text = trouble(&mut client(site.endpoint(), security)).await;
    assert!(text.contains("has no CURVE"), "{text}");
}

#[tokio::test]
async fn a_broker_that_is_not_there_is_told_once_and_found_later() {
    let mut site = Site::new(Kind::Plain);
    site.open().await.stop().await;
    let mut client = site.client();
    match next_connection(&mut client).await {
        Connection::Lost(text) => assert!(text.contains("cannot be reached"), "{text}"),
        other => panic!("{other:?}"),
    }
    let _router = site.open().await;
    assert_eq!(next_connection(&mut client).await, Connection::Connected);
}

#[tokio::test]
async fn without_a_connection_questions_wait_and_are_bounded() {
    let mut site = Site::new(Kind::Plain);
    site.open().await.stop().await;
    let mut client = site.client();
    let mut taken = 0;
    while client.send(question(taken)).await.is_ok() {
        taken += 1;
    }
    assert_eq!((taken, client.send(question(taken)).await), (256, Err(BrokerError::Full)));
    let mut router = site.open().await;
    for number in 0..taken {
        assert_eq!(router.recv().await.1[5], id(number).as_str().as_bytes());
    }
    within("the end", client.close()).await;
}

#[tokio::test]
async fn without_a_connection_requests_are_lost() {
    let mut site = Site::new(Kind::Plain);
    site.open().await.stop().await;
    let mut client = site.client();
    let text = format!("{{\"text\":\"{}\"}}", "x".repeat(15 << 20));
    for number in 0..10 {
        client.send(post(number, text.clone())).await.unwrap();
    }
    let mut router = site.open().await;
    connected(&mut client).await;
    client.send(get(10)).await.unwrap();
    assert_eq!(router.recv().await.1[5], id(10).as_str().as_bytes());
}

#[tokio::test]
async fn a_broker_that_stops_reading_fills_the_queue_and_no_more() {
    const SIZE: usize = 1 << 20;
    let (endpoint, _peer) = sleepy_broker().await;
    let mut client = client(endpoint, Security::Plain);
    connected(&mut client).await;
    // From here on the clock moves only when every task waits for something, so that to sleep is to wait for just that.
    tokio::time::pause();
    let text = format!("{{\"text\":\"{}\"}}", "x".repeat(SIZE));
    let mut taken = 0;
    for _ in 0..5 {
        while taken < 1000 {
            match client.send(post(taken, text.clone())).await {
                Ok(()) => taken += 1,
                Err(BrokerError::Full) => break,
                Err(error) => panic!("{error}"),
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    assert!((64..100).contains(&taken), "{taken} MiB");
    // It ends in time all the same.
    within("the end", client.close()).await;
}

/// Nobody makes room for what is only announced, and who announces too much is cut off: it cannot fill the memory, nor end the
/// process.
#[tokio::test]
async fn a_message_that_is_announced_too_large_costs_the_connection() {
    // A long frame of 2^60 bytes; one of a tebibyte behind others of the same message.
    let announcements: [&[u8]; 2] = [b"\x02\x10\0\0\0\0\0\0\0", b"\x01\0\x01\x03abc\x03\0\0\x01\0\0\0\0\0"];
    for announced in announcements {
        let (endpoint, task) = raw_broker(announced).await;
        let mut client = client(endpoint, Security::Plain);
        for _ in 0..2 {
            connected(&mut client).await;
            assert!(matches!(next_connection(&mut client).await, Connection::Lost(_) | Connection::Trouble(_)));
        }
        client.close().await;
        task.abort();
    }
}

#[tokio::test]
async fn a_request_that_would_break_a_worker_is_refused_here() {
    let (_, mut router, mut client) = start(Kind::Plain).await;
    client.send(post(1, "{\"n\":1e999}".to_owned())).await.unwrap();
    client.send(get(2)).await.unwrap();
    match next(&mut client).await {
        Inbound::Reply(reply) => assert!(
            matches!(&reply.kind, ReplyKind::Refused { errors } if errors[0].contains("a number is too large")),
            "{reply:?}"
        ),
        other => panic!("{other:?}"),
    }
    assert_eq!(router.recv().await.1[5], id(2).as_str().as_bytes());
}

#[test]
fn without_a_runtime_there_is_an_error() {
    let endpoint = Endpoint::parse("tcp://127.0.0.1:5555").unwrap();
    let name = norfab_nfp::ClientName::new("tester").unwrap();
    assert!(matches!(NfpBroker::connect(endpoint, &name, Security::Plain), Err(norfab_nfp::Error::NoRuntime)));
}
