//! Does the same to many items on all cores, and hands the results on in the order of the items, so that outputs do not
//! depend on the number of cores.

use std::num::NonZero;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// How many results of one thread wait at most, so that the memory that they take is bounded.
const WAITING: usize = 16;

/// Gives `take` what `work` makes of each item, in their order, until it fails. The work is done on all cores if each has
/// at least so many items; a thread costs more than few small ones.
///
/// # Errors
/// That of `take`.
pub(crate) fn each<I: Send, O: Send, E>(
    items: Vec<I>,
    least: usize,
    work: impl Fn(I) -> O + Sync,
    mut take: impl FnMut(O) -> Result<(), E>,
) -> Result<(), E> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(items.len() / least.max(1));
    if threads < 2 {
        return items.into_iter().map(work).try_for_each(take);
    }
    let (count, work) = (items.len(), &work);
    thread::scope(|scope| {
        let receivers: Vec<Receiver<O>> = dealt(items, threads)
            .into_iter()
            .map(|own| {
                let (sender, receiver) = sync_channel(WAITING);
                // After an error no result is taken any more.
                scope.spawn(move || own.into_iter().map(work).try_for_each(|it| sender.send(it).ok()));
                receiver
            })
            .collect();
        // A thread that panicked sends nothing more; the scope panics then.
        let results = receivers.iter().cycle().take(count).map_while(|receiver| receiver.recv().ok());
        let result = { results }.try_for_each(&mut take);
        drop(receivers);
        result
    })
}

/// The items in turns, as cards are dealt.
fn dealt<I>(items: Vec<I>, hands: usize) -> Vec<Vec<I>> {
    let mut all: Vec<Vec<I>> = (0..hands).map(|_| Vec::with_capacity(items.len() / hands + 1)).collect();
    for (number, item) in items.into_iter().enumerate() {
        if let Some(hand) = all.get_mut(number % hands) {
            hand.push(item);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hands_results_on_in_the_order_of_the_items() {
        for count in [0, 1, 2, 3, 100, 1_001] {
            let mut seen = Vec::new();
            let took = each(
                (0..count).collect(),
                1,
                |it: usize| it * 2,
                |it| {
                    seen.push(it);
                    Ok::<_, ()>(())
                },
            );
            assert_eq!(took, Ok(()));
            assert_eq!(seen, (0..count).map(|it| it * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn ends_at_the_first_error() {
        let fails = |it| if it < 500 { Ok(()) } else { Err(it) };
        assert_eq!(each((0..10_000).collect(), 1, |it: usize| it, fails), Err(500));
    }
}
