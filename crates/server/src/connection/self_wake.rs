//! Polls a connection again at once when it wakes itself.
//!
//! hyper wakes the connection when the body of a request is dropped, while the connection is being polled. A task that
//! wakes itself goes back into the queue of the runtime, and the runtime wakes an idle thread to take it. One caller that
//! sends its next review when the last one is answered: 64 instead of 76 µs a review, 50 instead of 65 µs of CPU, and no
//! switch of threads instead of one (two cores).

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

/// Set while the connection is being polled.
const POLLED: u8 = 1;

/// Set when the connection was woken.
const WOKEN: u8 = 2;

/// Wakes the task of a connection, but not while the connection is being polled.
#[derive(Default)]
struct SelfWaker {
    task: AtomicWaker,
    state: AtomicU8,
}

impl Wake for SelfWaker {
    fn wake(self: Arc<Self>) {
        if self.state.fetch_or(WOKEN, Ordering::AcqRel) & POLLED == 0 {
            self.task.wake();
        }
    }
}

/// Runs the future of a connection, and polls it twice in one turn when it wakes itself.
pub(super) async fn poll_again<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let own = Arc::new(SelfWaker::default());
    let waker = Waker::from(Arc::clone(&own));
    poll_fn(|context| {
        own.task.register(context.waker());
        for _ in 0..2 {
            own.state.store(POLLED, Ordering::Release);
            let poll = future.as_mut().poll(&mut Context::from_waker(&waker));
            if poll.is_ready() || own.state.swap(0, Ordering::AcqRel) & WOKEN == 0 {
                return poll;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::oneshot;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Wakes {
        fn count(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// The result of the first turn of a future that wakes itself so often, and how often its task was woken.
    fn first_turn(mut times: usize) -> (Poll<()>, usize) {
        let future = poll_fn(|context| {
            if times == 0 {
                return Poll::Ready(());
            }
            times -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        });
        let task = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&task));
        let poll = pin!(poll_again(future)).poll(&mut Context::from_waker(&waker));
        (poll, task.count())
    }

    #[test]
    fn a_future_that_wakes_itself_once_does_not_wake_its_task() {
        assert_eq!(first_turn(1), (Poll::Ready(()), 0));
    }

    #[test]
    fn a_future_that_wakes_itself_again_and_again_gives_other_tasks_a_turn() {
        assert_eq!(first_turn(5), (Poll::Pending, 1));
    }

    #[test]
    fn a_wake_between_two_turns_reaches_the_task() {
        let task = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&task));
        let context = &mut Context::from_waker(&waker);
        let (sender, receiver) = oneshot::channel();
        let mut future = pin!(poll_again(receiver));
        assert!(future.as_mut().poll(context).is_pending());
        assert_eq!(task.count(), 0);
        sender.send("an answer").expect("the receiver is there");
        assert_eq!(task.count(), 1);
        assert_eq!(future.poll(context), Poll::Ready(Ok("an answer")));
    }
}
