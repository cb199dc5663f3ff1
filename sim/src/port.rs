//! The client's socket on the simulated fabric, at which the client may die too.

use std::future::pending;
use std::task::Poll;

use norfab_model::{Broker, BrokerError, Inbound, Request};

use crate::fabric::Fabric;
use crate::gate::{Gate, Place};
use crate::witness::Witness;

/// The broker's port.
#[derive(Debug)]
pub(crate) struct SimBroker {
    fabric: Fabric,
    gate: Gate,
    witness: Witness,
}

impl SimBroker {
    pub(crate) fn new(fabric: Fabric, gate: Gate, witness: Witness) -> Self {
        Self { fabric, gate, witness }
    }

    async fn dies_when(&self, dies: bool) {
        if dies {
            self.gate.crash();
            pending::<()>().await;
        }
    }
}

impl Broker for SimBroker {
    async fn send(&mut self, request: Request) -> Result<(), BrokerError> {
        let fate = self.gate.broker_call();
        self.dies_when(fate == Some(Place::Before)).await;
        if let Request::Post(post) = &request {
            self.witness.see_leave(post);
        }
        let taken = self.fabric.state().take(request);
        self.dies_when(fate.is_some()).await;
        if taken { Ok(()) } else { Err(BrokerError::Full) }
    }

    async fn receive(&mut self, batch: &mut Vec<Inbound>, limit: usize) -> usize {
        let received = std::future::poll_fn(|_| {
            let received = self.fabric.state().receive(limit);
            if received.is_empty() { Poll::Pending } else { Poll::Ready(received) }
        })
        .await;
        let fate = self.gate.broker_call();
        self.dies_when(fate.is_some()).await;
        let count = received.len();
        batch.extend(received);
        count
    }

    async fn reconnect(&mut self) -> Result<(), BrokerError> {
        self.fabric.state().renew();
        Ok(())
    }

    async fn close(&mut self) {}
}
