//! One attempt to connect: who listens there, whether that can be the broker, and in which words it fails.

use super::Dialer;
use super::endpoint::{Endpoint, Listener, look};
use super::history::{Ended, Failure};

/// Looks who listens, and dials if it can be the broker.
pub(super) async fn attempt<D: Dialer>(endpoint: &Endpoint, dialer: &D) -> Result<(D::Outlet, D::Inlet), Ended> {
    let failure = match look(endpoint).await {
        Listener::ZeroMq { mechanism } if mechanism == D::MECHANISM => match dialer.dial().await {
            Ok(connection) => return Ok(connection),
            Err(reason) => Failure::Handshake(format!("the broker at {endpoint} broke the connection off: {reason}")),
        },
        Listener::ZeroMq { mechanism } => Failure::Mismatch(mismatch(endpoint, &mechanism)),
        Listener::Foreign => {
            Failure::Mismatch(format!("what listens at {endpoint} is no NorFab broker: it speaks another protocol"))
        }
        Listener::Silent => {
            Failure::Unreachable(format!("the broker at {endpoint} accepts connections but does not answer"))
        }
        Listener::Unreachable(reason) => {
            Failure::Unreachable(format!("the broker at {endpoint} cannot be reached: {reason}"))
        }
    };
    Err(Ended::Failed(failure))
}

fn mismatch(endpoint: &Endpoint, mechanism: &str) -> String {
    match mechanism {
        "CURVE" => format!(
            "the broker at {endpoint} demands CURVE, and this client has none; set zmq_auth to true and give the \
             broker's public key"
        ),
        "NULL" => format!("the broker at {endpoint} has no CURVE, and this client demands it; set zmq_auth to false"),
        other => format!("the broker at {endpoint} demands {other:?}, which NorFab does not use"),
    }
}
