//! A second thread for what a pass over many schedules computes, while its own waits for SQLite.

use std::sync::mpsc;
use std::thread;

type Work<'env> = Box<dyn FnOnce() + Send + 'env>;

/// Does work in the order in which it is handed over: on a thread of its own, or at once where there is none.
pub(super) struct Aside<'env> {
    thread: Option<mpsc::Sender<Work<'env>>>,
}

/// Where the work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// On a thread of its own, if the system starts one.
    Aside,
    /// On this one.
    Here,
}

/// Does something that hands work over, and ends when all of it is done.
pub(super) fn with<'env, T>(place: Where, call: impl FnOnce(&Aside<'env>) -> T) -> T {
    if place == Where::Here {
        return call(&Aside { thread: None });
    }
    thread::scope(|scope| {
        let (sender, waiting) = mpsc::channel::<Work<'env>>();
        let serve = move || waiting.into_iter().for_each(|work| work());
        let started = thread::Builder::new().name("norfab-pass".to_owned()).spawn_scoped(scope, serve);
        call(&Aside { thread: started.ok().map(|_| sender) })
    })
}

impl<'env> Aside<'env> {
    /// Has work done; what it returns comes through the channel.
    pub(super) fn run<T: Send + 'env>(&self, work: impl FnOnce() -> T + Send + 'env) -> mpsc::Receiver<T> {
        let (answer, answered) = mpsc::channel();
        // Whoever does not wait any more has met an error.
        let work: Work<'env> = Box::new(move || drop(answer.send(work())));
        match &self.thread {
            Some(thread) => drop(thread.send(work)),
            None => work(),
        }
        answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(place: Where) {
        let here = thread::current().id();
        let (mut done, on) = with(place, |aside| {
            let answers: Vec<_> = (0..100).map(|number| aside.run(move || (number, thread::current().id()))).collect();
            answers.into_iter().map(|answer| answer.recv().unwrap()).unzip::<_, _, Vec<i32>, Vec<_>>()
        });
        assert!(on.iter().all(|id| (*id == here) == (place == Where::Here)));
        assert!(done.is_sorted());
        done.dedup();
        assert_eq!(done.len(), 100);
    }

    #[test]
    fn work_is_done_in_its_order() {
        check(Where::Aside);
        check(Where::Here);
    }

    #[test]
    fn who_does_not_wait_stops_nothing() {
        let (done, told) = mpsc::channel();
        with(Where::Aside, |aside| drop(aside.run(move || done.send(()))));
        assert!(told.recv().is_ok());
    }
}
