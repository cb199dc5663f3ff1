//! What wakes the loop: the only place that waits for several things at once.

use norfab_model::{Broker, Clock, Inbound, Timestamp, Uptime};
use tokio::sync::mpsc;

use crate::control::Command;

/// One reason to look at the world again.
#[derive(Debug)]
pub(crate) enum Event {
    /// Messages of the fabric.
    Inbound(Vec<Inbound>),
    /// Something to do, told by the program.
    Command(Command),
    /// The instant slept for has come, or it is time to look at the clock again.
    Timer,
    /// The transport has ended.
    TransportEnded,
}

/// Waits for the next event: at the most until the wall clock shows `wake`, or the other one `until`. `None` for the
/// transport: it has ended, do not ask it again.
pub(crate) async fn next<B: Broker, C: Clock>(
    commands: &mut mpsc::UnboundedReceiver<Command>,
    broker: Option<&mut B>,
    clock: &C,
    (wake, until): (Timestamp, Uptime),
    limit: usize,
) -> Event {
    let inbound = async {
        match broker {
            Some(broker) => {
                let mut batch = Vec::new();
                if broker.receive(&mut batch, limit).await == 0 { Event::TransportEnded } else { Event::Inbound(batch) }
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        // Commands first: a flood of messages must not hold up a shutdown.
        biased;
        command = commands.recv() => Event::Command(command.unwrap_or(Command::Shutdown)),
        event = inbound => event,
        () = clock.sleep_until(wake, until) => Event::Timer,
    }
}
