//! Where the tasks of a client run: those of one that was built have a thread of their own, with a runtime of its own. It waits
//! for the disk itself, so that a job changes threads where it comes from the caller and where it goes back, and nowhere else.

use std::io;
use std::sync::{Arc, mpsc};

use norfab_dispatch::Watch;
use tokio::runtime::{Builder, EnterGuard, Handle};
use tokio::sync::mpsc as needs;
use tokio::task::JoinHandle;

/// Where the tasks of a client run, and the store that they use.
#[derive(Debug)]
pub(crate) struct Home<S> {
    /// A handle on the store for the tasks that run here, and for no other.
    pub(crate) store: Arc<S>,
    thread: Option<Thread>,
}

/// A thread with a runtime. It ends when this is gone and all its tasks have ended.
#[derive(Debug)]
struct Thread {
    runtime: Handle,
    needed: needs::Sender<()>,
}

impl<S> Home<S> {
    /// The runtime of the caller.
    pub(crate) fn of_caller(store: Arc<S>) -> Self {
        Self { store, thread: None }
    }

    /// A thread of its own.
    pub(crate) fn start(store: S) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (needed, mut no_more) = needs::channel(1);
        let thread = Thread { runtime: runtime.handle().clone(), needed };
        std::thread::Builder::new().name("norfab-dispatch".to_owned()).spawn(move || {
            // Nothing is ever sent: it ends when nobody can.
            runtime.block_on(no_more.recv());
        })?;
        Ok(Self { store: Arc::new(store), thread: Some(thread) })
    }

    /// Runs a task, whether or not somebody waits for it.
    pub(crate) fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        match &self.thread {
            None => tokio::spawn(task),
            Some(thread) => {
                let needed = thread.needed.clone();
                thread.runtime.spawn(async move {
                    let done = task.await;
                    drop(needed);
                    done
                })
            }
        }
    }

    /// Watches over a dispatcher for as long as what is returned is kept: where its thread waits for the disk, another one has
    /// to notice that it does so for long.
    pub(crate) fn watch(&self, watch: Watch) -> Option<mpsc::Sender<()>> {
        self.thread.as_ref()?;
        let (kept, over) = mpsc::channel();
        let watching = std::thread::Builder::new().name("norfab-watch".to_owned()).spawn(move || look(watch, &over));
        if let Err(error) = watching {
            // It serves all the same.
            tracing::debug!("Cannot watch over the dispatcher: {error}");
        }
        Some(kept)
    }

    /// What is connected while this is held is served here.
    pub(crate) fn enter(&self) -> Option<EnterGuard<'_>> {
        self.thread.as_ref().map(|thread| thread.runtime.enter())
    }
}

fn look(mut watch: Watch, over: &mpsc::Receiver<()>) {
    while over.recv_timeout(watch.interval()) == Err(mpsc::RecvTimeoutError::Timeout) {
        watch.look();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn its_tasks_end_before_its_thread_does() {
        let home = Home::start(()).expect("a thread");
        let (tell, told) = tokio::sync::oneshot::channel();
        let (go_on, wait) = tokio::sync::oneshot::channel::<()>();
        let task = home.spawn(async move {
            wait.await.expect("told to go on");
            tell.send(thread::current().name().map(str::to_owned)).expect("awaited");
        });
        drop(home);
        go_on.send(()).expect("awaited");
        assert_eq!(told.await.expect("an answer").as_deref(), Some("norfab-dispatch"));
        task.await.expect("it ends well");
    }

    #[tokio::test]
    async fn the_home_of_the_caller_is_its_runtime() {
        let home = Home::of_caller(Arc::new(()));
        let here = thread::current().id();
        assert_eq!(home.spawn(async { thread::current().id() }).await.expect("it ends well"), here);
    }
}
